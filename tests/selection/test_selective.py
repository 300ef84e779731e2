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
from robustq.selection.thresholds import THRESHOLDS, bound_error, calibrate


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


def simulate(rng, rows, kind):
    """Draw scores and whether predictions are right: the error falls with the score."""
    score = rng.random(rows)
    if kind == "ties":
        score = np.floor(6 * score) / 6
    return rng.random(rows) < 0.75 + 0.25 * score, score


def true_error(threshold, kind):
    """Return the error of what is accepted above a threshold."""
    if kind == "ties":
        levels = np.arange(6) / 6
        accepted = levels > threshold
        return float((0.25 - 0.25 * levels)[accepted].mean()) if accepted.any() else 0.0
    low = max(threshold, 0.0)
    return 0.25 - 0.25 * (low + 1.0) / 2.0


@pytest.mark.parametrize("kind", ["continuous", "ties"])
@pytest.mark.parametrize("rows", [200, 1000])
def test_the_guarantee_holds_and_is_not_wildly_loose(kind, rows):
    confidence, max_error, repetitions = 0.8, 0.08, 800
    rng = np.random.default_rng(71)
    violations, coverage = 0, []
    for _ in range(repetitions):
        correct, score = simulate(rng, rows, kind)
        found = calibrate(correct, score, confidence)
        picked = found.pick(max_error)
        if picked is None:
            coverage.append(0.0)
            continue
        threshold = found.thresholds[picked]
        violations += true_error(threshold, kind) > max_error
        coverage.append(found.accepted[picked] / rows)
    # No more violations than 1 − confidence allows, within the error of the simulation itself.
    assert violations <= binom.ppf(0.999, repetitions, 1 - confidence)
    if rows == 1000 and kind == "continuous":
        # The error is 0.08 where 64 % are accepted; a good part of that is used.
        assert np.mean(coverage) > 0.35


def test_all_bounds_hold_at_once():
    """The union bound, checked as such: not only for the threshold that is picked."""
    rng, failures, repetitions = np.random.default_rng(72), 0, 600
    for _ in range(repetitions):
        correct, score = simulate(rng, 300, "continuous")
        found = calibrate(correct, score, 0.8)
        truth = np.array([true_error(t, "continuous") for t in found.thresholds])
        failures += bool(np.any(found.bounds < truth))
    assert failures <= binom.ppf(0.999, repetitions, 0.2)


def test_thresholds_are_nested():
    rng = np.random.default_rng(73)
    correct, score = simulate(rng, 500, "ties")
    found = calibrate(correct, score, 0.95)
    assert len(found.thresholds) == THRESHOLDS
    assert np.all(np.diff(found.thresholds) >= 0)
    assert np.all(np.diff(found.accepted) <= 0)
    assert found.accepted[0] == 500


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
        (make_pipeline(StandardScaler(), LogisticRegression()), "u_marg"),
    ],
)
def test_it_works_with_any_indicator_and_classifier(estimator, indicator):
    X, y, new, truth = breast()
    model = SelectiveClassifier(estimator, indicator, max_error=0.12, confidence=0.9).fit(X, y)
    assert model.guaranteed_
    assert model.error_bound_ <= 0.12
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
    assert model.calibration_.accepted[0] == 250
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
    found = calibrate(correct, score, 0.95)
    picked = found.pick(0.1)
    assert picked is not None
    assert picked > 0
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
