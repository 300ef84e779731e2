"""The pictures of an experiment, the same bytes for the same curves."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from robustq.families.table import find_recipe
from robustq.rejection import average_curves
from robustq.rejection.plots import LAST, SIZE, plot_curves, style_line, tidy_axes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

    from robustq.rejection import Curve

    Curves = Mapping[str, Mapping[str, list[Curve]]]

__all__ = ["FORMATS", "draw_curves", "draw_overview", "render"]

METADATA: dict[str, Any] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}
FORMATS = tuple(METADATA)
DPI = 150


def draw_curves(curves: Mapping[str, list[Curve]], title: str) -> Figure:
    """Return the accuracy-rejection curves of one data set and model, averaged over the runs."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (slow to import)

    figure = Figure(figsize=SIZE, layout="constrained")
    averages = {name: average_curves(c) for name, c in curves.items()}
    plot_curves(averages, ax=figure.subplots(), title=title)
    return figure


def draw_overview(results: Mapping[str, Curves], titles: Mapping[str, str]) -> Figure:
    """Return small pictures of all: a row for each data set, a column for each model."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (slow to import)

    names = list(next(iter(next(iter(results.values())).values())))
    figure = Figure(figsize=(4.6 * len(results), 1.0 + 2.1 * len(titles)), layout="constrained")
    grid = figure.subplots(len(titles), len(results), squeeze=False, sharex=True)
    for column, (model, curves) in enumerate(results.items()):
        for row, (data_set, title) in enumerate(titles.items()):
            axes = grid[row][column]
            for index, name in enumerate(names):
                average = average_curves(curves[data_set][name])
                shown = average.rates <= LAST
                colour, line = style_line(index)
                axes.plot(
                    average.rates[shown],
                    average.accuracy[shown],
                    color=colour,
                    linestyle=line,
                    lw=1.2,
                    label=name,
                )
            axes.set_xlim(0.0, LAST)
            axes.xaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
            tidy_axes(axes, f"{title}, {find_recipe(model).title}")
    for axes in grid[-1]:
        axes.set_xlabel("share rejected")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper center", ncols=min(len(names), 5), frameon=False
    )
    figure.supylabel("accuracy of the rest")
    return figure


def render(figure: Figure, kind: str) -> bytes:
    """Return a picture in one of the formats; nothing in it tells when it was drawn."""
    import matplotlib as mpl  # noqa: PLC0415 (slow to import)

    content = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "robustq"}):
        figure.savefig(content, format=kind, dpi=DPI, metadata=METADATA[kind])
    # Everything has its place now, in all formats: to find it takes as long as to draw.
    figure.set_layout_engine("none")
    return content.getvalue()
