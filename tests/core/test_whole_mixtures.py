"""Forests with everything perturbed: the kernel against the recursion."""

import numpy as np
import pytest

from robustq import GenerativeForestClassifier
from robustq.core import engine
from robustq.core.circuits import Circuits
from robustq.core.neighbourhoods import read
from robustq.core.whole_mixtures import WholeMixtures
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
    spans, weights = model.paths
    for leaf in range(model.leaves):
        node, above = model.leaf_nodes[leaf], []
        while model.parents[node] >= 0:
            above.append(model.weights[node])
            node = model.parents[node]
        start, length = spans[leaf]
        assert weights[start : start + length].tolist() == above


def test_the_recursion_has_room_for_more_classes_than_a_row_reaches_nodes():
    rng = np.random.default_rng(506)
    model, rows = draw(rng, 3, trees=1, classes=30, features=1, depth=1)
    bound = read("tv_all").bind(model, ())
    ((_, evidence),) = model.reach(rows)
    assert np.diff(evidence.starts).max() < 30
    circuits = Circuits.of(bound, model.locals, evidence)
    assert all(len(room) >= 30 for room in circuits._room()[:4])


@every_ball
def test_trees_too_improbable_for_floats_are_not_overlooked(ball):
    rng = np.random.default_rng(507)
    X = rng.integers(0, 9, (400, 40))
    y = (2 * X[:, 0] + X[:, 1] + rng.integers(0, 3, 400)) % 12
    forest = GenerativeForestClassifier(8, random_state=0, max_depth=None).fit(X, y)
    rows = forest.encoding_.encode(Table.read(rng.integers(0, 9, (20, 40))))
    bound = [read(ball, parts=("leaf_classes", "root")).bind(forest.model_, ())]
    fast, slow = (
        engine.quantify(forest.model_, rows, bound, general=general).robustness[0]
        for general in (False, True)
    )
    # What differences of products of many factors leave of a tie the plain recursion cannot tell.
    assert np.count_nonzero(slow > 1e-9) > 15
    np.testing.assert_allclose(fast[slow > 1e-9], slow[slow > 1e-9], rtol=1e-9)


@pytest.mark.parametrize("ball", ["tv", "epsilon"])
@pytest.mark.parametrize("seed", [721, 780, 815])
def test_leaves_without_either_class_speak_against_the_prediction(ball, seed):
    model, rows = draw(np.random.default_rng(seed), 20, zeros=0.5, classes=5, trees=5)
    found, _ = solve(model, rows, ball, ("leaf_classes",))
    bound = [read(ball, parts=("leaf_classes",)).bind(model, ())]
    truth = engine.quantify(model, rows, bound, general=True).robustness[0]
    sure = ~np.isnan(found)
    assert np.count_nonzero(sure) > 5
    np.testing.assert_allclose(found[sure], truth[sure], rtol=1e-9)


@pytest.mark.parametrize("parts", [("leaf_classes",), "all"])
def test_sizes_of_a_million_and_more_are_not_infinite(parts):
    rng = np.random.default_rng(508)
    X = rng.integers(0, 3, (400, 3))
    forest = GenerativeForestClassifier(1, smoothing=1e-5, max_depth=3, random_state=0)
    forest.fit(X, X[:, 0] * (X[:, 1] > 0))
    rows = forest.encoding_.encode(Table.read(X[:20]))
    bound = [read("chi2", parts=parts).bind(forest.model_, ())]
    fast, slow = (
        engine.quantify(forest.model_, rows, bound, general=general).robustness[0]
        for general in (False, True)
    )
    assert slow.max() > (1e6 if parts != "all" else 0.1)
    np.testing.assert_allclose(fast, slow, rtol=1e-9)


def test_classes_that_tie_at_a_leaf_lose_whatever_is_moved():
    """R(y) = −2y + 1e-20 (1 − 2y), of which 0.5 − y and 0.5 + y tell nothing in floats."""
    leaves = (([0.5, 0.5], [1.0, 0.0]), ([1.0, 0.0], [1e-20, 1.0]))
    document = random_document(np.random.default_rng(0), trees=1, classes=2, features=1, depth=0)
    document["features"] = [{"name": "x", "categories": [0, 1]}]
    document["trees"] = [{"nodes": [{"class_probs": p, "feature_probs": [q]}]} for p, q in leaves]
    model = GenerativeForestClassifier.from_dict(document)
    found, _ = solve(model.model_, encode(model, [[0]]), "tv", ("leaf_classes",))
    assert found[0] == pytest.approx(0.5e-20, rel=1e-9)
