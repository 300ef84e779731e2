"""Clusters to work on: one at an address, or workers on this machine for the time."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import socket
import sys
import threading
import warnings
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

from robustq.blocks import count_cores
from robustq.exceptions import InputError, RobustqError, UnsupportedError
from robustq.texts import shorten

from .extras import require_extra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["ENGINES", "check_engine", "explaining", "open_dask", "open_spark"]

ENGINES = ("dask", "spark")
PATIENCE = "20s"  # for a scheduler to answer
CALM = 15.0  # seconds without a worker before somebody is told
ATTEMPTS = 4  # that Spark makes at a task, on one machine as on a cluster
# Free memory that a worker keeps, and the smallest piece that it asks the system for alone: 64 and
# 128 KiB by default in Dask, and then every block asks for its memory anew, which takes a fifth of
# the time of naive Bayes. (The one set, the other no longer adapts.) In Spark it matters less.
MEMORY = {"MALLOC_TRIM_THRESHOLD_": 1 << 28, "MALLOC_MMAP_THRESHOLD_": 1 << 25}
# Java checks every access to Arrow's memory unless told otherwise: a fifth of its time.
UNCHECKED = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
SPARK_SETTINGS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.defaultJavaOptions": UNCHECKED,
    "spark.executor.defaultJavaOptions": UNCHECKED,
    **{f"spark.executorEnv.{name}": str(size) for name, size in MEMORY.items()},
    "spark.sql.execution.arrow.maxRecordsPerBatch": "131072",
    # Through TCP, a long run can come to a halt for ever: with both ends full, a kernel may drop
    # the very packets that say there is room again.
    "spark.python.unix.domain.socket.enabled": str(hasattr(socket, "AF_UNIX")).lower(),
}
ERROR = re.compile(r"\s*(?!org\.|java\.)[\w.]*(Error|Exception|Exit|Interrupt)\b: .*")


def check_engine(engine: str) -> None:
    """Raise InputError if there is no such engine."""
    if engine not in ENGINES:
        msg = f"--engine must be {' or '.join(ENGINES)}, got {engine!r}"
        raise InputError(msg)


@contextmanager
def open_dask(address: str | None) -> Iterator[Any]:
    """Give a client of Dask, which everything within computes by.

    Parameters
    ----------
    address : str, optional
        Of a scheduler; without it there are workers on this machine, one for each core.

    Raises
    ------
    UnsupportedError
        If Dask is not installed.
    InputError
        If nobody answers at the address.
    """
    distributed = require_extra("distributed", "dask")
    with ExitStack() as stack:
        stack.enter_context(_not_logging())
        place: Any = address
        if address is None:
            place = stack.enter_context(_starting_dask(distributed))
        try:
            client = _connect(distributed, place)
        except (OSError, ValueError) as error:
            msg = (
                f"--address {address}: no Dask scheduler answers there ({_say(error)}): start "
                "one (dask scheduler), or leave --address out for workers on this machine"
            )
            raise InputError(msg) from error
        stack.callback(_close, client)
        if address is not None:
            stack.enter_context(_telling_of_nobody(address, lambda: len(client.nthreads())))
        stack.enter_context(client.as_current())
        yield client


def _connect(distributed: Any, place: Any) -> Any:
    class Client(distributed.Client):
        def start(self, **options: Any) -> None:
            try:
                super().start(**options)
            except BaseException:
                # Left to whoever collects it, who may be the thread that the next client waits for.
                _close(self)
                raise

    return Client(place, timeout=PATIENCE, set_as_default=False)


@contextmanager
def _telling_of_nobody(address: str, count: Callable[[], int]) -> Iterator[None]:
    """Warn once if no worker has come after a while; some clusters start them for the work."""
    ended = threading.Event()

    def look() -> None:
        if ended.wait(CALM):
            return
        with suppress(Exception):  # that a cluster has ended is said elsewhere
            if not count():
                msg = f"{address} has no workers yet: what is asked of them waits (Ctrl-C ends it)"
                warnings.warn(msg, stacklevel=1)

    threading.Thread(target=look, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _close(opened: Any) -> None:
    with suppress(Exception):  # whatever is wrong was said
        opened.close()


@contextmanager
def _starting_dask(distributed: Any) -> Iterator[Any]:
    import dask  # noqa: PLC0415 (not always installed)

    spawned = "distributed.nanny.pre-spawn-environ"
    with dask.config.set({f"{spawned}.{name}": size for name, size in MEMORY.items()}):
        place = distributed.LocalCluster(
            n_workers=0,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        )
        try:
            # What they say when we are interrupted is for nobody: of semaphores, or, if we end
            # before a worker has read what it is to do, of input that ran out.
            with _hushing():
                resource_tracker.ensure_running()  # else this opens the ears of who starts it
                place.sync(_ignore_interrupts)
                place.scale(count_cores())
                place.wait_for_workers(count_cores())
            yield place
        finally:
            _close(place)


async def _ignore_interrupts() -> None:
    """Let processes that this thread starts from now on leave Ctrl-C to us, who end them."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


