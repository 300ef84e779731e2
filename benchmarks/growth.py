"""How cost grows with rows, features, classes, values, trees and depth: seconds, memory, exponents.

`python -m benchmarks.growth` (or `make bench-growth`) prints a table for each, and fails where the
exponent between the two largest sizes is above its limit: 1 is linear.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import tracemalloc
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .conditions import Conditions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from robustq.arrays import Indices
    from robustq.families.base import GenerativeClassifier

    Works = dict[str, Callable[[], object]]

__all__ = ["AXES", "Axis", "Growth", "find_exponent", "main", "measure"]

SHORTEST, LONGEST = 0.2, 20.0  # seconds: what is shorter is called again, what is longer once
MIB = 2**20
# Sorting, and caches that overflow, let what is linear look a little steeper.
LINEAR, SORTING = 1.15, 1.3
BRANCHING = 1.5  # leaves double with each level, as long as there are rows for them


@dataclass(frozen=True)
class Axis:
    """Something that may be small or large.

    Attributes
    ----------
    name : str
    sizes : tuple of int
        From small to large.
    prepare : callable
        Takes a size; returns what is measured there, by name.
    limit : float
        The largest exponent between the last two sizes.
    """

    name: str
    sizes: tuple[int, ...]
    prepare: Callable[[int], Works]
    limit: float = LINEAR


@dataclass(frozen=True)
class Growth:
    """What something took at each size: seconds, and the most memory that it asked for."""

    axis: str
    work: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]
    memory: tuple[float, ...]
    limit: float

    @property
    def exponent(self) -> float:
        """The exponent between the two largest sizes."""
        return find_exponent(self.sizes[-2:], self.seconds[-2:])

    @property
    def memory_exponent(self) -> float:
        """The same, of memory."""
        return find_exponent(self.sizes[-2:], self.memory[-2:])

    @property
    def kept(self) -> bool:
        """Whether time and memory grow no faster than they may."""
        return max(self.exponent, self.memory_exponent) <= self.limit


def find_exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return by which power of the size a cost grows, between the first and the last."""
    return math.log(costs[-1] / costs[0]) / math.log(sizes[-1] / sizes[0])


def _draw(
    rows: int, features: int = 10, classes: int = 2, values: int = 6
) -> tuple[Indices, Indices]:
    """Return rows whose values lean towards their class."""
    import numpy as np  # noqa: PLC0415 (after the conditions are imposed)

    rng = np.random.default_rng(0)
    y = np.arange(rows) % classes
    leaning = rng.integers(0, values, (classes, features))
    X = rng.integers(0, values, (rows, features))
    return np.where(rng.random(X.shape) < 0.3, leaning[y], X), y


def _ask(model: GenerativeClassifier, X: Indices, y: Indices, name: str, *, fit: bool) -> Works:
    """Return what is measured of a model: learning, if it is to be, and quantifying."""
    from sklearn.base import clone  # noqa: PLC0415

    model.fit(X, y)
    learning = {f"{name}, fit": partial(clone(model).fit, X, y)} if fit else {}
    return {
        **learning,
        f"{name}, predict_proba": partial(model.predict_proba, X),
        f"{name}, robustness tv": partial(model.robustness, X, "tv"),
    }


def _both(X: Indices, y: Indices, *, fit: bool = True, trees: int = 10) -> Works:
    from robustq import GenerativeForestClassifier, NaiveBayesClassifier  # noqa: PLC0415

    # Every column a category, however many values it has.
    every = list(range(X.shape[1]))
    bayes = NaiveBayesClassifier(1.0, categorical=every)
    forest = GenerativeForestClassifier(trees, max_depth=8, categorical=every, random_state=0)
    return _ask(bayes, X, y, "naive Bayes", fit=fit) | _ask(forest, X, y, "forest", fit=fit)


def _with_rows(size: int) -> Works:
    return _both(*_draw(size))


def _with_features(size: int) -> Works:
    return _both(*_draw(1_000, features=size))


def _with_classes(size: int) -> Works:
    return _both(*_draw(20_000, classes=size))


def _with_values(size: int) -> Works:
    import numpy as np  # noqa: PLC0415

    X, y = _draw(1_000_000, features=3)
    X[:, 0] = np.random.default_rng(1).permutation(len(X)) % size
    return _both(X, y, trees=3)


