"""The classifier as its users meet it."""

import itertools
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.naive_bayes import CategoricalNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from robustq import InputError, NaiveBayesClassifier, RobustqError, UnknownValueWarning
from robustq.families import fitted
from robustq.families.fitted import NotFittedError
from robustq.families.naive_bayes.model import log_joint
from robustq.learning.counts import Counts
from robustq.learning.folds import FOLDS, deal
from robustq.learning.smoothing import SMOOTHING_GRID
from robustq.perturbations import get
from robustq.tables import Table
from tests.core.models import margins

from .weather import ROWS, weather


@parametrize_with_checks([NaiveBayesClassifier()])
def test_scikit_learns_contract_is_kept(estimator, check):
    check(estimator)


# Agreement


@pytest.mark.parametrize("smoothing", [0.5, 1.0, 7.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_probabilities_are_those_of_categorical_nb(smoothing, weighted):
    rng = np.random.default_rng(1)
    X = np.stack([np.r_[np.arange(k), rng.integers(0, k, 400 - k)] for k in (2, 3, 7, 10)], axis=1)
    y = rng.integers(0, 4, size=400)
    weight = rng.uniform(0.1, 3, size=400) if weighted else None
    ours = NaiveBayesClassifier(smoothing).fit(X, y, sample_weight=weight)
    theirs = CategoricalNB(alpha=smoothing).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    for name in ("predict_proba", "predict_log_proba", "predict_joint_log_proba"):
        np.testing.assert_allclose(getattr(ours, name)(X), getattr(theirs, name)(X), atol=1e-12)


def test_a_given_class_prior_is_used():
    X, y = [[0], [1], [1]], [0, 0, 1]
    ours = NaiveBayesClassifier(1.0, class_prior=[0.1, 0.9]).fit(X, y)
    theirs = CategoricalNB(class_prior=[0.1, 0.9]).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-12)


def test_hundreds_of_features_do_not_underflow():
    rng = np.random.default_rng(2)
    X, y = rng.integers(0, 10, size=(200, 800)), rng.integers(0, 3, size=200)
    model = NaiveBayesClassifier().fit(X, y)
    assert np.all(np.isfinite(model.predict_joint_log_proba(X)))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert (model.predict(X) == y).mean() > 0.9


# Tables


def test_every_kind_of_table_gives_the_same_answer():
    frame, y = weather()
    expected = NaiveBayesClassifier().fit(frame, y)
    tables = {
        "polars": pl.from_pandas(frame),
        "arrow": pa.Table.from_pandas(frame),
        "polars categories": pl.from_pandas(frame).with_columns(pl.col("sky").cast(pl.Categorical)),
    }
    for name, table in tables.items():
        model = NaiveBayesClassifier().fit(table, y)
        np.testing.assert_array_equal(
            model.predict_proba(table), expected.predict_proba(frame), err_msg=name
        )
        assert model.feature_names_in_.tolist() == list(frame.columns)
        np.testing.assert_array_equal(expected.robustness(table), expected.robustness(frame))


def test_lists_and_object_arrays_are_tables_too():
    rows = [["a", 1, 2.5], ["b", 2, None], ["a", None, 0.5], ["b", 1, 1.5]]
    y = [0, 1, 0, 1]
    from_list = NaiveBayesClassifier().fit(rows, y)
    from_array = NaiveBayesClassifier().fit(np.array(rows, dtype=object), y)
    from_frame = NaiveBayesClassifier().fit(pd.DataFrame(rows), y)
    assert [type(c).__name__ for c in from_list.encoding_.columns] == [
        "Categorical",
        "Categorical",
        "Binned",
    ]
    for model in (from_array, from_frame):
        np.testing.assert_array_equal(model.predict_proba(rows), from_list.predict_proba(rows))


def test_columns_are_matched_by_name():
    frame, y = weather()
    model = NaiveBayesClassifier().fit(frame, y)
    shuffled = frame[frame.columns[::-1]].assign(extra="ignored")
    np.testing.assert_array_equal(model.predict_proba(shuffled), model.predict_proba(frame))
    with pytest.raises(InputError, match=r"lacks column 'wind', which the model was fitted with"):
        model.predict(frame.drop(columns="wind"))


def test_arrays_must_have_as_many_columns():
    model = NaiveBayesClassifier().fit([[0, 1], [1, 0]], [0, 1])
    with pytest.raises(
        InputError, match="X has 3 features, but NaiveBayesClassifier is expecting 2"
    ):
        model.predict([[0, 1, 2]])


def test_integers_that_became_floats_are_still_categories():
    frame = pd.DataFrame({"score": [1, 2, None, 1], "level": [0.5, 1.5, 2.5, 3.5]})
    model = NaiveBayesClassifier().fit(frame, [0, 1, 0, 1])
    score, level = model.encoding_.columns
    assert score.categories == (1, 2)
    assert type(level).__name__ == "Binned"
    whole = pd.DataFrame({"score": [1, 2], "level": [0.5, 3.5]})
    assert model.predict(whole).shape == (2,)


def test_kinds_can_be_overridden():
    frame = pd.DataFrame({"zip": [10, 20, 30, 40], "grade": [1.0, 2.0, 1.0, 2.0]})
    model = NaiveBayesClassifier(n_bins=2, categorical=["grade"], numeric=["zip"])
    zip_code, grade = model.fit(frame, [0, 0, 1, 1]).encoding_.columns
    assert zip_code.edges == (20.0,)
    assert grade.categories == (1, 2)
    with pytest.raises(InputError, match="numeric names 'zap', which is no column"):
        NaiveBayesClassifier(numeric=["zap"]).fit(frame, [0, 0, 1, 1])
    with pytest.raises(InputError, match="column 'zip' is in both"):
        NaiveBayesClassifier(numeric=["zip"], categorical=[0]).fit(frame, [0, 0, 1, 1])
    with pytest.raises(InputError, match="column 'sky' is numeric, but holds values that are no"):
        NaiveBayesClassifier(numeric=["sky"]).fit(weather()[0], weather()[1])


def test_floats_are_binned_at_quantiles():
    numbers = np.arange(1000.0).reshape(-1, 1) / 7
    model = NaiveBayesClassifier(n_bins=4).fit(numbers, np.arange(1000) % 2)
    counts = np.bincount(model.encoding_.encode(Table.read(numbers)).codes[:, 0])
    assert counts.tolist() == [250, 250, 250, 250]
    assert model.predict(np.array([[-1e300], [1e300]])).shape == (2,)


# Missing and unknown values


def test_missing_values_are_summed_out():
    frame, y = weather()
    model = NaiveBayesClassifier(1.0).fit(frame, y)
    gone = frame.astype(object)
    gone["sky"], gone["wind"] = None, np.nan
    fewer = NaiveBayesClassifier(1.0).fit(frame.drop(columns=["sky", "wind"]), y)
    np.testing.assert_allclose(
        model.predict_proba(gone), fewer.predict_proba(frame.drop(columns=["sky", "wind"]))
    )
    np.testing.assert_allclose(
        model.robustness(gone), fewer.robustness(frame.drop(columns=["sky", "wind"])), rtol=1e-12
    )


def test_missing_values_are_not_counted():
    X = [["a"], ["a"], ["b"], [None]]
    model = NaiveBayesClassifier(smoothing=0).fit(X, [0, 0, 0, 0])
    np.testing.assert_allclose(model.model_.local_model(0).ravel(), [2 / 3, 1 / 3])


def test_all_missing_leaves_the_prior():
    frame, y = weather()
    model = NaiveBayesClassifier().fit(frame, y)
    proba = model.predict_proba(pd.DataFrame([[None] * 5], columns=frame.columns))
    np.testing.assert_allclose(proba[0], model.model_.class_probs)


def test_unknown_values_count_as_missing_and_are_reported_once():
    frame, y = weather()
    model = NaiveBayesClassifier().fit(frame, y)
    strange = frame.assign(sky="foggy", month=99)
    with pytest.warns(UnknownValueWarning) as caught:
        proba = model.predict_proba(strange)
    assert [str(warning.message) for warning in caught] == [
        (
            "values never seen in training, taken as missing: "
            "300 in column 'sky', 300 in column 'month'"
        )
    ]
    missing = frame.assign(sky=None, month=None)
    np.testing.assert_array_equal(proba, model.predict_proba(missing))


def test_unknown_values_are_counted_over_all_blocks(monkeypatch):
    monkeypatch.setattr(fitted, "BLOCK_ROWS", 64)
    frame, y = weather()
    model = NaiveBayesClassifier().fit(frame, y)
    with pytest.warns(UnknownValueWarning, match="missing: 300 in column 'sky'$"):
        model.robustness(frame.assign(sky="foggy"))


def test_unknown_values_can_be_an_error():
    frame, y = weather()
    model = NaiveBayesClassifier(handle_unknown="error").fit(frame, y)
    strange = frame.copy()
    strange.loc[7, "sky"] = "foggy"
    with pytest.raises(
        InputError, match=r"column 'sky' holds 'foggy' in row 7, .* 'rainy', 'sunny'"
    ):
        model.predict(strange)


# Labels


@pytest.mark.parametrize(
    "labels",
    [
        [True, False],
        [-1, 5],
        ["no", "yes"],
        [0.0, 1.0],
        np.array(["a", "b"], dtype=object),
        pd.Series(["x", "y"], dtype="category"),
        pl.Series(["x", "y"]),
    ],
)
def test_labels_come_back_as_they_were_given(labels):
    model = NaiveBayesClassifier().fit([["l"], ["r"]], labels)
    given = list(labels)
    assert model.predict([["l"], ["r"]]).tolist() == given


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "the target y is None"),
        (["a", None], "row 1 has no label"),
        ([1.0, np.nan], "row 1 has no label"),
        (["a"], "y has 1 labels for 2 rows"),
        ([0.5, 1.5], "Unknown label type"),
        (["a", 1], r"y mixes labels of different types \(int, str\)"),
    ],
)
def test_bad_labels_are_named(y, message):
    with pytest.raises(InputError, match=message):
        NaiveBayesClassifier().fit(
            [["l"], ["r"]], np.array(y, dtype=object) if y == ["a", 1] else y
        )


