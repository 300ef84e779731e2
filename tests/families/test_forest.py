"""The forest and the tree as their users meet them."""

import copy
import itertools
import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import robustq
from robustq import (
    GenerativeForestClassifier,
    GenerativeTreeClassifier,
    InputError,
    RigidModelWarning,
    RobustqError,
    UnknownValueWarning,
    UnsupportedError,
    datasets,
    memory,
)
from robustq.families.forest import traces
from robustq.perturbations import get
from robustq.tables import Rows, Table
from tests.core.models import margins

from .weather import ROWS, weather


def small_forest(**options):
    return GenerativeForestClassifier(**{"n_estimators": 7, "random_state": 0} | options)


@pytest.mark.filterwarnings("ignore::robustq.RigidModelWarning")
@parametrize_with_checks(
    [
        GenerativeForestClassifier(n_estimators=3, random_state=0),
        GenerativeTreeClassifier(random_state=0),
    ]
)
def test_scikit_learns_contract_is_kept(estimator, check):
    check(estimator)


# Inference


def every_row(model):
    """Return all rows of a small domain."""
    columns = [column.categories for column in model.encoding_.columns]
    return np.array(list(itertools.product(*columns)), dtype=object)


@pytest.mark.parametrize("smoothing", [0.0, 1e-6, 1.0])
def test_the_joint_distribution_sums_to_one(smoothing):
    rng = np.random.default_rng(1)
    X = np.stack([rng.integers(0, k, 60) for k in (2, 3, 4, 1)], axis=1)
    y = (X[:, 0] + X[:, 1] + rng.integers(0, 2, 60)) % 3
    X = pd.DataFrame(X).mask(rng.random(X.shape) < 0.1)
    for bootstrap in (True, False):
        model = small_forest(smoothing=smoothing, bootstrap=bootstrap).fit(X, y)
        joint = np.exp(model.predict_joint_log_proba(every_row(model)))
        assert joint.sum() == pytest.approx(1.0, abs=1e-12)


def test_missing_features_are_summed_out():
    rng = np.random.default_rng(2)
    X = np.stack([rng.integers(0, k, 80) for k in (2, 3, 4)], axis=1)
    model = small_forest().fit(X, X.sum(axis=1) % 3)
    rows = every_row(model)
    joint = np.exp(model.predict_joint_log_proba(rows))
    for known in itertools.product([False, True], repeat=3):
        asked = np.where(known, rows[7], None)
        agree = (rows[:, list(known)] == rows[7, list(known)]).all(axis=1)
        got = np.exp(model.predict_joint_log_proba([asked]))[0]
        np.testing.assert_allclose(got, joint[agree].sum(axis=0), rtol=1e-12)


def test_a_density_integrates_to_one():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 1)) * 3
    model = small_forest(leaves="additive").fit(X, np.abs(X[:, 0]) > 2)
    grid = np.linspace(-60, 60, 400_001)
    density = np.exp(model.log_likelihood(grid[:, None]))
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-4)


def test_the_likelihood_is_the_sum_over_the_classes():
    frame, y = weather()
    model = small_forest().fit(frame, y)
    joint = model.predict_joint_log_proba(frame)
    np.testing.assert_allclose(
        model.log_likelihood(frame), np.log(np.exp(joint).sum(axis=1)), rtol=1e-12
    )
    strange = frame.assign(degrees=500.0)
    assert model.log_likelihood(strange).max() < model.log_likelihood(frame).min()


def test_one_tree_predicts_what_the_decision_tree_predicts():
    rng = np.random.default_rng(4)
    X = rng.integers(0, 4, size=(300, 5))
    y = (X[:, 0] * X[:, 1] + rng.integers(0, 3, 300)) % 3
    theirs = DecisionTreeClassifier(max_leaf_nodes=25, random_state=0).fit(X, y)
    ours = GenerativeTreeClassifier.from_sklearn(theirs, X, y, smoothing=0)
    # Where two classes tie in a leaf, either prediction is right.
    proba = theirs.predict_proba(X)
    np.testing.assert_allclose(ours.predict_proba(X), proba, atol=1e-12)
    clear = np.sort(proba, axis=1)[:, -1] - np.sort(proba, axis=1)[:, -2] > 1e-9
    np.testing.assert_array_equal(ours.predict(X)[clear], theirs.predict(X)[clear])


