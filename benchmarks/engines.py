"""Rows per second of the plain scorer, of Dask and of Spark, on rows that are made and not kept.

`python -m benchmarks.engines 1000000 10000000` measures at these numbers of rows. Each partition
makes its rows, scores them and drops the results; all three do the same work. Starting processes
and opening models are measured apart.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from robustq import GenerativeForestClassifier, NaiveBayesClassifier
from robustq.scoring import open_scorer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COLUMNS, VALUES, TRAINING = 13, 6, 20_000
PART = 250_000
WORKERS = 2
NAMES = [f"f{i}" for i in range(COLUMNS)]


def make_rows(seed: int, rows: int) -> pa.Table:
    """Return rows of a partition: nine columns of categories, four of numbers."""
    rng = np.random.default_rng(seed)
    columns: list[Any] = [rng.integers(0, VALUES, rows) for _ in NAMES[:9]]
    columns += [rng.normal(size=rows) for _ in NAMES[9:]]
    return pa.table(columns, names=NAMES)


def cut(rows: int) -> list[tuple[int, int]]:
    """Return the seed and the length of each partition."""
    return [(start, min(PART, rows - start)) for start in range(0, rows, PART)]


@contextmanager
def plainly(path: str) -> Iterator[Any]:
    """Give the plain scorer, in threads of this process."""
    scorer = open_scorer(path, threads=1)

    def run(part: tuple[int, int]) -> None:
        scorer.score(make_rows(*part))

    with ThreadPoolExecutor(WORKERS) as pool:
        yield lambda rows: list(pool.map(run, cut(rows)))


@contextmanager
def by_dask(path: str) -> Iterator[Any]:
    """Give Dask's worker processes."""
    import dask.dataframe as dd  # noqa: PLC0415 (not always installed)
    from distributed import Client, LocalCluster  # noqa: PLC0415

    from robustq.engines import dask as engine  # noqa: PLC0415

    def read(part: tuple[int, int]) -> Any:
        return make_rows(*part).to_pandas()

    def run(rows: int) -> None:
        frame = dd.from_map(read, cut(rows), meta=make_rows(0, 0).to_pandas())
        engine.score(frame, path).map_partitions(len, meta=("rows", int)).compute()

    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as place,
        Client(place),
    ):
        yield run


@contextmanager
def by_spark(path: str) -> Iterator[Any]:
    """Give Spark's Python workers."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 (not always installed)

    from robustq.engines import spark as engine  # noqa: PLC0415

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYTHONPATH"] = str(Path.cwd())  # where the workers find this module
    building = SparkSession.builder.master(f"local[{WORKERS}]").config("spark.ui.enabled", "false")
    session = building.config("spark.ui.showConsoleProgress", "false").getOrCreate()

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for start, rows in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield from make_rows(start, rows).to_batches()

    schema = ", ".join(f"{name} {'long' if i < 9 else 'double'}" for i, name in enumerate(NAMES))

    def run(rows: int) -> None:
        parts = session.createDataFrame(cut(rows), "start long, n long").repartition(len(cut(rows)))
        scored = engine.score(parts.mapInArrow(make, schema), path)
        scored.write.format("noop").mode("overwrite").save()

    try:
        yield run
    finally:
        session.stop()


ENGINES: dict[str, Callable[[str], Any]] = {"plain": plainly, "dask": by_dask, "spark": by_spark}


class Watch:
    """The largest resident memory of any Python process below this one, in MiB."""

    def __init__(self) -> None:
        self.largest, self._stopped = 0.0, threading.Event()
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        import psutil  # noqa: PLC0415 (it comes with distributed)

        me = psutil.Process()
        while not self._stopped.wait(0.5):
            for child in me.children(recursive=True):
                try:
                    if "python" in child.name():
                        size = child.memory_info().rss / 2**20
                        self.largest = max(self.largest, size)
                except psutil.Error:
                    continue

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()


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


def measure(name: str, path: str, sizes: list[int]) -> list[float]:
    """Print what an engine takes, and return its rows per second at each size."""
    start = time.perf_counter()
    seconds: list[float] = []
    with ENGINES[name](path) as run:
        run(WORKERS * 1000)
        run(WORKERS * PART)  # every worker has compiled and opened what it needs
        starting = time.perf_counter() - start
        watch = Watch()
        for rows in sizes:
            start = time.perf_counter()
            run(rows)
            seconds.append(time.perf_counter() - start)
        watch.stop()
    found = [rows / second for rows, second in zip(sizes, seconds, strict=True)]
    shown = ", ".join(
        f"{rows:,}: {rate:,.0f} rows/s" for rows, rate in zip(sizes, found, strict=True)
    )
    memory = f", {watch.largest:,.0f} MiB in the largest worker" if watch.largest else ""
    print(f"  {name}: {shown}; start {starting:.1f} s{memory}{_say_exponent(sizes, seconds)}")
    return found


def _say_exponent(sizes: list[int], seconds: list[float]) -> str:
    if len(sizes) < 2:
        return ""
    slope = math.log(seconds[-1] / seconds[0]) / math.log(sizes[-1] / sizes[0])
    return f", seconds grow by rows^{slope:.2f}"


def main() -> None:
    """Measure."""
    reading = argparse.ArgumentParser(description=__doc__)
    reading.add_argument("rows", nargs="*", type=int, default=[1_000_000])
    reading.add_argument("--engines", nargs="+", default=list(ENGINES), choices=list(ENGINES))
    reading.add_argument("--models", nargs="+", default=["nbc", "forest"])
    options = reading.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        paths = save_models(Path(folder))
        for model in options.models:
            print(f"{model}, {COLUMNS} columns, {WORKERS} workers")
            found = {name: measure(name, paths[model], options.rows) for name in options.engines}
            for name in options.engines[1:]:
                ratios = [
                    a / b for a, b in zip(found[name], found[options.engines[0]], strict=True)
                ]
                print(f"  {name} / {options.engines[0]}: {', '.join(f'{r:.2f}' for r in ratios)}")


if __name__ == "__main__":
    main()
