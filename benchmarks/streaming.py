"""Scoring a file of any size, against the same work on rows in memory, and against reading it.

The environment variable ROBUSTQ_BENCH_ROWS tells how many rows, two million by default.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from robustq import NaiveBayesClassifier
from robustq.blocks import count_cores

from .naive_bayes import FEATURES, make_rows
from .races import Race, timed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robustq.arrays import Indices

    from .conditions import Conditions

__all__ = ["races"]

ROWS = int(os.environ.get("ROBUSTQ_BENCH_ROWS", "2000000"))
PART = 1_000_000
GIB = 1024**2  # in the kilobytes that the system counts

# In a small process of its own: a child counts the memory of who started it as its own.
LAUNCHER = """
import resource, subprocess, sys, time
command = [sys.executable, "-m", "robustq", "score", "model", sys.argv[1], "-o", "out.parquet"]
start = time.perf_counter()
subprocess.run(command, check=True, capture_output=True)
seconds = time.perf_counter() - start
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def races(conditions: Conditions) -> Iterator[Race]:
    """Time the command on a small file and on a large one, and watch its memory."""
    command = [sys.executable, "-m", "robustq", "--help"]
    helps = partial(subprocess.run, command, check=True, capture_output=True)
    yield Race("The command", "robustq --help", timed(helps, time.perf_counter), limit=0.5)

    rows = ROWS if ROWS < PART else conditions.pick(ROWS, quick=PART)
    table = f"robustq score of {rows:,} rows × {FEATURES} columns of Parquet, naive Bayes"
    X, y = make_rows(2, PART)
    frame = _as_table(X)
    model = NaiveBayesClassifier().fit(frame, y)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        model.save(place / "model")
        _write(place / "rows.parquet", X, rows)
        pq.write_table(frame.slice(0, 100), place / "small.parquet")
        starts = partial(_score, place, "small.parquet")
        yield Race("The command", "robustq score of 100 rows", lambda: starts().wall, limit=3.0)
        scores = partial(_score, place, "rows.parquet")
        yield Race(
            table,
            "from file to file, after the start / in memory",
            # What 100 rows take is the start: import, model, writing.
            lambda: scores().processor - starts().processor,
            timed(partial(model.assess, frame)),
            partial(model.assess, frame.slice(0, 100)),
            limit=1 / 0.9,
            scale=PART / rows,
        )
        memory = partial(Race, table, "largest resident memory", limit=1.0, unit="GiB", rounds=1)
        yield memory(lambda: scores().memory)
        yield _from_csv(place, X, y)


def _from_csv(place: Path, X: Indices, y: Indices) -> Race:
    """Return what compares scoring a file of texts with doing nothing but reading it."""
    words = pa.array([f"value {code}" for code in range(int(X.max()) + 1)])
    texts = pa.table(
        {f"f{index}": words.take(pa.array(column)) for index, column in enumerate(X.T)}
    )
    NaiveBayesClassifier().fit(texts, y).save(place / "model")
    pyarrow.csv.write_csv(texts, place / "rows.csv")
    pyarrow.csv.write_csv(texts.slice(0, 100), place / "small.csv")
    options = pyarrow.csv.ReadOptions(use_threads=count_cores() > 1)
    reads = partial(pyarrow.csv.read_csv, place / "rows.csv", read_options=options)
    return Race(
        f"robustq score of {len(X):,} rows × {FEATURES} texts of CSV, naive Bayes",
        "from file to file, after the start / pyarrow's reading alone",
        lambda: _score(place, "rows.csv").processor - _score(place, "small.csv").processor,
        timed(reads),
        # The first reading takes up to five times as long: the system clears the memory for it.
        reads,
        limit=2.0,
    )


def _as_table(X: Indices) -> pa.Table:
    return pa.table({f"f{index}": column for index, column in enumerate(X.T)})


def _write(path: Path, X: Indices, rows: int) -> None:
    frame = _as_table(X)
    with pq.ParquetWriter(path, frame.schema) as writer:
        for start in range(0, rows, PART):
            # Other rows each time: equal ones are computed once only.
            rng = np.random.default_rng(start)
            part = np.stack([rng.permutation(column) for column in X.T], axis=1)
            writer.write_table(_as_table(part[: min(PART, rows - start)]))


class Cost(NamedTuple):
    """What a command took: seconds of the wall and of the processor, and most memory, in GiB."""

    wall: float
    processor: float
    memory: float


def _score(place: Path, file: str) -> Cost:
    """Run the command."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", LAUNCHER, file],
        check=True,
        cwd=place,
        capture_output=True,
        text=True,
    )
    wall, processor, peak = map(float, done.stdout.split())
    return Cost(wall, processor, peak / GIB)