def test_every_kind_of_table_gives_the_same_answer():
    frame, y = weather()
    model = small_forest().fit(frame, y)
    expected = model.predict_joint_log_proba(frame)
    assert expected.shape == (ROWS, 3)
    for other in (
        pl.from_pandas(frame),
        pa.Table.from_pandas(frame),
        frame[frame.columns[::-1]].assign(extra=1),
        frame.astype(object).to_numpy(),
    ):
        np.testing.assert_array_equal(model.predict_joint_log_proba(other), expected)
    again = small_forest().fit(pl.from_pandas(frame), y)
    np.testing.assert_array_equal(again.predict_joint_log_proba(frame), expected)


def test_a_sample_follows_the_joint_distribution():
    rng = np.random.default_rng(5)
    X = np.stack([rng.integers(0, k, 100) for k in (2, 3)], axis=1)
    y = X[:, 0] ^ (X[:, 1] > 0)
    model = small_forest(smoothing=5.0, min_samples_split=40).fit(X, y)
    drawn, labels = model.sample(20_000, random_state=0)
    joint = np.exp(model.predict_joint_log_proba(every_row(model)))
    for row, probs in zip(every_row(model), joint, strict=True):
        here = (drawn == row).all(axis=1)
        for c, p in enumerate(probs):
            share = np.mean(here & (labels == c))
            assert abs(share - p) < 5 * np.sqrt(p * (1 - p) / 20_000)


