"""Leaves that are shrunk: to the classes of their parents, and to how features are distributed."""

import copy
import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

import robustq
from robustq import (
    GenerativeForestClassifier,
    GenerativeTreeClassifier,
    InputError,
    RigidModelWarning,
)
from robustq.core import engine
from robustq.core.neighbourhoods import read_all
from robustq.families.forest import shrinking
from robustq.families.forest.cells import allowed_values
from robustq.families.forest.classifier import KIND
from robustq.families.forest.nodes import FEATURE, LEAF
from robustq.families.forest.planting import plant

MANY = 80  # categories: more than fit into one word


def mixed(rows=300, seed=0, gaps=0.0):
    """Return a table of few categories, many, and numbers, and labels."""
    rng = np.random.default_rng(seed)
    sky = rng.integers(0, 3, rows)
    town = rng.integers(0, MANY, rows)
    degrees = rng.normal(size=rows)
    y = (sky == 1) ^ (degrees + 0.3 * rng.normal(size=rows) > 0.2) ^ (town < 20)
    frame = pd.DataFrame(
        {
            "sky": pd.Series(np.array(["sun", "rain", "fog"])[sky], dtype=object),
            "town": [f"t{t}" for t in town],
            "degrees": degrees,
        }
    )
    frame = frame.mask(pd.DataFrame(rng.random(frame.shape) < gaps, columns=frame.columns))
    return frame, np.where(y, "in", "out")


def forest(**options):
    return GenerativeForestClassifier(**{"n_estimators": 5, "random_state": 0} | options)


def test_a_leaf_holds_what_the_formula_says():
    x, y = np.array(["a"] * 30 + ["b"] * 30 + ["c"] * 40), np.array([0] * 50 + [1] * 50)
    z = np.array(["u", "v"])[np.arange(100) % 2]
    z[:30] = "u"
    model = GenerativeTreeClassifier(max_depth=1).fit(np.stack([x, z], axis=1), y)
    root, left, right = model.to_dict()["trees"][0]["nodes"]
    assert root["feature"] == 0
    inside = np.isin(x, np.array(["a", "b", "c"])[root["left_values"]])
    for node, rows in ((left, inside), (right, ~inside)):
        top = (np.bincount(y) + 0.5) / 101
        expected = (np.bincount(y[rows], minlength=2) + 2 * top) / (rows.sum() + 2)
        np.testing.assert_allclose(node["class_probs"], expected, rtol=1e-12)
    q = np.array([(z == v).sum() + 0.5 for v in "uv"]) / 101
    for leaf, rows in ((0, inside), (1, ~inside)):
        found = [model.model_.probability(leaf, 1, code) for code in (0, 1)]
        counts = np.array([(z[rows] == v).sum() for v in "uv"])
        np.testing.assert_allclose(found, (counts + 50 * q) / (rows.sum() + 50), rtol=1e-12)


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_every_leaf_sums_to_one(gaps):
    frame, y = mixed(gaps=gaps)
    model = forest().fit(frame, y).model_
    np.testing.assert_allclose(model.class_probs.sum(axis=1), 1.0, rtol=1e-12)
    for leaf, feature in itertools.product(range(0, model.leaves, 7), range(3)):
        codes = allowed_values(model, leaf, feature)
        total = sum(model.probability(leaf, feature, int(code)) for code in codes)
        assert total == pytest.approx(1.0, rel=1e-12)


