"""How trees grow: splits, stop rules, weights and leaves."""

import itertools

import numpy as np
import pytest

from robustq import GenerativeForestClassifier, GenerativeTreeClassifier
from robustq.families.forest.cells import walk
from robustq.families.forest.nodes import CHILD, FEATURE, LEAF
from robustq.families.forest.planting import Sample
from robustq.tables import Rows

# Some are made so small that nothing flips them.
pytestmark = pytest.mark.filterwarnings("ignore::robustq.RigidModelWarning")


def gini(counts):
    total = counts.sum()
    return total - (counts**2).sum() / total if total else 0.0


def entropy(counts):
    present = counts[counts > 0]
    return float(-(present * np.log(present / present.sum())).sum()) if len(present) else 0.0


def impurity_after(x, y, left, measure, classes):
    sides = (np.bincount(y[np.isin(x, left) == side], minlength=classes) for side in (True, False))
    return sum(measure(counts.astype(float)) for counts in sides)


def stump(x, y, **options):
    options = {"leaves": "additive"} | options
    return GenerativeTreeClassifier(max_depth=1, **options).fit(np.reshape(x, (-1, 1)), y)


def root_of(model):
    return model.to_dict()["trees"][0]["nodes"][0]


@pytest.mark.parametrize(("criterion", "measure"), [("gini", gini), ("entropy", entropy)])
def test_with_two_classes_the_subset_is_the_best_of_all(criterion, measure):
    rng = np.random.default_rng(61)
    for _ in range(30):
        x, y = rng.integers(0, 7, 80), rng.integers(0, 2, 80)
        values = np.unique(x)
        best = min(
            impurity_after(x, y, left, measure, 2)
            for size in range(1, len(values))
            for left in itertools.combinations(values, size)
        )
        left = values[root_of(stump(x, y, criterion=criterion, purity=1.0))["left_values"]]
        assert impurity_after(x, y, left, measure, 2) == pytest.approx(best, rel=1e-9)


def test_with_more_classes_the_subset_is_a_prefix_of_a_documented_order():
    rng = np.random.default_rng(62)
    found, best = 0.0, 0.0
    for _ in range(30):
        x, y = rng.integers(0, 6, 90), rng.integers(0, 4, 90)
        values = np.unique(x)
        left = values[root_of(stump(x, y, purity=1.0))["left_values"]]
        found += impurity_after(x, y, left, gini, 4)
        prefixes = []
        for c in range(4):
            order = values[np.argsort([np.mean(y[x == v] == c) for v in values])]
            prefixes += [order[:k] for k in range(1, len(order))]
        assert impurity_after(x, y, left, gini, 4) <= 1e-9 + min(
            impurity_after(x, y, prefix, gini, 4) for prefix in prefixes
        )
        best += min(
            impurity_after(x, y, subset, gini, 4)
            for size in range(1, len(values))
            for subset in itertools.combinations(values, size)
        )
    # Nearly what an exhaustive search would find.
    assert found < 1.01 * best


def test_numbers_are_split_midway():
    rng = np.random.default_rng(63)
    x = rng.normal(size=60)
    y = (x > 0.3).astype(int)
    low, high = x[y == 0].max(), x[y == 1].min()
    assert root_of(stump(x, y))["threshold"] == pytest.approx((low + high) / 2, abs=1e-15)
    below = np.nextafter(1.0, 2.0)
    assert root_of(stump([1.0, below], [0, 1]))["threshold"] == 1.0


def test_weights_are_the_shares_of_the_rows():
    x, y = ["a", "b", "b", "c"], [0, 1, 1, 1]
    root = root_of(stump(x, y))
    side = 0 if root["left_values"] == [0] else 1
    assert root["weights"][side] == 0.25
    model = stump(x, y)
    weighted = model.fit(np.reshape(x, (-1, 1)), y, sample_weight=[1.5, 0.5, 0.5, 0.5])
    root = root_of(weighted)
    side = 0 if root["left_values"] == [0] else 1
    assert root["weights"][side] == 0.5


def leaves_of(model):
    return [
        (node, cell)
        for tree in range(model.model_.trees)
        for node, cell in walk(model.model_, tree)
        if model.model_.nodes[node, FEATURE] == LEAF
    ]


def table(seed=64, rows=400):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, k, rows) for k in (3, 5, 8)], axis=1)
    return X, (X[:, 0] + X[:, 1] + rng.integers(0, 3, rows)) % 3


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_leaves_hold_the_counts_of_their_rows_within_their_cell(smoothing):
    X, y = table()
    model = GenerativeTreeClassifier(smoothing=smoothing, max_depth=4).fit(X, y)
    inside_of_all = np.zeros(len(X), dtype=int)
    for node, cell in leaves_of(model):
        leaf = int(model.model_.nodes[node, CHILD])
        inside = np.all([cell[i][X[:, i]] for i in range(3)], axis=0)
        inside_of_all += inside
        counts = np.bincount(y[inside], minlength=3) + smoothing
        np.testing.assert_allclose(model.model_.class_probs[leaf], counts / counts.sum())
        for i, allowed in enumerate(cell):
            counts = np.bincount(X[inside, i], minlength=len(allowed)) + smoothing * allowed
            probs = [model.model_.probability(leaf, i, code) for code in np.flatnonzero(allowed)]
            np.testing.assert_allclose(probs, counts[allowed] / counts.sum())
    assert np.all(inside_of_all == 1)


