"""Scores do not depend on the file that rows come in."""

import json
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from robustq import GenerativeForestClassifier, NaiveBayesClassifier
from robustq.exceptions import InputError, UnsupportedError
from robustq.io import Scorer, adapt_table, infer_types, open_sources, open_writer
from robustq.io.scoring import Gate, unify_types
from robustq.perturbations import get

ROWS = 400
RNG = np.random.default_rng(0)
TABLE = pa.table(
    {
        "colour": RNG.choice(["red", "green", "NA"], ROWS),
        "code": RNG.integers(1, 5, ROWS),
        "zip": RNG.choice(["007", "123", "7"], ROWS),
        "size": RNG.normal(size=ROWS).round(3),
        "flag": RNG.random(ROWS) < 0.5,
    }
)
Y = np.where(
    TABLE["size"].to_numpy() + TABLE["code"].to_numpy() + RNG.normal(size=ROWS) > 2.5, "y", "n"
)
BALLS = [get("tv"), get("chi2")]


@pytest.fixture(scope="module", params=["nbc", "forest"])
def model(request):
    chosen = (
        NaiveBayesClassifier()
        if request.param == "nbc"
        else GenerativeForestClassifier(5, random_state=0)
    )
    return chosen.fit(TABLE, Y)


def score(model, table, **options):
    return Scorer(model, BALLS, **options).score(table)


def as_text(table):
    """Return a table as a CSV file gives it."""
    cells = {
        name: ["" if value is None else str(value) for value in table[name].to_pylist()]
        for name in table.column_names
    }
    return pa.table({name: pa.array(values, pa.string()) for name, values in cells.items()})


def test_results_are_those_of_assess(model):
    found, known = score(model, TABLE), model.assess(TABLE, ["tv", "chi2"])
    assert found.column_names == [
        *("prediction", "probability", "runner_up", "robustness_tv", "tipping_class_tv"),
        *("robustness_chi2", "tipping_class_chi2"),
    ]
    assert found["prediction"].to_pylist() == known.prediction.tolist()
    assert found["runner_up"].to_pylist() == known.runner_up.tolist()
    np.testing.assert_array_equal(found["robustness_tv"].to_numpy(), known.robustness["tv"])
    assert found["tipping_class_chi2"].to_pylist() == known.tipping_class["chi2"].tolist()


@pytest.mark.parametrize(
    "change",
    [
        as_text,
        lambda t: t.select(["flag", "size", "zip", "code", "colour"]),
        lambda t: t.append_column("more", pa.array(range(ROWS))),
        lambda t: t.set_column(1, "code", t["code"].cast(pa.float64())),
        lambda t: t.set_column(1, "code", t["code"].cast(pa.int8())),
        lambda t: t.set_column(0, "colour", t["colour"].dictionary_encode()),
        lambda t: t.set_column(0, "colour", t["colour"].cast(pa.large_string())),
        lambda t: t.set_column(3, "size", t["size"].cast(pa.string())),
    ],
    ids=[
        "csv",
        "other order",
        "more columns",
        "floats",
        "bytes",
        "dictionary",
        "large",
        "text number",
    ],
)
def test_types_may_drift(model, change):
    assert score(model, change(TABLE)).equals(score(model, TABLE))


def test_gaps_are_gaps_in_any_file(model):
    rows = TABLE.slice(0, 4).to_pylist()
    for index, name in enumerate(("colour", "code", "size", "flag")):
        rows[index][name] = None
    gaps = pa.Table.from_pylist(rows, TABLE.schema)
    text = as_text(gaps)
    found, known = score(model, text), score(model, gaps)
    assert found.equals(known)
    # "NA" is a colour this model knows; elsewhere it is a gap.
    marked = text.set_column(1, "code", pa.array(["NA", "?", "1", "2"]))
    with_gaps = gaps.set_column(1, "code", pa.array([None, None, 1, 2]))
    assert score(model, marked).equals(score(model, with_gaps))


def test_unknown_values_are_counted_not_lost(model):
    text = as_text(TABLE.slice(0, 3))
    text = text.set_column(1, "code", pa.array(["four", "9", "1"]))
    text = text.set_column(0, "colour", pa.array(["mauve", "red", "red"]))
    scorer = Scorer(model, BALLS)
    assert scorer.score(text).num_rows == 3
    assert scorer.unknown == {"column 'code'": 2, "column 'colour'": 1}


def test_a_strict_model_refuses_unknown_text():
    model = NaiveBayesClassifier(handle_unknown="error").fit(TABLE, Y)
    text = as_text(TABLE.slice(0, 1)).set_column(1, "code", pa.array(["four"]))
    with pytest.raises(InputError, match=r"column 'code' holds 'four'.*it knows 1, 2, 3, 4"):
        score(model, text)


