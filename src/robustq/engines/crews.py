"""Batches scored by the workers of an engine, and given back in their order.

One machine reads the rows and writes the results; whole tables that should not pass through it are
for `robustq.engines.dask.score` and `robustq.engines.spark.score`.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import warnings
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from robustq.blocks import count_cores
from robustq.exceptions import InputError, RobustqError, UnsupportedError
from robustq.scoring import Parcel, Tally, open_scorer
from robustq.texts import shorten

from .extras import require_extra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

__all__ = ["ENGINES", "Crew", "Order", "open_crew", "score_in_order"]

ENGINES = ("dask", "spark")
PATIENCE = "20s"  # for a scheduler to answer
ATTEMPTS = 4  # that Spark makes at a task, on one machine as on a cluster
AHEAD = 2  # batches on their way, for each worker

Answer = tuple[bytes, Tally] | RobustqError


@dataclass(frozen=True)
class Order:
    """What workers are asked to do with each batch.

    Attributes
    ----------
    path, digest : str
        Of the model, as `robustq.scoring.pack` tells.
    settings : dict
        As in `robustq.scoring.open_scorer`.
    """

    path: str
    digest: str
    settings: dict[str, Any]

    def carry_out(self, fetch: Callable[[], bytes], rows: bytes) -> Answer:
        """Return the results of a batch; an error is an answer too, whatever engine carries it."""
        try:
            scorer = open_scorer(Parcel(self.path, self.digest, fetch), **self.settings)
            scored, tally = scorer.score_and_count(_read(rows))
        except RobustqError as error:
            return error
        return _write(scored), tally


def _write(table: pa.Table) -> bytes:
    """Return a table as bytes: of a slice no more than its rows, unlike a pickle of it."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def _read(content: bytes) -> pa.Table:
    return pa.ipc.open_stream(content).read_all()


class Crew(Protocol):
    """Workers who take batches."""

    @property
    def name(self) -> str:
        """The engine's."""

    @property
    def workers(self) -> int:
        """How many tasks are done at a time."""

    def submit(self, rows: bytes) -> Any:
        """Return what will have the answer as its `result()`."""


def score_in_order(
    crew: Crew,
    batches: Iterable[tuple[str, pa.Table]],
    naming: Callable[[str], AbstractContextManager[None]],
) -> Iterator[tuple[pa.Table, Tally]]:
    """Yield what becomes of batches, in their order; a few of them are on their way at a time.

    Parameters
    ----------
    crew : Crew
    batches : iterable of (str, pyarrow.Table)
        With the name of the file that each comes from.
    naming : callable
        Takes that name; errors within name it.
    """
    for name, coming in _submit_ahead(crew, batches):
        with naming(name):
            yield _await(crew, name, coming)


def _submit_ahead(crew: Crew, batches: Iterable[tuple[str, pa.Table]]) -> Iterator[tuple[str, Any]]:
    waiting: deque[tuple[str, Any]] = deque()
    for name, table in batches:
        waiting.append((name, crew.submit(_write(table))))
        if len(waiting) > AHEAD * crew.workers:
            yield waiting.popleft()
    yield from waiting


def _await(crew: Crew, name: str, coming: Any) -> tuple[pa.Table, Tally]:
    try:
        answer: Answer = coming.result()
    except Exception as error:
        msg = (
            f"{crew.name}: a batch of {name} could not be scored, in several attempts "
            f"({_say(error)}): are workers short of memory (--batch-rows), or without robustq?"
        )
        raise UnsupportedError(msg) from error
    if isinstance(answer, RobustqError):
        raise answer
    return _read(answer[0]), answer[1]