def test_leaves_learn_from_all_rows():
    frame, y = mixed(gaps=0.2)
    model = forest().fit(frame, y).model_
    np.testing.assert_array_equal(model.rows[model.roots[:-1]], len(y))
    assert model.rows.min() > 0
    bagged = forest(leaves="additive").fit(frame, y).model_
    at = np.flatnonzero(model.nodes[:, FEATURE] == LEAF)
    assert model.rows[at].sum() == bagged.rows[bagged.nodes[:, FEATURE] == LEAF].sum()


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_kernels_agree_with_the_recursion(gaps):
    frame, y = mixed(gaps=gaps)
    model = forest().fit(frame, y)
    rows = model.encoding_.encode(model._arrange(frame[:25]))
    bound = model._bind(read_all(["epsilon", "tv", "chi2"]))
    quick = engine.quantify(model.model_, rows, bound)
    slow = engine.quantify(model.model_, rows, bound, general=True)
    np.testing.assert_allclose(quick.robustness, slow.robustness, rtol=1e-9)


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_the_joint_is_the_sum_over_trees_and_leaves(gaps):
    frame, y = mixed(gaps=gaps)
    model = forest().fit(frame, y)
    rows = model.encoding_.encode(model._arrange(frame[:10]))
    forest_ = model.model_
    joint = np.exp(model.predict_joint_log_proba(frame[:10]))
    for row, found in zip(rows.codes, joint, strict=True):
        expected = np.zeros(2)
        for leaf in range(forest_.leaves):
            mass, node = 1.0 / forest_.trees, int(forest_.leaf_nodes[leaf])
            while forest_.parents[node] >= 0:
                mass, node = mass * forest_.weights[node], int(forest_.parents[node])
            for feature in np.flatnonzero(row >= 0):
                inside = row[feature] in allowed_values(forest_, leaf, feature)
                p = forest_.probability(leaf, feature, row[feature]) if inside else 0.0
                mass *= p
            expected += mass * forest_.class_probs[leaf]
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_files_and_documents_hold_all_of_it(tmp_path):
    frame, y = mixed(gaps=0.1)
    model = forest().fit(frame, y)
    model.save(tmp_path / "model.robustq")
    expected = model.predict_joint_log_proba(frame)
    for again in (
        robustq.load(tmp_path / "model.robustq"),
        GenerativeForestClassifier.from_dict(model.to_dict()),
    ):
        np.testing.assert_array_equal(again.predict_joint_log_proba(frame), expected)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: d["base"][0].__setitem__(0, 0.0), "base"),
        (lambda d: d.update(base=[[1.0]]), "base must be a list for each"),
        (lambda d: _leaf(d)["feature_probs"][0].update(other=-1.0), "ratio of at least 0"),
        (lambda d: _leaf(d)["feature_probs"][1].update(other=3.0), "must sum to 1"),
        (lambda d: _leaf(d)["feature_probs"][0].update(codes=[7]), "codes must be values"),
        (lambda d: _leaf(d)["feature_probs"].__setitem__(0, [0.5, 0.5]), "must be a dictionary"),
    ],
)
def test_damaged_documents_are_refused(damage, message):
    frame, y = mixed()
    document = forest(n_estimators=1).fit(frame, y).to_dict()
    damage(document)
    with pytest.raises(InputError, match=message):
        GenerativeForestClassifier.from_dict(document)


def _leaf(document):
    return next(n for n in document["trees"][0]["nodes"] if "class_probs" in n)


def test_a_smoothing_means_additive_leaves():
    frame, y = mixed()
    given = forest(smoothing=1e-6).fit(frame, y)
    named = forest(leaves="additive").fit(frame, y)
    np.testing.assert_array_equal(
        given.predict_joint_log_proba(frame), named.predict_joint_log_proba(frame)
    )
    assert given.model_.has_numbers
    assert "base" not in given.to_dict()
    likely = forest(leaves="likelihood").fit(frame, y).predict_joint_log_proba(frame)
    np.testing.assert_array_equal(
        forest(smoothing=0).fit(frame, y).predict_joint_log_proba(frame), likely
    )
    with pytest.raises(InputError, match="is for additive leaves"):
        forest(smoothing=1, leaves="shrunk").fit(frame, y)
    with pytest.raises(InputError, match="leaves must be 'shrunk', 'additive', 'likelihood'"):
        forest(leaves="many").fit(frame, y)


