"""A process opens a model once; what comes out is announced before the first row."""

import threading

import pyarrow as pa
import pytest

from robustq.blocks import count_cores, using_threads
from robustq.exceptions import InputError
from robustq.scoring import open_model, open_scorer, output_schema

from ..engines.tables import KEY, make_table, save_model


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("models"))


def test_a_process_reads_a_file_once_until_it_changes(tmp_path):
    path = save_model(tmp_path)
    model = open_model(path)
    assert open_scorer(path).model is model
    save_model(tmp_path)
    assert open_model(path) is not model


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
)
def test_every_batch_has_the_schema_that_was_announced(path, kind):
    table = make_table().append_column("note", pa.array(["a", "b"] * 500).cast(kind))
    given = table.schema
    known = output_schema(path, ["tv"], [KEY, "note"], given)
    assert known.field("note").type == kind
    other = pa.array([None] * 200, pa.null())
    batches = [
        *table.slice(0, 300).to_batches(),
        *table.slice(300, 0).to_batches(),
        *table.slice(300, 200).set_column(4, "note", other).to_batches(),
        *table.slice(500).set_column(4, "note", table["note"].cast(pa.string())[500:]).to_batches(),
    ]
    scorer = open_scorer(path, ["tv"], [KEY, "note"])
    found = list(scorer.stream(batches, given, batch_rows=250))
    assert all(batch.schema.equals(known) for batch in found)
    assert sum(batch.num_rows for batch in found) == scorer.tally.rows == 1000


def test_a_kept_column_that_does_not_fit_is_named(path):
    table = make_table()
    batches = table.set_column(0, KEY, pa.array(["x"] * 1000)).to_batches()
    with pytest.raises(
        InputError, match="column 'id' is int64 in one part of the table and string"
    ):
        list(open_scorer(path, keep=[KEY]).stream(batches, table.schema))


def test_threads_are_obeyed(path, monkeypatch):
    table = pa.concat_tables([make_table()] * 40)
    started, start = [], threading.Thread.start

    def count(self):
        started.append(self.name)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", count)
    for threads in (1, 3):
        started.clear()
        open_scorer(path, ["tv"], threads=threads).score(table)
        assert 0 < len(started) <= 2 * threads  # to encode, and to compute
    with using_threads(5):
        assert count_cores() == 5
