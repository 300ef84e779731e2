"""Clusters of one's own behind `--address`, and Ctrl-C: what the command does about them."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.engines.tables import make_table, save_model

pytestmark = [
    pytest.mark.workers,
    pytest.mark.skipif(sys.platform == "win32", reason="signals are others there"),
]
LONG = 120
CALM = 20  # a second or two, where nobody else computes
COPIES = 200


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("clusters")
    save_model(made)
    pq.write_table(pa.concat_tables([make_table()] * COPIES), made / "rows.parquet")
    return made


def need(engine):
    pytest.importorskip({"dask": "distributed", "spark": "pyspark"}[engine])
    if engine == "spark" and shutil.which("java") is None:
        pytest.skip("Spark runs on Java")


def list_arguments(output, engine):
    # Small batches: whoever scores them is busy for minutes.
    rows = ("score", "nbc.robustq", "rows.parquet", "-o", output, "--batch-rows", "100")
    return (*rows, "--engine", engine)


@contextmanager
def start(*command, cwd):
    """Run a command as the leader of a group of processes, as a terminal does."""
    process = subprocess.Popen(  # noqa: S603
        list(map(str, command)),
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        # Whoever runs the tests in the background ignores Ctrl-C, and its children would too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    try:
        yield process
    finally:
        for pid in [process.pid, *list_session(process.pid)]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.communicate()


def list_session(leader):
    found = []
    for pid in psutil.pids():
        try:
            if pid != leader and os.getsid(pid) == leader:
                found.append(pid)
        except (ProcessLookupError, PermissionError):
            continue
    return found


def until(true, seconds=LONG):
    """Wait until something is true; tell whether it became so."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("moment", ["starting", "writing"])
@pytest.mark.parametrize("engine", ["dask", "spark"])
def test_ctrl_c_leaves_nobody_and_nothing(folder, tmp_path, engine, moment):
    need(engine)
    output = tmp_path / "out.csv"
    command = (sys.executable, "-m", "robustq", *list_arguments(output, engine))
    with start(*command, cwd=folder) as process:
        if moment == "starting":
            assert until(lambda: list_session(process.pid))  # the first process of the engine
        else:
            assert until(lambda: list(tmp_path.glob(".*.part")))
        begun = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        said, _ = process.communicate(timeout=LONG)
        assert process.returncode == 130, said
        assert time.monotonic() - begun < CALM
        assert said.decode().strip() == "Interrupted."
        assert until(lambda: not list_session(process.pid), CALM)
    assert list(tmp_path.iterdir()) == []


@contextmanager
def dask_cluster(folder):
    python = (sys.executable, "-m", "dask")
    with ExitStack() as stack:
        found = folder / "scheduler.json"
        where = ("--scheduler-file", found, "--no-dashboard")
        host = ("--host", "127.0.0.1")
        made = [
            stack.enter_context(
                start(*python, "scheduler", *where, "--port", "0", *host, cwd=folder)
            )
        ]
        assert until(found.exists)
        worker = (*python, "worker", *where, "--nthreads", "1", *host)
        made += [stack.enter_context(start(*worker, cwd=folder)) for _ in range(2)]
        yield f"tcp://{find_address(found)}", made


def find_address(path):
    return json.loads(path.read_text())["address"].removeprefix("tcp://")


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
