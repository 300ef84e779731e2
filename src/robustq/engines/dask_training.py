"""Training on Dask: each partition counts, and what they count is added up."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from robustq.blocks import using_threads
from robustq.families.parted import fit_parts
from robustq.learning.partitions import Reader

from .clusters import explaining

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from robustq.learning.partitions import Work

__all__ = ["DaskPartitions", "fit"]

T = TypeVar("T")
BATCH_ROWS = 1 << 17
FAILED = "Dask: a part of the table could not be learned from"


@dataclass(frozen=True)
class DaskPartitions:
    """Parts that Dask's workers read.

    Attributes
    ----------
    parts : sequence
        Delayed pandas frames, or callables that yield tables on the worker that calls them.
    """

    parts: Sequence[Any]

    def run(self, work: Work[T], merge: Callable[[T, T], T]) -> T:
        """Do the work on the workers; neighbours are merged there, two by two."""
        import dask  # noqa: PLC0415 (an extra)

        shipped = _ship(work)
        do, join = dask.delayed(_do, pure=False), dask.delayed(merge, pure=False)
        found = [do(shipped, index, part) for index, part in enumerate(self.parts)]
        while len(found) > 1:
            pairs = [found[start : start + 2] for start in range(0, len(found), 2)]
            found = [join(*pair) if len(pair) > 1 else pair[0] for pair in pairs]
        whole: T = _compute(found)[0]
        return whole

    def spread(self, work: Callable[[Any], T], items: Sequence[Any]) -> list[T]:
        """Do the work on the workers."""
        import dask  # noqa: PLC0415 (an extra)

        shipped = _ship(work)
        do = dask.delayed(_apply, pure=False)
        return _compute([do(shipped, _ship(item)) for item in items])


def _compute(wanted: list[Any]) -> list[Any]:
    import dask  # noqa: PLC0415 (an extra)

    with explaining(FAILED), warnings.catch_warnings():
        # What workers need travels with their tasks: so it is not lost with a worker.
        warnings.filterwarnings("ignore", "Sending large graph")
        return list(dask.compute(*wanted))


def _ship(thing: Any) -> Any:
    """Return something as a task of its own: it goes once to each worker that needs it."""
    import dask  # noqa: PLC0415 (an extra)

    return dask.delayed(thing, pure=False, traverse=False)


def _apply(work: Callable[[Any], T], item: Any) -> T:
    with using_threads(1):  # Dask runs as many tasks as its workers have threads
        return work(item)


def _do(work: Work[T], index: int, part: Any) -> T:
    with using_threads(1):
        return work(index, part() if callable(part) else _cut(part))


def _cut(frame: Any) -> Iterator[pa.Table]:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return (pa.table(batch) for batch in table.to_batches(BATCH_ROWS))


def fit(
    frame: Any,
    target: str,
    estimator: Any = None,
    *,
    sample_weight: str | None = None,
    drop: Iterable[str] = (),
) -> Any:
    """Fit an estimator on a Dask frame, where its partitions are.

    The model is the one that `estimator.fit` learns from all rows in one place, to the bit
    (weights being whole numbers), however the frame is partitioned. Rows stay where they are;
    counts travel.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
        Its partitions are read several times: persist it if they are costly to make.
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
    parts = DaskPartitions(frame.to_delayed())
    return fit_parts(estimator, parts, Reader.of(target, sample_weight, drop)).estimator