# Edges


def test_one_class_is_predicted_for_ever():
    model = NaiveBayesClassifier().fit([["a"], ["b"]], ["only", "only"])
    assert model.predict([["b"]]).tolist() == ["only"]
    assert model.robustness([["b"]]).tolist() == [np.inf]
    assessment = model.assess([["b"]])
    assert assessment.runner_up.tolist() == [None]
    assert assessment.tipping_class["tv"].tolist() == [None]
    assert model.is_robust([["b"]], "tv", 1.0).tolist() == [True]
    assert model.credal_predict([["b"]], "tv", 1.0).tolist() == [[True]]


def test_a_constant_column_changes_nothing():
    frame, y = weather()
    plain = NaiveBayesClassifier(1.0).fit(frame, y)
    padded = NaiveBayesClassifier(1.0).fit(frame.assign(same="x"), y)
    np.testing.assert_allclose(
        plain.predict_proba(frame), padded.predict_proba(frame.assign(same="x")), rtol=1e-12
    )
    np.testing.assert_array_equal(
        plain.robustness(frame), padded.robustness(frame.assign(same="x"))
    )


def test_a_column_of_missing_values_changes_nothing():
    frame, y = weather()
    plain, empty = NaiveBayesClassifier(1.0).fit(frame, y), frame.assign(empty=np.nan)
    padded = NaiveBayesClassifier(1.0).fit(empty, y)
    np.testing.assert_array_equal(plain.predict_proba(frame), padded.predict_proba(empty))
    np.testing.assert_array_equal(plain.robustness(frame), padded.robustness(empty))


