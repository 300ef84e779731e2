"""On Dask's workers, scores are those of the plain scorer, to the bit."""

import os
import signal
import warnings
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from robustq.engines import dask as engine
from robustq.exceptions import InputError, UnknownValueWarning, UnsupportedError

from .tables import KEY, UNKNOWN, flatten, make_table, save_model, score_plainly

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.fixture(scope="module", params=["nbc", "forest"])
def path(request, tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("models"), request.param)


def as_frame(partitions=5):
    return dd.from_pandas(make_table().to_pandas(), npartitions=partitions)


def compute(frame):
    """Return what is computed, and what is said."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = frame.compute()
    return found, [one.message for one in said if one.category is UnknownValueWarning]


def as_arrow(frame):
    return flatten(pa.Table.from_pandas(frame, preserve_index=False)).replace_schema_metadata()


def assert_same(found, known):
    assert as_arrow(found).equals(known)


@pytest.mark.parametrize("partitions", [1, 7])
def test_two_workers_say_what_one_scorer_says(cluster, path, partitions):
    frame = as_frame(partitions)
    scored = engine.score(frame, path, keep=[KEY])
    found, said = compute(scored)
    assert_same(found, score_plainly(path))
    assert found.index.equals(frame.compute().index)
    assert scored.npartitions == frame.npartitions
    assert [one.counts for one in said] == [UNKNOWN]


def test_types_are_known_before_the_first_row(cluster, path):
    scored = engine.score(as_frame(), path, keep=[KEY], delta=0.01)
    found, _ = compute(scored)
    assert (scored.dtypes == found.dtypes).all()
    assert list(scored.columns) == list(found.columns)
    assert_same(found, score_plainly(path, delta=0.01))


def test_without_a_cluster_the_same_is_said_once(path):
    frame = engine.score(as_frame(), path, keep=[KEY])
    for scheduler in ("synchronous", "threads"):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = frame.compute(scheduler=scheduler)
        assert_same(found, score_plainly(path))
        assert [one.message.counts for one in said] == [UNKNOWN]


def test_partitions_may_be_empty_and_differ_in_type(cluster, path):
    table = make_table().to_pandas()
    parts = [
        table[:0],
        table[:300].astype({"code": "Int64"}),
        table[300:500].assign(colour=table["colour"][300:500].astype("category")),
        table[500:600].astype({"code": "float64"}),
        table[600:900].assign(colour=table["colour"][600:900].astype("string[pyarrow]")),
        table[900:900],
        table[900:].assign(code=pd.array(table["code"][900:], dtype="Int64").astype(str)),
    ]
    frame = dd.from_map(lambda part: part, parts, meta=table[:0])
    found, said = compute(engine.score(frame, path, keep=[KEY]))
    assert_same(found, score_plainly(path))
    assert [one.counts for one in said] == [UNKNOWN]


def test_a_frame_of_no_rows_gives_none(cluster, path):
    frame = dd.from_pandas(make_table().to_pandas()[:0], npartitions=1)
    found, said = compute(engine.score(frame, path))
    assert len(found) == 0
    assert not said
    assert list(found.columns)[:2] == ["prediction", "probability"]


def test_kept_columns_keep_their_types(cluster, path):
    table = make_table().to_pandas()
    table["when"] = pd.date_range("2024-01-01", periods=len(table), tz="Europe/Brussels")
    table["group"] = table["colour"].astype("category")
    frame = dd.from_pandas(table, npartitions=3)
    found, _ = compute(engine.score(frame, path, keep="all"))
    pd.testing.assert_frame_equal(found[list(table.columns)], frame.compute())


def test_a_worker_that_dies_changes_nothing(cluster, path, tmp_path):
    marker = tmp_path / "died"

    def die_once(part, number):
        if len(part) and part[KEY].iloc[0] >= 400 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return part

    before = {one["pid"] for one in cluster.run(_describe_process).values()}
    frame = as_frame(6)
    frame = frame.map_partitions(die_once, 0, meta=frame._meta)
    found, said = compute(engine.score(frame, path, keep=[KEY]))
    assert marker.exists()
    assert_same(found, score_plainly(path))
    assert [one.counts for one in said] == [UNKNOWN]
    cluster.wait_for_workers(2, timeout=60)
    assert {one["pid"] for one in cluster.run(_describe_process).values()} != before


def _describe_process():
    from robustq.scoring import opening  # noqa: PLC0415

    return {"pid": os.getpid(), "models": len(opening._models)}


def test_workers_need_not_see_the_file_and_read_it_once(cluster, tmp_path):
    path = save_model(tmp_path)
    known = score_plainly(path)
    frame = engine.score(as_frame(20), path, keep=[KEY])
    path.unlink()
    before = sum(one["models"] for one in cluster.run(_describe_process).values())
    found, _ = compute(frame)
    after = sum(one["models"] for one in cluster.run(_describe_process).values())
    assert_same(found, known)
    assert after - before <= 2


@pytest.mark.filterwarnings("ignore::robustq.exceptions.UnknownValueWarning")
def test_a_task_uses_one_thread(cluster, path):
    def count_threads(part):
        import threading  # noqa: PLC0415

        started, start = [], threading.Thread.start

        def count(self):
            started.append(self.name)
            start(self)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(threading.Thread, "start", count)
            task(part, path.read_bytes(), partition_info={"number": 0})
        return len(started)

    many = pd.concat([make_table().to_pandas()] * 40)
    task = engine.score(dd.from_pandas(many, npartitions=1), path).expr.func
    assert cluster.submit(count_threads, many).result() == 0


def test_what_cannot_be_done_is_said_at_once(path, tmp_path):
    frame = as_frame()
    with pytest.raises(InputError, match="the frame has no column 'name', which is to be kept"):
        engine.score(frame, path, keep=["name"])
    with pytest.raises(InputError, match="keep takes a list of columns"):
        engine.score(frame, path, keep=KEY)
    with pytest.raises(InputError, match="has no column 'size'"):
        engine.score(frame.drop(columns="size"), path)
    with pytest.raises(UnsupportedError, match="an engine takes a model file"):
        engine.score(frame, "tests.models:model")
    with pytest.raises(InputError, match="threads must be a whole number from 1"):
        engine.score(frame, path, threads=0)
    Path(tmp_path / "no.robustq").write_text("nothing")
    with pytest.raises(InputError, match=r"no\.robustq"):
        engine.score(frame, tmp_path / "no.robustq")


def test_a_column_of_several_kinds_is_named(path):
    table = make_table().to_pandas().astype({"code": object})
    table.loc[5, "code"] = "five"
    with dask.config.set({"dataframe.convert-string": False}):  # else all of them become text
        frame = dd.from_map(lambda part: part, [table], meta=table[:0])
        with pytest.raises(InputError, match="column 'code' holds values of several kinds"):
            engine.score(frame, path).compute(scheduler="synchronous")
