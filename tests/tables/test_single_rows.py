"""A dictionary is a row; who hands one over in another form is told how to make a table of it."""

import types
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import robustq
from robustq import GenerativeForestClassifier, InputError, NaiveBayesClassifier

FRAME = pd.DataFrame({"a": ["x", "y", "x", "y"], "b": [1, 2, 2, 1], "other": [0, 0, 0, 0]})
LABELS = [0, 1, 0, 1]
NAMED = NaiveBayesClassifier(1.0).fit(FRAME[["a", "b"]], LABELS)
BARE = GenerativeForestClassifier(2, random_state=0).fit(FRAME[["a", "b"]].to_numpy(), LABELS)


@pytest.mark.parametrize(
    ("model", "row", "remedy"),
    [
        (NAMED, FRAME[["a", "b"]].iloc[0], r"frame\.iloc\[\[0\]\]"),
        (NAMED, FRAME.iloc[0], r"frame\.iloc\[\[0\]\]"),
        (BARE, pd.Series(["x", 1]), r"frame\.iloc\[\[0\]\]"),
        (BARE, np.array(["x", 1], dtype=object), r"row\.reshape\(1, -1\)"),
        (BARE, ["x", 1], r"\[row\]"),
        (BARE, ("x", 1), r"\[row\]"),
    ],
)
@pytest.mark.parametrize("ask", ["predict", "predict_proba", "robustness", "assess"])
def test_the_remedy_is_the_right_one(model, row, remedy, ask):
    with pytest.raises(InputError, match=f"X is a single row. Reshape .*, as in {remedy}"):
        getattr(model, ask)(row)
    with pytest.raises(InputError, match="X is a single row"):
        robustq.robustness(model, row)


def test_the_remedies_work():
    for given in (FRAME.iloc[[0]], pd.DataFrame([{"a": "x", "b": 1}])):
        assert NAMED.predict(given).tolist() == [0]
    for given in (np.array(["x", 1], dtype=object).reshape(1, -1), [["x", 1]]):
        assert BARE.predict(given).tolist() == [0]


@pytest.mark.parametrize("column", [FRAME["a"], FRAME["a"].to_numpy(), ["x", "y", "x"]])
def test_a_single_column_is_still_told_what_it_is(column):
    with pytest.raises(InputError, match="Expected 2D array, got 1D array instead") as caught:
        NAMED.predict(column)
    assert "single row." not in str(caught.value)


ROW = {"a": "x", "b": 1}
ASKS = ["predict", "predict_proba", "predict_log_proba", "log_likelihood", "robustness"]


@pytest.mark.parametrize("ask", ASKS)
def test_a_dictionary_is_a_row(ask):
    expected = getattr(NAMED, ask)(FRAME.iloc[[0]])
    named = pl.DataFrame(FRAME).row(0, named=True)  # with a column that nobody asked for
    for row in (ROW, {"b": 1, "a": "x"}, named, types.MappingProxyType(ROW)):
        np.testing.assert_array_equal(getattr(NAMED, ask)(row), expected)


def test_a_dictionary_is_a_row_for_everything_that_is_told_of_rows():
    table = FRAME.iloc[[0]]
    assert str(NAMED.assess(ROW).to_arrow()) == str(NAMED.assess(table).to_arrow())
    assert str(NAMED.explain(ROW)[0]) == str(NAMED.explain(table)[0])
    assert NAMED.witness(ROW).to_dict() == NAMED.witness(table).to_dict()
    assert NAMED.counterfactuals(ROW).to_dict() == NAMED.counterfactuals(table).to_dict()
    sets = [NAMED.credal_predict(given, "tv", 0.1).tolist() for given in (ROW, table)]
    assert sets[0] == sets[1]
    assert NAMED.is_robust(ROW, "tv", 0.01).tolist() == NAMED.is_robust(table, "tv", 0.01).tolist()
    assert robustq.robustness(NAMED, ROW) == robustq.robustness(NAMED, table)


def test_positions_name_the_columns_of_a_model_without_names():
    assert BARE.predict({0: "x", 1: 1}).tolist() == BARE.predict([["x", 1]]).tolist()


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA, pd.NaT])
def test_no_value_in_a_dictionary_is_missing(gap):
    table = FRAME[["a", "b"]].iloc[[0]].assign(a=[None])
    assert NAMED.robustness({"a": gap, "b": 1}) == NAMED.robustness(table)


def test_a_dictionary_that_lacks_a_column_is_refused():
    with pytest.raises(InputError, match=r"the row lacks column 'b'.* give None"):
        NAMED.predict({"a": "x", "other": 0})
    with pytest.raises(InputError, match="it has no column"):
        NAMED.predict({})


def test_a_dictionary_of_columns_is_no_row():
    with pytest.raises(InputError, match=r"column 'a' holds list: .*pandas\.DataFrame\(X\)"):
        NAMED.predict({"a": ["x", "y"], "b": [1, 2]})


def test_a_value_never_seen_in_a_dictionary_is_reported():
    with pytest.warns(robustq.UnknownValueWarning, match="1 in column 'a'"):
        NAMED.predict({"a": "strange", "b": 1})


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_few_rows_get_the_codes_that_many_get(make):
    columns: dict[str, list[Any]] = {"t": ["x", None, "y", "new"] * 20}
    columns |= {
        "n": [1.5, None, 2.5, 9.0] * 20,
        "k": [1, 2, 1, 2] * 20,
        "b": [True, False, None, True] * 20,
    }
    train = {name: values[:3] * 4 for name, values in columns.items()}
    model = NaiveBayesClassifier(1.0).fit(make(train), [0, 1, 1] * 4)
    with pytest.warns(robustq.UnknownValueWarning):
        many = model.robustness(make(columns))
    with pytest.warns(robustq.UnknownValueWarning):
        few = model.robustness(make({name: values[:4] for name, values in columns.items()}))
    np.testing.assert_array_equal(many[:4], few)
