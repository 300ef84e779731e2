"""Draw how robust one forest is when more and more of it may be wrong: `make figures`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from robustq import GenerativeForestClassifier, datasets, rejection

IMAGES = Path(__file__).parent / "images"
CHOICES: dict[str, dict[str, Any]] = {
    "weights\n(the paper's)": {},
    "root": {"parts": ["root"]},
    "leaf_classes": {"parts": ["leaf_classes"]},
    "leaf_features": {"parts": ["leaf_features"]},
    "all": {"parts": "all"},
}
RIGHT, WRONG, INK = "#4292c6", "#d94801", "#222222"


def main() -> None:
    """Fit a forest on the German credit data and draw the robustness of its predictions."""
    german = datasets.load("german")
    rows, tests = train_test_split(range(1000), test_size=0.4, random_state=0)
    model = GenerativeForestClassifier(random_state=0).fit(german.X.take(rows), german.y[rows])
    X, y = german.X.take(tests), german.y[tests]
    correct = model.predict(X) == y
    figure, axes = plt.subplots(figsize=(8.0, 3.4), layout="constrained")
    labels = []
    for place, (name, options) in enumerate(CHOICES.items()):
        size = model.robustness(X, "tv", **options)
        for side, (chosen, colour) in enumerate(((correct, RIGHT), (~correct, WRONG))):
            spread = np.quantile(np.minimum(size[chosen], 1.0), [0.1, 0.25, 0.5, 0.75, 0.9])
            at = place + 0.16 * (2 * side - 1)
            axes.plot([at, at], spread[[0, 4]], color=colour, linewidth=1.5)
            axes.plot([at, at], spread[[1, 3]], color=colour, linewidth=7, solid_capstyle="butt")
            axes.plot(at, spread[2], "o", color="white", markersize=3.5)
        labels.append(f"{name}\nAU-ARC {rejection.auc(correct, size):.3f}")
    axes.set_yscale("log")
    axes.set_ylabel("size of total variation\nthat flips the prediction", color=INK)
    axes.set_xticks(range(len(labels)), labels, fontsize=9)
    axes.plot([], [], color=RIGHT, linewidth=7, label="right predictions")
    axes.plot([], [], color=WRONG, linewidth=7, label="wrong ones")
    axes.legend(frameon=False, loc="lower left", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title("One forest, five choices of what may be wrong", fontsize=11, loc="left")
    figure.savefig(IMAGES / "parts.png", dpi=150)


if __name__ == "__main__":
    main()
