"""Tables of many classes or features: digits, and rows made up like letter's and splice's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import load_digits

if TYPE_CHECKING:
    from collections.abc import Callable

    from robustq.arrays import Indices

__all__ = ["TABLES", "digits", "make_letters", "make_splices"]


def digits(_: int = 0) -> tuple[Indices, Indices]:
    """Return scikit-learn's digits: 1,797 rows, 64 features of 17 values, 10 classes."""
    data = load_digits()
    return data.data.astype(np.int64), data.target.astype(np.int64)


def make_letters(rows: int) -> tuple[Indices, Indices]:
    """Make 16 features of 16 values and 26 classes, each with a shape of its own."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 26, rows)
    centres = rng.normal(8.0, 3.0, (26, 16))
    X = np.clip(np.round(centres[y] + rng.normal(0.0, 1.8, (rows, 16))), 0, 15)
    return X.astype(np.int64), y


def make_splices(rows: int) -> tuple[Indices, Indices]:
    """Make 60 features of four values, of which eight tell something about three classes."""
    rng = np.random.default_rng(0)
    y = rng.choice(3, rows, p=[0.5, 0.25, 0.25])
    X = rng.integers(0, 4, (rows, 60))
    for c in (0, 1):
        for feature in range(26, 34):
            told = (y == c) & (rng.random(rows) < 0.55)
            X[told, feature] = feature * (c + 1) % 4
    return X, y


TABLES: dict[str, tuple[Callable[[int], tuple[Indices, Indices]], int]] = {
    "digits": (digits, 0),
    "rows made up like letter's": (make_letters, 20_000),
    "rows made up like splice's": (make_splices, 6_000),
}
