"""Workers for training, by the name of an engine and an address."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from .clusters import check_engine, open_dask, open_spark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from robustq.learning.partitions import Partitions

__all__ = ["open_workers"]


@contextmanager
def open_workers(
    engine: str, address: str | None
) -> Iterator[Callable[[Sequence[Any]], Partitions]]:
    """Yield what hands parts of a table to workers; those that were started here are stopped.

    Parameters
    ----------
    engine : {"dask", "spark"}
    address : str, optional
        Of a cluster; without one, workers are started on this machine.

    Raises
    ------
    InputError
        If the engine is none of these, or nobody answers.
    UnsupportedError
        If it is not installed.
    """
    check_engine(engine)
    if engine == "dask":
        with open_dask(address):
            from .dask_training import DaskPartitions  # noqa: PLC0415 (slow to import)

            yield DaskPartitions
        return
    with open_spark(address, "robustq fit") as session:
        from .spark_training import SparkFilePartitions  # noqa: PLC0415 (slow to import)

        yield partial(SparkFilePartitions, session)
