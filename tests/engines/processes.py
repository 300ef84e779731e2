"""Commands and clusters as processes of their own, of which nobody stays behind."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

LONG = 120
ROOT = Path(__file__).parents[2]


def need(engine):
    """Skip a test where an engine is not installed."""
    pytest.importorskip({"dask": "distributed", "spark": "pyspark"}[engine])
    if engine == "spark" and shutil.which("java") is None:
        pytest.skip("Spark runs on Java")


@contextmanager
def start(*command, cwd, log=subprocess.PIPE):
    """Run a command as the leader of a group of processes, as a terminal does.

    What it says goes where it is asked for, or to a log: nobody reads a pipe of what runs on.
    """
    process = subprocess.Popen(  # noqa: S603
        list(map(str, command)),
        cwd=cwd,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": _list_paths(), "PYSPARK_PYTHON": sys.executable},
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


def _list_paths():
    """Return where workers find functions of tests, which are sent by their names."""
    return os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))


def list_session(leader):
    """Return the processes that one has started."""
    found = []
    for pid in psutil.pids():
        try:
            if pid != leader and os.getsid(pid) == leader:
                found.append(pid)
        except (ProcessLookupError, PermissionError):
            continue
    return found


def until(true, seconds=LONG, pause=0.05):
    """Wait until something is true; tell whether it became so."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(pause)
    return False


@contextmanager
def dask_cluster(folder):
    """Give the address of a scheduler with two workers, and their processes."""
    python = (sys.executable, "-m", "dask")
    with ExitStack() as stack:
        found = folder / "scheduler.json"
        where = ("--scheduler-file", found, "--host", "127.0.0.1")
        # Any port, for its pages too: others may run beside us.
        ports = ("--port", 0, "--dashboard-address", "127.0.0.1:0")
        made = [_start_logged(stack, folder, "scheduler", *python, "scheduler", *where, *ports)]
        workers = ("--no-dashboard", "--nworkers", 2, "--nthreads", 1)
        made.append(_start_logged(stack, folder, "workers", *python, "worker", *where, *workers))
        assert until(found.exists), read_logs(folder)
        yield json.loads(found.read_text())["address"], made


@contextmanager
def spark_cluster(folder):
    """Give the address of a master with a worker, and their processes."""
    import pyspark  # noqa: PLC0415 (not always installed)

    deploy = "org.apache.spark.deploy"
    spark = Path(pyspark.__file__).parent / "bin" / "spark-class"
    where = ("--host", "127.0.0.1", "--port", 0, "--webui-port", 0)
    with ExitStack() as stack:
        made = [_start_logged(stack, folder, "master", spark, f"{deploy}.master.Master", *where)]
        said = folder / "master.log"
        assert until(lambda: find_master(said)), read_logs(folder)
        worker = (spark, f"{deploy}.worker.Worker", *where, "--cores", 1, "--memory", "1g")
        made.append(_start_logged(stack, folder, "worker", *worker, find_master(said)))
        yield find_master(said), made


def find_master(log):
    """Return the address that a master of Spark tells; None as long as it does not."""
    found = re.search(r"Starting Spark master at (spark://\S+)", log.read_text())
    return found and found[1]


def _start_logged(stack, folder, name, *command):
    log = stack.enter_context((folder / f"{name}.log").open("w"))
    return stack.enter_context(start(*command, cwd=folder, log=log))


def read_logs(folder):
    """Return what all processes of a cluster have said."""
    return "\n".join(path.read_text() for path in sorted(folder.glob("*.log")))
