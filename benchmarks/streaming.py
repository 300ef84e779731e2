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
    from collections.abc import Callable, Iterator

    from robustq.arrays import Indices

    from .conditions import Conditions

__all__ = ["races"]

ROWS = int(os.environ.get("ROBUSTQ_BENCH_ROWS", "2000000"))
PART = 1_000_000
GIB = 1024**2  # in the kilobytes that the system counts

# In a small process of its own: a child counts the memory of who started it as its own.
LAUNCHER = """
import resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run([sys.executable, *sys.argv[1:]], check=True, capture_output=True)
seconds = time.perf_counter() - start
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss)
"""
READER = """
import sys
import pyarrow.csv
options = pyarrow.csv.ReadOptions(use_threads=sys.argv[2] != "1")
pyarrow.csv.read_csv(sys.argv[1], read_options=options)
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
        ours = partial(_measure, _score, place, "rows.parquet", "small.parquet")
        whole = pq.read_table(place / "rows.parquet")
        yield Race(
            *(table, "from file to file, after the start / the same rows in memory", ours),
            *(timed(partial(model.assess, whole)), partial(model.assess, whole)),
            limit=1 / 0.9,
        )
        del whole
        # The same million again and again: the system gave its memory long ago.
        yield Race(
            *(table, "from file to file, after the start / a million rows in memory, again", ours),
            *(timed(partial(model.assess, frame)), partial(model.assess, frame)),
            scale=PART / rows,
        )
        memory = partial(Race, table, "largest resident memory", limit=1.0, unit="GiB", rounds=1)
        yield memory(lambda: scores().memory)
        yield from _from_csv(place, X, y, rows)


def _from_csv(place: Path, X: Indices, y: Indices, rows: int) -> Iterator[Race]:
    """Compare scoring a file of texts with doing nothing but reading it.

    Where both sides are a process of their own, as the command is, the system clears the memory
    that they read into; who reads again in the same process has it already.
    """
    texts = _as_texts(X)
    NaiveBayesClassifier().fit(texts, y).save(place / "model")
    with pyarrow.csv.CSVWriter(place / "rows.csv", texts.schema) as writer:
        for part in _shuffle(X, rows):
            writer.write_table(_as_texts(part))
    pyarrow.csv.write_csv(texts.slice(0, 100), place / "small.csv")
    table = f"robustq score of {rows:,} rows × {FEATURES} texts of CSV, naive Bayes"
    ours = partial(_measure, _score, place, "rows.csv", "small.csv")
    theirs = partial(_measure, _read, place, "rows.csv", "small.csv")
    name = "from file to file, after the start / pyarrow's reading alone"
    yield Race(table, f"{name}, after its start", ours, theirs, limit=2.0)
    options = pyarrow.csv.ReadOptions(use_threads=count_cores() > 1)
    reads = partial(pyarrow.csv.read_csv, place / "rows.csv", read_options=options)
    yield Race(table, f"{name}, again", ours, timed(reads), reads)


def _as_table(X: Indices) -> pa.Table:
    return pa.table({f"f{index}": column for index, column in enumerate(X.T)})


def _as_texts(X: Indices) -> pa.Table:
    words = pa.array([f"value {code}" for code in range(10)])
    columns = {f"f{index}": words.take(pa.array(column)) for index, column in enumerate(X.T)}
    return pa.table(columns)


def _write(path: Path, X: Indices, rows: int) -> None:
    with pq.ParquetWriter(path, _as_table(X).schema) as writer:
        for part in _shuffle(X, rows):
            writer.write_table(_as_table(part))


def _shuffle(X: Indices, rows: int) -> Iterator[Indices]:
    """Yield so many rows, some at a time, others each time: equal ones are computed once only."""
    for start in range(0, rows, PART):
        rng = np.random.default_rng(start)
        part = np.stack([rng.permutation(column) for column in X.T], axis=1)
        yield part[: min(PART, rows - start)]


class Cost(NamedTuple):
    """What a command took: seconds of the wall and of the processor, and most memory, in GiB."""

    wall: float
    processor: float
    memory: float


def _measure(run: Callable[[Path, str], Cost], place: Path, file: str, small: str) -> float:
    """Return what a file takes after the start, which is what 100 rows take: imports, the model."""
    return run(place, file).processor - run(place, small).processor


def _score(place: Path, file: str) -> Cost:
    """Run the command."""
    return _run(place, "-m", "robustq", "score", "model", file, "-o", "out.parquet")


def _read(place: Path, file: str) -> Cost:
    """Do nothing but read a file."""
    return _run(place, "-c", READER, file, str(count_cores()))


def _run(place: Path, *arguments: str) -> Cost:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", LAUNCHER, *arguments],
        check=True,
        cwd=place,
        capture_output=True,
        text=True,
    )
    wall, processor, peak = map(float, done.stdout.split())
    return Cost(wall, processor, peak / GIB)
