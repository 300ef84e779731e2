"""A table of every kind of column."""

import numpy as np
import pandas as pd

ROWS = 300


def weather(rows=ROWS, seed=0):
    """Make a table of every kind of column, and labels that depend on it."""
    rng = np.random.default_rng(seed)
    y = rng.choice(["in", "out", "away"], size=rows, p=[0.5, 0.3, 0.2])
    lean = np.select([y == "in", y == "out"], [0.2, 0.8], 0.5)
    frame = pd.DataFrame(
        {
            "sky": np.where(rng.random(rows) < lean, "sunny", "rainy"),
            "wind": pd.Categorical(rng.choice(["low", "mid", "high"], size=rows)),
            "weekend": rng.random(rows) < lean,
            "month": rng.integers(1, 13, size=rows),
            "degrees": rng.normal(10 + 10 * lean, 5, size=rows),
        }
    )
    return frame, y
