"""Rows per second of the plain scorer, of Dask and of Spark, on the same files.

`python -m benchmarks.engines 1000000 10000000` measures at these numbers of rows. Two processes
each read Parquet files by the engine's own reader, score with one thread and drop the results.
Starting processes and opening models are measured apart. Each figure is printed when it is there,
so a long run can be interrupted; `--minutes 30` leaves out what would take longer. On a machine
that does other things too, look at the seconds of processor time, of all processes together, and
not at those of the clock.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import threading
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from robustq import GenerativeForestClassifier, NaiveBayesClassifier
from robustq.engines.clusters import open_dask, open_spark
from robustq.scoring import open_scorer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COLUMNS, VALUES, TRAINING = 13, 6, 20_000
PART, FILES = 250_000, 8
WORKERS = 2
NAMES = [f"f{i}" for i in range(COLUMNS)]


def make_rows(seed: int, rows: int) -> pa.Table:
    """Return rows: nine columns of categories, four of numbers."""
    rng = np.random.default_rng(seed)
    columns: list[Any] = [rng.integers(0, VALUES, rows) for _ in NAMES[:9]]
    columns += [rng.normal(size=rows) for _ in NAMES[9:]]
    return pa.table(columns, names=NAMES)


def write_files(folder: Path, rows: int) -> list[str]:
    """Return the paths of files with so many rows; beyond the first few, links to those."""
    known = sorted(folder.glob("made-*.parquet"))
    for seed in range(len(known), FILES):
        pq.write_table(make_rows(seed, PART), folder / f"made-{seed}.parquet")
    chosen = folder / str(rows)
    chosen.mkdir()
    paths = [chosen / f"{index:05}.parquet" for index in range(math.ceil(rows / PART))]
    for index, path in enumerate(paths):
        os.link(folder / f"made-{index % FILES}.parquet", path)
    return [str(path) for path in paths]


def score_file(scoring: str, path: str) -> int:
    """Return how many rows of a file were scored, by a model that this process opens once."""
    return open_scorer(scoring, threads=1).score(pq.read_table(path, use_threads=False)).num_rows


@contextmanager
def plainly(path: str) -> Iterator[Any]:
    """Give the plain scorer, in processes of its own."""
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        yield lambda files: sum(pool.map(partial(score_file, path), files))


@contextmanager
def by_dask(path: str) -> Iterator[Any]:
    """Give Dask's worker processes."""
    import dask.dataframe as dd  # noqa: PLC0415 (not always installed)

    from robustq.engines import dask as engine  # noqa: PLC0415

    def run(files: list[str]) -> int:
        scored = engine.score(dd.read_parquet(files), path)
        return int(scored.map_partitions(len, meta=("rows", int)).compute().sum())

    with open_dask(None):
        yield run


@contextmanager
def by_spark(path: str) -> Iterator[Any]:
    """Give Spark's Python workers."""
    from robustq.engines import spark as engine  # noqa: PLC0415 (not always installed)

    with open_spark(f"local[{WORKERS}]", "benchmark") as session:

        def run(files: list[str]) -> int:
            frame = session.read.parquet(*files)
            engine.score(frame, path).write.format("noop").mode("overwrite").save()
            return len(files) * PART

        yield run


ENGINES: dict[str, Callable[[str], Any]] = {"plain": plainly, "dask": by_dask, "spark": by_spark}


class Watch:
    """The largest resident memory of processes below this one, in MiB: Python's and Java's."""

    def __init__(self) -> None:
        self.largest, self._stopped = {"python": 0.0, "java": 0.0}, threading.Event()
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        me = psutil.Process()
        while not self._stopped.wait(0.5):
            for child in me.children(recursive=True):
                with suppress(psutil.Error):
                    name, size = child.name(), child.memory_info().rss / 2**20
                    for kind in (kind for kind in self.largest if kind in name):
                        self.largest[kind] = max(self.largest[kind], size)

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()

    def __str__(self) -> str:
        """Return what was seen."""
        java = f" ({self.largest['java']:,.0f} of Java)" if self.largest["java"] else ""
        return f"{self.largest['python']:,.0f} MiB in the largest worker{java}"


def save_models(folder: Path) -> dict[str, str]:
    """Return the paths of both models."""
    table = make_rows(-1 % 2**32, TRAINING)
    total = sum(table[name].to_numpy() for name in NAMES[7:])
    labels = np.where(total > np.median(total), "high", "low")
    models = {"nbc": NaiveBayesClassifier(), "forest": GenerativeForestClassifier(random_state=0)}
    paths = {}
    for name, model in models.items():
        paths[name] = str(folder / f"{name}.robustq")
        model.fit(table, labels).save(paths[name])
    return paths


