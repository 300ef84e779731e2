"""Bounds of posterior probabilities, and interval dominance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as with_settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import robustq
from robustq import (
    GenerativeForestClassifier,
    NaiveBayesClassifier,
    UnsupportedError,
    posterior_bounds,
)
from robustq.exceptions import InputError
from robustq.perturbations import get

from .documents import as_table, random_forest, random_naive_bayes, random_rows

BALLS = ("epsilon", "tv", "chi2", "pari_mutuel", "odds_ratio", "kl")


def make(kind, seed, classes=2, missing=0.0):
    rng = np.random.default_rng(seed)
    naive = kind == "naive_bayes"
    document = (random_naive_bayes if naive else random_forest)(rng, classes=classes)
    estimator = NaiveBayesClassifier if naive else GenerativeForestClassifier
    rows = random_rows(rng, document, 4, missing)
    return estimator.from_dict(document), as_table(document, rows)


@pytest.mark.parametrize("ball", [*BALLS, "tv_all", "epsilon_all", "chi2_joint", "tv_posterior"])
@pytest.mark.parametrize("kind", ["naive_bayes", "generative_forest"])
def test_of_two_classes_the_prediction_has_half_where_it_flips(kind, ball):
    compared = 0
    for seed in range(6):
        model, X = make(kind, seed, missing=0.2 * (seed % 2))
        found = model.assess(X, ball)
        (size,) = found.robustness.values()
        flips = np.flatnonzero((size > 1e-4) & (size < 0.99))
        if not len(flips):
            continue
        some = X[flips]
        lower, upper = model.posterior_bounds(some, ball, size[flips])
        best = np.searchsorted(model.classes_, found.prediction[flips])
        every = np.arange(len(flips))
        assert lower[every, best] == pytest.approx(np.full(len(flips), 0.5), abs=1e-7)
        assert lower + upper[:, ::-1] == pytest.approx(np.ones(lower.shape), abs=1e-9)
        compared += len(flips)
    assert compared


def conditional_minimum(ball, model, codes, delta, c):
    """Return the smallest p(c | f): by the corners of the prior's ball, or a linear programme."""
    ahead, behind = [], []
    q = model.class_probs
    for k in range(len(q)):
        p = [
            model.local_model(i)[code, k]
            for i, code in enumerate(codes)
            if code >= 0 and model.layout.sizes[i] > 1
        ]
        ahead.append(np.prod([get(ball).lower_probability(x, delta) for x in p]))
        behind.append(np.prod([get(ball).upper_probability(x, delta) for x in p]))
    weight = np.where(np.arange(len(q)) == c, ahead, behind)
    if ball == "epsilon":
        corners = (1.0 - delta) * q + delta * np.eye(len(q))
        return min(corner[c] * weight[c] / (corner @ weight) for corner in corners)
    # Charnes and Cooper: x = q' / (q'·weight), y = 1 / (q'·weight), and Σ|q' − q| ≤ 2δ.
    n = len(q)
    objective = np.zeros(2 * n + 1)
    objective[c] = weight[c]
    rows = [np.hstack([sign * np.eye(n), -np.eye(n), -sign * q[:, None]]) for sign in (1.0, -1.0)]
    rows.append(np.concatenate([np.zeros(n), np.ones(n), [-2.0 * delta]])[None, :])
    equal = np.array(
        [
            np.concatenate([np.ones(n), np.zeros(n), [-1.0]]),
            np.concatenate([weight, np.zeros(n), [0.0]]),
        ]
    )
    above = np.vstack(rows)
    solved = linprog(objective, above, np.zeros(len(above)), equal, [0.0, 1.0])
    return solved.fun


@with_settings(max_examples=40)
@given(seed=st.integers(0, 2**32), ball=st.sampled_from(["epsilon", "tv"]))
def test_naive_bayes_is_bounded_by_the_corners_of_its_balls(seed, ball):
    rng = np.random.default_rng(seed)
    model, X = make("naive_bayes", seed, classes=int(rng.integers(2, 5)), missing=0.2)
    # Small enough that no lower probability vanishes: the programme would divide by it.
    delta = float(rng.uniform(0.0, 0.02))
    lower, upper = model.posterior_bounds(X, ball, delta)
    codes = model.encoding_.encode(model.encoding_.arrange(robustq.tables.Table.read(X), "")).codes
    for row, code in enumerate(codes):
        for c in range(len(model.classes_)):
            wanted = conditional_minimum(ball, model.model_, code, delta, c)
            assert lower[row, c] == pytest.approx(wanted, rel=1e-6, abs=1e-12)
    proba = model.predict_proba(X)
    assert np.all((lower <= proba) & (proba <= upper))