@pytest.mark.parametrize("values", [30, 90])
def test_a_sample_holds_what_smoothing_allows(values):
    """Values that a leaf has never seen, of a feature with few values and one with many."""
    rng = np.random.default_rng(6)
    X = np.stack([np.arange(180) % values, rng.integers(0, 2, 180)], axis=1)
    model = small_forest(smoothing=20.0, max_depth=3, categorical=[0])
    model.fit(X, X[:, 1] ^ (X[:, 0] < values // 3))
    drawn, _ = model.sample(20_000, random_state=0)
    every = np.array([[value, None] for value in range(values)], dtype=object)
    probs = np.exp(model.predict_joint_log_proba(every)).sum(axis=1)
    shares = np.bincount(drawn[:, 0].astype(int), minlength=values) / 20_000
    assert np.all(np.abs(shares - probs) < 5 * np.sqrt(probs / 20_000))


def test_a_sample_looks_like_the_table():
    frame, y = weather()
    model = small_forest().fit(frame, y)
    drawn, labels = model.sample(500, random_state=1)
    assert drawn.column_names == frame.columns.tolist()
    assert set(labels) <= set(y)
    assert np.isfinite(model.log_likelihood(drawn)).all()
    again, _ = model.sample(500, random_state=1)
    assert again.equals(drawn)
    numbers, _ = small_forest().fit(*load_iris(return_X_y=True)).sample(3, random_state=0)
    assert numbers.dtype == np.float64
    assert numbers.shape == (3, 4)


def test_unknown_values_count_as_missing():
    frame, y = weather()
    model = small_forest().fit(frame, y)
    odd, gap = frame.head(20).copy(), frame.head(20).copy()
    odd["sky"], gap["sky"] = "green", None
    with pytest.warns(UnknownValueWarning, match="20 in column 'sky'"):
        got = model.robustness(odd)
    np.testing.assert_array_equal(got, model.robustness(gap))
    strict = small_forest(handle_unknown="error").fit(frame, y)
    with pytest.raises(InputError, match="column 'sky' holds 'green' in row 0"):
        strict.predict(odd)


# Robustness


@pytest.mark.parametrize("name", ["epsilon", "tv", "chi2", "odds_ratio"])
def test_robust_below_and_not_above(name):
    frame, y = weather()
    model = small_forest().fit(frame, y)
    frame = frame.head(60)
    robustness = model.robustness(frame, name)
    end = get(name).domain.end
    below, above = np.minimum(robustness, end) * (1 - 1e-6), robustness * (1 + 1e-6)
    assert model.is_robust(frame, name, below).all()
    flips = above < end
    assert flips.sum() > 10
    assert not model.is_robust(frame[flips], name, above[flips]).any()
    credal = model.credal_predict(frame, name, below)
    np.testing.assert_array_equal(model.classes_[credal.argmax(axis=1)], model.predict(frame))
    assert (credal.sum(axis=1) == 1).all()
    assert (model.credal_predict(frame[flips], name, above[flips]).sum(axis=1) > 1).all()


def test_credal_predictions_are_maximal():
    frame, y = weather()
    model = small_forest().fit(frame, y)
    rows = model.encoding_.encode(Table.read(frame))
    for name, delta in (("tv", 0.1), ("chi2", 0.1), ("odds_ratio", 0.3)):
        beaten = np.zeros((ROWS, 3), dtype=bool)
        for first, second in itertools.permutations(range(3), 2):
            pair = np.full(ROWS, first), np.full(ROWS, second)
            size = np.full(ROWS, delta)
            beaten[:, second] |= margins(model.model_, rows, *pair, get(name), size) > 0
        np.testing.assert_array_equal(model.credal_predict(frame, name, delta), ~beaten)
        assert 0 < beaten.mean() < 1


def test_functions_and_methods_agree():
    frame, y = weather()
    model = small_forest().fit(frame, y)
    np.testing.assert_array_equal(
        robustq.robustness(model, frame, "chi2"), model.robustness(frame, "chi2")
    )
    assessment = robustq.assess(model, frame)
    np.testing.assert_array_equal(assessment.prediction, model.predict(frame))
    np.testing.assert_allclose(assessment.probability, model.predict_proba(frame).max(axis=1))
    assert assessment.to_pandas().shape == (ROWS, 9)


def test_blocks_threads_and_equal_rows_change_nothing(monkeypatch):
    frame, y = weather()
    model = small_forest().fit(frame, y)
    frame.iloc[::7, 1] = None
    doubled = pd.concat([frame, frame.iloc[::-1]])
    expected = model.robustness(frame, "tv")
    got = model.robustness(doubled, "tv")
    np.testing.assert_array_equal(got, np.concatenate([expected, expected[::-1]]))
    joint = model.predict_joint_log_proba(frame)
    found = model.predict_joint_log_proba(doubled)
    np.testing.assert_array_equal(found, np.concatenate([joint, joint[::-1]]))
    for rows, threads in ((31, 1), (64, 3)):
        monkeypatch.setattr(traces, "MOST_ROWS", rows)
        monkeypatch.setattr(traces, "MOST_WITH_GAPS", rows // 2)
        model.n_jobs = threads
        np.testing.assert_array_equal(model.robustness(doubled, "tv"), got)
        np.testing.assert_array_equal(model.predict_joint_log_proba(doubled), found)


def test_few_rows_with_gaps_are_looked_at_at_once_and_fewer_of_large_forests():
    rows = Rows(np.zeros((10**5, 3), dtype=np.int32), np.empty((10**5, 0)))
    assert traces.fit_memory(25, 2, rows) == traces.MOST_ROWS
    assert traces.fit_memory(100, 2, rows) == traces.MOST_TRACED // 100
    assert traces.fit_memory(10**6, 2, rows) == traces.MOST_WITH_GAPS
    assert traces.fit_memory(25, 1000, rows) == traces.MOST_TRACED // 1000
    assert traces.fit_memory(25, 10**7, rows) == 1
    rows.codes[::4, 1] = -1
    assert traces.fit_memory(25, 2, rows) == 4 * traces.MOST_WITH_GAPS
    rows.codes[:, 2] = -2
    assert traces.fit_memory(25, 2, rows) == traces.MOST_WITH_GAPS
    assert traces.fit_memory(25, 2, rows[:0]) == traces.MOST_ROWS


# Fitting


def same(one, other):
    return json.dumps(one.to_dict()) == json.dumps(other.to_dict())


def test_the_same_seed_gives_the_same_forest_for_any_number_of_jobs():
    frame, y = weather()
    forests = [small_forest(n_jobs=jobs).fit(frame, y) for jobs in (1, 2, 5, None)]
    assert all(same(forests[0], forest) for forest in forests)
    assert not same(forests[0], small_forest(random_state=1).fit(frame, y))


def test_the_order_of_the_rows_does_not_matter():
    frame, y = weather()
    order = np.random.default_rng(0).permutation(ROWS)
    assert same(small_forest().fit(frame, y), small_forest().fit(frame.iloc[order], y[order]))


def test_whole_weights_are_repeated_rows():
    frame, y = weather()
    weights = np.random.default_rng(0).integers(0, 4, ROWS)
    repeated = np.repeat(np.arange(ROWS), weights)
    weighted = small_forest().fit(frame, y, sample_weight=weights)
    assert same(weighted, small_forest().fit(frame.iloc[repeated], y[repeated]))


def test_scaling_fractional_weights_changes_nothing_but_smoothing():
    frame, y = weather()
    weights = np.random.default_rng(0).uniform(0.2, 2.0, ROWS)
    one, other = (
        small_forest(smoothing=0).fit(frame, y, sample_weight=factor * weights)
        for factor in (1.0, 1024.0)
    )
    np.testing.assert_allclose(one.predict_proba(frame), other.predict_proba(frame), rtol=1e-9)


def test_a_fitted_forest_can_be_copied_pickled_and_cloned():
    frame, y = weather()
    model = small_forest().fit(frame, y)
    expected = model.robustness(frame)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):  # noqa: S301
        np.testing.assert_array_equal(other.robustness(frame), expected)
    assert not hasattr(clone(model), "model_")


def test_one_class_is_predicted_for_ever():
    frame, _ = weather()
    model = small_forest().fit(frame, ["only"] * ROWS)
    result = model.assess(frame)
    assert set(result.prediction) == {"only"}
    assert np.isinf(result.robustness["chi2"]).all()
    assert set(result.runner_up) == {None}


def test_one_row_is_enough():
    model = small_forest().fit([["a", 1.5]], ["x"])
    assert model.predict([["a", 2.5]]).tolist() == ["x"]


def test_a_column_of_missing_values_changes_nothing():
    frame, y = weather()
    sky = frame[["sky"]]
    plain = GenerativeTreeClassifier().fit(sky, y)
    for empty in (None, np.nan):
        padded = GenerativeTreeClassifier().fit(sky.assign(empty=empty), y)
        np.testing.assert_array_equal(
            plain.predict_joint_log_proba(sky),
            padded.predict_joint_log_proba(sky.assign(empty=empty)),
        )
    forced = GenerativeTreeClassifier(numeric=["empty"]).fit(frame.assign(empty=np.nan), y)
    with pytest.warns(UnknownValueWarning, match="'empty'"):
        forced.predict(frame.assign(empty=2.5))


def test_a_constant_number_is_no_trouble():
    frame, y = weather()
    model = small_forest().fit(frame.assign(one=1.5), y)
    assert np.isfinite(model.log_likelihood(frame.assign(one=1.5))).all()


def test_numbers_of_any_scale_give_the_same_predictions():
    X, y = load_iris(return_X_y=True)
    expected = small_forest().fit(X, y).predict_proba(X)
    for scale in (2.0**-100, 2.0**100):
        got = small_forest().fit(X * scale, y).predict_proba(X * scale)
        np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_thousands_of_categories_are_no_trouble():
    rng = np.random.default_rng(6)
    codes = rng.integers(0, 5000, 20_000)
    good = rng.random(5000) < 0.5
    y = np.where(rng.random(len(codes)) < 0.9, good[codes], ~good[codes])
    X = np.stack([codes, rng.integers(0, 3, len(codes))], axis=1)
    X[:5000, 0] = np.arange(5000)  # every value is seen
    y[:5000] = good
    model = small_forest(n_estimators=5, max_depth=None, categorical=[0])
    model.fit(X[:15_000], y[:15_000])
    assert model.score(X[15_000:], y[15_000:]) > 0.75
    assert np.all(model.robustness(X[15_000:15_500]) >= 0)


def test_many_classes_are_told_apart():
    rng = np.random.default_rng(7)
    X = rng.integers(0, 12, size=(3000, 4))
    y = X[:, 0] * 4 + X[:, 1] % 4
    model = small_forest(max_depth=None).fit(X, y)
    assert model.score(X, y) > 0.95


def test_more_classes_than_memory_are_refused(monkeypatch):
    monkeypatch.setattr(memory, "_physical_memory", lambda: 10_000)
    X = np.arange(200)[:, None] % 7
    with pytest.raises(UnsupportedError, match="is the target a number rather than a class"):
        small_forest().fit(X, (np.arange(200) % 90).astype(str))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_estimators": 0}, "n_estimators must be a whole number of at least 1, got 0"),
        ({"n_estimators": 2.5}, "n_estimators must be"),
        ({"criterion": "mse"}, 'criterion must be "gini" or "entropy", got \'mse\''),
        ({"max_depth": -1}, 'max_depth must be at least 0, None or "auto", got -1'),
        ({"min_samples_leaf": 0}, 'min_samples_leaf must be at least 1, or "auto", got 0'),
        ({"min_samples_split": "many"}, "min_samples_split must be at least 1"),
        ({"max_features": 0}, "max_features must be a count of at least 1, a share"),
        ({"max_features": 1.5}, "max_features must be"),
        ({"max_features": "third"}, "max_features must be"),
        ({"purity": 0.0}, "purity must be a share"),
        ({"smoothing": -1e-6}, "smoothing must be a number from 0"),
        ({"smoothing": np.nan}, "smoothing must be"),
        ({"smoothing": "cv"}, "smoothing must be"),
        ({"min_sd": 0.0}, "min_sd must be a number of at least"),
        ({"n_jobs": 0}, "n_jobs must be at least 1, or −1 or None"),
        ({"handle_unknown": "ignore"}, 'handle_unknown must be "missing" or "error"'),
        ({"random_state": "x"}, "cannot be used to seed"),
        ({"categorical": "name"}, "categorical must be a list of columns"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(InputError, match=message):
        GenerativeForestClassifier(**options).fit([["a"], ["b"]], [0, 1])


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.empty((0, 2)), [], "the table has no rows"),
        (np.array([[np.inf], [1.5]]), [0, 1], "column 0 holds inf; make it missing"),
        (np.array([[1.5], [2.5]]), [0], "y has 1 labels for 2 rows"),
        (np.array([[1.5], [2.5]]), [0, np.nan], "row 1 has no label"),
    ],
)
def test_bad_tables_are_named(X, y, message):
    with pytest.raises(RobustqError, match=message):
        small_forest().fit(X, y)