def spend(kind: str = "") -> float:
    """Return the seconds of processor time of this process and all below it, of one kind or all."""
    total = 0.0
    me = psutil.Process()
    for process in [me, *me.children(recursive=True)]:
        with suppress(psutil.Error):
            if kind in process.name():
                times = process.cpu_times()
                total += times.user + times.system
    return total


class Figure(NamedTuple):
    """Seconds by the clock, of all processors, and those of Java among them."""

    seconds: float
    work: float
    java: float

    def describe(self, rows: int) -> str:
        """Return it in words."""
        java = f" ({self.java / rows * 1e6:.2f} of Java)" if self.java else ""
        return (
            f"in {self.seconds:,.0f} s: {rows / self.seconds:,.0f} rows/s, "
            f"{self.work / rows * 1e6:.2f} s of processors per million{java}"
        )


def measure(name: str, path: str, files: dict[int, list[str]], minutes: float) -> dict[int, Figure]:
    """Print what an engine takes; return its seconds, and those of processors, at each size."""
    start, spent = time.perf_counter(), spend()
    found: dict[int, Figure] = {}
    with ENGINES[name](path) as run:
        few = next(iter(files.values()))[: 2 * WORKERS]
        run(few)  # every worker has opened what it needs
        begun = time.perf_counter()
        run(few)
        each = (time.perf_counter() - begun) / len(few) / 60
        say(f"  {name}: start {begun - start:.1f} s, {spend() - spent:.1f} of processors")
        expected = {rows: each * len(paths) for rows, paths in files.items()}
        say(f"  {name}: expected " + _list_minutes(expected))
        watch = Watch()
        for rows, paths in files.items():
            if expected[rows] > minutes:
                say(f"  {name}: {rows:,} rows are left out (--minutes {minutes:g})")
                continue
            found[rows] = _measure_once(run, paths)
            say(f"  {name}: {rows:,} rows {found[rows].describe(rows)}, {watch}")
        watch.stop()
    if exponent := _say_exponent({rows: figure.work for rows, figure in found.items()}):
        say(f"  {name}: {exponent}")
    return found


def _list_minutes(expected: dict[int, float]) -> str:
    return ", ".join(f"{rows:,} rows {minutes:.1f} min" for rows, minutes in expected.items())


def _measure_once(run: Callable[[list[str]], int], paths: list[str]) -> Figure:
    start, spent, java = time.perf_counter(), spend(), spend("java")
    if run(paths) != len(paths) * PART:
        msg = "rows were lost"
        raise RuntimeError(msg)
    return Figure(time.perf_counter() - start, spend() - spent, spend("java") - java)


def say(text: str) -> None:
    """Print at once, wherever it goes: who interrupts a long run keeps what was measured."""
    print(text, flush=True)


def _say_exponent(seconds: dict[int, float]) -> str:
    if len(seconds) < 2:
        return ""
    few, many = min(seconds), max(seconds)
    slope = math.log(seconds[many] / seconds[few]) / math.log(many / few)
    return f"work grows as rows^{slope:.2f}"


def main() -> None:
    """Measure."""
    reading = argparse.ArgumentParser(description=__doc__)
    reading.add_argument("rows", nargs="*", type=int, default=[1_000_000])
    reading.add_argument("--engines", nargs="+", default=list(ENGINES), choices=list(ENGINES))
    reading.add_argument("--models", nargs="+", default=["nbc", "forest"])
    reading.add_argument("--minutes", type=float, default=math.inf, help="the most for one figure")
    options = reading.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        paths = save_models(Path(folder))
        files = {rows: write_files(Path(folder), rows) for rows in sorted(set(options.rows))}
        for model in options.models:
            say(f"{model}, {COLUMNS} columns, {WORKERS} workers")
            found: dict[str, dict[int, Figure]] = {}
            for name in options.engines:
                found[name] = measure(name, paths[model], files, options.minutes)
                first = options.engines[0]
                if name != first:
                    _compare(name, found[name], first, found[first])


def _compare(
    name: str,
    found: dict[int, Figure],
    other: str,
    known: dict[int, Figure],
) -> None:
    for kind, index in (("rows/s", 0), ("rows per second of processors", 1)):
        ratios = (known[rows][index] / found[rows][index] for rows in found if rows in known)
        say(f"  {name} / {other}, {kind}: {', '.join(f'{ratio:.2f}' for ratio in ratios)}")


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
