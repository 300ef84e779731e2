"""The classifier that abstains, and its guarantee."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from robustq import (
    GenerativeForestClassifier,
    InputError,
    NaiveBayesClassifier,
    NoGuaranteeWarning,
    RobustqError,
    SelectiveClassifier,
    TableWarning,
    indicators,
)
from robustq.selection.thresholds import bound_error, calibrate, list_ranks


@pytest.mark.filterwarnings("ignore::robustq.NoGuaranteeWarning")
@parametrize_with_checks([SelectiveClassifier(NaiveBayesClassifier())])
def test_scikit_learns_contract_is_kept(estimator, check):
    check(estimator)


def test_the_bound_is_that_of_clopper_and_pearson():
    for wrong, of in ((0, 10), (3, 50), (40, 50)):
        bound = float(bound_error(np.array(wrong), np.array(of), 0.05))
        # At the bound, so few errors or fewer have probability 0.05.
        assert binom.cdf(wrong, of, bound) == pytest.approx(0.05, rel=1e-9)
    assert bound_error(np.array([5, 0]), np.array([5, 0]), 0.05).tolist() == [1.0, 1.0]


LEVELS = 6


def error_at(score, kind):
    """Return the error of predictions with a score; it falls with the score, mostly."""
    if kind == "bump":
        # The most trusted ones are not the best: the error above a threshold goes up and down.
        return np.where(score > 0.9, 0.12, 0.25 * (1 - score))
    return 0.25 * (1 - score)


def simulate(rng, rows, kind):
    """Draw scores and whether predictions are right."""
    score = rng.random(rows)
    if kind == "ties":
        score = np.floor(LEVELS * score) / LEVELS
    return rng.random(rows) >= error_at(score, kind), score


def true_error(threshold, kind):
    """Return the error of what is accepted above a threshold."""
    score = np.arange(LEVELS) / LEVELS if kind == "ties" else (np.arange(20_000) + 0.5) / 20_000
    accepted = score > threshold
    return float(error_at(score, kind)[accepted].mean()) if accepted.any() else 0.0


def best_coverage(max_error, kind):
    """Return the largest share that can be accepted by whoever knows the error."""
    thresholds = np.append(np.arange(1000) / 1000, -1.0)
    good = [t for t in thresholds if true_error(t, kind) <= max_error]
    return max((1.0 if t < 0 else 1.0 - t) for t in good)


@pytest.mark.parametrize("kind", ["continuous", "ties", "bump"])
@pytest.mark.parametrize(("rows", "least"), [(200, 0.1), (1000, 0.5)])
def test_the_guarantee_holds_and_is_not_wildly_loose(kind, rows, least):
    confidence, max_error, repetitions = 0.8, 0.08, 500
    rng = np.random.default_rng(71)
    violations, coverage = 0, []
    for _ in range(repetitions):
        correct, score = simulate(rng, rows, kind)
        found = calibrate(correct, score, max_error, confidence)
        picked = found.pick()
        if picked is None:
            coverage.append(0.0)
            continue
        violations += true_error(found.thresholds[picked], kind) > max_error
        coverage.append(found.accepted[picked] / rows)
    # No more violations than 1 − confidence allows, within the error of the simulation itself;
    # and not many times fewer.
    assert violations <= binom.ppf(0.999, repetitions, 1 - confidence)
    if kind == "continuous":
        assert violations >= 0.25 * repetitions * (1 - confidence)
        assert np.mean(coverage) > least * best_coverage(max_error, kind)


def test_the_sequence_begins_where_something_can_be_promised():
    for max_error, risk in ((0.05, 0.05), (0.2, 0.1), (0.01, 0.01)):
        first = int(np.ceil(np.log(risk) / np.log1p(-max_error)))
        ranks = list_ranks(first + 5, max_error, risk)
        assert ranks[0] == first
        assert ranks[-1] == first + 5
        # Fewer rows than that: the one threshold that is left accepts all, and cannot pass.
        assert list_ranks(first - 1, max_error, risk).tolist() == [first - 1]
        found = calibrate(np.ones(first - 1, bool), np.arange(first - 1.0), max_error, 1 - risk)
        assert found.pick() is None
        found = calibrate(np.ones(first, bool), np.arange(first * 1.0), max_error, 1 - risk)
        assert found.accepted[found.pick()] == first


def test_each_threshold_allows_one_wrong_prediction_more():
    ranks = list_ranks(1000, 0.1, 0.05)
    assert ranks[0] >= 200
    allowed = binom.ppf(0.05, ranks, 0.1) - (
        binom.cdf(binom.ppf(0.05, ranks, 0.1), ranks, 0.1) > 0.05
    )
    assert np.diff(allowed)[:-1].tolist() == [1.0] * (len(ranks) - 2)
    for rank, wrong in zip(ranks[:-1], allowed, strict=False):
        assert binom.cdf(wrong, rank, 0.1) <= 0.05 < binom.cdf(wrong, rank - 1, 0.1)
    assert len(list_ranks(1_000_000, 0.1, 0.05)) <= 501


def test_the_first_failure_ends_the_sequence():
    score = np.arange(1000.0)[::-1]
    correct = np.ones(1000, bool)
    correct[300:400] = False
    found = calibrate(correct, score, 0.1, 0.95)
    picked = found.pick()
    assert 300 <= found.accepted[picked] < 400
    assert not found.passed[picked + 1 :].any()
    # Alone the last one would pass: 100 wrong ones of 1000 are too many, of 1500 they are not.
    longer = calibrate(np.append(correct, np.ones(500, bool)), np.arange(1500.0)[::-1], 0.1, 0.95)
    assert longer.bounds[-1] < 0.1
    assert not longer.passed[-1]


def test_thresholds_are_nested():
    rng = np.random.default_rng(73)
    correct, score = simulate(rng, 500, "ties")
    found = calibrate(correct, score, 0.2, 0.95)
    assert np.all(np.diff(found.thresholds) < 0)
    assert np.all(np.diff(found.accepted) > 0)
    assert found.accepted[-1] == 500
    for threshold, accepted in zip(found.thresholds, found.accepted, strict=True):
        assert (score > threshold).sum() == accepted


def test_scores_that_tie_at_the_top_are_no_obstacle():
    """Of the best hundred no part can be taken: the walk begins where they all are in."""
    rng = np.random.default_rng(75)
    score = np.minimum(rng.random(1000), 0.7)
    correct = rng.random(1000) < np.where(score >= 0.7, 0.99, 0.7)
    found = calibrate(correct, score, 0.1, 0.9)
    assert found.accepted[0] >= (score == 0.7).sum()
    assert found.pick() is not None


def breast(seed=0):
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order[:400]], y[order[:400]], X[order[400:]], y[order[400:]]


@pytest.mark.parametrize(
    ("estimator", "indicator"),
    [
        (NaiveBayesClassifier(), "r_tv"),
        (GenerativeForestClassifier(9, random_state=0), "r_chi2"),
        (NaiveBayesClassifier(), "u_H"),
        (NaiveBayesClassifier(), "u_e"),
        (GenerativeForestClassifier(9, random_state=0), "auto"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "auto"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "u_marg"),
    ],
)
def test_it_works_with_any_indicator_and_classifier(estimator, indicator):
    X, y, new, truth = breast()
    model = SelectiveClassifier(estimator, indicator, max_error=0.12, confidence=0.9).fit(X, y)
    assert model.guaranteed_
    assert model.error_bound_ == 0.12
    accepted = model.accepts(new)
    assert accepted.dtype == bool
    assert 0.3 < accepted.mean() <= 1.0
    assert (model.predict(new) == truth)[accepted].mean() > 0.88
    # Never a magic label.
    assert set(model.predict(new)) <= set(y)
    assert model.predict_proba(new).shape == (len(new), 2)


def test_several_classes_work():
    X, y = load_iris(return_X_y=True)
    model = SelectiveClassifier(NaiveBayesClassifier(), max_error=0.2, confidence=0.8).fit(X, y)
    assert model.accepts(X).any()
    assert model.classes_.tolist() == [0, 1, 2]


def test_without_a_guarantee_nothing_is_accepted_and_it_says_so():
    X, y, new, _ = breast()
    model = SelectiveClassifier(NaiveBayesClassifier(), max_error=0.001)
    with pytest.warns(
        NoGuaranteeWarning, match=r"no threshold guarantees an error of at most 0.001"
    ):
        model.fit(X, y)
    assert not model.guaranteed_
    assert not model.accepts(new).any()
    assert model.coverage_ == 0.0
    assert model.predict(new).shape == (len(new),)


def test_where_everything_is_safe_everything_is_accepted():
    X = pd.DataFrame({"x": ["a", "b"] * 500})
    with pytest.warns(TableWarning, match="'x' gives the target away"):
        model = SelectiveClassifier(NaiveBayesClassifier()).fit(X, X["x"])
    assert model.threshold_ == -np.inf
    assert model.accepts(X).all()
    assert model.coverage_ == 1.0


def test_a_fitted_model_is_calibrated_on_all_that_is_given():
    X, y, new, truth = breast()
    fitted = NaiveBayesClassifier().fit(X[:150], y[:150])
    model = SelectiveClassifier(FrozenEstimator(fitted), max_error=0.15).fit(X[150:], y[150:])
    assert model.estimator_ is fitted
    assert model.calibration_.rows == 250
    assert (model.predict(new) == truth)[model.accepts(new)].mean() > 0.85
    ensemble = indicators.BootstrapEnsemble(fitted, n_models=3).fit(X[:150], y[:150])
    model = SelectiveClassifier(FrozenEstimator(fitted), "u_t", 0.15, ensemble=ensemble)
    assert model.fit(X[150:], y[150:]).accepts(new).any()
    bare = SelectiveClassifier(FrozenEstimator(fitted), "u_t", 0.15)
    with pytest.raises(InputError, match="u_t needs several models"):
        bare.fit(X[150:], y[150:])


def test_the_part_kept_aside_is_seeded():
    X, y, _, _ = breast()
    one, other, third = (
        SelectiveClassifier(NaiveBayesClassifier(), max_error=0.07, random_state=seed).fit(X, y)
        for seed in (1, 1, 2)
    )
    assert one.threshold_ == other.threshold_ != third.threshold_
    assert not hasattr(clone(one), "threshold_")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_error": 0.0}, "max_error must lie between 0 and 1, got 0.0"),
        ({"max_error": "small"}, "max_error must lie between"),
        ({"confidence": 1.0}, "confidence must lie between 0 and 1, got 1.0"),
        ({"calibration_size": 2}, "calibration_size must lie between"),
        ({"calibration_size": 0.001}, "n_samples=400 cannot be split"),
        ({"indicator": "u_x"}, "unknown indicator 'u_x'"),
        ({"random_state": "x"}, "cannot be used to seed"),
    ],
)
def test_bad_options_are_named(options, message):
    X, y, _, _ = breast()
    with pytest.raises(InputError, match=message):
        SelectiveClassifier(NaiveBayesClassifier(), **options).fit(X, y)


def test_an_unfitted_one_says_so():
    with pytest.raises(RobustqError, match="is not fitted yet"):
        SelectiveClassifier(NaiveBayesClassifier()).accepts([[1.0]])


def test_scores_of_minus_infinity_are_not_accepted_by_mistake():
    rng = np.random.default_rng(74)
    u = rng.random(4000)
    score = np.where(u < 0.3, -np.inf, u)
    correct = rng.random(4000) >= np.where(u < 0.3, 0.5, 0.03)
    found = calibrate(correct, score, 0.1, 0.95)
    picked = found.pick()
    assert picked is not None
    assert picked < len(found.thresholds) - 1
    assert found.accepted[picked] == np.sum(u >= 0.3)
    low = indicators.Indicator(
        *("low", "sure or not at all", "trusted", "probabilities"),
        formula=lambda p: np.where(p.max(axis=1) < 0.9, -np.inf, p.max(axis=1)),
    )
    X, y, new, _ = breast()
    fitted = NaiveBayesClassifier(smoothing=1).fit(X[:100], y[:100])
    model = SelectiveClassifier(FrozenEstimator(fitted), low, max_error=0.08)
    model.fit(X[100:], y[100:])
    unsure = fitted.predict_proba(new).max(axis=1) < 0.9
    assert unsure.any()
    assert not model.accepts_all_
    assert not model.accepts(new)[unsure].any()


def test_text_in_a_series_is_a_table_too():
    text, y = pd.Series(["good day", "bad day", "so so"] * 60), ["p", "n", "n"] * 60
    pipeline = make_pipeline(CountVectorizer(), LogisticRegression())
    model = SelectiveClassifier(pipeline, "u_max", max_error=0.2).fit(text, y)
    assert model.accepts(text).any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SelectiveClassifier(None), "estimator must be a classifier"),
        (lambda: SelectiveClassifier(FrozenEstimator(LogisticRegression())), "is not fitted"),
        (
            lambda: SelectiveClassifier(
                NaiveBayesClassifier(),
                ensemble=indicators.BootstrapEnsemble(NaiveBayesClassifier()),
            ),
            "for a frozen estimator only",
        ),
    ],
)
def test_what_cannot_be_calibrated_is_named(make, message):
    X, y, _, _ = breast()
    with pytest.raises(RobustqError, match=message):
        make().fit(X, y)


def test_copies_keep_a_frozen_ensemble():
    X, y, new, _ = breast()
    fitted = NaiveBayesClassifier().fit(X[:150], y[:150])
    ensemble = indicators.BootstrapEnsemble(fitted, n_models=3).fit(X[:150], y[:150])
    model = SelectiveClassifier(
        FrozenEstimator(fitted), "u_t", 0.15, ensemble=FrozenEstimator(ensemble)
    )
    assert clone(model).fit(X[150:], y[150:]).accepts(new).any()
