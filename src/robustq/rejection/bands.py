"""How sure a curve is, by the bootstrap."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np

from robustq.exceptions import InputError

from .averages import GRID, read_grid
from .curves import read_results

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from robustq.arrays import Bools, Floats

__all__ = ["Band", "confidence_band"]

AREA_POINTS = 500


@dataclass(frozen=True, eq=False)
class Band:
    """Between which accuracies a curve lies, at each rejection rate on its own.

    Attributes
    ----------
    rates, low, high : ndarray of shape (points,)
    auc : tuple of float
        The same for the area under the curve.
    confidence : float
    """

    rates: Floats
    low: Floats
    high: Floats
    auc: tuple[float, float]
    confidence: float


def confidence_band(
    correct: ArrayLike,
    score: ArrayLike,
    *,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    rates: ArrayLike = GRID,
    random_state: int | None = 0,
) -> Band:
    """Return a pointwise bootstrap band (percentiles) of an accuracy-rejection curve.

    The cost grows with the number of different scores and of resamples.

    Parameters
    ----------
    correct : array_like of bool, of shape (rows,)
    score : array_like of shape (rows,)
    confidence : float, default 0.95
    n_resamples : int, default 1000
    rates : array_like
    random_state : int, optional

    Returns
    -------
    Band
    """
    if not (isinstance(confidence, Real) and 0.0 < confidence < 1.0):
        msg = f"confidence must lie between 0 and 1, got {confidence!r}"
        raise InputError(msg)
    if not (isinstance(n_resamples, Integral) and n_resamples >= 1):
        msg = f"n_resamples must be at least 1, got {n_resamples!r}"
        raise InputError(msg)
    right, trust = read_results(correct, score)
    grid = read_grid(rates)
    counts = _count_blocks(right, trust)
    try:
        rng = np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        msg = f"random_state={random_state!r} cannot be used to seed: {error}"
        raise InputError(msg) from error
    rows = len(right)
    # For the area, all numbers kept, or a fine grid of them.
    kept = np.append((1.0 - grid) * rows, np.linspace(1, rows, min(rows, AREA_POINTS)))
    curves = np.empty((n_resamples, len(kept)))
    for index in range(n_resamples):
        # Rows of one block that are equally right or wrong are alike: draw how many of each.
        drawn = rng.multinomial(rows, counts.ravel() / rows).reshape(counts.shape)
        sizes = np.concatenate([[0.0], np.cumsum(drawn.sum(axis=1))])
        hits = np.concatenate([[0.0], np.cumsum(drawn[:, 1])])
        curves[index] = np.interp(kept, sizes, hits) / kept
    edge = (1.0 - confidence) / 2.0
    low, high = np.quantile(curves[:, : len(grid)], [edge, 1.0 - edge], axis=0)
    ends = np.quantile(curves[:, len(grid) :].mean(axis=1), [edge, 1.0 - edge])
    return Band(grid, low, high, (float(ends[0]), float(ends[1])), confidence)


def _count_blocks(right: Bools, trust: Floats) -> Floats:
    """Return how many rows of each score, the most trusted first, are wrong and right."""
    _, block = np.unique(-trust, return_inverse=True)
    wrong = np.bincount(block, ~right)
    return np.stack([wrong, np.bincount(block, right)], axis=1)
