"""On Spark's workers, scores are those of the plain scorer, to the bit."""

import os
import signal
import warnings

import pytest

from robustq import load
from robustq.engines import spark as engine
from robustq.exceptions import InputError, UnknownValueWarning

from .tables import KEY, UNKNOWN, make_table, save_model, score_plainly, sort

pytestmark = [
    # Of pyspark's own, about pandas and sockets.
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("models"))


def as_frame(spark, partitions=4):
    return spark.createDataFrame(make_table()).repartition(partitions)


def collect(frame):
    """Return what comes out, in the order of its key, and what is said."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = frame.toArrow()
    return sort(found), [one.message for one in said if one.category is UnknownValueWarning]


@pytest.mark.parametrize("kind", ["nbc", "forest"])
def test_two_workers_say_what_one_scorer_says(spark, tmp_path, kind):
    path = save_model(tmp_path, kind)
    known = score_plainly(path, delta=0.01)
    scored = engine.score(as_frame(spark), path, keep=[KEY], delta=0.01)
    path.unlink()  # the model has been sent
    found, said = collect(scored)
    assert found.equals(known)
    assert found.schema.names == scored.columns
    assert [one.counts for one in said] == [UNKNOWN]


def test_partitions_may_be_empty(spark, path):
    frame = spark.createDataFrame(make_table()).repartition(3, "colour").coalesce(4)
    nothing = spark.createDataFrame(make_table().slice(0, 0), schema=frame.schema)
    found, said = collect(engine.score(frame.union(nothing).repartition(6, KEY), path, keep=[KEY]))
    assert found.equals(score_plainly(path))
    assert [one.counts for one in said] == [UNKNOWN]
    found, said = collect(engine.score(nothing, path, keep=[KEY]))
    assert found.num_rows == 0
    assert not said


def test_other_types_are_the_same_values(spark, path):
    frame = as_frame(spark)
    for column, kind in (("code", "double"), ("code", "string"), ("size", "string")):
        cast = frame.withColumn(column, frame[column].cast(kind))
        found, said = collect(engine.score(cast, path, keep=[KEY]))
        assert found.equals(score_plainly(path))
        assert [one.counts for one in said] == [UNKNOWN]


def test_kept_columns_keep_their_types(spark, path):
    frame = as_frame(spark).selectExpr("*", "timestamp '2024-01-01' AS `wh``e.n`", "array(1) AS a")
    scored = engine.score(frame, path, keep="all")
    assert scored.schema.fields[:6] == frame.schema.fields
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert scored.toArrow()["a"].to_pylist() == [[1]] * 1000


class Deadly:
    """Kills the worker that scores, once: when its first batch is done and not given."""

    def __init__(self, task, marker):
        self.task, self.marker = task, marker

    def __call__(self, batches):
        for number, scored in enumerate(self.task(batches)):
            if number == 0 and not self.marker.exists():
                self.marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield scored


def test_a_worker_that_dies_changes_nothing(spark, path, tmp_path, monkeypatch):
    marker, make = tmp_path / "died", engine._Task
    monkeypatch.setattr(engine, "_Task", lambda *given: Deadly(make(*given), marker))
    found, said = collect(engine.score(as_frame(spark), path, keep=[KEY]))
    assert marker.exists()
    assert found.equals(score_plainly(path))
    assert [one.counts for one in said] == [UNKNOWN]


class Counting:
    """Notes each time that a model is read from its file, in which process."""

    def __init__(self, task, log):
        self.task, self.log = task, log

    def __call__(self, batches):
        from robustq.scoring import opening  # noqa: PLC0415 (that of the worker)

        unpack = opening._unpack

        def note(parcel):
            with self.log.open("a") as file:
                file.write(f"{os.getpid()}\n")
            return unpack(parcel)

        opening._unpack = note
        try:
            yield from self.task(batches)
        finally:
            opening._unpack = unpack


def test_a_worker_reads_the_model_once(spark, tmp_path, monkeypatch):
    path, log, make = save_model(tmp_path), tmp_path / "log", engine._Task
    # Another model than those of other tests, which workers know already.
    model = load(path)
    model.training_["note"] = str(tmp_path)
    model.save(path)
    monkeypatch.setattr(engine, "_Task", lambda *given: Counting(make(*given), log))
    scored = engine.score(as_frame(spark, 8), path, keep=[KEY])
    for _ in range(2):
        collect(scored)
    workers = log.read_text().split()
    assert 1 <= len(workers) <= 4  # of 16 tasks
    assert len(set(workers)) == len(workers)


def test_what_cannot_be_done_is_said_at_once(spark, path):
    with pytest.raises(InputError, match="the frame has no column 'name', which is to be kept"):
        engine.score(as_frame(spark), path, keep=["name"])
    with pytest.raises(InputError, match="has no column 'size'"):
        engine.score(as_frame(spark).drop("size"), path)
