"""Batches scored by the workers of an engine, and given back in their order.

One machine reads the rows and writes the results; whole tables that should not pass through it are
for `robustq.engines.dask.score` and `robustq.engines.spark.score`.
"""

from __future__ import annotations

import warnings
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from robustq.exceptions import RobustqError
from robustq.scoring import Parcel, Tally, open_scorer

from .clusters import check_engine, explaining, open_dask, open_spark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

__all__ = ["Crew", "Order", "open_crew", "score_in_order"]

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
    with explaining(f"{crew.name}: a batch of {name} could not be scored, in several attempts"):
        answer: Answer = coming.result()
    if isinstance(answer, RobustqError):
        raise answer
    return _read(answer[0]), answer[1]


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
    check_engine(engine)
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
    with open_dask(address) as client:
        threads = sum(client.nthreads().values())
        sent = client.submit(bytes, content, key=f"robustq-model-{order.digest}")
        yield _DaskCrew(client, order, sent, max(1, threads))


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
    with open_spark(address, "robustq score") as session:
        context = session.sparkContext
        workers = max(1, context.defaultParallelism)
        pool = ThreadPoolExecutor(workers * AHEAD)
        try:
            yield _SparkCrew(context, order, context.broadcast(content), pool, workers)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