def test_text_in_a_column_of_numbers_is_explained(model):
    text = as_text(TABLE.slice(0, 2)).set_column(3, "size", pa.array(["1.5", "big"]))
    with pytest.raises(InputError, match="column 'size' holds 'big'"):
        score(model, text)


def test_truth_values_and_text_agree():
    model = NaiveBayesClassifier().fit(infer_types(as_text(TABLE)), Y)
    assert score(model, TABLE).equals(score(model, as_text(TABLE)))


def train_text(column, seed=0):
    """Return a model of one column that tells the class, and the table."""
    labels = ["y" if i % len(set(column)) == 0 else "n" for i in range(len(column))]
    table = pa.table({"f": column})
    return NaiveBayesClassifier().fit(infer_types(table), labels), table


@pytest.mark.parametrize(
    ("text", "other"),
    [
        (["TRUE", "FALSE"], pa.array([True, False])),
        (["true", "false"], pa.array([True, False])),
        (["1", "2"], pa.array(["1", "2"]).dictionary_encode()),
        (["1", "2"], pa.array([1.0, 2.0])),
        (["1.0", "x"], pa.array(["1.0", "x"]).dictionary_encode()),
        (["a", "b"], pa.array([" a", "b "]).dictionary_encode()),
        (["2024-01-01", "2024-01-02"], pa.array([datetime(2024, 1, 1), datetime(2024, 1, 2)])),
        (["2024-01-01", "2024-01-02"], pa.array([date(2024, 1, 1), date(2024, 1, 2)])),
        (["007", "7"], pa.array(["007", "7"], pa.large_string())),
    ],
    ids=range(9),
)
def test_a_model_of_text_reads_other_types(text, other):
    model, table = train_text(text * 20)
    scorer = Scorer(model, BALLS)
    known = scorer.score(table.slice(0, 2))
    assert scorer.score(pa.table({"f": other})).equals(known)
    assert not scorer.unknown


def test_a_model_of_truth_values_reads_text():
    model = NaiveBayesClassifier().fit(pa.table({"f": [True, False] * 20}), ["y", "n"] * 20)
    scorer = Scorer(model, BALLS)
    known = scorer.score(pa.table({"f": [True, False, True]}))
    assert scorer.score(pa.table({"f": ["true", "FALSE", "1"]})).equals(known)
    scorer.score(pa.table({"f": ["maybe", "true"]}))
    assert scorer.unknown == {"column 'f'": 1}


@pytest.mark.parametrize("base", [2**53, 2**62, 2**63 - 5, 2**63 + 5, -(2**62)])
def test_large_whole_numbers_stay_what_they_are(base):
    values = [base + i for i in range(4)]
    kind = pa.uint64() if base >= 2**63 else pa.int64()
    table = pa.table({"f": pa.array(values * 20, kind)})
    model = NaiveBayesClassifier().fit(table, ["a", "b", "c", "d"] * 20)
    scorer = Scorer(model, BALLS)
    found = scorer.score(pa.table({"f": [*map(str, values), "1.5", "x"]}))
    assert found["prediction"].to_pylist()[:4] == ["a", "b", "c", "d"]
    assert scorer.unknown == {"column 'f'": 2}


def test_a_model_without_names_reads_text_by_position():
    rows = np.array([[1, 2], [2, 1]] * 20)
    model = NaiveBayesClassifier().fit(rows, ["y", "n"] * 20)
    found = Scorer(model, BALLS).score(pa.table({"a": ["1", "2"], "b": ["2", "1"]}))
    assert found["prediction"].to_pylist() == ["y", "n"]


def test_text_and_numbers_in_one_column_are_explained():
    rows = np.array([[1], ["a"]] * 20, dtype=object)
    model = NaiveBayesClassifier().fit(rows, ["y", "n"] * 20)
    with pytest.raises(UnsupportedError, match="both text and numbers"):
        Scorer(model, BALLS).score(pa.table({"a": ["1", "a"]}))