def test_unsmoothed_impossible_rows_tie():
    model = NaiveBayesClassifier(smoothing=0).fit([["a", "c"], ["b", "d"]], [0, 1])
    X = [["a", "d"]]
    assert model.predict_proba(X).tolist() == [[0.5, 0.5]]
    assert model.robustness(X).tolist() == [0.0]
    assert model.credal_predict(X, "chi2", 0.0).tolist() == [[True, True]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"smoothing": -1}, r'smoothing must be a number from 0 to 1e\+100, "cv" or .*, got -1'),
        ({"smoothing": ()}, "smoothing must be"),
        ({"smoothing": (1.0, -1)}, "smoothing must be"),
        ({"smoothing": (1.0, "cv")}, "smoothing must be"),
        ({"smoothing": "auto"}, "smoothing must be"),
        ({"smoothing": np.nan}, "smoothing must be"),
        ({"smoothing": np.inf}, "smoothing must be"),
        ({"smoothing": True}, "smoothing must be"),
        ({"smoothing": 10**400}, "smoothing must be"),
        ({"n_bins": 10**400}, "n_bins must be"),
        ({"n_bins": 0}, "n_bins must be a whole number of at least 1, got 0"),
        ({"n_bins": 2.5}, "n_bins must be"),
        ({"handle_unknown": "ignore"}, 'handle_unknown must be "missing" or "error"'),
        ({"class_prior": [0.5, 0.6]}, "class_prior must be probabilities that sum to 1"),
        ({"class_prior": [1.0]}, r"class_prior has shape \(1,\) for 2 classes"),
        ({"class_prior": ["a", "b"]}, r"class_prior must be numbers, got \['a', 'b'\]"),
        ({"categorical": 3}, "categorical must be a list of columns, got 3"),
        ({"categorical": "name"}, "categorical must be a list of columns, got 'name'"),
        ({"numeric": [None]}, "numeric names None, which is no column"),
        ({"smoothing": "cv", "random_state": "x"}, "cannot be used to seed"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(InputError, match=message):
        NaiveBayesClassifier(**options).fit([["a"], ["b"]], [0, 1])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.empty((0, 2)), "the table has no rows"),
        (pd.DataFrame(index=[0, 1]), "the table has no columns"),
        (np.array([1, 2]), "Expected 2D array, got 1D array instead"),
        (np.array([[1j], [2]]), "Complex data not supported"),
        (
            np.array([[np.inf], [1.5]]),
            "Input contains infinity: column 0 holds inf; make it missing",
        ),
        (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), "Expected unique column names"),
        (
            pd.DataFrame({"took": pd.to_timedelta([1, 2], unit="s")}),
            "column 'took' is of",
        ),
        (pl.DataFrame({"list": [[1], [2]]}), "column 'list' holds lists"),
        (pl.LazyFrame({"a": [1, 2]}), r"LazyFrame is lazy: call its collect\(\) first"),
        (np.array([[{}], [{}]], dtype=object), "argument must be a string or a number"),
        ("text", "Expected 2D array, got scalar"),
        (None, "Expected 2D array, got scalar"),
    ],
)
def test_bad_tables_are_named(X, message):
    with pytest.raises(RobustqError, match=message):
        NaiveBayesClassifier().fit(X, [0, 1])


