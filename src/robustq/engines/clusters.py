"""Clusters to work on: one at an address, or workers on this machine for the time."""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from robustq.blocks import count_cores
from robustq.exceptions import InputError, RobustqError, UnsupportedError
from robustq.texts import shorten

from .extras import require_extra

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ENGINES", "check_engine", "explaining", "open_dask", "open_spark"]

ENGINES = ("dask", "spark")
PATIENCE = "20s"  # for a scheduler to answer
ATTEMPTS = 4  # that Spark makes at a task, on one machine as on a cluster
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
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # errors reach us as such
    place = _start_dask(distributed) if address is None else None
    try:
        client = distributed.Client(place or address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        msg = (
            f"--address {address}: no Dask scheduler answers there ({_say(error)}): start "
            "one (dask scheduler), or leave --address out for workers on this machine"
        )
        raise InputError(msg) from error
    try:
        with client.as_current():
            yield client
    finally:
        with suppress(Exception):  # whatever is wrong was said
            client.close()
            if place is not None:
                place.close()


def _start_dask(distributed: Any) -> Any:
    return distributed.LocalCluster(
        n_workers=count_cores(),
        threads_per_worker=1,
        dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    )


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
    building = sql.SparkSession.builder.master(master).appName(name)
    building = building.config("spark.ui.showConsoleProgress", "false")
    if master.startswith("local"):
        building = building.config("spark.ui.enabled", "false")
        # Else Spark takes whatever Python the path finds, which may lack robustq.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with _hushing():
        try:
            session = building.getOrCreate()
        except Exception as error:
            msg = (
                f"--address {master}: Spark does not start there ({_say(error)}): name a "
                "master, as in spark://host:7077 or local[2]"
            )
            raise InputError(msg) from error
    try:
        yield session
    finally:
        with suppress(Exception):
            session.sparkContext.cancelAllJobs()
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
        msg = f"{work} ({_say(error)}): are workers short of memory, or without robustq?"
        raise UnsupportedError(msg) from error


def _say(error: Exception) -> str:
    """Return one line of an error: of Python's in it the last, which the others lead to."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    found = [line for line in lines if ERROR.fullmatch(line)] or lines[:1]
    return shorten(found[-1]) if found else type(error).__name__