def test_wrong_columns_are_named():
    frame, y = weather()
    model = small_forest().fit(frame, y)
    with pytest.raises(InputError, match="the table lacks column 'sky'"):
        model.predict(frame.drop(columns="sky"))
    with pytest.raises(InputError, match="X has 2 features, but GenerativeForestClassifier"):
        model.predict(np.zeros((1, 2)))


# scikit-learn's forests


@pytest.mark.parametrize(
    "forest",
    [
        RandomForestClassifier(5, random_state=0),
        ExtraTreesClassifier(5, random_state=0),
        DecisionTreeClassifier(random_state=0),
        ExtraTreeClassifier(random_state=0),
    ],
)
def test_a_forest_of_scikit_learn_keeps_its_trees(forest):
    X, y = load_breast_cancer(return_X_y=True)
    forest.fit(X[::2], y[::2])
    model = GenerativeForestClassifier.from_sklearn(forest, X, y)
    trees = getattr(forest, "estimators_", [forest])
    assert model.n_estimators == len(trees)
    rows = model.encoding_.encode(Table.read(X))
    ends = model.model_.trace(rows).leaves
    for index, tree in enumerate(trees):
        # The same leaves, whatever they are called.
        theirs = tree.tree_.apply(X.astype(np.float32))
        pairs = {(a, b) for a, b in zip(theirs, ends[index], strict=True)}
        assert len(pairs) == len(set(theirs)) == len(set(ends[index]))
    assert model.score(X, y) > 0.9
    assert np.all(model.robustness(X[:20]) >= 0)


