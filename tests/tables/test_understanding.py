"""One detector for frames, files and arrays: what is what, and what looks like a mistake."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from robustq import InputError, NaiveBayesClassifier, TableWarning
from robustq.tables import Encoding, Table, is_continuous, remark_on_classes
from robustq.tables.texts import parse_number

ROWS = 200
RNG = np.random.default_rng(0)
MANY = RNG.integers(0, 60, ROWS)
MANY[:60] = np.arange(60)
FEW = MANY % 50
LABELS = RNG.integers(0, 3, ROWS)


def learn(source, labels=None, **options):
    table = Table.read(source)
    return Encoding.learn(table, np.ones(table.rows), bins=None, labels=labels, **options)


def kinds(source, **options):
    return [type(column).__name__ for column in learn(source, **options).columns]


@pytest.mark.parametrize(
    "make",
    [
        lambda values: pd.DataFrame({"x": values}),
        lambda values: pd.DataFrame({"x": pd.array(values, dtype="Int64")}),
        lambda values: pd.DataFrame({"x": pd.Series(values, dtype=object)}),
        lambda values: pl.DataFrame({"x": values}),
        lambda values: pa.table({"x": pa.array(values, pa.int16())}),
        lambda values: np.asarray(values)[:, None],
        lambda values: [[int(value)] for value in values],
        lambda values: pd.DataFrame({"x": np.append(values[1:].astype(float), np.nan)}),
        lambda values: pa.table({"x": [None, *values.tolist()]}),
    ],
    ids=[
        *("pandas", "nullable", "objects", "polars", "arrow", "numpy", "list"),
        *("floats with a gap", "integers with a gap"),
    ],
)
def test_whole_numbers_of_many_values_are_numbers_in_every_table(make):
    assert kinds(make(MANY)) == ["Numeric"]
    assert kinds(make(FEW)) == ["Categorical"]


def test_types_are_what_they_say():
    table = {
        "category": pd.Categorical(MANY),
        "text": MANY.astype(str),
        "truth": MANY > 30,
        "float": FEW.astype(float),
    }
    assert kinds(pd.DataFrame(table)) == ["Categorical", "Categorical", "Categorical", "Numeric"]
    assert kinds(MANY[:, None], categorical=[0]) == ["Categorical"]
    assert kinds(FEW[:, None], numeric=[0]) == ["Numeric"]


def test_rows_of_no_weight_do_not_make_numbers_of_categories():
    table = Table.read(MANY[:, None])
    encoding = Encoding.learn(table, (MANY < 50).astype(float), bins=None)
    assert len(encoding.columns[0].categories) == 50


def test_what_was_understood_can_be_read():
    frame = pd.DataFrame({"age": MANY, "job": ["a", "b"] * 100, "same": ["x"] * ROWS})
    assert repr(learn(frame)).splitlines() == [
        "How 3 columns are understood",
        "age   numbers       whole numbers, 60 different",
        "job   2 categories  text, 2 different",
        "same  1 category    a single value: nothing to learn from",
    ]
    asked = learn(frame, categorical=["age"]).describe()[0]
    assert asked == (
        "age",
        "60 categories",
        "whole numbers, 60 different; categorical was asked for",
    )


@pytest.mark.parametrize(
    ("values", "remark"),
    [
        ([f"c-{i}" for i in range(ROWS)], "looks like an id"),
        (list(range(1000, 1000 + ROWS)), "looks like an id"),
        (sorted(RNG.choice(10**9, ROWS, replace=False).tolist()), "looks like an id"),
        ([f"2024-{i % 12 + 1:02d}-{i % 28 + 1:02d}" for i in range(ROWS)], "holds dates"),
        ([f"{i % 28 + 1}/{i % 12 + 1}/2024 1{i % 10}:00" for i in range(ROWS)], "holds dates"),
        ([dt.date(2024, 1, 1) + dt.timedelta(days=i % 40) for i in range(ROWS)], "holds dates"),
        ([f"{i},{i % 10}" for i in range(ROWS)], "decimal comma"),
        ([f"{i % 9 + 1},{i % 1000:03d}" for i in range(ROWS)], "decimals .* or thousands"),
        ([f"${i},001" for i in range(1, ROWS + 1)], "looks like numbers, as '\\$1,001' is"),
        ([f"{i}%" for i in range(ROWS)], "looks like numbers, as '0%' is"),
        ([f"{i}.5" for i in range(ROWS - 2)] + ["inf", "lost"], "but for 'inf' and 1 more"),
    ],
    ids=[
        *("text ids", "dense ids", "sorted ids", "iso dates", "dates with time", "date type"),
        *("decimal commas", "ambiguous commas", "dollars", "percent", "nearly numbers"),
    ],
)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_what_looks_like_a_mistake_is_named_and_kept(make, values, remark):
    frame = make({"x": values, "other": FEW.tolist()})
    with pytest.warns(TableWarning, match=f"'x' .*{remark}") as caught:
        model = NaiveBayesClassifier(1.0).fit(frame, LABELS)
    assert list(caught[0].message.remarks) == ["x"]
    assert model.encoding_.names == ("x", "other")
    assert list(model.encoding_.remarks) == ["x"]


def test_thousands_of_values_are_named():
    frame = pd.DataFrame({"x": [f"v{i % 1500}" for i in range(5000)]})
    assert "has 1,500 categories" in learn(frame).remarks["x"]


@pytest.mark.parametrize(
    "values",
    [
        [f"{i:05d}" for i in range(0, 100 * ROWS, 100)],  # codes are names, not damaged numbers
        ["north", "south"] * 100,
        (RNG.normal(size=ROWS) * 1000).round(1).tolist(),
        RNG.integers(0, 10**5, ROWS).tolist(),
        (RNG.integers(0, 3, ROWS) + 0.5).tolist(),
    ],
    ids=["zip codes", "words", "amounts", "whole amounts", "halves"],
)
def test_usual_columns_are_not_taken_for_mistakes(values):
    remark = learn(pd.DataFrame({"x": values})).remarks.get("x", "")
    assert "numbers" not in remark
    assert "dates" not in remark
    assert not remark or isinstance(values[0], str)


def test_numbers_are_ids_by_their_name():
    numbers = RNG.choice(10**6, ROWS, replace=False)
    for name in ("id", "customer_id", "orderId", "Unnamed: 0", "Sample code number"):
        assert "looks like an id" in learn(pd.DataFrame({name: numbers})).remarks[name]
    for name in ("price", "paid", "width"):
        assert not learn(pd.DataFrame({name: numbers})).remarks


GIVEN_AWAY = FEW % 2


@pytest.mark.parametrize(
    ("values", "given"),
    [
        (GIVEN_AWAY, True),
        (np.where(GIVEN_AWAY, "yes", "no"), True),
        (GIVEN_AWAY + RNG.uniform(0, 0.9, ROWS), True),
        (np.where(GIVEN_AWAY, 1.5, np.nan), True),
        (GIVEN_AWAY + RNG.uniform(0, 1.1, ROWS), False),
        (np.where(np.arange(ROWS) % 20, GIVEN_AWAY, 1 - GIVEN_AWAY), False),
        (RNG.normal(size=ROWS), False),
        (np.arange(ROWS).astype(str), False),
    ],
    ids=["codes", "words", "threshold", "gaps", "overlap", "nearly", "noise", "ids"],
)
def test_columns_that_give_the_target_away_are_named(values, given):
    remarks = learn(pd.DataFrame({"x": values}), labels=GIVEN_AWAY).remarks
    assert ("gives the target away" in remarks.get("x", "")) == given
    few = learn(pd.DataFrame({"x": values[:40]}), labels=GIVEN_AWAY[:40]).remarks
    assert "gives the target away" not in few.get("x", "")


def test_a_rare_class_is_not_given_away_by_anything():
    labels = (np.arange(1000) < 5).astype(np.int64)
    frame = pd.DataFrame({"x": RNG.integers(0, 3, 1000), "y": labels})
    assert list(learn(frame, labels=labels).remarks) == ["y"]


def test_dates_of_any_make_are_the_same_categories():
    days = ["2024-01-31", "2024-02-01", "2024-01-31"]
    times = [*days[:2], "2024-01-31 12:30:00"]
    for frame in (
        pd.DataFrame({"d": pd.to_datetime(times, format="mixed")}),
        pl.DataFrame({"d": pd.to_datetime(times, format="mixed").to_list()}),
        pa.table({"d": pa.array(pd.to_datetime(times, format="mixed"), pa.timestamp("ms"))}),
        pd.DataFrame({"d": times}),
    ):
        assert learn(frame).columns[0].categories == tuple(sorted(times))
    assert learn(np.array(days, dtype="datetime64[D]")[:, None]).columns[0].categories == (
        "2024-01-31",
        "2024-02-01",
    )


@pytest.mark.parametrize(
    ("values", "continuous"),
    [
        (RNG.normal(size=20), True),
        (np.arange(60), True),
        (np.arange(60.0), True),
        (np.arange(50), False),
        (np.arange(6000) % 60, False),
        (np.arange(60).astype(str), False),
        (np.array([0.0, 1.0, 1.0]), False),
    ],
)
def test_a_target_is_continuous_if_hardly_any_number_repeats(values, continuous):
    assert is_continuous(values) == continuous


def test_a_continuous_target_is_refused_with_a_remedy():
    y = np.arange(ROWS) % 70
    with pytest.raises(InputError, match=r"Unknown label type: continuous.*70 different.*digitize"):
        NaiveBayesClassifier().fit(FEW[:, None], y)
    assert len(NaiveBayesClassifier(1.0).fit(FEW[:, None], y.astype(str)).classes_) == 70


def test_classes_with_one_row_are_named():
    classes, labels = np.array(["a", "b", "c"]), np.repeat([0, 1, 2], [60, 1, 9])
    assert remark_on_classes(classes, np.bincount(labels)).startswith("class 'b' has a single row")
    assert remark_on_classes(classes, np.bincount(labels[58:])) == ""


@pytest.mark.parametrize(
    ("text", "number"),
    [("12", 12), ("-1.50", -1.5), ("$1,001", 1001), ("-$5.25", -5.25), ("99 €", 99), ("45 %", 45)]
    + [(text, None) for text in ("007", "1,5", "12,34,567", "$", "5$5", "1 2", "1e", "", "١٢")],
)
def test_texts_are_numbers_or_not(text, number):
    assert parse_number(text) == number
