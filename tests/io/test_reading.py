"""`robustq.read` and the command understand a file alike, and say what they did."""

import datetime as dt
import warnings

import numpy as np
import pyarrow as pa
import pytest

import robustq
from robustq import InputError, TableWarning, UnsupportedError
from robustq.io import open_sources, open_writer, read_table
from robustq.io.adapting import adapt_numbers
from robustq.io.targets import cut_target, find_edges, name_bins, separate_target


def write(tmp_path, content, name="data.csv"):
    path = tmp_path / name
    path.write_text(content)
    return path


@pytest.mark.parametrize(
    "mark", ["", "NA", "na", "N/A", "n/A", "NaN", "NULL", "none", "NONE", "?", "#n/a", "<na>"]
)
def test_what_means_missing_does_so_in_any_case(tmp_path, mark):
    table = robustq.read(write(tmp_path, f"a,b\n{mark},{mark}\n1,x\n"))
    assert table.to_pylist() == [{"a": None, "b": None}, {"a": 1, "b": "x"}]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["$1,001", "$5", "-$7"], [1001, 5, -7]),
        (["1,234,567", "1,001"], [1234567, 1001]),
        (["1,001", "2.5"], [1001.0, 2.5]),
        (["45%", "5%"], [45, 5]),
        (["4.5 %", "5 %"], [4.5, 5.0]),
        (["99 €", "NA"], [99, None]),
    ],
)
def test_numbers_as_people_write_them_are_read_and_told(tmp_path, cells, expected):
    text = "a;b\n" + "".join(f"{cell};x\n" for cell in cells)
    with pytest.warns(TableWarning, match=f"a: '{cells[0][:1]}.* was read as".replace("$", "\\$")):
        table = robustq.read(write(tmp_path, text))
    assert table["a"].to_pylist() == expected


@pytest.mark.parametrize(
    "cells", [["$5", "€5"], ["45%", "45"], ["1,001", "2,002"], ["1,5", "2,5"], ["$5", "free"]]
)
def test_what_is_in_doubt_stays_text(tmp_path, cells):
    text = "a;b\n" + "".join(f"{cell};x\n" for cell in cells)
    assert robustq.read(write(tmp_path, text))["a"].to_pylist() == cells


def test_the_decimal_mark_can_be_given(tmp_path):
    path = write(tmp_path, "a;b\n1.234,5;1,001\n2,25;x 1,5\n-3;\n")
    table = robustq.read(path, decimal=",")
    assert table.to_pylist() == [
        {"a": 1234.5, "b": "1.001"},
        {"a": 2.25, "b": "x 1,5"},
        {"a": -3.0, "b": None},
    ]
    path = write(tmp_path, "a;b\n1,001;x\n2,002;y\n")
    assert robustq.read(path, decimal=".")["a"].to_pylist() == [1001, 2002]
    with pytest.raises(InputError, match="the decimal mark is a point or a comma, got ';'"):
        robustq.read(path, decimal=";")


def test_numbers_where_a_model_expects_them():
    column = pa.chunked_array([["$1,001", "5%", "+7", " 2.5 ", "NA", "007"]])
    assert adapt_numbers(column, "a").to_pylist() == [1001.0, 5.0, 7.0, 2.5, None, 7.0]
    for cells, message in (
        (["1,5"], r"holds '1,5'.*decimals \(--decimal ,\) or thousands"),
        (["1,001"], r"holds '1,001'.*--decimal"),
        (["$5", "lost"], "holds 'lost', where a number is expected: mend or empty it"),
    ):
        with pytest.raises(InputError, match=message):
            adapt_numbers(pa.chunked_array([cells]), "a")


