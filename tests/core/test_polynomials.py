"""Means as polynomials: the kernel beside plain polynomials, and beside the general path."""

import numpy as np
import pytest
from numba import types

from robustq import BayesianNetworkClassifier
from robustq.core import _polynomial_kernels, engine
from robustq.core._polynomial_kernels import (
    BELOW,
    FOUND,
    MOST_FACTORS,
    _add_up_left,
    _multiply_out,
    find_roots,
)
from robustq.core.neighbourhoods import read
from robustq.kernels import (
    code_matrix,
    float_matrix,
    float_vector,
    float_vector_out,
    int_vector,
    int_vector_out,
    kernel,
)
from robustq.tables import Table
from robustq.vectors import WIDE, load_wide, store

BALLS = ("epsilon", "tv", "chi2", "pari_mutuel", "odds_ratio", "tv_rows")
every_ball = pytest.mark.parametrize("ball", BALLS)
EXACT = 1e-9


@kernel((float_vector, float_vector, float_vector_out))
def _multiply(factors, here, polynomial):
    _multiply_out(factors, len(factors) // (2 * WIDE), load_wide(here, 0), 0, polynomial)


@pytest.mark.parametrize("features", [1, 2, 5, 8])
def test_factors_are_multiplied_out(features):
    rng = np.random.default_rng(1)
    factors = rng.normal(size=(features, 2, WIDE))
    here = np.arange(WIDE) % 3 > 0
    found = np.full((features + 1 + BELOW, WIDE), np.nan)
    _multiply(factors.ravel(), here.astype(np.float64), found.ravel())
    assert np.all(found[:BELOW] == 0.0)
    for lane in range(WIDE):
        expected = np.ones(1)
        for factor in factors[:, :, lane]:
            expected = np.polynomial.polynomial.polymul(expected, factor)
        np.testing.assert_allclose(found[BELOW:, lane], here[lane] * expected, atol=1e-12)


@kernel((float_vector, float_vector, float_vector, float_vector_out, float_vector_out))
def _add(x, each, ends, total, between):
    features = len(total) // WIDE - 1 - BELOW
    since, until, _ = _add_up_left(load_wide(x, 0), len(ends) // WIDE, features, each, ends, total)
    store(between, 0, since)
    store(between, WIDE, until)


def test_terms_count_until_they_end():
    rng = np.random.default_rng(2)
    each, ends = rng.random((3, 4 + BELOW, WIDE)), rng.random((3, WIDE))
    each[:, :BELOW] = 0.0
    x, total, between = rng.random(WIDE), np.empty((4 + BELOW, WIDE)), np.empty((2, WIDE))
    _add(x, each.ravel(), ends.ravel(), total.ravel(), between.ravel())
    left = ends > x
    np.testing.assert_allclose(total, (each * left[:, None]).sum(axis=0))
    np.testing.assert_array_equal(between[0], np.where(left, -1.0, ends).max(axis=0))
    np.testing.assert_array_equal(between[1], np.where(left, ends, np.inf).min(axis=0))


def _learn(rng, classes, features, missing=0.0, smoothing=0.1):
    """Return an averaged network, and rows; the classes differ much, and some values are rare."""
    sizes, y = rng.integers(2, 6, features), rng.integers(0, classes, 400)
    columns = []
    for size in sizes:
        masses = 0.5 * rng.dirichlet(np.ones(size), size=classes)
        masses[np.arange(classes), rng.integers(0, size, classes)] += 0.5
        edges = masses.cumsum(axis=1)[:, :-1]
        columns.append((rng.random(len(y))[:, None] > edges[y]).sum(axis=1))
    X = np.stack(columns, axis=1).astype(str).astype(object)
    model = BayesianNetworkClassifier("aode", smoothing=smoothing).fit(X, y)
    X[rng.random(X.shape) < missing] = None
    return model, model.encoding_.encode(Table.read(X))


def _quantify(model, rows, ball, **how):
    bound = [read(ball).bind(model.model_, model.encoding_.names)]
    return engine.quantify(model.model_, rows, bound, **how)


@every_ball
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("features", [1, 8, MOST_FACTORS, MOST_FACTORS + 1])
def test_both_paths_agree(ball, classes, features):
    rng = np.random.default_rng(3)
    for missing, smoothing in ((0.0, 0.1), (0.3, 1e-6), (0.0, 0.0)):
        model, rows = _learn(rng, classes, features, missing, smoothing)
        some = rows[np.arange(40 if features <= 8 else 5)]
        fast, slow = _quantify(model, some, ball), _quantify(model, some, ball, general=True)
        np.testing.assert_allclose(fast.robustness, slow.robustness, rtol=EXACT, atol=1e-15)
        np.testing.assert_array_equal(fast.prediction, slow.prediction)


@kernel(
    types.void(
        *(types.int64, code_matrix, int_vector, float_matrix, float_matrix, float_matrix),
        *(types.float64, types.float64, types.float64, types.boolean, int_vector, int_vector),
        *(int_vector_out, *[float_vector_out] * 6),
    )
)
def _find(
    first,
    cells,
    terms,
    joint,
    prior,
    features,
    cut,
    limit,
    chi2,
    falls,
    best,
    rival,
    whole,
    known,
    factors,
    both,
    lower,
    each,
    roots,
):
    find_roots(
        *(first, cells, terms, joint, prior, features, cut, limit, chi2, falls),
        *(best, rival),
        *(whole, known, factors, both, lower, each),
    )
    for lane in range(min(WIDE, len(roots) - first)):
        roots[first + lane] = known[FOUND + lane]


@pytest.mark.parametrize("ball", ["epsilon", "tv", "chi2"])
def test_most_roots_are_those_of_polynomials_though_terms_end_on_the_way(ball):
    rng = np.random.default_rng(4)
    model, rows = _learn(rng, 2, 8)
    (_, means), *_ = model.model_.read(rows).shapes
    perturbed = read(ball).bind(model.model_, model.encoding_.names)
    found = _quantify(model, rows, ball)
    made = means._tables(perturbed)
    room = _polynomial_kernels.make_room(*means.cells.shape[1:])
    roots = np.empty(len(rows))
    for first in range(0, len(rows), WIDE):
        _find(
            *(first, means.cells.reshape(-1, means.cells.shape[2]), means.terms, means.joint),
            *(made.prior, made.features, made.cut, made.limit, made.chi2, made.falls),
            *(found.prediction, found.runner_up, *room, roots),
        )
    sure = ~np.isnan(roots)
    assert sure.mean() > 0.9
    x, _ = means.solve(perturbed, found)
    np.testing.assert_allclose(x[sure], roots[sure], rtol=1e-13)
    if made.falls:
        rates = made.features[means.cells + found.prediction[:, None, None], 1]
        assert np.mean(x[sure] * rates.max(axis=(1, 2))[sure] > 1.0) > 0.1
        ends = made.features[means.cells + found.runner_up[:, None, None], 5]
        assert np.mean(x[sure] > ends.min(axis=(1, 2))[sure]) > 0.1


@every_ball
def test_roots_are_the_same_alone_and_in_company(ball):
    model, rows = _learn(np.random.default_rng(5), 2, 9, missing=0.2)
    together = _quantify(model, rows, ball).robustness[0]
    order = np.random.default_rng(6).permutation(len(rows))
    np.testing.assert_array_equal(
        _quantify(model, rows[order], ball).robustness[0], together[order]
    )
    for row in range(0, len(rows), 20):
        alone = _quantify(model, rows[np.array([row])], ball).robustness[0]
        assert alone[0] == together[row]