def test_a_number_in_a_leaf_has_its_mean_and_deviation():
    rng = np.random.default_rng(65)
    x = rng.normal(size=40)
    model = stump(x, (x > 0).astype(int), min_sd=1e-6)
    for leaf in model.to_dict()["trees"][0]["nodes"][1:]:
        normal = leaf["feature_probs"][0]
        inside = x[x > 0] if normal["low"] is not None else x[x <= 0]
        assert normal["mean"] == pytest.approx(inside.mean())
        assert normal["sd"] == pytest.approx(inside.std())
    flat = stump([1.0, 1.0, 2.0], [0, 0, 1], min_sd=0.5).to_dict()["trees"][0]["nodes"][1]
    assert flat["feature_probs"][0]["sd"] == pytest.approx(0.5 * np.std([1, 1, 2]))


@pytest.mark.parametrize(
    ("options", "holds"),
    [
        ({"max_depth": 0}, lambda m: m.leaves == 1),
        ({"max_depth": 2}, lambda m: m.depth == 2),
        ({"max_depth": None}, lambda m: m.depth > 5),
        ({"purity": 0.5}, lambda m: m.leaves < 20),
        ({"min_samples_split": 200, "max_depth": None}, lambda m: 2 <= m.leaves < 10),
        ({"min_samples_leaf": 200, "max_depth": None}, lambda m: m.leaves <= 2),
    ],
)
def test_growing_stops_where_it_should(options, holds):
    X, y = table()
    assert holds(GenerativeTreeClassifier(leaves="additive", **options).fit(X, y).model_)


def test_no_leaf_is_smaller_than_allowed():
    X, y = table()
    model = GenerativeTreeClassifier(min_samples_leaf=15, max_depth=None).fit(X, y)
    sizes = [
        np.all([cell[i][X[:, i]] for i in range(3)], axis=0).sum() for _, cell in leaves_of(model)
    ]
    assert min(sizes) >= 15
    assert len(sizes) > 5


def test_a_split_that_improves_nothing_is_not_made():
    x = np.array([0, 0, 1, 1])
    assert stump(x, [0, 1, 0, 1]).model_.leaves == 1


def test_values_that_are_not_here_go_to_the_heavier_side():
    # Value 2 is seen only where the first feature is "b".
    X = np.array([["a", "0"]] * 6 + [["a", "1"]] * 3 + [["b", "2"]] * 12)
    y = np.array([0] * 6 + [1] * 3 + [2] * 12)
    for seed in range(20):
        model = GenerativeTreeClassifier(random_state=seed).fit(X, y)
        nodes = model.to_dict()["trees"][0]["nodes"]
        if nodes[0]["feature"] == 0:
            break
    inner = next(n for n in nodes[1:] if n.get("feature") == 1)
    heavier = "left" if inner["weights"][0] > 0.5 else "right"
    assert (2 in inner["left_values"]) == (heavier == "left")


def test_max_features_limits_what_is_tried():
    rng = np.random.default_rng(66)
    X = rng.integers(0, 2, size=(500, 9))
    y = np.where(np.arange(500) % 20, X[:, 0], 1 - X[:, 0])
    roots = [
        [
            root_of(GenerativeTreeClassifier(max_features=most, random_state=seed).fit(X, y))[
                "feature"
            ]
            for seed in range(60)
        ]
        for most in (None, 1 / 3, 1)
    ]
    shares = [np.mean(np.array(found) == 0) for found in roots]
    assert shares[0] == 1.0
    assert 0.15 < shares[1] < 0.55
    assert shares[2] < 0.35


def test_max_features_may_be_said_by_the_width():
    rng = np.random.default_rng(68)
    X = rng.integers(0, 3, size=(200, 17))
    y = (X[:, :4].sum(axis=1) > 4).astype(int)
    trees = {
        most: GenerativeTreeClassifier(max_features=most, random_state=1).fit(X, y).to_dict()
        for most in ("sqrt", "log2", 4, 5)
    }
    assert trees["sqrt"] == trees["log2"] == trees[4] != trees[5]


def test_a_bootstrap_sample_keeps_the_classes():
    rng = np.random.default_rng(67)
    codes = np.arange(1000, dtype=np.int32)[:, None]
    labels = (np.arange(1000) < 30).astype(np.int64)
    sample = Sample.of(Rows(codes, np.empty((1000, 0))), labels, np.ones(1000), 2)
    drawn = sample.resample(rng)
    assert np.bincount(drawn.labels, drawn.weights).tolist() == [970.0, 30.0]
    assert 0.6 < np.mean(drawn.weights > 0) < 0.66
    model = GenerativeForestClassifier(3, smoothing=0.0, random_state=0).fit(codes % 7, labels)
    np.testing.assert_allclose(model.model_.prior, [0.97, 0.03], rtol=1e-12)


def test_missing_values_go_to_the_heavier_side_and_are_not_counted():
    X = [["a"], ["a"], ["b"], [None]]
    model = GenerativeTreeClassifier(smoothing=0.0).fit(X, [0, 0, 1, 1])
    nodes = model.to_dict()["trees"][0]["nodes"]
    assert sorted(nodes[0]["weights"]) == [0.25, 0.75]
    for leaf in nodes[1:]:
        assert sum(leaf["feature_probs"][0]) == 1.0
    # A leaf that never saw a value of a feature takes all as equally likely.
    X = [["a", None], ["a", None], ["b", 1], ["b", 2], ["b", 3]]
    model = GenerativeTreeClassifier(smoothing=0.0, max_depth=1).fit(X, [0, 0, 1, 1, 1])
    leaves = model.to_dict()["trees"][0]["nodes"][1:]
    cells = [leaf["feature_probs"][1] for leaf in leaves if leaf["class_probs"][0] == 1.0]
    assert cells in ([[pytest.approx(1 / 3)] * 3], [])