def test_numbers_at_the_threshold_go_where_scikit_learn_sends_them():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(200, 2))
    y = X[:, 0] > 0.1
    tree = DecisionTreeClassifier().fit(X, y)
    model = GenerativeTreeClassifier.from_sklearn(tree, X, y)
    threshold = tree.tree_.threshold[0]
    near = threshold + np.spacing(np.float32(threshold)) * np.linspace(-2, 2, 4001)
    points = np.stack([near, np.zeros_like(near)], axis=1)
    theirs = tree.apply(points) == tree.apply(points[:1])[0]
    ends = model.model_.trace(model.encoding_.encode(Table.read(points))).leaves[0]
    np.testing.assert_array_equal(ends == ends[0], theirs)


def test_integers_of_a_forest_become_categories():
    rng = np.random.default_rng(9)
    X = rng.integers(-3, 100, size=(400, 3))
    y = (X[:, 0] > 40) ^ (X[:, 1] < 10)
    forest = RandomForestClassifier(4, random_state=0).fit(X, y)
    model = GenerativeForestClassifier.from_sklearn(forest, X, y)
    assert model.score(X, y) > 0.95


def test_splits_that_no_row_passes_one_way_are_dropped():
    X = np.arange(10.0)[:, None] + 0.5
    y = np.arange(10) % 2
    tree = DecisionTreeClassifier().fit(X, y)
    model = GenerativeTreeClassifier.from_sklearn(tree, X[:3], y[:3])
    assert len(model.model_.nodes) == 5
    assert np.all(model.model_.weights > 0)


