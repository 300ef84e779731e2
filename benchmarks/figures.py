"""Figures: what a race gave, whether it keeps what was promised, and files of them."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import robustq

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Figure", "describe", "read", "summarise", "write"]

PACKAGES = ("numpy", "numba", "scikit-learn")


@dataclass(frozen=True)
class Figure:
    """What was measured.

    Parameters
    ----------
    table, name, unit : str
    ours, theirs : float, optional
        Medians, in the unit; None where there is nothing to measure.
    ratio : float, optional
        The median of the ratios of each round; None without theirs.
    spread : float, optional
        Half of the interquartile range, of the ratios or of ours by itself.
    limit : float, optional
        The most that the ratio, or ours by itself, may be.
    note : str
        Why there is nothing to measure.
    """

    table: str
    name: str
    unit: str = "s"
    ours: float | None = None
    theirs: float | None = None
    ratio: float | None = None
    spread: float | None = None
    limit: float | None = None
    note: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from all others."""
        return self.table, self.name

    @property
    def value(self) -> float | None:
        """What limits and comparisons are about: the ratio, or ours without one."""
        return self.ours if self.ratio is None else self.ratio

    @property
    def kept(self) -> bool | None:
        """Whether it is within its limit; None without a limit or a value."""
        if self.limit is None or self.value is None:
            return None
        return self.value <= self.limit


def summarise(
    figure: Figure, ours: Sequence[float], theirs: Sequence[float] = (), scale: float = 1.0
) -> Figure:
    """Return a figure with medians and spread; ours and theirs go by rounds."""
    if not theirs:
        return replace(figure, ours=statistics.median(ours), spread=_half_range(ours))
    ratios = [scale * mine / other for mine, other in zip(ours, theirs, strict=True)]
    return replace(
        figure,
        ours=statistics.median(ours),
        theirs=statistics.median(theirs),
        ratio=statistics.median(ratios),
        spread=_half_range(ratios),
    )


def _half_range(values: Sequence[float]) -> float:
    """Return half of the interquartile range."""
    if len(values) < 2:
        return 0.0
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return (third - first) / 2


def write(path: Path, figures: Iterable[Figure], **conditions: object) -> None:
    """Keep figures in a file, with what they were measured on."""
    rows = [asdict(figure) | {"kept": figure.kept} for figure in figures]
    document = describe() | {"conditions": conditions, "figures": rows}
    path.write_text(json.dumps(document, indent=2) + "\n")


def read(path: Path) -> tuple[list[Figure], dict[str, Any]]:
    """Return the figures of a file, and what they were measured on."""
    document = json.loads(path.read_text())
    rows = [{name: row[name] for name in row if name != "kept"} for row in document.pop("figures")]
    return [Figure(**row) for row in rows], document


def describe() -> dict[str, Any]:
    """Return the commit that is measured, where git tells, and the machine."""
    home = Path(robustq.__file__).parent
    return {
        "commit": _ask_git(home, "rev-parse", "HEAD"),
        "changed": bool(_ask_git(home, "status", "--porcelain", "--", ".")),
        "machine": {
            "processor": _find_processor(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        }
        | {name: version(name) for name in PACKAGES},
    }


def _find_processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _ask_git(home: Path, *question: str) -> str | None:
    command = ["git", "-C", str(home), *question]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