def _say(error: Exception) -> str:
    """Return the last line of an error: of another process, the others are its traceback."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return shorten(lines[-1]) if lines else type(error).__name__


@contextmanager
def open_crew(engine: str, address: str | None, order: Order, content: bytes) -> Iterator[Crew]:
    """Give the workers of an engine, to whom the model has been sent.

    Parameters
    ----------
    engine : {"dask", "spark"}
    address : str, optional
        Of a cluster that is there; without it, there are workers on this machine for the time.
    order : Order
    content : bytes
        The model file.

    Raises
    ------
    UnsupportedError
        If the engine is not installed.
    InputError
        If there is no such engine, or nobody answers at the address.
    """
    if engine not in ENGINES:
        msg = f"--engine must be {' or '.join(ENGINES)}, got {engine!r}"
        raise InputError(msg)
    opened = _open_dask if engine == "dask" else _open_spark
    with opened(address, order, content) as crew:
        yield crew


# Dask


@dataclass(frozen=True)
class _DaskCrew:
    client: Any
    order: Order
    content: Any
    workers: int
    name: str = "Dask"

    def submit(self, rows: bytes) -> Any:
        with warnings.catch_warnings():
            # Batches travel with their tasks: so they are not lost with a worker.
            warnings.filterwarnings("ignore", "Sending large graph")
            return self.client.submit(_carry_out, self.order, self.content, rows, pure=False)


def _carry_out(order: Order, content: bytes, rows: bytes) -> Answer:
    return order.carry_out(lambda: content, rows)


@contextmanager
def _open_dask(address: str | None, order: Order, content: bytes) -> Iterator[Crew]:
    distributed = require_extra("distributed", "dask")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # errors reach us as such
    if address is None:
        place = distributed.LocalCluster(
            n_workers=count_cores(),
            threads_per_worker=1,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        )
    else:
        place = address
    try:
        client = distributed.Client(place, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        msg = (
            f"--address {address}: no Dask scheduler answers there ({_say(error)}): start "
            "one (dask scheduler), or leave --address out for workers on this machine"
        )
        raise InputError(msg) from error
    try:
        threads = sum(client.nthreads().values())
        sent = client.submit(bytes, content, key=f"robustq-model-{order.digest}")
        yield _DaskCrew(client, order, sent, max(1, threads))
    finally:
        with suppress(Exception):  # whatever is wrong was said
            client.close()
            if address is None:
                place.close()


# Spark


@dataclass(frozen=True)
class _SparkCrew:
    context: Any
    order: Order
    content: Any
    pool: ThreadPoolExecutor
    workers: int
    name: str = "Spark"

    def submit(self, rows: bytes) -> Future[Answer]:
        return self.pool.submit(self._run, rows)

    def _run(self, rows: bytes) -> Answer:
        task = _SparkTask(self.order, self.content)
        return self.context.parallelize([rows], 1).map(task).collect()[0]


@dataclass(frozen=True)
class _SparkTask:
    order: Order
    content: Any

    def __call__(self, rows: bytes) -> Answer:
        return self.order.carry_out(lambda: self.content.value, rows)


@contextmanager
def _open_spark(address: str | None, order: Order, content: bytes) -> Iterator[Crew]:
    sql = require_extra("pyspark.sql", "spark")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        msg = "Spark runs on Java, which is not here: install it, as in apt install default-jre"
        raise UnsupportedError(msg)
    master = address or f"local[{count_cores()},{ATTEMPTS}]"
    building = sql.SparkSession.builder.master(master).appName("robustq score")
    building = building.config("spark.ui.showConsoleProgress", "false")
    if master.startswith("local"):
        building = building.config("spark.ui.enabled", "false")
        # Else Spark takes whatever Python the path finds, which may lack robustq.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with _hushing():
        try:
            session = building.getOrCreate()
            context = session.sparkContext
            sent, workers = context.broadcast(content), context.defaultParallelism
        except Exception as error:
            msg = (
                f"--address {master}: Spark does not start there ({_say(error)}): name a "
                "master, as in spark://host:7077 or local[2]"
            )
            raise InputError(msg) from error
    pool = ThreadPoolExecutor(max(1, workers) * AHEAD)
    try:
        yield _SparkCrew(context, order, sent, pool, max(1, workers))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        with suppress(Exception):
            context.cancelAllJobs()
            session.stop()


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
