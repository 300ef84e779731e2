"""Pictures of curves and of robustness. matplotlib is imported when one is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.exceptions import InputError

from .curves import read_results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from robustq.arrays import Floats

    from .averages import AverageCurve
    from .bands import Band
    from .curves import Curve

__all__ = [
    "LAST",
    "SIZE",
    "choose_styles",
    "plot_curves",
    "plot_robustness",
    "style_line",
    "tidy_axes",
]

# Okabe and Ito's colours, which colour-blind readers tell apart; with three kinds of lines, also
# in black and white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LINES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)))
# An indicator looks the same in every picture: a colour for each ball, with everything perturbed
# dashed; uncertainties are black, or dotted.
BALLS = ("tv", "epsilon", "chi2", "kl", "odds_ratio", "pari_mutuel")
FIXED: dict[str, tuple[str, Any]] = {
    **{f"r_{ball}": (COLOURS[i], LINES[0]) for i, ball in enumerate(BALLS)},
    **{f"r_{ball}_all": (COLOURS[i], LINES[1]) for i, ball in enumerate(BALLS)},
    "u_max": ("#000000", LINES[0]),
    "u_marg": ("#000000", LINES[1]),
    "u_H": ("#000000", LINES[2]),
    **{name: (COLOURS[i], LINES[2]) for i, name in enumerate(("u_t", "u_a", "u_e"))},
}
RIGHT, WRONG = COLOURS[0], COLOURS[1]
LAST = 0.95
SIZE = (8.0, 4.6)  # inches
GAP = 0.055  # of the height, between labels


def _check_curves(curves: Any) -> None:
    if not isinstance(curves, Mapping) or not all(hasattr(c, "rates") for c in curves.values()):
        msg = f"curves must be a mapping of names to curves, got {type(curves).__name__}"
        raise InputError(msg)
    if not curves:
        msg = "there is no curve to draw"
        raise InputError(msg)


def plot_curves(
    curves: Mapping[str, Curve | AverageCurve],
    *,
    bands: Mapping[str, Band] | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw accuracy-rejection curves, each labelled at its end.

    Parameters
    ----------
    curves : mapping of name to Curve or AverageCurve
        Of an AverageCurve, nothing but the mean is drawn.
    bands : mapping of name to Band, optional
        Shaded behind the curves.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.
    title : str, optional

    Returns
    -------
    matplotlib Axes
    """
    _check_curves(curves)
    axes = _new_axes() if ax is None else ax
    ends: dict[str, float] = {}
    # Of the last few predictions the accuracy jumps about: it says nothing.
    last = min(LAST, max(float(curve.rates[-1]) for curve in curves.values()))
    styles = choose_styles(list(curves))
    for name, curve in curves.items():
        colour, line = styles[name]
        shown = curve.rates <= last
        if not shown.any():
            shown, last = np.ones_like(shown), float(curve.rates[-1])
        axes.plot(curve.rates[shown], curve.accuracy[shown], color=colour, linestyle=line, lw=1.6)
        if bands is not None and name in bands:
            band = bands[name]
            axes.fill_between(band.rates, band.low, band.high, color=colour, alpha=0.15, lw=0)
        ends[name] = float(curve.accuracy[shown][-1])
    axes.set_xlim(0.0, last or 1.0)
    axes.set(xlabel="share rejected", ylabel="accuracy of the rest")
    _label_ends(axes, ends, {name: curve.auc for name, curve in curves.items()})
    tidy_axes(axes, title)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
    return axes


def plot_robustness(
    correct: ArrayLike,
    robustness: ArrayLike,
    *,
    name: str = "robustness",
    axes: tuple[Axes, Axes] | None = None,
) -> tuple[Axes, Axes]:
    """Draw how robust right and wrong predictions are, and accuracy against robustness.

    Parameters
    ----------
    correct : array_like of bool, of shape (rows,)
    robustness : array_like of shape (rows,)
        Infinite values are drawn at the right edge.
    name : str
        What to call the robustness.
    axes : pair of matplotlib Axes, optional

    Returns
    -------
    pair of matplotlib Axes
    """
    right, size = read_results(correct, robustness)
    left_axes, right_axes = _new_pair() if axes is None else axes
    finite = size[np.isfinite(size)]
    top = float(finite.max()) if len(finite) and finite.max() > 0.0 else 1.0
    if len(finite) < len(size):
        top *= 1.1
    drawn = np.clip(size, 0.0, top)
    edges = np.linspace(0.0, top, min(31, 2 + int(np.sqrt(len(size)))))
    _draw_distribution(left_axes, drawn, right, edges, name)
    _draw_accuracy(right_axes, drawn, right, edges, name)
    return left_axes, right_axes


