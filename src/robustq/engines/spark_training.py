"""Training on Spark: each partition counts, and what they count is added up."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from robustq.blocks import using_threads
from robustq.exceptions import RobustqError
from robustq.families.parted import fit_parts
from robustq.learning.partitions import Reader

from .clusters import explaining

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from robustq.learning.partitions import Work

__all__ = ["SparkFilePartitions", "SparkPartitions", "fit"]

T = TypeVar("T")
FAILED = "Spark: a part of the table could not be learned from"


@dataclass(frozen=True)
class SparkPartitions:
    """The partitions of a Spark frame."""

    frame: Any

    def run(self, work: Work[T], merge: Callable[[T, T], T]) -> T:
        """Do the work where the partitions are; what it gives is merged here."""
        with explaining(FAILED):
            done = self.frame.mapInArrow(partial(_do, work), "part int, found binary").collect()
        return _merge([(row["part"], bytes(row["found"])) for row in done], merge)

    def spread(self, work: Callable[[Any], T], items: Sequence[Any]) -> list[T]:
        """Do the work on the workers."""
        return _spread(self.frame.sparkSession, work, items)


@dataclass(frozen=True)
class SparkFilePartitions:
    """Files that Spark's workers read, a partition each.

    Attributes
    ----------
    session : SparkSession
    parts : sequence of callable
        Each yields tables, on the worker that calls it.
    """

    session: Any
    parts: Sequence[Callable[[], Iterable[pa.Table]]]

    def run(self, work: Work[T], merge: Callable[[T, T], T]) -> T:
        """Do the work on the workers; what it gives is merged here."""
        parts = list(enumerate(self.parts))
        rdd = self.session.sparkContext.parallelize(parts, len(parts))
        with explaining(FAILED):
            done = rdd.map(partial(_do_file, work)).collect()
        return _merge(done, merge)

    def spread(self, work: Callable[[Any], T], items: Sequence[Any]) -> list[T]:
        """Do the work on the workers."""
        return _spread(self.session, work, items)


def _spread(session: Any, work: Callable[[Any], T], items: Sequence[Any]) -> list[T]:
    with explaining(FAILED):
        done: list[T] = (
            session.sparkContext.parallelize(list(items), len(items))
            .map(partial(_apply, work))
            .collect()
        )
    return done


def _apply(work: Callable[[Any], T], item: Any) -> T:
    with using_threads(1):  # Spark runs a task on each core
        return work(item)


def _do(work: Work[Any], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext  # noqa: PLC0415 (an extra)

    context = TaskContext.get()
    index = 0 if context is None else context.partitionId()
    found = _guard(work, index, (pa.table(batch) for batch in batches))
    yield pa.RecordBatch.from_pydict(
        {"part": pa.array([index], pa.int32()), "found": pa.array([found], pa.binary())}
    )


def _do_file(work: Work[Any], part: tuple[int, Callable[[], Iterable[pa.Table]]]) -> Any:
    index, read = part
    return index, _guard(work, index, read())


def _guard(work: Work[Any], index: int, tables: Iterable[pa.Table]) -> bytes:
    """Return what the work gives, or what is wrong with the rows: Spark would bury it in Java."""
    try:
        with using_threads(1):
            return pickle.dumps(work(index, tables))
    except RobustqError as error:
        return pickle.dumps(error)


def _merge(done: list[tuple[int, bytes]], merge: Callable[[Any, Any], Any]) -> Any:
    # Made by our own workers, on this very cluster.
    found = [pickle.loads(content) for _, content in sorted(done)]  # noqa: S301
    for one in found:
        if isinstance(one, RobustqError):
            raise one
    return reduce(merge, found)


def fit(
    frame: Any,
    target: str,
    estimator: Any = None,
    *,
    sample_weight: str | None = None,
    drop: Iterable[str] = (),
) -> Any:
    """Fit an estimator on a Spark frame, where its partitions are.

    The model is the one that `estimator.fit` learns from all rows in one place, to the bit
    (weights being whole numbers), however the frame is partitioned. Rows stay where they are;
    counts travel.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Its partitions are read several times, and must have the same rows in the same order each
        time: cache it, or write it to files, if it comes from a shuffle.
    target : str
        The column to predict; rows without a label are left out.
    estimator : NaiveBayesClassifier, BayesianNetworkClassifier or GenerativeForestClassifier
        Naive Bayes by default. A forest needs `max_samples`.
    sample_weight : str, optional
        A column with the weights of the rows.
    drop : iterable of str
        Columns to leave out.

    Returns
    -------
    estimator
        Fitted.
    """
    reader = Reader.of(target, sample_weight, drop)
    return fit_parts(estimator, SparkPartitions(frame), reader).estimator
