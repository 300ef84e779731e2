"""A verdict for robustness only where the bands support it; warnings of health."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from robustq import GenerativeForestClassifier, NaiveBayesClassifier, RigidModelWarning, rejection
from robustq.experiments.deciding import list_deciding
from robustq.experiments.evaluation import evaluate
from robustq.experiments.verdict import find_best, judge, list_compared
from robustq.rejection.resampling import resample

RNG = np.random.default_rng(5)
ROWS = 600
TRUTH = RNG.random(ROWS)
CORRECT = RNG.random(ROWS) < 0.5 + 0.5 * TRUTH
NOISE = RNG.random(ROWS)


def judged(good, bad, correct=CORRECT):
    scores = {"r_tv": good, "u_max": bad}
    return judge(correct, resample(correct, scores, rate=0.25), ["r_tv"])


def test_robustness_wins_where_it_is_better_for_certain():
    told = judged(TRUTH, NOISE)
    assert told["winner"] == "robustness"
    assert told["difference"]["low"] > 0
    assert told["au_arc_difference"]["low"] > 0
    curve = rejection.accuracy_rejection_curve(CORRECT, TRUTH)
    at = float(curve.at(0.25))
    assert told["by_robustness"]["value"] == at
    assert told["text"].startswith(f"Send the least robust 25% to a person: the rest is {at:.1%}")


def test_the_probability_wins_or_is_advised_where_they_are_level():
    told = judged(NOISE, TRUTH)
    assert told["winner"] == "probability"
    assert "use the probability" in told["text"]
    level = judged(TRUTH + 1e-3 * NOISE, TRUTH)
    assert level["winner"] == "neither"
    assert "does not separate right from wrong predictions better" in level["text"]
    same = judged(TRUTH, TRUTH)
    assert same["difference"] == {"value": 0.0, "low": 0.0, "high": 0.0}
    assert same["winner"] == "neither"


def test_a_verdict_that_only_some_bands_support_says_so():
    # The best tenth is told apart by one of them; what a quarter of rejections leaves is the same.
    rng = np.random.default_rng(7)
    truth = rng.random(2000)
    correct = rng.random(2000) < np.where(truth < 0.25, 0.4, np.where(truth > 0.6, 0.95, 0.7))
    shuffled = np.where(truth < 0.25, truth, 0.25 + 0.75 * rng.random(2000))
    told = judged(truth, shuffled, correct)
    assert told["winner"] == "depends"
    assert told["au_arc_difference"]["low"] > 0 >= told["difference"]["low"]
    assert told["text"].endswith("better for certain on average only.")


def test_too_few_wrong_predictions_say_nothing():
    correct = np.ones(200, bool)
    for wrong in (0, 1, 9):
        correct[:wrong] = False
        told = judged(TRUTH[:200], NOISE[:200], correct)
        assert told["winner"] is None
        assert f"{wrong or 'none'} of 200 predictions" in told["text"]


def test_verdicts_for_robustness_are_rarely_false():
    """Two scores that are equally good: at most 2.5 % of the verdicts may be for robustness."""
    rng, runs, false = np.random.default_rng(6), 120, 0
    for _ in range(runs):
        truth = rng.random(150)
        correct = rng.random(150) < 0.4 + 0.6 * truth
        one, other = truth + rng.normal(0, 0.3, 150), truth + rng.normal(0, 0.3, 150)
        false += judged(one, other, correct)["winner"] == "robustness"
    assert false <= binom.ppf(0.999, runs, 0.025)


def test_bands_are_those_of_the_single_curves():
    found = resample(CORRECT, {"r_tv": np.round(TRUTH, 1)}, rate=0.25).area("r_tv")
    known = rejection.confidence_band(CORRECT, np.round(TRUTH, 1), n_resamples=1000).auc
    assert found.value == rejection.auc(CORRECT, np.round(TRUTH, 1))
    np.testing.assert_allclose((found.low, found.high), known, atol=0.005)


def test_one_is_the_best_only_where_the_bands_say_so():
    found = resample(CORRECT, {"a": TRUTH, "b": NOISE, "c": 2 * TRUTH}, rate=0.25)
    assert find_best(found, ["a", "b", "c"]) == "a"
    close = resample(CORRECT, {"a": TRUTH, "b": TRUTH + 0.01 * NOISE}, rate=0.25)
    assert find_best(close, ["a", "b"]) is None
    assert find_best(found, ["a"]) is None


def test_a_ball_is_compared_with_what_is_told_by_it():
    assert list_compared(["r_tv_all", "r_tv", "u_max"], "tv") == ["r_tv", "r_tv_all"]
    assert list_compared(["r_tv_all", "u_max"], "tv_all") == ["r_tv_all"]


def table(rows, seed=0):
    rng = np.random.default_rng(seed)
    X = pa.table({"a": rng.integers(0, 3, rows), "b": rng.integers(0, 3, rows), "c": ["x"] * rows})
    y = np.where(X["a"].to_numpy() + rng.normal(0, 0.6, rows) > 0.9, "yes", "no")
    return X, y


def test_ill_models_are_named():
    X, y = table(200)
    with pytest.warns(RigidModelWarning):
        forest = GenerativeForestClassifier(3, max_depth=0, random_state=0).fit(X, y)
    told = evaluate(forest, X, y, title="m")
    said = " ".join(told["cautions"])
    assert "for every row; always saying" in said
    assert "no tree splits" in said
    assert "each robustness is infinite" in said
    well = evaluate(NaiveBayesClassifier().fit(X, y), *table(200, seed=1), title="m")
    assert well["cautions"] == []
    turned = np.where(y == "yes", "no", "yes")
    told = evaluate(NaiveBayesClassifier().fit(X, y), X, turned, title="m")
    assert "the model is worse than the most frequent class" in told["cautions"][0]


def test_at_most_four_curves_are_shown_and_all_that_were_named():
    X, y = table(200)
    forest = GenerativeForestClassifier(3, random_state=0).fit(X, y)
    told = evaluate(forest, X, y, title="m")
    assert len(told["shown"]) <= 4
    assert {"r_tv", "r_tv_all", "u_max"} <= set(told["shown"])
    names = ["r_tv", "r_chi2", "r_epsilon", "r_kl", "u_H"]
    named = evaluate(forest, X, y, title="m", names=names)
    assert named["shown"] == names
    assert named["verdict"]["winner"] in {"neither", "depends", "probability", "robustness", None}


def test_confusion_counts_every_row():
    X, y = table(200)
    told = evaluate(NaiveBayesClassifier().fit(X, y), X, y, title="m")["confusion"]
    assert told["labels"] == ["no", "yes"]
    assert np.sum(told["counts"]) == 200
    assert np.sum(told["counts"][0]) == (y == "no").sum()


@pytest.mark.parametrize("rival", ["no", None])
def test_the_features_that_decide_come_first(rival):
    X, y = table(300)
    model = NaiveBayesClassifier(smoothing=1).fit(X, y)
    some = X.filter(pa.array(X["a"].to_numpy() != 1)).slice(0, 4)
    label = model.predict(some).tolist()
    other = [rival and ("no" if one == "yes" else "yes") for one in label]
    found = list_deciding(model, some, label, other, most=2)
    assert all(names[0] == "a" for names in found)
    # A column with a single value decides nothing.
    assert all("c" not in names for names in found)