@pytest.mark.parametrize(
    ("forest", "message"),
    [
        (RandomForestClassifier(), "is not fitted"),
        ("forest", "expected a RandomForestClassifier.* got str"),
        (DecisionTreeClassifier().fit([[0], [1]], [0, 1]), "X has 2 columns"),
        (DecisionTreeClassifier().fit([[0, 1], [1, 1]], [0, 5]), "y holds 1, which is none of"),
        (DecisionTreeClassifier().fit([[0, 1], [1, 1]], [[0, 1], [1, 0]]), "predicts 2 targets"),
    ],
)
def test_what_is_no_forest_is_refused(forest, message):
    with pytest.raises(InputError, match=message):
        GenerativeForestClassifier.from_sklearn(forest, [[0.5, 1.5], [1.5, 0.5]], [0, 1])


# As plain data


@pytest.mark.filterwarnings("ignore::robustq.RigidModelWarning")  # of no depth
def test_a_model_survives_json_exactly():
    frame, y = weather()
    frame["wide"] = np.arange(ROWS) % 80
    for options in ({}, {"smoothing": 0.0}, {"max_depth": 0}):
        model = small_forest(**options).fit(frame, y)
        document = json.loads(json.dumps(model.to_dict(), allow_nan=False))
        again = GenerativeForestClassifier.from_dict(document)
        assert again.to_dict() == model.to_dict()
        for ask in ("predict_joint_log_proba", "robustness"):
            np.testing.assert_array_equal(getattr(again, ask)(frame), getattr(model, ask)(frame))


def test_the_document_has_the_documented_form():
    model = GenerativeTreeClassifier(smoothing=0.0).fit(
        [["a", 1.5], ["b", 2.5], ["b", 3.5]], ["no", "yes", "yes"]
    )
    document = model.to_dict()
    assert document["kind"] == "generative_forest"
    assert document["classes"] == ["no", "yes"]
    assert document["features"] == [
        {"name": "0", "categories": ["a", "b"]},
        {"name": "1", "numeric": True},
    ]
    root, *leaves = document["trees"][0]["nodes"]
    sure = [leaf["class_probs"] for leaf in leaves]
    assert {root["left"], root["right"]} == {1, 2}
    if root["feature"] == 0:
        side = 0 if root["left_values"] == [0] else 1
        assert root["weights"][side] == pytest.approx(1 / 3)
        assert sure[side] == [1.0, 0.0]
        assert leaves[side]["feature_probs"][0] == [1.0, 0.0]
        assert leaves[1 - side]["feature_probs"][1] == {
            "mean": 3.0,
            "sd": 0.5,
            "low": None,
            "high": None,
        }
    else:
        assert root["weights"] == [pytest.approx(1 / 3), pytest.approx(2 / 3)]
        assert root["threshold"] == 2.0
        assert sure == [[1.0, 0.0], [0.0, 1.0]]
        assert leaves[1]["feature_probs"][1] == {"mean": 3.0, "sd": 0.5, "low": 2.0, "high": None}


def nodes_of(document):
    return document["trees"][0]["nodes"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(kind="naive_bayes"), "of kind 'naive_bayes'"),
        (lambda d: d.update(version=3), "update robustq"),
        (lambda d: d.update(trees=[]), "has no trees"),
        (lambda d: d.update(trees=[3]), r"trees\[0\] must be a dictionary"),
        (lambda d: d["trees"][0].pop("nodes"), "lacks 'nodes'"),
        (lambda d: nodes_of(d).clear(), "at least one node"),
        (lambda d: nodes_of(d)[0].update(left=0), "that is no tree"),
        (lambda d: nodes_of(d)[0].update(left=2), "that is no tree"),
        (lambda d: nodes_of(d)[0].update(right=99), "has no right child: got 99"),
        (lambda d: nodes_of(d)[0].update(right=-1), "has no right child: got -1"),
        (lambda d: nodes_of(d)[0].update(right=True), "has no right child: got True"),
        (lambda d: nodes_of(d)[0].update(feature=7), "splits feature 7, which is none"),
        (lambda d: nodes_of(d)[0].update(weights=[0.5, 0.6]), "must sum to 1"),
        (lambda d: nodes_of(d)[0].update(weights=[float("nan"), 0.6]), "must hold prob"),
        (lambda d: nodes_of(d)[0].update(weights=[1.0]), "has shape"),
        (lambda d: nodes_of(d)[0].update(left_values=[9]), "needs left_values, codes below 2"),
        (lambda d: nodes_of(d)[0].update(left_values="a"), "needs left_values"),
        (lambda d: nodes_of(d)[1].update(class_probs=[0.5, 0.4]), "must sum to 1"),
        (lambda d: nodes_of(d)[1].update(feature_probs=[[1.0, 0.0]]), "1 feature_probs for 2"),
        (lambda d: nodes_of(d)[1]["feature_probs"].__setitem__(0, [0.5, 0.5]), "does not allow"),
        (lambda d: nodes_of(d)[1]["feature_probs"].__setitem__(1, [1.0]), "must be a dictionary"),
        (lambda d: nodes_of(d)[1]["feature_probs"][1].update(sd=0.0), "a positive sd"),
        (lambda d: nodes_of(d)[1]["feature_probs"][1].update(mean=float("inf")), "finite mean"),
        (lambda d: nodes_of(d)[1]["feature_probs"][1].update(low="x"), "to be numbers or null"),
        (lambda d: nodes_of(d)[1]["feature_probs"][1].update(low=3.0, high=2.0), "its path allows"),
        (lambda d: nodes_of(d)[1]["feature_probs"][1].update(mean=1e9, sd=1.0, high=0.0), "mass"),
        (lambda d: nodes_of(d).append(copy.deepcopy(nodes_of(d)[1])), "does not lead to"),
        (lambda d: nodes_of(d).__setitem__(1, None), "must be a dictionary"),
    ],
)
def test_damaged_documents_are_refused(change, message):
    X = [["a", 1.5], ["b", 1.5], ["b", 1.5]]
    model = GenerativeTreeClassifier(smoothing=0.0).fit(X, ["no", "yes", "yes"])
    document = model.to_dict()
    change(document)
    with pytest.raises(InputError, match=message):
        GenerativeForestClassifier.from_dict(document)


