"""The page of `robustq explain`: some predictions, or what all of them hang on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from robustq import __version__
from robustq.files import write_atomically

from .pages import fill

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["write_explanation"]

CHANGES = 20


def write_explanation(found: Mapping[str, Any], path: str | Path, *, title: str) -> None:
    """Write a page about rows, or about a whole table.

    Parameters
    ----------
    found : dict
        As `robustq explain --json` prints it.
    path : path
    title : str
    """
    rows = [{**row, "bars": _measure(row["features"])} for row in found["rows"]]
    page = fill(
        "explanation.html",
        **{**found, "rows": rows},
        most=CHANGES,
        title=title,
        version=__version__,
    )
    write_atomically(path, page)


def _measure(features: list[Mapping[str, Any]]) -> list[int]:
    """Return how long the bar of each feature is, the longest 50."""
    sizes = [abs(feature["support"]) for feature in features]
    longest = max((size for size in sizes if math.isfinite(size)), default=0.0) or 1.0
    return [round(50 * min(size / longest, 1.0)) for size in sizes]
