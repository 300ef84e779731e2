"""The report of the paper's experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from robustq.files import write_atomically

from .pages import as_image, fill

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["write_reproduction"]


def write_reproduction(
    summary: Mapping[str, Any], timings: Mapping[str, Any], folder: Path
) -> Path:
    """Write report.html beside the pictures of a reproduction, which go into it.

    Parameters
    ----------
    summary : dict
        What `robustq.experiments` found.
    timings : dict
        How long it took.
    folder : Path

    Returns
    -------
    Path
    """
    pictures = {
        key: as_image((folder / f"{name}.svg").read_bytes())
        for key, name in summary["figures"].items()
    }
    page = fill("reproduction.html", summary=summary, timings=timings, pictures=pictures)
    path = folder / "report.html"
    write_atomically(path, page)
    return path