@pytest.mark.parametrize("kind", ["naive_bayes", "generative_forest"])
@pytest.mark.parametrize("ball", ["epsilon_all", "tv", "chi2", "kl", "tv_joint", "epsilon_rows"])
def test_intervals_grow_and_hold_the_maximal_classes(kind, ball):
    for seed in range(1 if ball == "kl" else 2):
        model, X = make(kind, seed, classes=3, missing=0.2)
        before, before_upper = model.posterior_bounds(X, ball, 0.0)
        assert before == pytest.approx(before_upper, abs=1e-9)
        for delta in (0.1,) if ball == "kl" else (0.01, 0.3):
            lower, upper = model.posterior_bounds(X, ball, delta)
            assert np.all(lower <= before + 1e-9)
            assert np.all(upper >= before_upper - 1e-9)
            before, before_upper = lower, upper
            maximal = model.credal_predict(X, ball, delta)
            interval = model.credal_predict(X, ball, delta, rule="interval")
            assert np.all(interval | ~maximal)
            assert np.array_equal(interval, maximal | (upper >= lower.max(axis=1)[:, None]))


def test_what_is_degenerate_is_defined():
    zero = NaiveBayesClassifier(smoothing=0.0).fit([["x", "y"], ["u", "v"]], ["a", "b"])
    lower, upper = zero.posterior_bounds([["x", "v"]], "chi2", 0.1)
    assert (lower.tolist(), upper.tolist()) == ([[0.0, 0.0]], [[1.0, 1.0]])
    # One class is impossible, and stays so under χ²; not under total variation.
    lower, upper = zero.posterior_bounds([["x", "y"]], "chi2", 0.1)
    assert (lower.tolist(), upper.tolist()) == ([[1.0, 0.0]], [[1.0, 0.0]])
    lower, upper = zero.posterior_bounds([["x", "y"]], "tv", 0.1)
    assert upper[0, 1] == pytest.approx(0.6 * 0.01 / (0.6 * 0.01 + 0.4 * 0.81))
    one = NaiveBayesClassifier().fit([["x"], ["y"]], ["a", "a"])
    assert [side.tolist() for side in one.posterior_bounds([["x"]], "tv", 0.3)] == [[[1.0]]] * 2
    vacuous = NaiveBayesClassifier().fit([["x"], ["y"]], ["a", "b"])
    lower, upper = vacuous.posterior_bounds([["x"]], "epsilon", 1.0)
    assert (lower.tolist(), upper.tolist()) == ([[0.0, 0.0]], [[1.0, 1.0]])


def test_tiny_probabilities_keep_their_digits():
    table = [["x"] * 300] * 9 + [["y"] * 300]
    model = NaiveBayesClassifier(smoothing=1.0).fit(np.array([*table, *table]), [0] * 10 + [1] * 10)
    sure = NaiveBayesClassifier(smoothing=1.0).fit(
        np.array([*table, *([["y"] * 300] * 9 + [["x"] * 300])]), [0] * 10 + [1] * 10
    )
    lower, upper = model.posterior_bounds(np.array([["x"] * 300]), "epsilon", 1e-6)
    assert lower + upper[:, ::-1] == pytest.approx(np.ones(lower.shape), abs=1e-12)
    lower, upper = sure.posterior_bounds(np.array([["x"] * 300]), "epsilon", 1e-6)
    t = 1e-6 / (1 - 1e-6)
    mine, theirs = (10 / 12) ** 300 * 0.5, (2 / 12 + t) ** 300 * (0.5 + t)
    assert upper[0, 1] == pytest.approx(theirs / (mine + theirs), rel=1e-8)
    mine, theirs = (10 / 12 + t) ** 300 * (0.5 + t), (2 / 12) ** 300 * 0.5
    assert 0.0 < lower[0, 1] == pytest.approx(theirs / (mine + theirs), rel=1e-8)


def test_what_cannot_be_asked_is_refused():
    model = NaiveBayesClassifier().fit([["x"], ["y"]], ["a", "b"])
    with pytest.raises(UnsupportedError, match="epsilon_rows"):
        posterior_bounds(model, [["x"]], "idm", 1.0)
    with pytest.raises(UnsupportedError, match="maximality"):
        robustq.credal_predict(model, [["x"]], "idm", 1.0, rule="interval")
    with pytest.raises(InputError, match="'maximality' or 'interval'"):
        robustq.credal_predict(model, [["x"]], "tv", 0.1, rule="e-admissible")
    with pytest.raises(robustq.DomainError):
        posterior_bounds(model, [["x"]], "tv", 1.5)
