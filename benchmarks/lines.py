"""One line for each figure, as soon as it is measured."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .comparison import Comparison
    from .figures import Figure

__all__ = ["Lines"]

NAME = 46  # characters


class Lines:
    """Prints figures under the title of their table.

    Parameters
    ----------
    comparison : Comparison, optional
        What stands beside them.
    """

    def __init__(self, comparison: Comparison | None = None) -> None:
        self._comparison = comparison
        self._table = ""

    def announce(self, table: str, name: str) -> None:
        """Say what is being measured; on a terminal, until its line is there."""
        if table != self._table:
            self._table = table
            self._print_heading(table)
        if sys.stdout.isatty():
            print(f"{name:<{NAME}} …", end="\r", flush=True)

    def show(self, figure: Figure) -> None:
        """Print a figure."""
        cells = [f"{figure.name:<{NAME}}"]
        if figure.value is None:
            reason = f"not available: {figure.note.split(':')[0]}"
            cells.append(f"{reason:<54}")
        else:
            cells += [_amount(figure.ours, figure.unit), _amount(figure.theirs, figure.unit)]
            cells += [f"{_value(figure):>18}", *_limit(figure)]
        cells += self._compare(figure)
        print(" ".join(cells).rstrip(), flush=True)

    def _print_heading(self, table: str) -> None:
        names = ["ours", "theirs", "ratio", "limit", "kept"]
        widths = [10, 10, 18, 7, 5]
        if self._comparison:
            names, widths = [*names, "before", "now"], [*widths, 18, 7]
        cells = [f"{name:>{width}}" for name, width in zip(names, widths, strict=True)]
        print(f"\n{table}\n{'':{NAME}} {' '.join(cells)}", flush=True)

    def _compare(self, figure: Figure) -> list[str]:
        if self._comparison is None:
            return []
        old = self._comparison.find(figure)
        return [f"{_value(old) if old else '':>18}", f"{self._comparison.judge(figure):>7}"]


def _amount(amount: float | None, unit: str) -> str:
    if amount is None:
        return " " * 10
    factor, unit = _choose_unit(amount, unit)
    return f"{_round(factor * amount):>6} {unit:<3}"


def _value(figure: Figure) -> str:
    """Return what counts, with its spread."""
    assert figure.value is not None  # noqa: S101
    factor, unit = (1, "") if figure.ratio is not None else _choose_unit(figure.value, figure.unit)
    value, spread = factor * figure.value, factor * (figure.spread or 0.0)
    return f"{_round(value)} ± {_round(spread, value)} {unit}".rstrip()


def _choose_unit(amount: float, unit: str) -> tuple[int, str]:
    return (1000, "ms") if unit == "s" and amount < 0.1 else (1, unit)


def _round(number: float, like: float | None = None) -> str:
    """Return a number with three digits, or with as many as another has."""
    size = abs(number if like is None else like)
    digits = 2 - math.floor(math.log10(size)) if size else 2
    return f"{number:.{min(max(digits, 0), 6)}f}"


def _limit(figure: Figure) -> list[str]:
    if figure.limit is None:
        return [" " * 7, " " * 5]
    return [f"{figure.limit:>7g}", f"{'yes' if figure.kept else 'NO':>5}"]
