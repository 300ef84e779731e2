"""Pictures of explanations. matplotlib is imported when one is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .words import clean, say_number, say_share, say_value

if TYPE_CHECKING:
    from .explanation import Explanation
    from .posteriors import Turns
    from .summary import Summary

__all__ = ["plot_explanation", "plot_posterior", "plot_summary", "plot_turns"]

# Of Okabe and Ito, whom colour-blind readers tell apart.
FOR, AGAINST, PLAIN = "#0072B2", "#D55E00", "#56B4E9"
MOST = 20  # features that are drawn
HEIGHT = 0.34  # inches of a bar


def plot_explanation(explanation: Explanation, ax: Any = None) -> Any:
    """Draw the support of each feature, the strongest above, and at which size it flips alone."""
    order = sorted(explanation.features, key=lambda feature: -abs(feature.support))
    shown = order[:MOST]
    axes = _new_axes(len(shown)) if ax is None else ax
    finite = [abs(f.support) for f in shown if np.isfinite(f.support)]
    end = 1.15 * max([*finite, 1e-3])
    lengths = [float(np.clip(f.support, -end, end)) for f in shown]
    colours = [FOR if length >= 0 else AGAINST for length in lengths]
    axes.barh(range(len(shown)), lengths, color=colours, height=0.7)
    axes.axvline(0.0, color="black", linewidth=0.8)
    labels = [_text(f"{clean(f.name)} = {say_value(f.value)}") for f in shown]
    axes.set_yticks(range(len(shown)), labels)
    axes.invert_yaxis()
    axes.set_xlim(-end, end)
    for place, feature in enumerate(shown):
        weakest = feature.name == explanation.hangs_on
        told = "–" if feature.alone is None else say_number(feature.alone)
        told = "never" if told == "inf" else told
        axes.annotate(
            f"{told}{' ◀ hangs on it' if weakest else ''}",
            (1.01, place),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize="small",
            fontweight="bold" if weakest else "normal",
        )
    rival = "the runner-up" if explanation.tipping_class is None else explanation.tipping_class
    axes.set_xlabel(
        _text(
            f"◀ speaks for {clean(rival)}    (log-odds)    "
            f"speaks for {clean(explanation.prediction)} ▶"
        )
    )
    axes.annotate(
        "flips alone at", (1.01, 1.01), xycoords="axes fraction", fontsize="small", va="bottom"
    )
    _finish(axes, explanation.title)
    return axes


def plot_posterior(explanation: Explanation, ax: Any = None) -> Any:
    """Draw the classes of a posterior, and a line where the nearest that disagrees has them."""
    shown = explanation.outcomes[:MOST]
    axes = _new_axes(len(shown)) if ax is None else ax
    labels = [clean(outcome.label) for outcome in shown]
    _draw_shares(axes, labels, np.array([outcome.probability for outcome in shown]))
    places = [place for place, outcome in enumerate(shown) if outcome.nearest is not None]
    if places:
        nearest = [100.0 * outcome.nearest for outcome in shown if outcome.nearest is not None]
        line = {"color": AGAINST, "linewidth": 2.5, "label": "nearest that disagrees"}
        axes.vlines(nearest, [p - 0.4 for p in places], [p + 0.4 for p in places], **line)
        axes.legend(frameon=False, fontsize="small", loc="lower right")
    axes.set_xlabel("probability in %")
    _finish(axes, explanation.title)
    return axes


def plot_summary(summary: Summary, ax: Any = None) -> Any:
    """Draw how many predictions hang on each feature."""
    shown = min(len(summary.name), MOST)
    axes = _new_axes(shown) if ax is None else ax
    shares = summary.hanging[:shown] / max(summary.rows, 1)
    _draw_shares(axes, [clean(name) for name in summary.name[:shown]], shares)
    axes.set_xlabel("% of the predictions that hang on it")
    _finish(axes, summary.title)
    return axes


def plot_turns(turns: Turns, ax: Any = None) -> Any:
    """Draw how many predictions would turn into what."""
    cells, shown = turns.cells(), min(len(turns.count), MOST)
    axes = _new_axes(shown) if ax is None else ax
    pairs = zip(cells["prediction"], cells["flips to"], strict=True)
    labels = [f"{label} → {rival or 'nothing'}" for label, rival in pairs]
    _draw_shares(axes, labels[:shown], turns.count[:shown] / max(turns.rows, 1))
    axes.set_xlabel("% of the predictions")
    _finish(axes, turns.title)
    return axes


def _draw_shares(axes: Any, labels: list[str], shares: np.ndarray[Any, Any]) -> None:
    """Draw a bar for each share, with its per cent beside it."""
    axes.barh(range(len(shares)), 100.0 * shares, color=PLAIN, height=0.7)
    axes.set_yticks(range(len(shares)), [_text(label) for label in labels])
    axes.invert_yaxis()
    for place, share in enumerate(shares):
        axes.annotate(
            f" {say_share(share, 1)}", (100.0 * share, place), va="center", fontsize="small"
        )
    axes.set_xlim(0.0, 115.0 * max(float(shares.max(initial=0.0)), 0.01))


def _text(text: str) -> str:
    # To matplotlib, dollars enclose formulas.
    return text.replace("$", r"\$")


def _new_axes(bars: int) -> Any:
    from matplotlib import pyplot as plt  # noqa: PLC0415 (slow to import)

    size = (8.5, 1.4 + HEIGHT * max(bars, 2))
    return plt.subplots(figsize=size, layout="constrained")[1]


def _finish(axes: Any, title: str) -> None:
    axes.set_title(_text(title), loc="left", fontsize="medium", pad=18)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(left=False)
