"""Columns of every kind become codes, and say what they cannot become."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from robustq import InputError
from robustq.tables import MISSING, UNKNOWN, Encoding, Table


def learn(source, **options):
    table = Table.read(source)
    return Encoding.learn(table, np.ones(table.rows), bins=4, **options)


def codes(encoding, source):
    return encoding.encode(encoding.arrange(Table.read(source), "the model")).codes[:, 0].tolist()


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "int32", "int64", "uint64"])
def test_integers_of_any_width_are_looked_up(kind):
    encoding = learn(np.array([[3], [1], [2]], dtype=kind))
    assert encoding.columns[0].categories == (1, 2, 3)
    seen = np.array([[1], [2], [3], [4], [0], [127]], dtype=kind)
    assert codes(encoding, seen) == [0, 1, 2, UNKNOWN, UNKNOWN, UNKNOWN]


def test_integers_far_apart_are_searched_for():
    numbers = np.array([[-(2**62)], [5], [2**62 + 1]])
    encoding = learn(numbers)
    assert codes(encoding, numbers) == [0, 1, 2]
    assert codes(encoding, np.array([[2**62], [6], [-5]])) == [UNKNOWN] * 3


def test_the_ends_of_the_integers_are_unknown_not_wrapped():
    encoding = learn(np.array([[-3], [5]]))
    extremes = np.array([[np.iinfo(np.int64).min], [np.iinfo(np.int64).max]])
    assert codes(encoding, extremes) == [UNKNOWN, UNKNOWN]
    huge = np.array([[2**64 - 3]], dtype=np.uint64)
    assert codes(encoding, huge) == [UNKNOWN]


def test_numbers_are_matched_by_value_whatever_their_type():
    encoding = learn(pd.DataFrame({"n": [1, 2, 10]}))
    for other in (
        pd.DataFrame({"n": [10.0, np.nan, 1.0, 1.5]}),
        pd.DataFrame({"n": pd.array([10, None, 1, 7], dtype="Int64")}),
        pl.DataFrame({"n": [10, None, 1, 7]}),
        pa.table({"n": pa.array([10, None, 1, 7], pa.int8())}),
        pd.DataFrame({"n": np.array([10, None, np.int8(1), "x"], dtype=object)}),
    ):
        assert codes(encoding, other) == [2, MISSING, 0, UNKNOWN]


def test_booleans_are_categories():
    encoding = learn(pd.DataFrame({"b": [True, False, True]}))
    assert encoding.columns[0].categories == (False, True)
    assert codes(encoding, pd.DataFrame({"b": [True, False]})) == [1, 0]
    assert codes(encoding, pl.DataFrame({"b": [True, None]})) == [1, MISSING]


def test_text_keeps_its_zeros_and_is_no_number():
    encoding = learn(pd.DataFrame({"zip": ["01", "1", "10"]}))
    assert encoding.columns[0].categories == ("01", "1", "10")
    assert codes(encoding, pd.DataFrame({"zip": ["1", "01", None]})) == [1, 0, MISSING]
    assert codes(encoding, pd.DataFrame({"zip": [1, 10]})) == [UNKNOWN, UNKNOWN]


def test_unused_categories_are_not_learned():
    frame = pd.DataFrame({"c": pd.Categorical(["b", "a"], categories=["z", "b", "a"])})
    assert learn(frame).columns[0].categories == ("a", "b")


def test_categories_of_another_frame_may_stand_in_another_order():
    encoding = learn(pd.DataFrame({"c": pd.Categorical(["a", "b"])}))
    other = pd.DataFrame({"c": pd.Categorical(["b", None, "c"], categories=["c", "b"])})
    assert codes(encoding, other) == [1, MISSING, UNKNOWN]


def test_mixed_objects_are_categories_numbers_first():
    source = np.array([["b"], [2], [None], ["a"], [1.5]], dtype=object)
    encoding = learn(source)
    assert encoding.columns[0].categories == (1.5, 2, "a", "b")
    assert codes(encoding, source) == [3, 1, MISSING, 2, 0]


def test_bins_hold_equal_shares():
    numbers = np.array([[0.5], [1.5], [2.5], [3.5], [np.nan]])
    encoding = learn(numbers)
    assert encoding.columns[0].edges == (0.5, 1.5, 2.5)
    assert encoding.columns[0].categories == (
        "(-inf, 0.5]",
        "(0.5, 1.5]",
        "(1.5, 2.5]",
        "(2.5, inf)",
    )
    assert codes(encoding, numbers) == [0, 1, 2, 3, MISSING]


def test_ties_share_a_bin():
    encoding = learn(np.array([[0.5]] * 10 + [[9.5]]))
    assert encoding.columns[0].edges == (0.5,)
    assert learn(np.array([[0.5]] * 3)).columns[0].edges == ()


def test_growing_keeps_the_codes():
    encoding = learn(pd.DataFrame({"c": ["b", "d"]}))
    more = pd.DataFrame({"c": ["a", "d", "c", "x"]})
    grown = encoding.grow(Table.read(more), np.array([1.0, 1.0, 1.0, 0.0]))
    assert grown.columns[0].categories == ("b", "d", "a", "c")


def test_thousands_of_categories_are_fine():
    numbers = np.arange(100_000).reshape(-1, 1) * 3
    encoding = learn(numbers, categorical=[0])
    assert codes(encoding, numbers[::-1]) == list(range(100_000))[::-1]


def test_a_frame_of_another_protocol_is_read():
    class Stream:
        def __init__(self, table):
            self.table = table

        def __arrow_c_stream__(self, requested_schema=None):
            return self.table.__arrow_c_stream__(requested_schema)

    table = Table.read(Stream(pa.table({"a": [1, 2]})))
    assert table.names == ("a",)
    assert table.rows == 2


def test_integers_beyond_a_sign_are_kept_apart():
    wide = np.array([[2**64 - 1], [2**64 - 2], [5]], dtype=np.uint64)
    encoding = learn(wide)
    assert encoding.columns[0].categories == (5, 2**64 - 2, 2**64 - 1)
    assert codes(encoding, wide) == [2, 1, 0]
    mixed = learn(np.array([[-1], [2**64 - 1], [2**64 - 2]], dtype=object))
    assert codes(mixed, wide) == [2, 1, UNKNOWN]
    assert codes(mixed, np.array([[-1]])) == [0]


def test_whole_floats_without_gaps_are_numbers():
    assert type(learn(np.array([[1.0], [2.0]])).columns[0]).__name__ == "Binned"
    assert type(learn(np.array([[1.0], [np.nan]])).columns[0]).__name__ == "Categorical"


def test_bins_have_different_names():
    numbers = 1e9 + np.random.default_rng(0).random((100, 1))
    categories = learn(numbers).columns[0].categories
    assert len(set(categories)) == len(categories) == 4


def test_columns_named_by_numbers_are_matched_too():
    encoding = learn(pd.DataFrame([["a", "x"], ["b", "y"]]))
    turned = pd.DataFrame({1: ["x"], 0: ["b"]})
    table = encoding.arrange(Table.read(turned), "the model")
    assert encoding.encode(table).codes.tolist() == [[1, 0]]


def test_masked_cells_are_missing():
    masked = np.ma.array([[1, 2], [1, 3]], mask=[[False, False], [False, True]])
    encoding = learn(masked)
    assert encoding.columns[1].categories == (2,)


@pytest.mark.parametrize("series", [pd.Series([1, 2]), pl.Series([1, 2])])
def test_a_single_column_is_no_table(series):
    with pytest.raises(InputError, match=r"X is a single column; make it a table"):
        Table.read(series)


def test_sparse_arrays_are_refused():
    with pytest.raises(InputError, match=r"Sparse data is not supported: .*toarray"):
        Table.read(sp.eye_array(3).tocsr())


@pytest.mark.parametrize("rows", [20, 500])
@pytest.mark.parametrize("kind", ["int64", "int32", "double", "string", "words", "gaps"])
def test_columns_of_a_frame_have_the_codes_of_their_values(kind, rows):
    numbers = np.random.default_rng(0).integers(-3, 9, rows)
    words = pa.array(numbers).cast(pa.string())
    column = {
        "string": words,
        "words": words.dictionary_encode(),
        "gaps": pa.array(numbers, mask=numbers == 2),
    }.get(kind)
    column = pa.array(numbers).cast(kind) if column is None else column
    known = pa.table(
        {"x": column.filter(pa.array(numbers < 7)), "y": ["a"] * int((numbers < 7).sum())}
    )
    encoding = Encoding.learn(Table.read(known), np.ones(known.num_rows), bins=3, categorical=["x"])
    table = Table.read(pa.table({"x": column, "y": ["b"] * rows}))
    codes = encoding.encode(table.slice(slice(3, rows))).codes
    position = encoding.columns[0].positions
    expected = [
        MISSING if value is None else position.get(value, UNKNOWN)
        for value in column.to_pylist()[3:]
    ]
    assert codes[:, 0].tolist() == expected
    assert set(codes[:, 1]) == {UNKNOWN}