def test_a_forest_is_no_tree():
    frame, y = weather()
    with pytest.raises(InputError, match="has one tree, and the model given has 7"):
        GenerativeTreeClassifier.from_dict(small_forest().fit(frame, y).to_dict())


# Accuracy


def mean_gap(X, codes, y, splits=10):
    """Return by how much our accuracy exceeds a random forest's, over random splits."""
    gaps = []
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(len(y))
        test, train = np.split(order, [int(0.4 * len(y))])
        ours = GenerativeForestClassifier(random_state=seed).fit(X[train], y[train])
        theirs = RandomForestClassifier(25, random_state=seed).fit(codes[train], y[train])
        gaps.append(ours.score(X[test], y[test]) - theirs.score(codes[test], y[test]))
    return np.mean(gaps)


def test_accuracy_on_numbers_is_on_par_with_a_random_forest():
    X, y = load_breast_cancer(return_X_y=True)
    assert mean_gap(X, X, y) > -0.02


def test_accuracy_on_categories_is_on_par_with_a_random_forest():
    german = datasets.load("german", download=False)
    X, y = np.array([column.to_pylist() for column in german.X.columns], dtype=object).T, german.y
    codes = np.stack([np.unique(column, return_inverse=True)[1] for column in X.T], axis=1)
    assert mean_gap(X, codes, y, splits=40) > -0.01


# What broke once


def test_narrow_cells_and_tiny_numbers_give_probabilities():
    for X in (
        np.array([[0.0], [1e-310], [2e-310], [3e-310]] * 5),
        np.array([[0.0], [1e-200], [2e-200], [1e149]] * 5),
    ):
        model = small_forest(bootstrap=False).fit(X, [0, 1, 0, 1] * 5)
        assert np.isfinite(model.predict_proba(X)).all()
        assert np.all(model.robustness(X) >= 0)


def test_huge_weights_are_no_trouble():
    frame, y = weather()
    model = small_forest().fit(frame, y, sample_weight=np.full(ROWS, 1e18))
    assert model.score(frame, y) > 0.5


def test_the_order_of_rows_with_fractional_weights_does_not_matter():
    frame, y = weather()
    rng = np.random.default_rng(0)
    rows = np.tile(np.arange(50), 3)
    weights = rng.uniform(0.1, 1.0, 150)
    order = rng.permutation(150)
    one = small_forest().fit(frame.iloc[rows], y[rows], sample_weight=weights)
    other = small_forest().fit(
        frame.iloc[rows[order]], y[rows[order]], sample_weight=weights[order]
    )
    assert same(one, other)


def test_columns_of_a_foreign_forest_are_matched_by_name():
    frame, y = load_breast_cancer(return_X_y=True, as_frame=True)
    forest = RandomForestClassifier(3, random_state=0).fit(frame, y)
    model = GenerativeForestClassifier.from_sklearn(forest, frame[frame.columns[::-1]], y)
    expected = GenerativeForestClassifier.from_sklearn(forest, frame, y)
    np.testing.assert_array_equal(model.predict_proba(frame), expected.predict_proba(frame))