def test_a_file_without_a_base_is_one_of_additive_leaves():
    """Files of earlier versions have none."""
    frame, y = mixed()
    model = forest(smoothing=0.5).fit(frame, y)
    arrays = {name: a for name, a in KIND.unpack(model.model_).items() if name != "base"}
    model.model_ = KIND.pack(arrays, model.encoding_, 2)
    expected = forest(smoothing=0.5).fit(frame, y).predict_joint_log_proba(frame)
    np.testing.assert_array_equal(model.predict_joint_log_proba(frame), expected)


# Numbers: one that tells the target alone is remarked on.


@pytest.mark.filterwarnings("ignore::robustq.TableWarning")
def test_far_outside_a_number_is_as_at_the_end_and_unlikely():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 2))
    model = forest().fit(X, X[:, 0] + 0.3 * X[:, 1] > 0.5)
    end, beyond, far = [3.0, 0.0], [4.0, 0.0], [1e300, 0.0]
    assert model.predict([end, beyond, far]).tolist() == [True, True, True]
    likelihood = model.log_likelihood([end, far])
    assert likelihood[1] < likelihood[0] - 1.0
    assert model.predict([[-1e308, 0.0]]).tolist() == [False]


@pytest.mark.parametrize("value", [5.0, 0.0, -1e300, 1e308])
def test_a_number_with_one_value_tells_nothing(value):
    frame, y = mixed()
    model = forest().fit(frame.assign(same=value), y)
    joint = model.predict_joint_log_proba(frame.assign(same=value))
    for other in (1.5, None, -1e308):
        found = model.predict_joint_log_proba(frame.assign(same=other))
        np.testing.assert_allclose(found, joint, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::robustq.TableWarning")
def test_whole_numbers_and_the_largest_numbers_are_binned():
    x = np.arange(400) // 2
    model = forest().fit(x[:, None], x > 120)
    assert model.score(x[:, None], x > 120) > 0.95
    huge = np.where(x > 120, 1.7e308, -1.7e308) * (1 + x / 4e4)
    assert forest().fit(huge[:, None], x > 120).score(huge[:, None], x > 120) > 0.95
    with pytest.raises(InputError, match="column 0 holds inf"):
        model.predict([[np.inf]])


@pytest.mark.filterwarnings("ignore::robustq.TableWarning")
def test_bins_are_split_between_neighbours():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 1))
    model = forest().fit(X, np.abs(X[:, 0]) > 1)
    for leaf in range(model.model_.leaves):
        assert np.all(np.diff(allowed_values(model.model_, leaf, 0)) == 1)


def test_what_was_binned_can_be_perturbed():
    frame, y = mixed()
    model = forest().fit(frame, y)
    weights = model.robustness(frame[:20], "tv")
    every = model.robustness(frame[:20], "tv", parts="all")
    one = model.robustness(frame[:20], "tv", parts="feature:degrees")
    assert np.all(every <= one + 1e-12)
    assert np.all(every < weights)
    assert np.isfinite(model.robustness(frame[:5], "tv", parts="joint")).all()


def test_numbers_of_weights_do_not_change_a_forest():
    """Only their ratios count, if they are no counts."""
    frame, y = mixed()
    weights = np.random.default_rng(3).random(len(y)) + 0.5
    one = forest().fit(frame, y, weights).predict_proba(frame)
    thousand = forest().fit(frame, y, 1024 * weights).predict_proba(frame)
    np.testing.assert_allclose(thousand, one, rtol=1e-9)


def test_samples_are_drawn_from_the_joint():
    frame, y = mixed()
    model = forest().fit(frame, y)
    drawn, _ = model.sample(20_000, random_state=0)
    for name in ("sky", "town"):
        values = sorted(set(frame[name]))
        alone = pd.DataFrame([[None] * 3] * len(values), columns=frame.columns, dtype=object)
        alone[name] = values
        p = np.exp(model.log_likelihood(alone))
        shares = drawn.column(name).to_pandas().value_counts(normalize=True).reindex(values)
        assert np.all(np.abs(shares.fillna(0) - p) < 5 * np.sqrt(p / 20_000))


