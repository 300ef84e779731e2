"""Verdicts follow from paired bands over runs and data sets, by the rules they state."""

import numpy as np
import pytest
from scipy import stats

from robustq.experiments.findings import judge
from robustq.experiments.outcomes import Outcome, paired_band

NAMES = ("r_epsilon", "r_tv", "r_chi2", "u_marg", "u_max", "u_H", "u_t", "u_a", "u_e")
RATES = (0.0, 0.2, 0.5, 0.8)
SETS, RUNS = 11, 4
LOW, HIGH, AREA = (1,), (2, 3), (4,)


def make(*raised, noise=0.0, sets=SETS, names=NAMES):
    """Return made outcomes: data sets differ much, indicators by what is raised where.

    Noise differs from indicator to indicator, run to run and data set to data set.
    """
    rng = np.random.default_rng(7)
    values = np.full((sets, RUNS, len(RATES) + 1, len(names)), 0.7)
    values += rng.uniform(0.0, 0.2, (sets, 1, 1, 1))
    values[:, :, 1:] += noise * rng.standard_normal((sets, RUNS, 1, len(names)))
    for name, rows, by in raised:
        values[:, :, list(rows), names.index(name)] += by
    return Outcome(names, RATES, values)


def verdicts(model, outcome):
    return {finding.claim: finding.verdict for finding in judge({model: outcome})}


BEST, BEST_HIGH = (
    "r_chi2 seems to be the best.",
    "r_chi2 seems to be the best at high rejection rates.",
)
FOREST_BEST = "r_tv seems to be the best."
FOREST_LOW = "r_tv seems to be the best at low rejection rates."
WINS = "r_epsilon does very well in the number of wins."
SIMILAR = "r_epsilon has a similar AU-ARC as r_tv and r_chi2."
BEHIND = "r_epsilon is just behind the other two robustness values."
STRONG = "Of the uncertainty measures, u_e and u_t perform very well."
COMPETITIVE = "All robustness values are competitive, without retraining."


def test_there_are_eleven_findings():
    found = judge({"nbc": make(), "gef": make(), "toy": make()})
    assert [finding.model for finding in found] == ["nbc"] * 6 + ["gef"] * 5


# For each finding: what makes it hold, differ, and what leaves it open.


@pytest.mark.parametrize(
    ("raised", "noise", "verdict"),
    [
        ([("r_chi2", AREA, 0.01)], 0.001, "holds"),
        ([("u_t", AREA, 0.01)], 0.001, "differs"),
        ([("r_chi2", AREA, 0.01)], 0.1, "cannot be told"),
        ([("u_t", AREA, 0.01)], 0.1, "cannot be told"),
        ([], 0.0, "cannot be told"),  # all tie
        ([("r_chi2", AREA, 0.01), ("u_t", AREA, 0.01)], 0.0, "cannot be told"),
    ],
)
def test_the_best(raised, noise, verdict):
    assert verdicts("nbc", make(*raised, noise=noise))[BEST] == verdict
    swapped = [({"r_chi2": "r_tv"}.get(name, name), *rest) for name, *rest in raised]
    assert verdicts("gef", make(*swapped, noise=noise))[FOREST_BEST] == verdict


def test_the_best_at_some_rates():
    outcome = make(("r_chi2", HIGH, 0.01), ("u_t", LOW, 0.01))
    assert verdicts("nbc", outcome)[BEST_HIGH] == "holds"
    outcome = make(("r_tv", LOW, 0.01), ("u_t", HIGH, 0.01))
    assert verdicts("gef", outcome)[FOREST_LOW] == "holds"
    outcome = make(("r_tv", HIGH, 0.01), ("u_t", LOW, 0.01))
    assert verdicts("gef", outcome)[FOREST_LOW] == "differs"


@pytest.mark.parametrize(
    ("raised", "verdict"),
    [
        ([("r_epsilon", (*LOW, *HIGH), 0.01)], "holds"),
        ([(name, (*LOW, *HIGH), 0.01) for name in NAMES[1:]], "differs"),
        ([], "cannot be told"),
        # Never the best, but hardly behind.
        ([("r_epsilon", (*LOW, *HIGH), -0.0005)], "cannot be told"),
    ],
)
def test_wins(raised, verdict):
    assert verdicts("nbc", make(*raised))[WINS] == verdict


