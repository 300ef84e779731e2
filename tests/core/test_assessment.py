"""An assessment is looked at, cut and carried on."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import robustq
from robustq import InputError, NaiveBayesClassifier, UnknownNameError
from robustq.exceptions import PositionError
from robustq.tables.display import as_html, as_text, shorten

VALUES = ["a", "b", "c", "d", "a", "b", "c", "d", "a", "a", "d", "c"]
LABELS = [0, 0, 1, 1, 0, 1, 1, 1, 0, 0, 1, 0]
FRAME = pd.DataFrame({"f": VALUES}, index=[f"row {i}" for i in range(12)])
MODEL = NaiveBayesClassifier(1.0).fit(FRAME, LABELS)
ASSESSMENT = MODEL.assess(FRAME, ["tv", "chi2"])


def test_the_index_of_a_frame_is_kept():
    assert ASSESSMENT.to_pandas().index.equals(FRAME.index)
    assert ASSESSMENT[2:4].to_pandas().index.tolist() == ["row 2", "row 3"]
    assert "row 3" in repr(ASSESSMENT)
    assert robustq.assess(MODEL, FRAME).index.equals(FRAME.index)


def test_pipelines_do_not_lose_it():
    pipeline = make_pipeline(OrdinalEncoder(), NaiveBayesClassifier(1.0)).fit(FRAME, LABELS)
    assert robustq.assess(pipeline, FRAME).index.equals(FRAME.index)


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table, lambda d: np.array([*d.values()]).T])
def test_rows_of_tables_without_an_index_are_counted(make):
    model = NaiveBayesClassifier(1.0).fit(make({"f": VALUES}), LABELS)
    assessment = model.assess(make({"f": VALUES}))
    assert assessment.index.tolist() == list(range(12))
    assert isinstance(assessment.to_pandas().index, pd.RangeIndex)
    assert assessment[[7, 3]].to_pandas().index.tolist() == [7, 3]
    assert assessment[[7, 3]].to_polars().shape == (2, 9)
    assert assessment[[7, 3]].to_arrow().num_rows == 2


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (slice(1, 9, 3), [1, 4, 7]),
        (slice(None, None, -6), [11, 5]),
        (4, [4]),
        (np.int32(-1), [11]),
        ([3, 3, 0], [3, 3, 0]),
        ([], []),
        (np.arange(12) % 5 == 0, [0, 5, 10]),
        ([True] + [False] * 11, [0]),
        (pl.Series([False] * 11 + [True]), [11]),
        (pd.Series([True] * 2 + [False] * 10, index=FRAME.index), [0, 1]),
        (pd.Series([2, 1]), [2, 1]),
    ],
)
def test_brackets_take_some_of_the_rows(rows, expected):
    found = ASSESSMENT[rows]
    whole = ASSESSMENT.to_pandas().iloc[expected]
    pd.testing.assert_frame_equal(found.to_pandas(), whole)


@pytest.mark.parametrize(
    "rows",
    ["tv", 1.5, None, [True, False], [[1, 2]], {"a": 1}, [None] * 12, [[1], [2, 3]], True, ["a"]],
)
def test_what_is_no_choice_of_rows_is_refused(rows):
    with pytest.raises(InputError, match="rows are a position, a slice, 12 truth values"):
        ASSESSMENT[rows]


def test_a_mask_of_other_rows_is_refused():
    mask = pd.Series([True] * 12, index=FRAME.index[::-1])
    with pytest.raises(InputError, match="index is not that of the rows assessed"):
        ASSESSMENT[mask]


@pytest.mark.parametrize("row", [12, -13, [0, 99]])
def test_rows_that_are_not_there_are_refused_as_python_does(row):
    with pytest.raises(PositionError, match="12 rows were assessed") as caught:
        ASSESSMENT[row]
    assert isinstance(caught.value, IndexError)


def test_it_is_a_sequence_of_its_rows():
    assert [one.index[0] for one in ASSESSMENT] == FRAME.index.tolist()
    assert all(len(one) == 1 for one in ASSESSMENT)


def test_the_least_robust_come_first():
    for by in (None, "tv", "chi2"):
        sizes = ASSESSMENT.robustness[by or "tv"]
        least = ASSESSMENT.least(5, by)
        assert least.robustness[by or "tv"].tolist() == sorted(sizes)[:5]
        assert least.index.tolist() == FRAME.index[np.argsort(sizes, kind="stable")[:5]].tolist()
    assert len(ASSESSMENT.least()) == 10
    assert len(ASSESSMENT.least(100)) == 12
    assert len(ASSESSMENT.least(0)) == 0


def test_what_cannot_be_the_least_is_refused():
    with pytest.raises(UnknownNameError, match="nothing was assessed by 'kl': there is tv, chi2"):
        ASSESSMENT.least(3, "kl")
    for wrong in (-1, 2.5, "3", None, True):
        with pytest.raises(InputError, match="n must be a whole number"):
            ASSESSMENT.least(wrong)


def test_the_page_of_a_notebook_is_escaped():
    hostile = "<script>alert(1)</script>&\"'"
    frame = pd.DataFrame({"f": VALUES}, index=[hostile] * 12)
    labels = [f"{hostile}{label}" for label in LABELS]
    page = NaiveBayesClassifier(1.0).fit(frame, labels).assess(frame)._repr_html_()
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 10 * (1 + 2 + 3)  # index, two labels, three rivals
    assert "<p>Assessment of 12 predictions</p>" in page
    assert "<p>… 2 more</p>" in page


def test_a_page_has_all_columns_and_shows_where_nothing_flips():
    page = NaiveBayesClassifier(1.0).fit([["a"]] * 2, [0, 0]).assess([["a"]], ["tv"])._repr_html_()
    for name in ("prediction", "probability", "runner_up", "robustness_tv", "tipping_class_tv"):
        assert f"<th>{name}</th>" in page
    assert "<td>inf</td>" in page
    assert "<td>–</td>" in page


def test_columns_that_do_not_fit_stand_below():
    columns = {"": ["r1", "r2"], "first": ["1", "2"], "second": ["3", "4"], "third": ["5", "6"]}
    assert as_text(columns, 17).splitlines() == [
        "    first  second",
        "r1      1       3",
        "r2      2       4",
        "",
        "    third",
        "r1      5",
        "r2      6",
    ]
    assert as_text(columns, 1).count("\n\n") == 2
    assert max(map(len, as_text(columns, 1000).splitlines())) == 24


def test_long_cells_end_with_an_ellipsis():
    assert shorten("abcdef", 6) == "abcdef"
    assert shorten("abcdefg", 6) == "abcde…"
    assert shorten("ab, cdefg", 5) == "ab…"
    model = NaiveBayesClassifier(1.0).fit([["a"], ["b"]], ["x" * 1000, "y"])
    text = repr(model.assess([["a"]], ["tv"]))
    assert max(map(len, text.splitlines())) < 200
    assert "x…" in text


def test_markup_stays_markup():
    from markupsafe import Markup  # noqa: PLC0415

    page = as_html("t", {"a": [Markup("<b>1</b>"), "<i>"]})
    assert "<td><b>1</b></td>" in page
    assert "<td>&lt;i&gt;</td>" in page


def test_rows_that_were_counted_late_are_the_same_in_copies():
    rows = np.array([*VALUES], dtype=object)[:, None]
    model = NaiveBayesClassifier(1.0).fit(rows, LABELS)
    through_pickle = lambda one: pickle.loads(pickle.dumps(one))  # noqa: E731, S301 (our own)
    for carry in (copy.copy, copy.deepcopy, through_pickle):
        before, after = model.assess(rows, ["tv"]), model.assess(rows, ["tv"])
        assert before.index.tolist() == carry(before).index.tolist() == list(range(12))
        assert carry(after).index.tolist() == list(range(12))
    with pytest.raises(AttributeError, match="no attribute 'indexes'"):
        _ = ASSESSMENT.indexes
