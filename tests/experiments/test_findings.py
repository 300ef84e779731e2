"""The verdicts follow from the numbers, by the rules they state."""

import numpy as np
import pytest

from robustq.experiments.findings import judge
from robustq.rejection import Comparison

NAMES = ("r_epsilon", "r_tv", "r_chi2", "u_marg", "u_max", "u_H", "u_t", "u_a", "u_e")
LABELS = ("0%", "20%", "50%", "80%", "AU-ARC")


def make(low, high, area):
    """A comparison over one data set: all equal at 0 %, then these accuracies."""
    rows = [dict.fromkeys(NAMES, 0.7), low, low, high, area]
    rows[2] = high
    values = np.array([[[row.get(name, 0.7) for name in NAMES] for row in rows]])
    return Comparison(LABELS, NAMES, ("one",), values)


def verdicts(model, table):
    return {finding.claim.split()[0]: finding.verdict for finding in judge({model: table})}


def test_a_best_one_at_high_rates_agrees():
    table = make({"u_t": 0.8}, {"r_chi2": 0.9}, {"r_chi2": 0.9, "u_t": 0.8, "u_e": 0.8})
    assert verdicts("nbc", table)["r_chi2"] == "agrees"


def test_a_best_one_at_low_rates_only_agrees_in_part():
    table = make({"r_chi2": 0.8}, {"u_t": 0.9}, {"r_chi2": 0.9})
    assert verdicts("nbc", table)["r_chi2"] == "agrees in part"


def test_one_that_is_never_best_differs():
    table = make({"u_t": 0.8}, {"u_t": 0.9}, {"u_t": 0.9})
    assert verdicts("nbc", table)["r_chi2"] == "differs"
    assert verdicts("gef", table)["r_tv"] == "differs"


def test_where_all_tie_nobody_is_best():
    table = make({}, {}, {})
    (finding,) = [f for f in judge({"gef": table}) if f.claim.startswith("r_tv")]
    assert "at no rate" in finding.ours


@pytest.mark.parametrize(
    ("epsilon", "verdict"), [(0.798, "agrees"), (0.81, "agrees in part"), (0.7, "differs")]
)
def test_just_behind_means_just_behind(epsilon, verdict):
    area = {"r_epsilon": epsilon, "r_tv": 0.8, "r_chi2": 0.801}
    claims = {f.claim: f.verdict for f in judge({"gef": make({}, {}, area)})}
    assert claims["r_epsilon is just behind the other two robustness values."] == verdict


def test_what_was_not_run_is_not_judged():
    names = ("r_tv", "u_max")
    table = Comparison(LABELS, names, ("one",), np.full((1, 5, 2), 0.5))
    assert {f.claim.split()[0] for f in judge({"nbc": table})} == {"All"}
    alone = Comparison(LABELS, ("u_max",), ("one",), np.full((1, 5, 1), 0.5))
    assert judge({"nbc": alone, "gef": alone}) == []


def test_those_that_tie_with_the_second_count_as_best():
    area = {"u_marg": 0.9, "u_max": 0.8, "u_t": 0.8, "u_e": 0.8, "u_H": 0.6}
    (finding,) = [
        f for f in judge({"gef": make({}, {}, area)}) if "uncertainty measures" in f.claim
    ]
    assert finding.verdict == "agrees"