def _with_trees(size: int) -> Works:
    from robustq import GenerativeForestClassifier  # noqa: PLC0415

    model = GenerativeForestClassifier(size, max_depth=8, random_state=0)
    return _ask(model, *_draw(5_000), "forest", fit=True)


def _with_depth(size: int) -> Works:
    from robustq import GenerativeForestClassifier  # noqa: PLC0415

    model = GenerativeForestClassifier(10, max_depth=size, min_samples_leaf=1, random_state=0)
    return _ask(model, *_draw(50_000), "forest", fit=True)


AXES = (
    Axis("rows", (10_000, 100_000, 1_000_000), _with_rows, SORTING),
    Axis("features", (10, 100, 1_000, 10_000), _with_features, SORTING),
    Axis("classes", (2, 10, 100, 1_000), _with_classes),
    Axis("values of a column", (100, 10_000, 1_000_000), _with_values),
    Axis("trees", (10, 100, 1_000), _with_trees),
    Axis("depth", (2, 4, 8, 16), _with_depth, BRANCHING),
)


def measure(axis: Axis) -> Iterator[Growth]:
    """Measure everything at all sizes."""
    found: dict[str, list[tuple[float, float]]] = {}
    for size in axis.sizes:
        for work, call in axis.prepare(size).items():
            found.setdefault(work, []).append((_time(call), _weigh(call)))
    for work, costs in found.items():
        seconds, memory = zip(*costs, strict=True)
        yield Growth(axis.name, work, axis.sizes, seconds, memory, axis.limit)


def _time(call: Callable[[], object]) -> float:
    """Return the seconds of the processor that a call takes; the best of three if they are few."""
    call()  # compiles
    best, start = math.inf, time.process_time()
    for _ in range(3):
        best = min(best, _repeat(call))
        if time.process_time() - start > LONGEST:
            break
    return best


def _repeat(call: Callable[[], object]) -> float:
    calls, start = 0, time.process_time()
    while True:
        call()
        calls += 1
        if (seconds := time.process_time() - start) >= SHORTEST:
            return seconds / calls


def _weigh(call: Callable[[], object]) -> float:
    """Return the most memory that a call asks for at once."""
    tracemalloc.start()
    try:
        call()
        return float(max(tracemalloc.get_traced_memory()[1], MIB))
    finally:
        tracemalloc.stop()


def _show(growths: Sequence[Growth]) -> None:
    first = growths[0]
    sizes = "".join(f"{size:>20,}" for size in first.sizes)
    print(f"\n{first.axis:<30}{sizes}{'exponent':>12}{'memory':>8}{'limit':>7}  kept")
    for growth in growths:
        cells = "".join(
            f"{f'{_say(seconds)} {memory / MIB:6,.0f} MiB':>20}"
            for seconds, memory in zip(growth.seconds, growth.memory, strict=True)
        )
        ends = f"{growth.exponent:>12.2f}{growth.memory_exponent:>8.2f}{growth.limit:>7}"
        print(f"{growth.work:<30}{cells}{ends}  {'yes' if growth.kept else 'NO'}", flush=True)


def _say(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1.0 else f"{1000 * seconds:.1f} ms"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the axes that are asked for, all by default."""
    names = [axis.name for axis in AXES]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("axes", nargs="*", metavar="AXIS", help=f"of {', '.join(names)}")
    parser.add_argument("--largest", type=int, metavar="N", help="leave larger sizes out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures there")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.axes if name not in names]:
        parser.error(f"there is no axis {unknown[0]}; there are {', '.join(names)}")
    Conditions().impose()
    measured: list[Growth] = []
    for axis in AXES:
        if options.axes and axis.name not in options.axes:
            continue
        sizes = tuple(s for s in axis.sizes if s <= (options.largest or s))
        if len(sizes) < 2:
            continue
        growths = list(measure(Axis(axis.name, sizes, axis.prepare, axis.limit)))
        _show(growths)
        measured += growths
    if options.json:
        options.json.write_text(json.dumps([asdict(growth) for growth in measured], indent=2))
    return int(not all(growth.kept for growth in measured))


if __name__ == "__main__":
    sys.exit(main())