def test_splits_of_missing_against_present_values_are_refused():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (300, 3)).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    y = np.isnan(X[:, 0]).astype(int)
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    with pytest.raises(UnsupportedError, match="tells missing values of column 0 from all"):
        GenerativeForestClassifier.from_sklearn(tree, X, y)


def test_columns_of_several_types_can_be_sampled():
    frame = pd.DataFrame({"a": [1, "x", 2] * 10, "b": [True, "no", 2**64] * 10})
    drawn, _ = small_forest().fit(frame, [0, 1] * 15).sample(5, random_state=0)
    assert drawn.num_rows == 5


def test_far_tails_can_be_sampled():
    leaf = {
        "class_probs": [1.0],
        "feature_probs": [{"mean": 0.0, "sd": 1.0, "low": 20.0, "high": None}],
    }
    document = {
        "format": "robustq-model",
        "version": 1,
        "kind": "generative_forest",
        "classes": [0],
        "features": [{"name": "x", "numeric": True}],
        "trees": [
            {
                "nodes": [
                    {"feature": 0, "threshold": 20.0, "weights": [0.0, 1.0], "left": 1, "right": 2},
                    {
                        "class_probs": [1.0],
                        "feature_probs": [{"mean": 0.0, "sd": 1.0, "low": None, "high": 20.0}],
                    },
                    leaf,
                ]
            }
        ],
    }
    drawn, _ = GenerativeForestClassifier.from_dict(document).sample(1000, random_state=0)
    values = drawn["x"].to_numpy()
    assert 20.0 <= values.min() < 20.01
    # The mean excess over 20 is about 1/20.
    assert values.mean() - 20.0 == pytest.approx(0.05, abs=0.01)


def test_thousands_of_numbers_do_not_wrap_around():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2500))
    model = small_forest(n_estimators=1, max_depth=0, smoothing=1e-6)
    with pytest.warns(RigidModelWarning, match="no tree splits"):
        model.fit(X, [0, 1] * 10)
    assert model.log_likelihood(np.full((1, 2500), 30000.0))[0] < -1e9


@pytest.mark.parametrize(
    "options",
    [
        {"max_depth": 10**30},
        {"min_samples_leaf": 10**400},
        {"smoothing": 10**400},
        {"purity": 10**400},
        {"bootstrap": "x"},
        *({name: np.ones(2)} for name in ("max_features", "criterion", "n_jobs", "max_depth")),
    ],
)
def test_strange_options_are_refused(options):
    with pytest.raises(InputError, match=f"{next(iter(options))} must be"):
        small_forest(**options).fit([["a"], ["b"]], [0, 1])
    with pytest.raises(InputError, match="n must be"):
        small_forest().fit([["a"], ["b"]], [0, 1]).sample(10**30)


def test_many_classes_and_categories_take_no_age():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 1000, size=(4000, 2))
    y = rng.integers(0, 200, 4000)
    model = small_forest(n_estimators=1).fit(X, y)
    assert model.credal_predict(X[:5], "tv", 0.2).shape == (5, 200)


def test_rows_side_by_side_end_where_each_ends_by_itself(monkeypatch):
    """The kernel with dense factors, the one without, and the plain formulas."""
    rng = np.random.default_rng(31)
    X = rng.integers(0, [2, 5, 64, 3], size=(500, 4))
    y = (X[:, 0] + X[:, 1] > 3) * 1 + (X[:, 2] > 50)
    model = GenerativeForestClassifier(4, random_state=0).fit(X, y)
    forest, rows = model.model_, model.encoding_.encode(Table.read(X[:37]))
    dense = forest.trace(rows)
    assert forest.dense.factors is not None
    monkeypatch.setattr(traces, "MOST_FACTORS", 0)
    other = copy.deepcopy(forest)
    sparse = other.trace(rows)
    assert other.dense.factors is None
    assert np.array_equal(dense.leaves, sparse.leaves)
    np.testing.assert_allclose(dense.mass, sparse.mass, rtol=1e-14)
    np.testing.assert_allclose(dense.joint, sparse.joint, rtol=1e-13)
    for row, codes in enumerate(rows.codes):
        total = np.zeros(3)
        for leaf in dense.leaves[:, row]:
            mass = np.prod([forest.probability(leaf, f, code) for f, code in enumerate(codes)])
            total += forest.arrays.reach[leaf] * mass * forest.class_probs[leaf]
        np.testing.assert_allclose(np.exp(dense.joint[row]) * 4, total, rtol=1e-12)
