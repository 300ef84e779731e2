"""Files behind http:// are read as those of this machine are, or the error says what happened."""

import gzip
import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import robustq
from robustq.exceptions import FileError
from robustq.files import find_place
from robustq.files import web as module
from robustq.io import sources
from tests.cli.commands import call

from .servers import serving

ROWS = 20_000
SECRET = "4f2a9c"  # noqa: S105 (that is the point)


def _table(rows=ROWS):
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "colour": rng.choice(["red", "green", "blue"], rows),
            "size": rng.normal(size=rows),
            "weight": rng.normal(size=rows),
        }
    )


def _as_csv(table):
    lines = [",".join(table.column_names)]
    lines += [",".join(map(str, row.values())) for row in table.to_pylist()]
    return ("\n".join(lines) + "\n").encode()


def _as_parquet(table):
    content = io.BytesIO()
    pq.write_table(table, content, row_group_size=4_000)
    return content.getvalue()


TABLE = _table()
CSV, PARQUET = _as_csv(TABLE), _as_parquet(TABLE)


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr("robustq.files.web.time.sleep", lambda _: None)
    # A small file is then read in many pieces, too.
    monkeypatch.setattr(module, "BLOCK", 1 << 17)
    monkeypatch.setattr(sources, "CSV_BLOCK", 1 << 17)


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", CSV), ("a.csv.gz", gzip.compress(CSV)), ("a.parquet", PARQUET), ("ä b.csv", CSV)],
)
def test_a_file_behind_a_url_is_read(name, content, ranges):
    with serving({name: content}, ranges=ranges) as (_, address):
        assert robustq.read(f"{address}/{name}").equals(TABLE)


def test_of_parquet_no_more_is_read_than_needed():
    with serving({"a.parquet": PARQUET}) as (web, address):
        source = robustq.io.open_sources([f"{address}/a.parquet"])[0]
        read = pa.concat_tables(source.read(lambda _: ["colour"]))
        assert read.equals(TABLE.select(["colour"]))
        assert web.served < len(PARQUET) / 4


@pytest.mark.parametrize(("name", "content"), [("a.csv", CSV), ("a.parquet", PARQUET)])
def test_a_connection_that_breaks_is_taken_up_again(name, content):
    with serving({name: content}) as (web, address):
        web.cuts = [1000, 0, 70_000, 3]
        assert robustq.read(f"{address}/{name}").equals(TABLE)
        assert not web.cuts


def test_a_connection_that_breaks_for_good_is_told():
    with serving({"a.csv": CSV}) as (web, address):
        web.cuts = [1000] * 50
        with pytest.raises(FileError, match=rf"{address}/a.csv .*broke at byte 0 of {len(CSV):,}"):
            robustq.read(f"{address}/a.csv")


def test_a_server_without_ranges_cannot_resume_and_that_is_told():
    with serving({"a.csv": CSV}, ranges=False) as (web, address):
        web.cuts = [len(CSV) // 2]
        with pytest.raises(FileError, match=r"a.csv .*broke after .* bytes.*cannot resume"):
            list(robustq.io.open_sources([f"{address}/a.csv"])[0].read())


def test_nothing_is_written_where_an_input_breaks(tmp_path):
    model = robustq.NaiveBayesClassifier().fit(TABLE.select(["size", "weight"]), TABLE["colour"])
    model.save(tmp_path / "m.robustq")
    with serving({"a.csv": CSV}, ranges=False) as (web, address):
        web.cuts = [len(CSV) // 2] * 9
        done = call(
            *("score", tmp_path / "m.robustq", f"{address}/a.csv", "-o", tmp_path / "o.csv"),
            *("--batch-rows", 1000),
        )
    assert done.returncode == 2
    assert f"{address}/a.csv cannot be read (the connection broke" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["m.robustq"]


def test_a_file_that_changes_meanwhile_is_refused():
    with serving({"a.csv": CSV}) as (web, address):
        file = find_place(f"{address}/a.csv").open()
        assert file.read(10) == CSV[:10]
        web.version = '"2"'
        with pytest.raises(FileError, match="changed while it was read"):
            file.read()


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (404, "does not exist"),
        (403, "no permission"),
        (401, "asks who you are"),
        (500, "the server says 500"),
        (418, "the server says 418"),
    ],
)
def test_what_a_server_refuses_is_told(status, told):
    with serving({}) as (web, address):
        web.statuses["a.csv"] = status
        with pytest.raises(FileError, match=f"{address}/a.csv cannot be read .*{told}"):
            robustq.read(f"{address}/a.csv")


def test_where_nobody_answers_is_told():
    with serving({}) as (_, address):
        pass
    with pytest.raises(FileError, match=f"{address}/a.csv cannot be read .no connection.*refused"):
        robustq.read(f"{address}/a.csv")


@pytest.mark.parametrize("ranges", [True, False])
def test_an_empty_file_is_told(ranges):
    empty = pytest.raises(robustq.exceptions.InputError, match=r"a.csv is empty")
    with serving({"a.csv": b""}, ranges=ranges) as (_, address), empty:
        robustq.read(f"{address}/a.csv")


def test_no_secret_of_a_url_is_shown(tmp_path):
    with serving({"t.csv": CSV[:20_000].rpartition(b"\n")[0]}) as (web, address):
        host = address.removeprefix("http://")
        url = f"http://me:{SECRET}@{host}/t.csv?sig={SECRET}"
        fit = ("fit", url, "--target", "colour", "--model", "nbc", "-o", tmp_path / "m.robustq")
        done = [call(*fit), call("inspect", tmp_path / "m.robustq", "--json")]
        done += [call("evaluate", tmp_path / "m.robustq", url, "-o", tmp_path / "e.html")]
        assert [one.returncode for one in done] == [0, 0, 0], done
        assert web.asked[-1][1]["Authorization"]  # it was sent where it belongs
        done += [call("score", tmp_path / "m.robustq", url, "-o", url)]
        done += [call("score", tmp_path / "m.robustq", url, "-o", f"{url}.csv")]
        done += [call("fit", url, "--target", "taste", "-o", tmp_path / "n.robustq")]
        web.statuses["t.csv"] = 403
        done += [call("score", tmp_path / "m.robustq", url, "-o", tmp_path / "o.csv")]
        done += [call("inspect", url)]
    assert [one.returncode for one in done[3:]] == [2] * 5
    assert all(SECRET not in one.output and SECRET not in one.stderr for one in done), done
    assert all(SECRET.encode() not in file.read_bytes() for file in tmp_path.iterdir())
    assert robustq.load(tmp_path / "m.robustq").training_["source"] == "t.csv"


def test_a_model_behind_a_url_is_read(tmp_path):
    model = robustq.NaiveBayesClassifier().fit(TABLE.select(["size", "weight"]), TABLE["colour"])
    model.save(tmp_path / "m.robustq")
    with serving({"m": (tmp_path / "m.robustq").read_bytes()}) as (_, address):
        assert robustq.load(f"{address}/m").to_dict() == model.to_dict()


def test_nothing_is_written_behind_http(tmp_path):
    model = robustq.NaiveBayesClassifier().fit(TABLE.select(["size", "weight"]), TABLE["colour"])
    with pytest.raises(FileError, match=r"https://host/m\?… cannot be written.*only read"):
        model.save("https://host/m?key=1")