def test_a_first_row_that_looks_like_data_is_told(tmp_path):
    rows = "39,Private,no\n50,Private,yes\n38,Public,no\n"
    with pytest.warns(
        TableWarning, match=r"first row looks like data \(39, Private, no, …\).*--no-h"
    ):
        robustq.read(write(tmp_path, rows))
    with pytest.raises(InputError, match=r"two columns named '1': its first row looks like data"):
        robustq.read(write(tmp_path, "1,1,0\n0,1,0\n"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robustq.read(write(tmp_path, rows), header=False)
        robustq.read(write(tmp_path, "name,2019,2020\na,1,2\nb,3,4\nname,3,4\n"), header=False)
        robustq.read(write(tmp_path, "age,job,y\n" + rows))


@pytest.mark.parametrize("delimiter", [" ", ":"])
def test_one_column_that_is_many_is_told(tmp_path, delimiter):
    path = write(tmp_path, "a b y\n1 x no\n2 z yes\n".replace(" ", delimiter))
    with pytest.warns(TableWarning, match=r"is it one column, or 3 with another delimiter"):
        assert robustq.read(path).num_columns == 1
    table = robustq.read(path, delimiter=delimiter)
    assert table.to_pylist()[1] == {"a": 2, "b": "z", "y": "yes"}


def test_columns_may_be_aligned_by_spaces(tmp_path):
    path = write(tmp_path, '  a    b y\n 1    x no \n22  "z  w" yes\n')
    assert robustq.read(path, delimiter="space").to_pylist() == [
        {"a": 1, "b": "x", "y": "no"},
        {"a": 22, "b": "z  w", "y": "yes"},
    ]


# Excel

openpyxl = pytest.importorskip("openpyxl")


def make_book(path, *sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets:
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


ROWS = [
    ("id", "when", "price", "done", None),
    ("007", dt.datetime(2024, 1, 31), 2.5, True, 1),
    (None, dt.datetime(2024, 1, 31, 12, 30), 3, False, "#DIV/0!"),
    (None, None, None, None, None),
]


def test_a_workbook_is_read_as_csv_would_be(tmp_path):
    path = make_book(tmp_path / "a.xlsx", ("one", [row[:4] for row in ROWS]), ("two", [("x",)]))
    with pytest.warns(TableWarning, match=r"'one' was read; others \(--sheet\) are 'two'"):
        table = robustq.read(path)
    assert table.to_pylist() == [
        {"id": "007", "when": "2024-01-31", "price": 2.5, "done": "True"},
        {"id": None, "when": "2024-01-31 12:30:00", "price": 3.0, "done": "False"},
    ]
    assert robustq.read(path, sheet="two").num_rows == 0
    for options, message in (({"sheet": "x"}, "has no sheet 'x'; it has 'one', 'two'"),):
        with pytest.raises(InputError, match=message):
            robustq.read(path, **options)


def test_workbooks_that_are_none_are_explained(tmp_path):
    for content in (b"", b"PK\x03\x04 and nothing else", b"a,b\n1,2\n"):
        (tmp_path / "bad.xlsx").write_bytes(content)
        with pytest.raises(InputError, match=r"bad\.xlsx cannot be read as an Excel workbook"):
            robustq.read(tmp_path / "bad.xlsx")
    path = make_book(tmp_path / "empty.xlsx", ("one", []))
    with pytest.raises(InputError, match="the first row is empty"):
        robustq.read(path)
    with pytest.raises(InputError, match="row 2: a value to the right of the last named"):
        robustq.read(make_book(tmp_path / "wide.xlsx", ("one", ROWS)))


def test_a_workbook_without_openpyxl_is_explained(tmp_path, monkeypatch):
    path = make_book(tmp_path / "a.xlsx", ("one", [("a",), (1,)]))
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(UnsupportedError, match=r'pip install "robustq\[excel\]"'):
        robustq.read(path)


def test_results_go_into_a_workbook_and_come_back(tmp_path):
    table = pa.table(
        {
            "text": ["=1+1", "\x01odd", None],
            "number": [1.5, float("inf"), float("nan")],
            "whole": [1, 2**60, 3],
            "truth": [True, False, None],
        }
    )
    path = tmp_path / "out.xlsx"
    with open_writer(str(path), table.schema) as writer:
        writer.write_table(table)
    book = openpyxl.load_workbook(path)
    rows = [[cell.value for cell in row] for row in book.active.iter_rows()]
    assert rows == [
        ["text", "number", "whole", "truth"],
        ["=1+1", 1.5, 1, True],
        ["\ufffdodd", "inf", str(2**60), False],
        [None, None, 3, None],
    ]
    assert book.active["A2"].data_type == "s"
    assert read_table(open_sources([str(path)])).table["whole"].to_pylist() == [1, 2**60, 3]


# Targets


def test_a_target_of_numbers_is_cut_into_classes():
    table = pa.table({"y": [1.0, 2.0, 3.0, 4.0, 5.0, None, 6.0]})
    assert find_edges(table, "y", 3, None) == [3.0, 5.0]
    cut = cut_target(table, "y", [3.0, 5.0])["y"].to_pylist()
    assert cut == ["< 3", "< 3", "3 to < 5", "3 to < 5", ">= 5", None, ">= 5"]
    assert cut_target(pa.table({"y": cut}), "y", [3.0, 5.0])["y"].to_pylist() == cut
    text = pa.table({"y": ["1", " 3", "NA", "5.5"]})
    assert cut_target(text, "y", [3.0])["y"].to_pylist() == ["< 3", ">= 3", None, ">= 3"]
    assert find_edges(table, "y", None, 2.5) == [2.5]
    assert name_bins([2.5]) == ["< 2.5", ">= 2.5"]
    for bins, threshold, message in (
        (1, None, "--target-bins must be a whole number from 2"),
        (3, 1.5, "give one of them"),
        (None, 1.0, "all rows are of one class"),
        (None, np.nan, "all rows are of one class"),
    ):
        with pytest.raises(InputError, match=message):
            find_edges(table, "y", bins, threshold)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([f"{n},5" for n in range(100)], "60 different texts in 100 rows.*--decimal ,"),
        ([f"A{n}-x" for n in range(100)], "60 different texts.*an id or like prose"),
    ],
)
def test_a_target_of_texts_that_hardly_repeat_is_refused(labels, message):
    y = labels[:60] + labels[:40]
    with pytest.raises(InputError, match=message):
        separate_target(pa.table({"x": range(100), "y": y}), "y")
    y = labels[:50] * 2
    assert len(separate_target(pa.table({"x": range(100), "y": y}), "y").y) == 100
