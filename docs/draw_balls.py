"""Draw each ball on the three-outcome simplex: `make figures`.

The boundary of a convex set is traced by its minimisers: one for each direction of f.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Polygon

from robustq.perturbations import Perturbation, get

if TYPE_CHECKING:
    from matplotlib.axes import Axes

IMAGES = Path(__file__).parent / "images"

CENTRE = np.array([0.55, 0.30, 0.15])
# Sizes chosen so that the balls are of comparable extent in the picture.
BALLS = {
    "epsilon": ("ε-contamination", (0.1, 0.25, 0.45)),
    "tv": ("total variation", (0.06, 0.15, 0.3)),
    "chi2": ("χ²", (0.04, 0.2, 0.7)),
    "pari_mutuel": ("pari-mutuel", (0.15, 0.4, 0.8)),
    "odds_ratio": ("constant odds ratio", (0.3, 0.6, 0.85)),
    "kl": ("Kullback–Leibler", (0.02, 0.1, 0.3)),
}
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])
LABELS = ("a", "b", "c")
COLOURS = ("#08519c", "#4292c6", "#9ecae1")
INK = "#222222"


def boundary(ball: Perturbation, delta: float) -> np.ndarray:
    """Return points around the ball, in the plane of the simplex."""
    angles = np.linspace(0, 2 * np.pi, 2881)
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    minimisers = ball.minimising(CENTRE, directions @ CORNERS.T, delta)
    return minimisers @ CORNERS


def draw(axes: Axes, name: str) -> None:
    """Draw the simplex and the balls of three sizes around the centre."""
    title, sizes = BALLS[name]
    ball = get(name)
    axes.add_patch(Polygon(CORNERS, closed=True, facecolor="#f7f7f7", edgecolor=INK, lw=1.2))
    for delta, colour in zip(reversed(sizes), reversed(COLOURS), strict=True):
        axes.add_patch(
            Polygon(
                boundary(ball, delta),
                closed=True,
                fc=colour,
                ec=INK,
                lw=0.6,
                label=f"δ = {delta:g}",
            )
        )
    axes.plot(*(CENTRE @ CORNERS), "o", color="white", mec=INK, ms=5, label="q", ls="none")
    for corner, label, (dx, dy) in zip(
        CORNERS, LABELS, ((-0.05, -0.02), (0.05, -0.02), (0, 0.045)), strict=True
    ):
        axes.text(corner[0] + dx, corner[1] + dy, label, ha="center", va="center", fontsize=12)
    axes.set_title(title, fontsize=13, color=INK)
    handles, texts = axes.get_legend_handles_labels()
    axes.legend(
        handles[::-1],
        texts[::-1],
        loc="upper right",
        frameon=False,
        fontsize=9,
        bbox_to_anchor=(1.08, 1.0),
    )
    axes.set_xlim(-0.1, 1.1)
    axes.set_ylim(-0.07, 0.95)
    axes.set_aspect("equal")
    axes.axis("off")


def main() -> None:
    """Write one picture per ball, and one of all six."""
    IMAGES.mkdir(exist_ok=True)
    for name in BALLS:
        figure, axes = plt.subplots(figsize=(4.2, 3.8), layout="constrained")
        draw(axes, name)
        figure.savefig(IMAGES / f"ball_{name}.png", dpi=130)
        plt.close(figure)
    figure, grid = plt.subplots(2, 3, figsize=(11, 7), layout="constrained")
    for axes, name in zip(grid.flat, BALLS, strict=True):
        draw(axes, name)
    figure.savefig(IMAGES / "balls.png", dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
