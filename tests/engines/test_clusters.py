"""What the command does about Ctrl-C on an engine, and about a cluster that ends."""

import os
import signal
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.engines.processes import LONG, dask_cluster, list_session, need, start, until
from tests.engines.tables import make_table, save_model

pytestmark = [
    pytest.mark.workers,
    pytest.mark.skipif(sys.platform == "win32", reason="signals are others there"),
]
CALM = 20  # a second or two, where nobody else computes
COPIES = 200
MOMENTS = {"starting": 1, "spawning": 2}  # of Dask, the second is the first worker


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("clusters")
    save_model(made)
    pq.write_table(pa.concat_tables([make_table()] * COPIES), made / "rows.parquet")
    return made


def list_arguments(output, engine):
    # Small batches: whoever scores them is busy for minutes.
    rows = ("score", "nbc.robustq", "rows.parquet", "-o", output, "--batch-rows", "100")
    return (*rows, "--engine", engine)


@pytest.mark.parametrize("moment", [*MOMENTS, "writing"])
@pytest.mark.parametrize("engine", ["dask", "spark"])
def test_ctrl_c_leaves_nobody_and_nothing(folder, tmp_path, engine, moment):
    need(engine)
    output = tmp_path / "out.csv"
    command = (sys.executable, "-m", "robustq", *list_arguments(output, engine))
    with start(*command, cwd=folder) as process:
        if moment == "writing":
            assert until(lambda: list(tmp_path.glob(".*.part")))
        else:  # as soon as the engine has so many processes
            assert until(lambda: len(list_session(process.pid)) >= MOMENTS[moment], pause=0.0)
        begun = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        said, _ = process.communicate(timeout=LONG)
        assert process.returncode == 130, said
        assert time.monotonic() - begun < CALM
        assert said.decode().strip() == "Interrupted."
        assert until(lambda: not list_session(process.pid), CALM)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seconds", [1.5, 5.0])
@pytest.mark.parametrize("engine", ["dask", "spark"])
def test_ctrl_c_while_learning_is_one_line(folder, tmp_path, engine, seconds):
    need(engine)
    # So many trees: whoever grows them is busy for minutes.
    trees = ("--option", "n_estimators=100000", "--option", "max_samples=100000")
    learns = ("fit", "rows.parquet", "--target", "colour", "--model", "forest", *trees)
    where = ("--engine", engine, "-o", tmp_path / "m.robustq")
    command = (sys.executable, "-m", "robustq", *learns, *where)
    with start(*command, cwd=folder) as process:
        assert until(lambda: list_session(process.pid))
        time.sleep(seconds)  # whatever they are doing by then
        os.killpg(process.pid, signal.SIGINT)
        said, _ = process.communicate(timeout=LONG)
        assert process.returncode == 130, said
        assert said.decode().strip() == "Interrupted."
        assert until(lambda: not list_session(process.pid), CALM)
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_that_ends_is_told_in_a_sentence(folder, tmp_path):
    need("dask")
    with dask_cluster(tmp_path) as (address, made):
        output = tmp_path / "out.csv"
        command = (sys.executable, "-m", "robustq", *list_arguments(output, "dask"))
        with start(*command, "--address", address, cwd=folder) as process:
            assert until(lambda: list(tmp_path.glob(".out.csv*")))
            for one in made:
                os.killpg(one.pid, signal.SIGKILL)
            said, _ = process.communicate(timeout=LONG)
    words = " ".join(said.decode().split())
    assert process.returncode == 2, words
    assert words.startswith("Error: Dask: a batch of rows.parquet could not be scored"), words
    assert "has the cluster ended" in words
    assert not list(tmp_path.glob("*out.csv*"))
