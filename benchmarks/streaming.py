"""Scoring a file of any size, against the same work on rows in memory.

The environment variable ROBUSTQ_BENCH_ROWS tells how many rows, two million by default.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from robustq import NaiveBayesClassifier

from .clock import best_time
from .naive_bayes import FEATURES, make_rows
from .table import Limits

if TYPE_CHECKING:
    from robustq.arrays import Indices

__all__ = ["measure", "measure_start"]

ROWS = int(os.environ.get("ROBUSTQ_BENCH_ROWS", "2000000"))
PART = 1_000_000
GIB = 1024**2  # in the kilobytes that the system counts

# In a small process of its own: a child counts the memory of who started it as its own.
LAUNCHER = """
import resource, subprocess, sys, time
command = [sys.executable, "-m", "robustq", "score", "model", sys.argv[1], "-o", "out.parquet"]
start = time.perf_counter()
subprocess.run(command, check=True, capture_output=True)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(time.perf_counter() - start, peak)
"""


def measure() -> Limits:
    """Time `robustq score` on a Parquet file, and watch its memory."""
    table = Limits(
        f"robustq score of {ROWS:,} rows × {FEATURES} columns of Parquet, naive Bayes, three balls",
        ("what", "measured"),
    )
    X, y = make_rows(2)
    frame = _as_table(X)
    model = NaiveBayesClassifier().fit(frame, y)
    model.assess(frame.slice(0, 100))
    memory = PART / best_time(lambda: model.assess(frame))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        model.save(place / "model")
        _write(place / "rows.parquet", X)
        seconds, peak = _score(place, "rows.parquet")
        small = _score_small(place, frame)
    speed = ROWS / (seconds - small)
    ratio = memory / speed
    table.add(
        "rows per second in memory (assess)", f"{memory:,.0f}", measured=0, limit=float("inf")
    )
    table.add(
        "rows per second from file to file, after the start",
        f"{speed:,.0f}",
        measured=0,
        limit=float("inf"),
    )
    table.add("in memory / from file to file", f"{ratio:.2f}", measured=ratio, limit=2.0)
    table.add("largest resident memory, GiB", f"{peak:.2f}", measured=peak, limit=1.0)
    table.add("a small file, whole command, seconds", f"{small:.2f}", measured=small, limit=3.0)
    return table


def measure_start() -> Limits:
    """Time `robustq --help`."""
    table = Limits("The command", ("what", "seconds"))
    command = [sys.executable, "-m", "robustq", "--help"]
    seconds = best_time(lambda: subprocess.run(command, check=True, capture_output=True))  # noqa: S603
    table.add("robustq --help", f"{seconds:.2f}", measured=seconds, limit=0.5)
    return table


def _as_table(X: Indices) -> pa.Table:
    return pa.table({f"f{index}": column for index, column in enumerate(X.T)})


def _write(path: Path, X: Indices) -> None:
    frame = _as_table(X)
    with pq.ParquetWriter(path, frame.schema) as writer:
        for start in range(0, ROWS, PART):
            # Other rows each time: equal ones are computed once only.
            rng = np.random.default_rng(start)
            part = np.stack([rng.permutation(column) for column in X.T], axis=1)
            writer.write_table(_as_table(part[: min(PART, ROWS - start)]))


def _score(place: Path, file: str) -> tuple[float, float]:
    """Return the seconds of the whole command, and the most memory it held, in GiB."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", LAUNCHER, file],
        check=True,
        cwd=place,
        capture_output=True,
        text=True,
    )
    seconds, peak = map(float, done.stdout.split())
    return seconds, peak / GIB


def _score_small(place: Path, frame: pa.Table) -> float:
    pq.write_table(frame.slice(0, 100), place / "small.parquet")
    return min(_score(place, "small.parquet")[0] for _ in range(3))
