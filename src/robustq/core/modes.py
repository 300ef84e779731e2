"""Which lower expectation a kernel is to take: numbers for names, and how far x goes."""

__all__ = ["CHI2", "ENDLESS", "EPSILON", "KL", "MODES", "ODDS_RATIO", "PARI_MUTUEL", "TV", "USER"]

USER, EPSILON, TV, PARI_MUTUEL, CHI2, ODDS_RATIO, KL = range(7)
# The names by which balls ask for one (`Perturbation.expectation`).
MODES = {
    "epsilon": EPSILON,
    "tv": TV,
    "pari_mutuel": PARI_MUTUEL,
    "chi2": CHI2,
    "odds_ratio": ODDS_RATIO,
    "kl": KL,
}
ENDLESS = 1e305  # stands for the end of a closed domain that x never reaches