@contextmanager
def open_spark(address: str | None, name: str) -> Iterator[Any]:
    """Give a session of Spark.

    Parameters
    ----------
    address : str, optional
        Of a master; without it there are workers on this machine, one for each core.
    name : str
        Of the application, as Spark shows it.

    Raises
    ------
    UnsupportedError
        If Spark or Java is not installed.
    InputError
        If Spark does not start there.
    """
    sql = require_extra("pyspark.sql", "spark")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        msg = "Spark runs on Java, which is not here: install it, as in apt install default-jre"
        raise UnsupportedError(msg)
    master = address or f"local[{count_cores()},{ATTEMPTS}]"
    building = sql.SparkSession.builder.master(master).appName(name).config(map=SPARK_SETTINGS)
    if master.startswith("local"):
        building = building.config("spark.ui.enabled", "false")
        # Else Spark takes whatever Python the path finds, which may lack robustq.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with _not_logging(), _starting_spark(building, master) as session:
        yield session


@contextmanager
def _starting_spark(building: Any, master: str) -> Iterator[Any]:
    with _hushing(), _ending_java():
        try:
            session = building.getOrCreate()
        except Exception as error:
            msg = (
                f"--address {master}: Spark does not start there ({_say(error)}): name a "
                "master, as in spark://host:7077 or local[2]"
            )
            raise InputError(msg) from error
    try:
        with _telling_of_nobody(master, lambda: _count_executors(session)):
            yield session
    finally:
        with suppress(Exception):
            session.sparkContext.cancelAllJobs()
            session.stop()


def _count_executors(session: Any) -> int:
    java = session.sparkContext._jsc.sc()  # noqa: SLF001 (Python is not told)
    driver = 0 if java.isLocal() else 1
    return int(java.getExecutorMemoryStatus().size()) - driver


@contextmanager
def _ending_java() -> Iterator[None]:
    """End the Java that is started within, if we are interrupted: pyspark would forget it."""
    from pyspark import java_gateway  # noqa: PLC0415 (not always installed)

    start, started = java_gateway.Popen, []

    def note(*given: Any, **named: Any) -> Any:
        with _deferring():
            started.append(start(*given, **named))
        return started[-1]

    java_gateway.Popen = note
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        for process in started:
            process.kill()
        raise
    finally:
        java_gateway.Popen = start


@contextmanager
def _deferring() -> Iterator[None]:
    """Let Ctrl-C wait until what is begun within is known, and can be ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if heard:
        raise KeyboardInterrupt


@contextmanager
def _not_logging() -> Iterator[None]:
    """Let nothing within write to Python's logs: errors reach us as such.

    Who is interrupted ends, and would still be told by all that is being torn down.
    """
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException:
        logging.disable(before)
        raise
    logging.disable(before)


@contextmanager
def _hushing() -> Iterator[None]:
    """Let what is started within say nothing on standard error: Java logs there for ever."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
    kept, silence = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(silence, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(silence)


@contextmanager
def explaining(work: str) -> Iterator[None]:
    """Say what happened on a worker, without the traces of the machinery around it.

    Parameters
    ----------
    work : str
        What could not be done, as in "Dask: a batch of rows.csv could not be scored".

    Raises
    ------
    RobustqError
        As it is, if a worker raised one; `UnsupportedError` for everything else.
    """
    try:
        yield
    except RobustqError:
        raise
    except Exception as error:
        msg = (
            f"{work} ({_say(error)}): has the cluster ended, or are its workers short of "
            "memory, or without robustq?"
        )
        raise UnsupportedError(msg) from error


def _say(error: Exception) -> str:
    """Return one line of an error: of Python's in it the last, which the others lead to."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    found = [line for line in lines if ERROR.fullmatch(line)] or lines[:1]
    return shorten(found[-1]) if found else type(error).__name__
