"""Scores do not depend on the file that rows come in."""

import threading
import warnings
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from robustq import GenerativeForestClassifier, NaiveBayesClassifier, RigidModelWarning
from robustq.core.neighbourhoods import read, read_all
from robustq.exceptions import DomainError, InputError, UnknownNameError, UnsupportedError
from robustq.io import adapt_table, infer_types, open_sources
from robustq.io.adapting import MOST_WORDS
from robustq.scoring import Scorer
from robustq.selection.gates import Gate
from robustq.tables import Encoding

# What is learned here tells its labels on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::robustq.exceptions.TableWarning")

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
BALLS = read_all(["tv", "chi2"])


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
        lambda t: pa.concat_tables([t.slice(0, 7), t.slice(7, 130), t.slice(137)]),
        lambda t: pa.concat_tables([as_text(t.slice(0, 7)), as_text(t.slice(7))]),
        lambda t: t.set_column(0, "colour", pc.binary_join_element_wise("", t["colour"], " ")),
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
        "pieces",
        "pieces of csv",
        "white space",
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
    assert scorer.tally.unknown == {"column 'code'": 2, "column 'colour'": 1}


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
    model = NaiveBayesClassifier().fit(infer_types(as_text(TABLE))[0], Y)
    assert score(model, TABLE).equals(score(model, as_text(TABLE)))


def train_text(column, seed=0):
    """Return a model of one column that tells the class, and the table."""
    labels = ["y" if i % len(set(column)) == 0 else "n" for i in range(len(column))]
    table = pa.table({"f": column})
    return NaiveBayesClassifier().fit(infer_types(table)[0], labels), table


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
    assert not scorer.tally.unknown


def test_a_model_of_truth_values_reads_text():
    model = NaiveBayesClassifier().fit(pa.table({"f": [True, False] * 20}), ["y", "n"] * 20)
    scorer = Scorer(model, BALLS)
    known = scorer.score(pa.table({"f": [True, False, True]}))
    assert scorer.score(pa.table({"f": ["true", "FALSE", "1"]})).equals(known)
    scorer.score(pa.table({"f": ["maybe", "true"]}))
    assert scorer.tally.unknown == {"column 'f'": 1}


@pytest.mark.parametrize("base", [2**53, 2**62, 2**63 - 5, 2**63 + 5, -(2**62)])
def test_large_whole_numbers_stay_what_they_are(base):
    values = [base + i for i in range(4)]
    kind = pa.uint64() if base >= 2**63 else pa.int64()
    table = pa.table({"f": pa.array(values * 20, kind)})
    model = NaiveBayesClassifier().fit(table, ["a", "b", "c", "d"] * 20)
    scorer = Scorer(model, BALLS)
    found = scorer.score(pa.table({"f": [*map(str, values), "1.5", "x"]}))
    assert found["prediction"].to_pylist()[:4] == ["a", "b", "c", "d"]
    assert scorer.tally.unknown == {"column 'f'": 2}


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


def test_kept_columns_come_first(model):
    table = TABLE.append_column("id", pa.array(range(ROWS)))
    assert score(model, table, keep=["id", "zip"]).column_names[:3] == ["id", "zip", "prediction"]
    assert score(model, table, keep="all").column_names[:6] == table.column_names


def test_columns_that_lack_or_clash_are_named(model):
    scorer = Scorer(model, BALLS, ["id"])
    names = tuple(TABLE.column_names)
    with pytest.raises(InputError, match=r"x\.csv has no column 'id', which is to be kept"):
        scorer.choose(names, "x.csv")
    with pytest.raises(InputError, match=r"x\.csv has no column 'zip' and 1 more, which the model"):
        Scorer(model, BALLS).choose(("colour", "code", "size"), "x.csv")
    with pytest.raises(InputError, match=r"x\.csv has a column 'prediction', as the results do"):
        Scorer(model, BALLS, "all").choose((*names, "prediction"), "x.csv")


def test_a_gate_accepts_what_is_robust_enough(model):
    robustness = score(model, TABLE)["robustness_chi2"].to_numpy()
    least = float(np.median(robustness))
    found = score(model, TABLE, gate=Gate.by("r_chi2", least, inclusive=True))
    assert found.column_names[-1] == "accepted"
    assert found["accepted"].to_pylist() == (robustness >= least).tolist()
    strict = score(model, TABLE, gate=Gate.by("r_chi2", least))
    assert strict["accepted"].to_pylist() == (robustness > least).tolist()


def test_no_rows_give_no_results_of_the_same_types(model):
    empty, full = score(model, TABLE.slice(0, 0)), score(model, TABLE)
    assert empty.num_rows == 0
    assert empty.schema.equals(full.schema)