def test_an_unfitted_model_says_so():
    for ask in ("predict", "robustness", "assess", "predict_proba"):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            getattr(NaiveBayesClassifier(), ask)([["a"]])
    with pytest.raises(RobustqError):
        NaiveBayesClassifier().to_dict()


# Smoothing


def test_cross_validation_picks_the_smoothing_that_refitting_would_pick():
    frame, y = weather(rows=120)
    model = NaiveBayesClassifier("cv", n_bins=5, random_state=3).fit(frame, y)
    assert model.smoothing_ in SMOOTHING_GRID
    scores = _refitted_scores(model, frame, y)
    best = max(scores, key=lambda smoothing: (*scores[smoothing], -smoothing))
    assert model.smoothing_ == best


def _refitted_scores(model, frame, y):
    """Cross-validate by hand with the folds and the encoding of the model, refitting each time."""
    codes = model.encoding_.encode(Table.read(frame)).codes
    _, labels = np.unique(y, return_inverse=True)
    seed = np.random.RandomState(3).randint(2**31)
    dealt = deal(codes, labels, np.ones(len(labels)), np.random.default_rng(seed))
    folds = dealt.argmax(axis=1)
    assert np.ptp(np.bincount(folds)) <= 1
    scores = {}
    for smoothing in SMOOTHING_GRID:
        right = likelihood = 0.0
        for fold in range(FOLDS):
            inside, held = folds != fold, folds == fold
            counts = Counts.of(
                codes[inside], labels[inside], np.ones(inside.sum()), model.encoding_.sizes, 3
            )
            joint = log_joint(codes[held], *counts.estimate(smoothing), counts.layout)
            right += (joint.argmax(axis=1) == labels[held]).sum()
            log_proba = joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
            likelihood += log_proba[np.arange(held.sum()), labels[held]].sum()
        scores[smoothing] = (right, round(likelihood, 9))
    return scores


