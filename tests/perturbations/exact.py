"""The lower expectations by their formulas, in whatever arithmetic the numbers bring."""

import mpmath

mpmath.mp.dps = 60


def exact_epsilon(q, f, delta):
    return (1 - delta) * expectation(q, f) + delta * min(f)


def exact_tv(q, f, delta):
    taken, value = delta, expectation(q, f)
    for v, p in sorted(zip(f, q, strict=True), reverse=True):
        share = min(taken, p)
        taken -= share
        value -= share * (v - min(f))
    return value


def exact_pari_mutuel(q, f, delta):
    left, value = 1, 0
    for v, p in sorted(zip(f, q, strict=True)):
        share = min(left, (1 + delta) * p)
        left -= share
        value += share * v
    return value


def exact_odds_ratio(q, f, delta):
    """Solve (1−δ)E(f−m)₊ = E(f−m)₋ on the piece of m between two values that holds its root."""

    def balance(m):
        above = sum(p * (v - m) for v, p in zip(f, q, strict=True) if v > m)
        below = sum(p * (m - v) for v, p in zip(f, q, strict=True) if v < m)
        return (1 - delta) * above - below

    ends = sorted({v for v, p in zip(f, q, strict=True) if p > 0})
    low = max(v for v in ends if balance(v) >= 0)
    later = [v for v in ends if v > low]
    if not later:
        return low
    start, end = balance(low), balance(later[0])
    return low + (later[0] - low) * start / (start - end)


def exact_chi2(q, f, delta):
    """Go down the level sets of f on the support, as in the docstring of ChiSquared."""
    support = [(mpmath.mpf(v), mpmath.mpf(p)) for v, p in zip(f, q, strict=True) if p > 0]
    for v in sorted({v for v, _ in support}, reverse=True):
        level = [(w, p) for w, p in support if w <= v]
        mass = sum(p for _, p in level)
        mean = sum(w * p for w, p in level) / mass
        variance = sum((w - mean) ** 2 * p for w, p in level) / mass
        excess = mass * (1 + delta) - 1
        if excess * (v - mean) ** 2 < variance:
            return mean - mpmath.sqrt(variance * max(excess, 0))
    return min(v for v, _ in support)


def exact_kl(q, f, delta):
    """Maximise the dual by bisection on t, where KL(q_t‖q) = δ."""
    low = min(v for v, p in zip(f, q, strict=True) if p > 0)
    support = [(mpmath.mpf(v - low), mpmath.mpf(p)) for v, p in zip(f, q, strict=True) if p > 0]
    if delta == 0:
        return low + sum(v * p for v, p in support)
    if delta >= -mpmath.log(sum(p for v, p in support if v == 0)):
        return low

    def log_mean(t):
        return mpmath.log(sum(p * mpmath.exp(-t * v) for v, p in support))

    def divergence(t):
        weights = [p * mpmath.exp(-t * v) for v, p in support]
        mean = sum(w * v for w, (v, _) in zip(weights, support, strict=True)) / sum(weights)
        return -t * mean - log_mean(t)

    left, right = mpmath.mpf(-200), mpmath.mpf(60)  # of log t
    for _ in range(150):
        middle = (left + right) / 2
        if divergence(mpmath.exp(middle)) < delta:
            left = middle
        else:
            right = middle
    t = mpmath.exp(left)
    return low + (-log_mean(t) - delta) / t


def expectation(q, f):
    return sum(p * v for p, v in zip(q, f, strict=True))


EXACT = {
    "epsilon": exact_epsilon,
    "tv": exact_tv,
    "chi2": exact_chi2,
    "pari_mutuel": exact_pari_mutuel,
    "odds_ratio": exact_odds_ratio,
    "kl": exact_kl,
}