def test_columns_the_model_does_not_know_are_left_alone(model):
    table = TABLE.append_column("more", pa.array(["NA"] * ROWS))
    assert score(model, table, keep=["more"])["more"].to_pylist() == ["NA"] * ROWS
    assert tuple(adapt_table(table, model.encoding_).column_names) == model.encoding_.names


def test_neighbourhoods_are_named_in_the_columns(model):
    asked = read_all(["tv_all", "tv_rows", "epsilon_all_rows", "chi2_posterior"])
    found = Scorer(model, asked).score(TABLE.slice(0, 50))
    known = model.assess(TABLE.slice(0, 50), asked)
    for name in ("tv_all", "tv_rows", "epsilon_all_rows", "chi2_posterior"):
        robustness = found[f"robustness_{name}"].to_numpy()
        np.testing.assert_array_equal(robustness, known.robustness[name])
        tipping = found[f"tipping_class_{name}"].to_pylist()
        assert tipping == known.tipping_class[name].tolist()


def test_what_a_model_cannot_answer_is_refused_at_once(model):
    with pytest.raises(UnknownNameError, match="no part 'priors'"):
        Scorer(model, [read("tv", parts=["priors"])])


def test_densities_are_refused_at_once():
    model = GenerativeForestClassifier(5, leaves="additive", random_state=0).fit(TABLE, Y)
    with pytest.raises(UnsupportedError, match="density"):
        Scorer(model, [read("tv_joint")])


def test_where_nothing_flips_any_row_is_known():
    with pytest.warns(RigidModelWarning):
        rigid = GenerativeForestClassifier(5, max_depth=0, random_state=0).fit(TABLE, Y)
    scorer = Scorer(rigid, read_all(["tv", "tv_all"]))
    for start in (0, 50):
        scorer.score(TABLE.slice(start, 50))
    assert scorer.endless == ["tv"]


def test_unknown_values_are_counted_by_every_thread_for_itself(model):
    text = as_text(TABLE.slice(0, 30)).set_column(0, "colour", pa.array(["mauve"] * 30))
    found: list[dict[str, int]] = []
    scorer = Scorer(model, BALLS)

    def work():
        found.extend(scorer.score_and_count(text)[1].unknown for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [{"column 'colour'": 30}] * 20
    assert not scorer.tally.unknown


def test_a_row_is_encoded_once(model, monkeypatch):
    encoded, encode = [], Encoding.encode

    def count(self, table):
        encoded.append(table.rows)
        return encode(self, table)

    monkeypatch.setattr(Encoding, "encode", count)
    Scorer(model, read_all(["tv", "tv_all", "chi2_posterior"])).score(as_text(TABLE))
    assert sum(encoded) == ROWS


def test_words_are_looked_at_once(model):
    adapted = adapt_table(as_text(TABLE), model.encoding_)
    assert pa.types.is_dictionary(adapted["zip"].type)
    many = pa.array([f"x{i}" for i in range(MOST_WORDS + 1)])
    rows = pa.table({name: many for name in TABLE.column_names if name != "size"})
    rows = rows.append_column("size", pa.array(["1"] * len(many)))
    scorer = Scorer(model, BALLS)
    assert scorer.score(rows).num_rows == len(many)
    assert scorer.tally.unknown["column 'zip'"] == len(many)


def test_a_file_scored_piece_by_piece_is_the_same(tmp_path, model):
    pq.write_table(TABLE, tmp_path / "in.parquet", row_group_size=50)
    scorer = Scorer(model, BALLS)
    (source,) = open_sources([str(tmp_path / "in.parquet")])
    for repeating in ((), scorer.repeating):
        batches = source.read(lambda names: scorer.choose(names, "in"), repeating)
        scored = pa.concat_tables([scorer.score(batch) for batch in batches])
        assert scored.to_pylist() == score(model, TABLE).to_pylist()


def test_columns_that_are_kept_are_read_as_they_are(model):
    assert {"colour"} <= Scorer(model, BALLS).repeating
    assert "colour" not in Scorer(model, BALLS, keep=["colour"]).repeating
    assert not Scorer(model, BALLS, keep="all").repeating


def test_a_size_adds_the_classes_that_no_other_beats(model):
    scored = score(model, as_text(TABLE), delta=0.01)
    for ball in ("tv", "chi2"):
        sets = model.credal_predict(TABLE, ball, 0.01)
        words = ["|".join(model.classes_[one]) for one in sets]
        assert scored[f"classes_{ball}"].to_pylist() == words
        assert {"n", "y", "n|y"} >= set(words)
    assert "n|y" in scored["classes_tv"].to_pylist()
    empty = score(model, as_text(TABLE.slice(0, 0)), delta=0.01)
    assert empty.schema == scored.schema


def test_a_size_that_is_none_is_refused_before_anything_is_read(model):
    with pytest.raises(DomainError, match=r"a size of tv lies in \[0, 1\], got 2"):
        Scorer(model, BALLS, delta=2.0)