def test_types_of_kept_columns_fit_all_files(tmp_path):
    pq.write_table(pa.table({"id": [7], "n": pa.array([1], pa.int32())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": ["007"], "n": [2**40]}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"id": pa.nulls(1), "n": [3]}), tmp_path / "c.parquet")
    sources = open_sources([str(tmp_path)])
    assert unify_types(sources, ["id", "n"]) == {"id": pa.string(), "n": pa.int64()}
    (tmp_path / "d.csv").write_text("id,n\n1,2\n")
    sources = open_sources([str(tmp_path)])
    assert unify_types(sources, ["n"]) == {"n": pa.string()}
    pq.write_table(pa.table({"n": [[1]]}), tmp_path / "e.parquet")
    with pytest.raises(InputError, match=r"column 'n' is .* in different files"):
        unify_types(open_sources([str(tmp_path)]), ["n"])


def test_whole_numbers_and_others_are_kept_as_text(tmp_path):
    pq.write_table(pa.table({"id": [2**60 + 1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [1.5]}), tmp_path / "b.parquet")
    assert unify_types(open_sources([str(tmp_path)]), ["id"]) == {"id": pa.string()}


def test_lists_do_not_fit_into_csv(tmp_path):
    schema = pa.schema([("a", pa.list_(pa.int64()))])
    with pytest.raises(InputError, match="column 'a' holds lists or records"):
        open_writer(str(tmp_path / "o.csv"), schema).__enter__()


def test_kept_columns_come_first(model):
    table = TABLE.append_column("id", pa.array(range(ROWS)))
    assert score(model, table, keep=["id", "zip"]).column_names[:3] == ["id", "zip", "prediction"]
    assert score(model, table, keep=None).column_names[:6] == table.column_names


def test_columns_that_lack_or_clash_are_named(model):
    scorer = Scorer(model, BALLS, ["id"])
    names = tuple(TABLE.column_names)
    with pytest.raises(InputError, match=r"x\.csv has no column 'id', which is to be kept"):
        scorer.choose(names, "x.csv")
    with pytest.raises(InputError, match=r"x\.csv has no column 'zip' and 1 more, which the model"):
        Scorer(model, BALLS).choose(("colour", "code", "size"), "x.csv")
    with pytest.raises(InputError, match=r"x\.csv has a column 'prediction', as the results do"):
        Scorer(model, BALLS, None).choose((*names, "prediction"), "x.csv")


def test_a_gate_accepts_what_is_robust_enough(model):
    robustness = score(model, TABLE)["robustness_chi2"].to_numpy()
    least = float(np.median(robustness))
    found = score(model, TABLE, gate=Gate("chi2", least))
    assert found.column_names[-1] == "accepted"
    assert found["accepted"].to_pylist() == (robustness >= least).tolist()
    strict = score(model, TABLE, gate=Gate("chi2", least, strict=True))
    assert strict["accepted"].to_pylist() == (robustness > least).tolist()


def test_no_rows_give_no_results_of_the_same_types(model):
    empty, full = score(model, TABLE.slice(0, 0)), score(model, TABLE)
    assert empty.num_rows == 0
    assert empty.schema.equals(full.schema)


def test_columns_the_model_does_not_know_are_left_alone(model):
    table = TABLE.append_column("more", pa.array(["NA"] * ROWS))
    assert adapt_table(table, model.encoding_)["more"].to_pylist() == ["NA"] * ROWS


RESULT = pa.table(
    {
        "prediction": pa.array(["a", "b", None]).dictionary_encode(),
        "robustness": [0.5, float("inf"), 0.0],
        "text": ['say "hi"', "Infinity, ü", None],
        "count": [1, 2, None],
    }
)


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.csv.gz", "out.jsonl"])
def test_results_are_written_in_any_format(tmp_path, name):
    path = tmp_path / name
    with open_writer(str(path), RESULT.schema) as writer:
        writer.write_table(RESULT.slice(0, 2))
        assert not path.exists()
        writer.write_table(RESULT.slice(2))
    assert [file.name for file in tmp_path.iterdir()] == [name]
    if name.endswith("parquet"):
        assert pq.read_table(path).to_pylist() == RESULT.to_pylist()
    elif name.endswith("jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert lines == RESULT.to_pylist()
    else:
        options = pyarrow.csv.ConvertOptions(
            strings_can_be_null=True, quoted_strings_can_be_null=False
        )
        read = pyarrow.csv.read_csv(path, convert_options=options)
        assert read.to_pylist() == RESULT.to_pylist()


def test_nothing_is_left_where_writing_fails(tmp_path):
    class StopError(Exception):
        pass

    for name in ("out.parquet", "out.csv", "out.jsonl"):
        with pytest.raises(StopError), open_writer(str(tmp_path / name), RESULT.schema) as writer:  # noqa: PT012
            writer.write_table(RESULT)
            raise StopError
    assert list(tmp_path.iterdir()) == []


def test_an_ending_must_tell_a_format(tmp_path):
    with pytest.raises(InputError, match=r"no ending that tells a format: use \.parquet"):
        open_writer(str(tmp_path / "out.xlsx"), RESULT.schema).__enter__()


def test_a_file_scored_piece_by_piece_is_the_same(tmp_path, model):
    pq.write_table(TABLE, tmp_path / "in.parquet", row_group_size=50)
    scorer = Scorer(model, BALLS)
    (source,) = open_sources([str(tmp_path / "in.parquet")])
    parts = [scorer.score(batch) for batch in source.read(lambda names: scorer.choose(names, "in"))]
    assert pa.concat_tables(parts).to_pylist() == score(model, TABLE).to_pylist()
