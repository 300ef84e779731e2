"""The pictures of an experiment, the same bytes for the same curves."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from robustq.families.table import find_recipe
from robustq.rejection import average_curves
from robustq.rejection.plots import LAST, SIZE, choose_styles, plot_curves, tidy_axes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

    from robustq.rejection import Curve

    Curves = Mapping[str, Mapping[str, list[Curve]]]

__all__ = ["FORMATS", "draw_curves", "draw_overview", "render"]

METADATA: dict[str, Any] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}
FORMATS = tuple(METADATA)
DPI = 150
# Where everything is, in inches: matplotlib finds that out too, in more time than it draws in.
LEFT, EDGE, BOTTOM, TITLE = 0.85, 0.1, 0.6, 0.4
LABELS = 1.115  # where the labels of `plot_curves` begin, in widths of the axes
NAMES = 5  # in a line of the overview's legend


def draw_curves(curves: Mapping[str, list[Curve]], title: str) -> Figure:
    """Return the accuracy-rejection curves of one data set and model, averaged over the runs."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (slow to import)

    figure = Figure(figsize=SIZE)
    averages = {name: average_curves(c) for name, c in curves.items()}
    axes = plot_curves(averages, ax=figure.subplots(), title=title)
    labels = max(text.get_window_extent().width for text in axes.texts) / figure.dpi
    wide, high = SIZE
    figure.subplots_adjust(
        left=LEFT / wide,
        right=(LEFT + (wide - LEFT - EDGE - labels) / LABELS) / wide,
        bottom=BOTTOM / high,
        top=1.0 - TITLE / high,
    )
    return figure


def draw_overview(results: Mapping[str, Curves], titles: Mapping[str, str]) -> Figure:
    """Return small pictures of all: a row for each data set, a column for each model."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (slow to import)

    names = list(next(iter(next(iter(results.values())).values())))
    styles = choose_styles(names)
    lines = -(-len(names) // NAMES)
    wide, high = 4.6 * len(results), 2.1 * len(titles) + BOTTOM + 0.25 * lines
    figure = Figure(figsize=(wide, high))
    grid = figure.subplots(len(titles), len(results), squeeze=False, sharex=True)
    for column, (model, curves) in enumerate(results.items()):
        for row, (data_set, title) in enumerate(titles.items()):
            axes = grid[row][column]
            for name in names:
                average = average_curves(curves[data_set][name])
                shown = average.rates <= LAST
                colour, line = styles[name]
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
    figure.legend(handles, labels, loc="upper center", ncols=min(len(names), NAMES), frameon=False)
    figure.supylabel("accuracy of the rest", x=0.15 / wide)
    figure.subplots_adjust(
        left=LEFT / wide,
        right=1.0 - EDGE / wide,
        bottom=BOTTOM / high,
        top=1.0 - (TITLE + 0.25 * lines) / high,
        wspace=0.18,
        hspace=0.24,
    )
    return figure


def render(figure: Figure, kind: str) -> bytes:
    """Return a picture in one of the formats; nothing in it tells when it was drawn."""
    import matplotlib as mpl  # noqa: PLC0415 (slow to import)

    content = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "robustq"}):
        figure.savefig(content, format=kind, dpi=DPI, metadata=METADATA[kind])
    return content.getvalue()