# How much


def test_the_loss_is_that_of_leaves_without_the_row(monkeypatch):
    """The kernel against forests that are planted without a row."""
    monkeypatch.setattr(shrinking, "STRENGTHS", (50.0,))
    monkeypatch.setattr(shrinking, "CLASS_STRENGTHS", (2.0,))
    frame, y = mixed(rows=60, gaps=0.1)
    kept = []

    def keep(grown, sample, features):
        # What is counted is replaced by probabilities later.
        kept.append((copy.deepcopy(grown), sample, features))

    monkeypatch.setattr("robustq.families.forest.growing.choose_shrinkage", keep)
    forest(n_estimators=1).fit(frame, y)
    (((tree,), sample, features),) = kept
    structure = tree.structure
    out = np.flatnonzero(tree.out_of_bag)
    places = np.full(len(sample.labels), -1, dtype=np.int32)
    places[out] = np.arange(len(out))
    totals, tops = np.zeros((len(out), 1, 1, 2)), np.full((len(out), 1), -np.inf)
    shrinking._rate(tree, places, sample, features, tops, totals)
    leaf_of = np.repeat(np.arange(len(structure.leaf_starts) - 1), np.diff(structure.leaf_starts))
    leaf_of = leaf_of[np.argsort(structure.order)]
    for place, row in enumerate(out):
        if sample.weights[leaf_of == leaf_of[row]].sum() > sample.weights[row]:
            expected = _without(sample, structure, features, row, int(leaf_of[row]))
            found = totals[place, 0, 0] / totals[place].sum()
            np.testing.assert_allclose(found, expected, rtol=1e-9)


def _without(sample, structure, features, row, leaf):
    weights = sample.weights.copy()
    weights[row] = 0.0
    # The unit is that of all rows.
    rest = replace(sample, weights=weights, repeats=weights)
    return plant(structure, rest, features).class_probs[leaf]


def test_rows_that_a_tree_did_not_grow_on_tell_how_much():
    rng = np.random.default_rng(4)
    X = rng.integers(0, 4, size=(600, 4))
    model = forest(n_estimators=15).fit(X, rng.integers(0, 2, 600))
    assert model.shrinkage_.classes >= 2.0
    assert not hasattr(forest(smoothing=1).fit(X, rng.integers(0, 2, 600)), "shrinkage_")


# Forests that cannot be flipped


def test_a_forest_that_no_weights_flip_says_so():
    X, y = np.zeros((30, 1), dtype=int), [0] * 20 + [1] * 10
    with pytest.warns(RigidModelWarning, match="no tree splits"):
        model = forest().fit(X, y)
    assert np.isinf(model.robustness(X[:3], "tv")).all()
    assert "no tree splits" in model.cautions[0]
    rng = np.random.default_rng(5)
    X = rng.integers(0, 3, size=(200, 2))
    with pytest.warns(RigidModelWarning, match="all leaves favour the same class"):
        forest(max_depth=1).fit(X, rng.random(200) < 0.1)
    frame, y = mixed()
    assert forest().fit(frame, y).cautions == ()


def test_probabilities_are_near_those_of_a_random_forest():
    X, y = load_breast_cancer(return_X_y=True)
    gaps = []
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(y))
        test, train = np.split(order, [200])
        ours = GenerativeForestClassifier(random_state=seed).fit(X[train], y[train])
        theirs = RandomForestClassifier(100, random_state=seed).fit(X[train], y[train])
        areas = [roc_auc_score(y[test], m.predict_proba(X[test])[:, 1]) for m in (ours, theirs)]
        gaps.append(areas[0] - areas[1])
    assert np.mean(gaps) > -0.015