def test_a_grid_of_ones_own_is_chosen_from():
    frame, y = weather(rows=120)
    grids = [SMOOTHING_GRID, SMOOTHING_GRID[::-1], [3.0], (1e-10, 0.3)]
    found = [NaiveBayesClassifier(grid).fit(frame, y).smoothing_ for grid in grids]
    chosen = NaiveBayesClassifier("cv").fit(frame, y).smoothing_
    assert found[:3] == [chosen, chosen, 3.0]
    assert found[3] in grids[3]
    model = clone(NaiveBayesClassifier((1e-10, 0.3))).partial_fit(frame, y, np.unique(y))
    assert model.partial_fit(frame, y).smoothing_ == found[3]


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_cross_validation_of_hardly_any_rows_is_defined(rows):
    frame, y = weather(rows=rows)
    assert NaiveBayesClassifier("cv").fit(frame, y).smoothing_ in SMOOTHING_GRID


def test_the_likelihood_breaks_ties_of_the_accuracy():
    # One informative column: every smoothing predicts alike, but not every one is as sure.
    X = [["a"]] * 20 + [["b"]] * 20
    y = [0] * 20 + [1] * 20
    assert NaiveBayesClassifier("cv").fit(X, y).smoothing_ == min(SMOOTHING_GRID)
    blurred = [0] * 15 + [1] * 5 + [1] * 15 + [0] * 5
    chosen = NaiveBayesClassifier("cv").fit(X, blurred).smoothing_
    assert min(SMOOTHING_GRID) < chosen < max(SMOOTHING_GRID)


def test_cross_validation_is_seeded():
    frame, y = weather(rows=60)
    first = NaiveBayesClassifier("cv").fit(frame, y)
    again = clone(first).fit(frame, y)
    assert first.smoothing_ == again.smoothing_


# Learning bit by bit


def test_counts_add_up():
    frame, y = weather()
    frame = frame.drop(columns="degrees")
    whole = NaiveBayesClassifier(1.0).fit(frame, y)
    parts = NaiveBayesClassifier(1.0)
    for start in range(0, ROWS, 100):
        block = slice(start, start + 100)
        parts.partial_fit(frame[block], y[block], classes=np.unique(y))
    np.testing.assert_allclose(parts.predict_proba(frame), whole.predict_proba(frame), atol=1e-14)


def test_categories_may_come_later():
    parts = NaiveBayesClassifier(smoothing=0)
    parts.partial_fit([["b"], ["b"]], [0, 1], classes=[0, 1])
    parts.partial_fit([["a"], ["b"]], [0, 1])
    assert parts.encoding_.columns[0].categories == ("b", "a")
    np.testing.assert_allclose(parts.model_.local_model(0), [[0.5, 1.0], [0.5, 0.0]])