def _draw_distribution(axes: Axes, size: Floats, right: Any, edges: Floats, name: str) -> None:
    for part, colour, label in ((right, RIGHT, "right"), (~right, WRONG, "wrong")):
        if part.any():
            weights = np.full(int(part.sum()), 1.0 / part.sum())
            bins = edges.tolist()
            axes.hist(size[part], bins, weights=weights, color=colour, alpha=0.25)
            axes.hist(
                size[part],
                bins,
                weights=weights,
                histtype="step",
                color=colour,
                lw=1.6,
                label=f"{label} ({part.sum():,})",
            )
    axes.legend(frameon=False)
    axes.set(ylabel="share of the predictions", xlim=(0.0, edges[-1]))
    axes.set_xlabel(name, parse_math=False)
    tidy_axes(axes, "How robust right and wrong predictions are")


def _draw_accuracy(axes: Axes, size: Floats, right: Any, edges: Floats, name: str) -> None:
    """Draw the share that is right in tenths of the predictions, with its standard error."""
    # Equal values stay together: the order of the rows must not show.
    ends = np.unique(np.quantile(size, np.linspace(0, 1, 11)[1:-1], method="lower"))
    part = np.searchsorted(ends, size)
    parts = [np.flatnonzero(part == index) for index in np.unique(part)]
    centre = np.array([size[rows].mean() for rows in parts])
    share = np.array([right[rows].mean() for rows in parts])
    error = np.sqrt(share * (1 - share) / np.array([len(rows) for rows in parts]))
    axes.errorbar(centre, share, error, color=RIGHT, marker="o", lw=1.6, capsize=2)
    axes.axhline(float(right.mean()), color="#777777", lw=1.0, linestyle=":")
    axes.annotate(
        "all",
        (edges[-1], float(right.mean())),
        xytext=(3, 0),
        textcoords="offset points",
        va="center",
        color="#777777",
    )
    axes.set(ylabel="accuracy", xlim=(0.0, edges[-1]))
    axes.set_xlabel(f"{name} (mean of a tenth)", parse_math=False)
    tidy_axes(axes, "Accuracy against robustness")


def choose_styles(names: Sequence[str]) -> dict[str, tuple[str, Any]]:
    """Return colour and kind of line for each name: always the same for indicators that we know."""
    fixed = {name: FIXED[name] for name in names if name in FIXED}
    others = [name for name in names if name not in FIXED]
    free = [style for style in map(style_line, range(21)) if style not in fixed.values()]
    return fixed | {name: free[i % len(free)] for i, name in enumerate(others)}


def style_line(index: int) -> tuple[str, Any]:
    """Return colour and kind of line: the first 21 differ, and neighbours do in both."""
    return COLOURS[index % len(COLOURS)], LINES[index % len(LINES)]


def _label_ends(axes: Axes, ends: dict[str, float], areas: dict[str, float]) -> None:
    """Write names and areas beside the ends of the lines, each with a piece of its line.

    They are pushed apart where they would overlap, and joined to the ends by thin lines.
    """
    from matplotlib.lines import Line2D  # noqa: PLC0415 (slow to import)

    low, high = axes.get_ylim()
    styles = choose_styles(list(ends))
    names = sorted(ends, key=lambda name: (ends[name], areas[name]))
    heights = _spread([(ends[name] - low) / (high - low) for name in names], GAP, 1.0)
    for name, height in zip(names, heights, strict=True):
        colour, line = styles[name]
        outside: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
        label = f"{name}  {areas[name]:.3f}"
        start = (ends[name] - low) / (high - low)
        axes.add_line(Line2D([1.0, 1.03], [start, height], color="#bbbbbb", lw=0.6, **outside))
        axes.add_line(
            Line2D([1.03, 1.1], [height, height], color=colour, linestyle=line, lw=1.6, **outside)
        )
        axes.text(1.115, height, label, va="center", color=colour, parse_math=False, **outside)
    axes.text(1.115, 1.06, "AU-ARC", color="#555555", fontsize="small", transform=axes.transAxes)


def _spread(heights: list[float], gap: float, top: float) -> list[float]:
    """Return ascending heights at least a gap apart, none above the top."""
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] + gap) if placed else height)
    # Too high: push down from the top.
    for index in range(len(placed) - 1, -1, -1):
        limit = top if index == len(placed) - 1 else placed[index + 1] - gap
        placed[index] = min(placed[index], limit)
    return placed


def _new_axes() -> Axes:
    # By pyplot: notebooks show such figures, and `plt.show()` does in a script.
    from matplotlib import pyplot  # noqa: PLC0415, ICN001 (slow to import)

    return pyplot.subplots(figsize=SIZE, layout="constrained")[1]


def _new_pair() -> tuple[Axes, Axes]:
    from matplotlib import pyplot  # noqa: PLC0415, ICN001 (slow to import)

    first, second = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")[1]
    return first, second


def tidy_axes(axes: Axes, title: str | None) -> None:
    """Take away what distracts, and give a title."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(visible=True, color="#dddddd", lw=0.6)
    axes.set_axisbelow(True)
    if title:
        axes.set_title(title, loc="left", fontsize="medium", parse_math=False)
