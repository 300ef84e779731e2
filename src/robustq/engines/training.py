"""Workers for training, by the name of an engine and an address."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from robustq.exceptions import InputError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from robustq.learning.partitions import Partitions

__all__ = ["ENGINES", "open_workers"]

ENGINES = {"dask": "distributed", "spark": "pyspark"}


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
    if engine not in ENGINES:
        msg = f"--engine must be one of {', '.join(ENGINES)}, got {engine!r}"
        raise InputError(msg)
    if find_spec(ENGINES[engine]) is None:
        msg = f'{ENGINES[engine]} is not installed: pip install "robustq[{engine}]"'
        raise UnsupportedError(msg)
    with (_open_dask if engine == "dask" else _open_spark)(address) as workers:
        yield workers


@contextmanager
def _open_dask(address: str | None) -> Iterator[Callable[[Sequence[Any]], Partitions]]:
    import distributed  # noqa: PLC0415 (an extra)

    from robustq.blocks import count_cores  # noqa: PLC0415

    from .dask_training import DaskPartitions  # noqa: PLC0415

    try:
        if address is None:
            client = distributed.Client(
                n_workers=count_cores(), threads_per_worker=1, dashboard_address=None
            )
        else:
            client = distributed.Client(address, timeout="20s")
    except (OSError, TimeoutError, ValueError) as error:
        msg = f"--address {address}: no Dask scheduler answers there ({error})"
        raise InputError(msg) from error
    try:
        yield DaskPartitions
    finally:
        client.close()
        if address is None and client.cluster is not None:
            client.cluster.close()


@contextmanager
def _open_spark(address: str | None) -> Iterator[Callable[[Sequence[Any]], Partitions]]:
    from pyspark.errors import PySparkException  # noqa: PLC0415 (an extra)
    from pyspark.sql import SparkSession  # noqa: PLC0415

    from .spark_training import SparkFilePartitions  # noqa: PLC0415

    if address is None or address.startswith("local"):
        # Workers of this machine run what runs here.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("robustq fit").master(address or "local[*]")
    try:
        session = builder.config("spark.ui.enabled", "false").getOrCreate()
    except (PySparkException, RuntimeError, OSError) as error:
        where = "a Java runtime is needed" if address is None else f"no Spark at {address}"
        msg = f"Spark did not start: {where} ({error})"
        raise InputError(msg) from error
    try:
        yield lambda parts: SparkFilePartitions(session, parts)
    finally:
        session.stop()
