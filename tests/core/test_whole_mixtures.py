"""Forests with everything perturbed: the kernel against the recursion."""

import numpy as np
import pytest

from robustq import GenerativeForestClassifier
from robustq.core import engine
from robustq.core.neighbourhoods import read
from robustq.core.whole_mixtures import WholeMixtures
from robustq.families.forest.factors import Paths
from robustq.tables import Table

from .forests import finish, random_document, random_rows
from .test_forests import encode

BALLS = ("epsilon", "tv", "chi2")
PARTS = (
    "all",
    ("leaf_classes", "leaf_features", "weights"),
    ("leaf_classes", "root"),
    ("leaf_features",),
)

every_ball = pytest.mark.parametrize("ball", BALLS)


def draw(rng, rows, **options):
    document = finish(random_document(rng, **options))
    model = GenerativeForestClassifier.from_dict(document)
    return model.model_, encode(model, random_rows(rng, document, rows))


def solve(model, rows, ball, parts):
    """Return what the kernel makes of rows, alone."""
    work = engine._Work(model, rows)
    (shape,) = (shape for _, shape in work.reading.shapes if isinstance(shape, WholeMixtures))
    bound = read(ball, parts=parts).bind(model, ())
    assert shape.fits(bound)
    y, tipping = shape.solve(bound, work.found)
    return shape.size_of(bound, y), tipping


@every_ball
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("zeros", [0.0, 0.4])
def test_the_kernel_agrees_with_the_recursion(ball, parts, zeros):
    rng = np.random.default_rng(501)
    unsure = 0
    for turn in range(6):
        model, rows = draw(rng, 8, zeros=zeros, wide=turn == 5)
        found, _ = solve(model, rows, ball, parts)
        bound = [read(ball, parts=parts).bind(model, ())]
        truth = engine.quantify(model, rows, bound, general=True).robustness[0]
        sure = ~np.isnan(found)
        unsure += int(np.count_nonzero(~sure))
        np.testing.assert_allclose(found[sure], truth[sure], rtol=1e-9)
    assert unsure < 12


@every_ball
def test_leaves_of_every_make_are_exact(ball):
    rng = np.random.default_rng(502)
    X = rng.integers(0, 4, (300, 5))
    y = (X[:, 0] + X[:, 1] + rng.integers(0, 3, 300)) // 3
    for options in ({}, {"smoothing": 1.0}, {"leaves": "likelihood"}):
        forest = GenerativeForestClassifier(7, random_state=0, **options).fit(X, y)
        table = forest.encoding_.encode(Table.read(rng.integers(0, 4, (12, 5))))
        bound = [read(f"{ball}_all").bind(forest.model_, ())]
        fast, slow = (
            engine.quantify(forest.model_, table, bound, general=general)
            for general in (False, True)
        )
        np.testing.assert_allclose(fast.robustness, slow.robustness, rtol=1e-9)


@every_ball
def test_rows_give_the_same_bits_in_any_company(ball):
    rng = np.random.default_rng(503)
    model, rows = draw(rng, 600, trees=9, features=4)
    whole, tipping = solve(model, rows, ball, "all")
    order = rng.permutation(len(rows))
    again, tips = solve(model, rows[order], ball, "all")
    assert np.array_equal(whole[order], again, equal_nan=True)
    assert np.array_equal(tipping[order], tips)
    alone, _ = solve(model, rows[7:8], ball, "all")
    assert np.array_equal(alone, whole[7:8], equal_nan=True)


def test_weights_alone_rows_and_other_balls_are_left_to_others():
    model, rows = draw(np.random.default_rng(504), 3)
    ((_, shape),) = (pair for pair in model.read(rows).shapes if isinstance(pair[1], WholeMixtures))
    for ball, parts in (("tv", None), ("tv", ("weights",)), ("kl", "all"), ("odds_ratio", "all")):
        assert not shape.fits(read(ball, parts=parts).bind(model, ()))


def test_paths_are_the_weights_above_each_leaf():
    model, _ = draw(np.random.default_rng(505), 1, trees=5)
    paths = Paths.of(model)
    for leaf in range(model.leaves):
        node, above = model.leaf_nodes[leaf], []
        while model.parents[node] >= 0:
            above.append(model.weights[node])
            node = model.parents[node]
        assert paths.weights[paths.starts[leaf] : paths.starts[leaf + 1]].tolist() == above
