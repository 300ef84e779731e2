"""The picture of sets that grow with the size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robustq.rejection.plots import style_line, tidy_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .curves import CredalCurve

__all__ = ["plot_credal_curve"]

LINES = {
    "determinacy": "determinacy",
    "single_accuracy": "accuracy of single classes",
    "u80": "u80",
    "u65": "u65",
    "discounted_accuracy": "discounted accuracy",
}


def plot_credal_curve(
    found: CredalCurve, *, ax: Axes | None = None, title: str | None = None
) -> Axes:
    """Draw determinacy and utilities against the size."""
    if ax is None:
        from matplotlib.figure import Figure  # noqa: PLC0415 (slow to import)

        ax = Figure(figsize=(7, 4.2), layout="constrained").subplots()
    columns = found.to_dict()
    for index, (name, words) in enumerate(LINES.items()):
        colour, line = style_line(index)
        ax.plot(
            *(columns["delta"], columns[name]),
            color=colour,
            linestyle=line,
            lw=1.6,
            marker="o",
            markersize=3,
            label=words,
        )
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    records = "added records, s" if found.name == "idm" else f"size ({found.name})"
    ax.set_xlabel(records, parse_math=False)
    ax.set_ylabel("share of the rows")
    ax.set_xlim(left=0.0)
    tidy_axes(ax, title)
    return ax