def test_wins_on_half_of_the_data_sets_leave_it_open():
    outcome = make(*((name, (*LOW, *HIGH), 0.01) for name in NAMES[1:]))
    outcome.values[: SETS // 2, :, 1:4, 0] += 0.02
    assert verdicts("nbc", outcome)[WINS] == "cannot be told"


@pytest.mark.parametrize(
    ("by", "noise", "verdict"),
    [
        (0.003, 0.0005, "holds"),
        (0.02, 0.0005, "differs"),
        (-0.02, 0.0005, "differs"),
        (0.003, 0.05, "cannot be told"),
    ],
)
def test_similar(by, noise, verdict):
    assert verdicts("nbc", make(("r_tv", AREA, by), noise=noise))[SIMILAR] == verdict


@pytest.mark.parametrize(
    ("by", "noise", "verdict"),
    [
        (-0.003, 0.0005, "holds"),
        (0.003, 0.0005, "differs"),  # ahead
        (-0.02, 0.0005, "differs"),  # far behind
        (-0.003, 0.05, "cannot be told"),
        (0.0005, 0.0, "cannot be told"),  # hardly ahead
    ],
)
def test_just_behind_means_just_behind(by, noise, verdict):
    assert verdicts("gef", make(("r_epsilon", AREA, by), noise=noise))[BEHIND] == verdict


@pytest.mark.parametrize("model", ["nbc", "gef"])
@pytest.mark.parametrize(
    ("raised", "noise", "verdict"),
    [
        ([("u_e", AREA, 0.01), ("u_t", AREA, 0.01)], 0.001, "holds"),
        ([("u_e", AREA, -0.01), ("u_t", AREA, 0.01)], 0.001, "differs"),
        ([("u_e", AREA, 0.01)], 0.0, "cannot be told"),
        ([("u_e", AREA, 0.01), ("u_t", AREA, 0.01)], 0.1, "cannot be told"),
    ],
)
def test_strong_uncertainty(model, raised, noise, verdict):
    assert verdicts(model, make(*raised, noise=noise))[STRONG] == verdict


@pytest.mark.parametrize("model", ["nbc", "gef"])
@pytest.mark.parametrize(
    ("by", "noise", "verdict"),
    [(0.003, 0.0005, "holds"), (0.02, 0.0005, "differs"), (0.003, 0.05, "cannot be told")],
)
def test_competitive(model, by, noise, verdict):
    assert verdicts(model, make(("u_a", AREA, by), noise=noise))[COMPETITIVE] == verdict


@pytest.mark.parametrize("model", ["nbc", "gef"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("by", [0.0005, -0.0005])
def test_a_difference_of_half_a_thousandth_is_never_a_disagreement(model, name, by):
    # The same in every run on every data set: nothing could be surer.
    outcome = make((name, (*LOW, *HIGH, *AREA), by))
    assert "differs" not in verdicts(model, outcome).values()


def test_one_data_set_never_tells():
    outcome = make(("r_chi2", AREA, 0.05), ("u_t", AREA, -0.05), sets=1)
    assert set(verdicts("nbc", outcome).values()) == {"cannot be told"}
    assert any("one data set gives no band" in finding.ours for finding in judge({"nbc": outcome}))


def test_nothing_to_tell_is_hardly_ever_told():
    # Nine indicators that differ by noise alone: one in twenty may be told by mistake.
    told = 0
    for seed in range(40):
        values = 0.8 + 0.01 * np.random.default_rng(seed).standard_normal((11, 3, 5, 9))
        told += "differs" in verdicts("nbc", Outcome(NAMES, RATES, values))[BEST]
    assert told <= 5


def test_what_was_not_run_is_not_judged():
    outcome = make(names=("r_tv", "u_max"))
    assert set(verdicts("nbc", outcome)) == {COMPETITIVE}
    alone = make(names=("u_max",))
    assert judge({"nbc": alone, "gef": alone}) == []


# Bands and ranks.


def test_a_band_is_students_over_data_sets():
    differences = np.array([[0.1, 0.3], [0.0, 0.2], [0.5, 0.5]])
    band = paired_band(differences)
    means = [0.2, 0.1, 0.5]
    known = stats.ttest_1samp(means, 0.0).confidence_interval(0.95)
    assert (band.low, band.high) == pytest.approx((known.low, known.high))
    among = paired_band(differences, comparisons=8)
    wide = stats.ttest_1samp(means, 0.0).confidence_interval(1 - 0.05 / 8)
    assert (among.low, among.high) == pytest.approx((wide.low, wide.high))


def test_data_sets_that_are_alike_by_chance_are_no_surer_than_their_runs():
    band = paired_band(np.array([[-1.0, 1.2], [-0.9, 1.1]]))
    assert band.mean == pytest.approx(0.1)
    assert band.low < -1.0


def test_the_critical_difference_of_eleven_data_sets_is_known():
    # Nemenyi's table: 3.102 for nine.
    outcome = make(("r_tv", AREA, 0.01), ("u_e", AREA, -0.01))
    assert outcome.critical_difference == pytest.approx(3.102 * np.sqrt(90 / 66), rel=1e-3)
    assert outcome.ranks["r_tv"] == 1.0
    assert outcome.ranks["u_e"] == 9.0
    assert outcome.ranks["u_t"] == 5.0  # those between tie
    assert make(names=("u_max",)).critical_difference == 0.0
