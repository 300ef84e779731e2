"""Who hands over one row is told how to make a table of it."""

import numpy as np
import pandas as pd
import polars as pl
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
        (NAMED, {"a": "x", "b": 1}, r"pandas\.DataFrame\(\[row\]\)"),
        (NAMED, pl.DataFrame(FRAME).row(0, named=True), r"pandas\.DataFrame\(\[row\]\)"),
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