def test_partial_fit_says_what_it_needs():
    with pytest.raises(InputError, match="classes must be passed on the first call"):
        NaiveBayesClassifier().partial_fit([["a"]], [0])
    model = NaiveBayesClassifier().partial_fit([["a"]], [0], classes=[0, 1])
    with pytest.raises(InputError, match=r"y holds .*2.*, which is none of the classes \[0, 1\]"):
        model.partial_fit([["a"]], [2])
    with pytest.raises(InputError, match="is not the same as on the last call"):
        model.partial_fit([["a"]], [0], classes=[0, 2])
    for classes in ([], [0, 1, None], [0.0, np.nan]):
        with pytest.raises(InputError, match="label"):
            NaiveBayesClassifier().partial_fit([["a"]], [0], classes=classes)
    with pytest.raises(InputError, match="has no counts to add to"):
        NaiveBayesClassifier.from_dict(model.to_dict()).partial_fit([["a"]], [0], classes=[0, 1])


def test_the_first_rows_choose_the_smoothing():
    frame, y = weather()
    first = NaiveBayesClassifier().fit(frame[:100], y[:100])
    parts = NaiveBayesClassifier().partial_fit(frame[:100], y[:100], classes=np.unique(y))
    assert parts.partial_fit(frame[100:], y[100:]).smoothing_ == first.smoothing_


def test_weights_count_rows():
    frame, y = weather(rows=50)
    weight = np.random.default_rng(4).integers(0, 4, size=50)
    weighted = NaiveBayesClassifier().fit(frame, y, sample_weight=weight)
    repeated = NaiveBayesClassifier().fit(
        frame.loc[frame.index.repeat(weight)], np.repeat(y, weight)
    )
    np.testing.assert_allclose(weighted.predict_proba(frame), repeated.predict_proba(frame))


# Robustness, through the classifier


def test_robust_below_and_not_above():
    frame, y = weather()
    model = NaiveBayesClassifier().fit(frame, y)
    for name in ("epsilon", "tv", "chi2", "kl"):
        robustness = model.robustness(frame, name)
        assert model.is_robust(frame, name, robustness * (1 - 1e-6)).all()
        assert not model.is_robust(frame, name, robustness * (1 + 1e-6)).any()


@pytest.mark.parametrize("gap", [1e-9, 1e-12, 1e-15])
@pytest.mark.parametrize("name", ["epsilon", "tv", "chi2"])
def test_near_ties_are_robust_below_and_not_above(gap, name):
    model = NaiveBayesClassifier(class_prior=[0.5 + gap, 0.5 - gap]).fit(
        [["a"], ["a"], ["b"], ["b"]], [0, 1, 0, 1]
    )
    X = [["a"], ["b"]]
    robustness = model.robustness(X, name)
    assert np.all(robustness > 0)
    below, above = robustness * (1 - 1e-6), robustness * (1 + 1e-6)
    assert model.is_robust(X, name, below).all()
    assert not model.is_robust(X, name, above).any()
    assert model.credal_predict(X, name, below).tolist() == [[True, False]] * 2
    assert model.credal_predict(X, name, above).all()


def test_predictions_agree_with_assessments_on_ties():
    rng = np.random.default_rng(0)
    ps = rng.uniform(0.005, 0.05, size=100)
    tables = [[[p, 1 - p], [q, 1 - q]] for p, q in zip(ps, rng.permutation(ps), strict=True)]
    document = {
        "format": "robustq-model",
        "version": 1,
        "kind": "naive_bayes",
        "classes": [0, 1],
        "features": [{"name": str(i), "categories": [0, 1]} for i in range(100)],
        "class_probs": [0.5, 0.5],
        "feature_probs": tables,
    }
    model = NaiveBayesClassifier.from_dict(document)
    X = rng.integers(0, 2, size=(200, 100)) * rng.integers(0, 2, size=(200, 1))
    np.testing.assert_array_equal(model.predict(X), model.assess(X, "tv").prediction)


def test_below_the_robustness_the_credal_prediction_is_the_prediction():
    frame, y = weather()
    model = NaiveBayesClassifier().fit(frame, y)
    robustness = model.robustness(frame, "tv")
    credal = model.credal_predict(frame, "tv", robustness * (1 - 1e-6))
    np.testing.assert_array_equal(credal.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[credal.argmax(axis=1)], model.predict(frame))
    beyond = model.credal_predict(frame, "tv", robustness * (1 + 1e-6))
    assert np.all(beyond.sum(axis=1) >= 2)
    tipping = model.assess(frame, ["tv"]).tipping_class["tv"]
    positions = np.searchsorted(model.classes_, tipping)
    assert beyond[np.arange(ROWS), positions].all()


