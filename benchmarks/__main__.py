"""Run benches, print a line for each figure, and fail if a limit is not kept.

With `--compare`, old and new figures stand side by side, and one that is worse by more than the
spread of both fails too.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from .conditions import Conditions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .comparison import Comparison
    from .figures import Figure
    from .races import Race

BENCHES = (
    "first_use",
    "balls",
    "naive_bayes",
    "networks",
    "votes",
    "forest",
    "one_row",
    "curves",
    "streaming",
)
ON_ALL_CORES = ("naive_bayes", "forest")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benches that are asked for, all by default."""
    options = _read(arguments)
    conditions = Conditions(quick=options.quick, all_cores=options.all_cores)
    conditions.impose()
    # Only now: what they import counts threads when it is imported.
    figures = import_module("benchmarks.figures")
    comparison = _open(options.compare) if options.compare else None
    names = options.names or (ON_ALL_CORES if options.all_cores else BENCHES)
    measured: list[Figure] = []
    try:
        for figure in measure(gather(names, conditions), options.rounds, comparison):
            measured.append(figure)  # noqa: PERF402 (to keep what was measured if one fails)
    finally:
        if options.json:
            figures.write(options.json, measured, **vars(conditions))
    return conclude(measured, comparison)


def gather(names: Iterable[str], conditions: Conditions) -> Iterator[Race]:
    """Yield the races of benches, one after the other."""
    for name in names:
        for race in import_module(f"benchmarks.{name}").races(conditions):
            if conditions.all_cores:
                # Limits are promised for one core.
                yield replace(race, table=f"{race.table}, all cores", limit=None)
            else:
                yield race


def measure(
    races: Iterable[Race], rounds: int, comparison: Comparison | None = None
) -> Iterator[Figure]:
    """Run races, and show each figure; one that would fail is measured again before it does."""
    from .lines import Lines  # noqa: PLC0415 (see main)
    from .races import run  # noqa: PLC0415

    lines = Lines(comparison)
    for race in races:
        lines.announce(race.table, race.name)
        figure = run(race, rounds, lambda figure: _is_doubtful(figure, comparison))
        lines.show(figure)
        yield figure


def conclude(figures: Sequence[Figure], comparison: Comparison | None = None) -> int:
    """Say what failed; return the exit code."""
    broken = [figure for figure in figures if figure.kept is False]
    absent = [figure for figure in figures if figure.value is None]
    print()
    if absent:
        print(f"{len(absent)} of {len(figures)} figures not available")
    for figure in broken:
        print(f"limit not kept: {figure.table}: {figure.name}", file=sys.stderr)
    worse = [figure for figure in figures if comparison and _is_worse(figure, comparison)]
    for figure in worse:
        print(f"worse than before: {figure.table}: {figure.name}", file=sys.stderr)
    unknown = comparison is not None and not any(comparison.find(figure) for figure in figures)
    if unknown:
        print("nothing to compare: no figure is in both", file=sys.stderr)
    return int(bool(broken or worse or unknown))


def _is_doubtful(figure: Figure, comparison: Comparison | None) -> bool:
    """Tell whether a figure fails, but not by so much that noise cannot be the reason."""
    old = comparison.find(figure) if comparison else None
    bounds = [figure.limit, old.value if old else None]
    value = figure.value or 0.0
    fails = figure.kept is False or bool(comparison and _is_worse(figure, comparison))
    return fails and any(bound is not None and bound < value < 2 * bound for bound in bounds)


def _is_worse(figure: Figure, comparison: Comparison) -> bool:
    return comparison.judge(figure) in {"SLOWER", "GONE"}


def _open(path: Path) -> Comparison:
    figures = import_module("benchmarks.figures")
    old, about = figures.read(path)
    machine = figures.describe()["machine"]
    if about["machine"] != machine:
        print(f"{path} was measured on another machine: {about['machine']}, here {machine}")
    return import_module("benchmarks.comparison").Comparison(old)


def _read(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of: {', '.join(BENCHES)}; all by default"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures there")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="put those figures beside")
    parser.add_argument("--rounds", type=_count, metavar="N", help="7 by default, 3 if quick")
    parser.add_argument("--quick", action="store_true", help="fewer rows and rounds")
    parser.add_argument("--all-cores", action="store_true", help="both sides on all; no limits")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHES]
    if unknown:
        parser.error(f"no bench {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    if options.compare and not options.compare.is_file():
        parser.error(f"there is no file {options.compare}")
    if options.rounds is None:
        options.rounds = 3 if options.quick else 7
    return options


def _count(text: str) -> int:
    if not (text.isdecimal() and int(text) > 0):
        msg = f"a number of rounds is 1 or more, not {text}"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
