"""Sets that grow with the size."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from robustq import NaiveBayesClassifier, RobustqError, UnknownValueWarning, credal, credal_predict


@pytest.fixture(scope="module")
def three():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = (y[:, None] + (rng.random((300, 4)) < 0.5) * rng.integers(0, 3, (300, 4))) % 4
    labels = np.array(["a", "b", "c"])[y]
    return NaiveBayesClassifier().fit(X[:60], labels[:60]), X[60:], labels[60:]


@pytest.mark.parametrize("ball", ["idm", "epsilon", "tv_rows", "epsilon_rows"])
def test_a_curve_is_the_measures_of_the_sets_at_each_size(three, ball):
    model, X, y = three
    found = credal.curve(model, X, y, ball, [0.0, 0.01, 0.5, 0.9])
    for delta, measures in zip(found.deltas, found.measures, strict=True):
        sets = credal_predict(model, X, ball, delta)
        wanted = credal.measure(sets, y, model.classes_)
        assert repr(measures) == repr(wanted)
    assert np.all(np.diff(found.to_dict()["determinacy"]) <= 0.0)


def test_sizes_are_chosen_by_what_predictions_survive(three):
    model, X, y = three
    found = credal.curve(model, X, y, "idm")
    share = found.to_dict()["determinacy"]
    assert found.deltas[0] == 0.0
    assert len(found.deltas) > 4
    assert share[0] > 0.97
    assert 0.4 < share[-1] < 0.6
    sure = NaiveBayesClassifier().fit([["x"], ["x"]], ["a", "a"])
    assert credal.curve(sure, [["x"]], ["a"]).deltas.tolist() == [0.0]


def test_the_other_rule_keeps_more(three):
    model, X, y = three
    maximal = credal.curve(model, X, y, "epsilon", [0.02, 0.1])
    interval = credal.curve(model, X, y, "epsilon", [0.02, 0.1], rule="interval")
    for few, more in zip(maximal.measures, interval.measures, strict=True):
        assert more.determinacy <= few.determinacy


def test_pipelines_have_curves_too(three):
    model, X, y = three
    pipeline = make_pipeline(FunctionTransformer(), model)
    assert repr(credal.curve(pipeline, X, y, "tv", [0.01])) == repr(
        credal.curve(model, X, y, "tv", [0.01])
    )


def test_it_is_shown_as_a_table_and_a_picture(three):
    model, X, y = three
    found = credal.curve(model, X, y, "idm", [0.0, 1.0, 2.0])
    lines = repr(found).splitlines()
    assert lines[0] == "Sets of classes in idm"
    assert lines[1].split()[:2] == ["delta", "determinacy"]
    assert len(lines) == 5
    assert found.to_pandas().columns.tolist()[0] == "delta"
    assert found.to_arrow().num_rows == found.to_polars().height == 3
    axes = found.plot(title="zoo")
    assert axes.get_xlabel() == "added records, s"
    assert axes.get_lines()[0].get_label() == "determinacy"
    assert axes.get_lines()[0].get_ydata().tolist() == [m.determinacy for m in found.measures]


def test_unknown_values_are_told_once(three):
    model, X, y = three
    strange = X.copy()
    strange[0, 0] = 77
    with pytest.warns(UnknownValueWarning) as told:
        credal.curve(model, strange, y, "tv", [0.01, 0.1])
    assert len(told) == 1


def test_sizes_that_are_none_are_refused(three):
    model, X, y = three
    with pytest.raises(RobustqError, match="deltas must be a list"):
        credal.curve(model, X, y, "tv", [])
    with pytest.raises(RobustqError, match="delta must lie in"):
        credal.curve(model, X, y, "tv", [0.1, 1.5])