def test_a_tie_is_not_robust_whatever_rounding_says():
    # Equal products of different factors: sums of logarithms differ in the last digit.
    tables = [[[0.2, 0.8], [0.7, 0.3]], [[0.7, 0.3], [0.2, 0.8]], [[0.3, 0.7], [0.3, 0.7]]]
    document = {
        "format": "robustq-model",
        "version": 1,
        "kind": "naive_bayes",
        "classes": ["a", "b"],
        "features": [{"name": name, "categories": [0, 1]} for name in "xyz"],
        "class_probs": [0.5, 0.5],
        "feature_probs": tables,
    }
    model = NaiveBayesClassifier.from_dict(document)
    X = np.zeros((1, 3), dtype=int)
    assert model.robustness(X, "tv").tolist() == [0.0]
    for delta in (0.0, 1e-18, 0.1):
        assert model.is_robust(X, "tv", delta).tolist() == [False]
        assert model.credal_predict(X, "tv", delta).tolist() == [[True, True]]


def test_credal_predictions_are_maximal():
    frame, y = weather()
    model = NaiveBayesClassifier(1.0).fit(frame, y)
    codes = model.encoding_.encode(Table.read(frame)).codes
    for name, delta in (("tv", 0.02), ("chi2", 0.05), ("odds_ratio", 0.2)):
        beaten = np.zeros((ROWS, 3), dtype=bool)
        for first, second in itertools.permutations(range(3), 2):
            pair = np.full(ROWS, first), np.full(ROWS, second)
            size = np.full(ROWS, delta)
            beaten[:, second] |= margins(model.model_, codes, *pair, get(name), size) > 0
        np.testing.assert_array_equal(model.credal_predict(frame, name, delta), ~beaten)
        assert 0 < beaten.mean() < 1


def test_at_the_end_of_the_domain_every_class_is_possible():
    frame, y = weather()
    model = NaiveBayesClassifier().fit(frame, y)
    assert model.credal_predict(frame, "tv", 1.0).all()


def test_sizes_are_checked():
    model = NaiveBayesClassifier().fit([["a"], ["b"]], [0, 1])
    with pytest.raises(RobustqError, match=r"delta must lie in \[0, 1\], got 2"):
        model.is_robust([["a"]], "tv", 2)
    with pytest.raises(InputError, match=r"one size or one for each of 1 rows, got \(2,\)"):
        model.credal_predict([["a"]], "tv", [0.1, 0.2])
    with pytest.raises(RobustqError, match=r"unknown perturbation 'tw'.* did you mean 'tv'"):
        model.robustness([["a"]], "tw")


def test_blocks_and_equal_rows_change_nothing(monkeypatch):
    frame, y = weather()
    model = NaiveBayesClassifier().fit(frame, y)
    doubled = pd.concat([frame, frame, frame.iloc[::-1]])
    expected = model.robustness(frame, "chi2")
    got, proba = model.robustness(doubled, "chi2"), model.predict_proba(frame)
    np.testing.assert_array_equal(got, np.concatenate([expected, expected, expected[::-1]]))
    for rows in (1, 7, 64):
        monkeypatch.setattr(fitted, "BLOCK_ROWS", rows)
        np.testing.assert_array_equal(model.robustness(doubled, "chi2"), got)
        np.testing.assert_array_equal(model.predict_proba(frame), proba)


# As plain data


def test_a_model_survives_json_exactly():
    frame, y = weather()
    model = NaiveBayesClassifier().fit(frame, y)
    document = json.loads(json.dumps(model.to_dict()))
    again = NaiveBayesClassifier.from_dict(document)
    assert again.to_dict() == model.to_dict()
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    np.testing.assert_array_equal(again.robustness(frame, "kl"), model.robustness(frame, "kl"))
    assert again.predict(frame).tolist() == model.predict(frame).tolist()


def test_labels_that_json_has_no_word_for_are_refused():
    model = NaiveBayesClassifier().fit([["a"], ["b"]], np.array(["2020", "2021"], dtype="M8[Y]"))
    with pytest.raises(RobustqError, match="do not fit into JSON"):
        model.to_dict()


def test_the_document_has_the_documented_form():
    model = NaiveBayesClassifier(smoothing=0).fit(
        pd.DataFrame({"sky": ["sunny", "rainy", "rainy"]}), ["out", "in", "in"]
    )
    assert model.to_dict() == {
        "format": "robustq-model",
        "version": 2,
        "kind": "naive_bayes",
        "classes": ["in", "out"],
        "named": True,
        "features": [{"name": "sky", "categories": ["rainy", "sunny"]}],
        "class_probs": [2 / 3, 1 / 3],
        "feature_probs": [[[1.0, 0.0], [0.0, 1.0]]],
        "rows": {"prior": 3.0, "features": [[2.0, 1.0]]},
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "pickle"}, "not a model"),
        ({"version": 3}, "of version 3, and this robustq reads versions 1 to 2: update"),
        ({"rows": {"prior": -1}}, "rows.prior must be counts"),
        ({"rows": {"prior": "many"}}, "rows.prior must be counts"),
        ({"rows": {"features": [[1.0]]}}, "rows.features has shape"),
        ({"kind": "forest"}, "of kind 'forest'"),
        ({"classes": []}, "classes must be different labels"),
        ({"classes": ["in", "in"]}, "classes must be different labels"),
        ({"class_probs": [0.5, 0.6]}, "class_probs must sum to 1"),
        ({"class_probs": [1.5, -0.5]}, "class_probs must hold probabilities"),
        ({"class_probs": [1.0]}, r"class_probs has shape \(1,\), expected \(2,\)"),
        ({"class_probs": ["x", "y"]}, "class_probs must hold numbers"),
        ({"class_probs": None}, "lacks 'class_probs'"),
        ({"features": [{"name": "sky"}]}, r"features\[0\] \('sky'\) must list its categories"),
        ({"features": [{"categories": []}]}, r"features\[0\] must be a dictionary with a name"),
        ({"features": [{"name": "sky", "categories": ["a", "a"]}]}, "lists a category twice"),
        ({"features": [{"name": "sky", "edges": [2.0, 1.0]}]}, "finite numbers that increase"),
        ({"feature_probs": []}, "feature_probs has 0 entries for 1 features"),
        ({"feature_probs": [[[0.5, 0.5]]]}, r"feature_probs\[0\] \('sky'\) has shape \(1, 2\)"),
        ({"feature_probs": [[[0.5, float("nan")], [0, 1]]]}, "must hold probabilities"),
        ({"feature_probs": [[[0.5, 0.5], [1.0]]]}, r"\('sky'\) must be a table of numbers"),
        ({"class_probs": [10**400, 1]}, "class_probs must hold numbers"),
        ({"class_probs": ["0.5", "0.5"]}, "class_probs must hold numbers"),
        ({"features": [{"name": "sky", "edges": [10**400]}]}, "finite numbers that increase"),
        ({"classes": ["in", float("nan")]}, "classes must be different labels"),
        ({"named": "no"}, "named must be true or false"),
        ({"version": True}, "of version True"),
    ],
)
def test_damaged_documents_are_refused(change, message):
    document = {
        "format": "robustq-model",
        "version": 1,
        "kind": "naive_bayes",
        "classes": ["in", "out"],
        "features": [{"name": "sky", "categories": ["rainy", "sunny"]}],
        "class_probs": [0.5, 0.5],
        "feature_probs": [[[1.0, 0.0], [0.0, 1.0]]],
    }
    assert NaiveBayesClassifier.from_dict(document).predict([["sunny"]]).tolist() == ["out"]
    with pytest.raises(InputError, match=message):
        NaiveBayesClassifier.from_dict(document | change)
    with pytest.raises(InputError, match="not a model"):
        NaiveBayesClassifier.from_dict("text")
