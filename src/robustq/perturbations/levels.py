"""Sums over the outcomes in the order of their values.

All functions work along the first axis, the outcomes'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from robustq.arrays import Bools, Floats, Indices

__all__ = [
    "expectation",
    "gaps",
    "mass_above",
    "mass_below",
    "on_support",
    "restore_order",
    "sort_by_value",
    "total",
]


def sort_by_value(q: Floats, f: Floats) -> tuple[Indices, Floats, Floats]:
    """Return the order of the values, upward, and q and f in that order."""
    order = np.argsort(f, axis=0, kind="stable")
    return order, np.take_along_axis(q, order, axis=0), np.take_along_axis(f, order, axis=0)


def restore_order(order: Indices, ordered: Floats) -> Floats:
    """Undo `sort_by_value` for an array in that order."""
    restored = np.empty_like(ordered)
    np.put_along_axis(restored, order, ordered, axis=0)
    return restored


def expectation(q: Floats, f: Floats | Bools) -> Floats:
    """Return Σ q f over the outcomes."""
    return total(q * f)


def total(weights: Floats) -> Floats:
    """Return the sum over the outcomes.

    Always added up one outcome after the other: numpy's own sum takes another order
    for a lone row, and results would depend on how the rows are cut into blocks.
    """
    return weights.sum(axis=0) if weights.shape[1] > 1 else weights.cumsum(axis=0)[-1]


def mass_below(ordered: Floats) -> Floats:
    """Return for each position the sum of what stands before it."""
    below = np.zeros_like(ordered)
    np.cumsum(ordered[:-1], axis=0, out=below[1:])
    return below


def mass_above(ordered: Floats) -> Floats:
    """Return for each position the sum of what stands after it.

    Added up from the far end: one minus the sum so far would cancel.
    """
    return mass_below(ordered[::-1])[::-1]


def on_support(q: Floats, f: Floats) -> tuple[Floats, Floats, Floats]:
    """Clip the values off the support of q to those on it: balls that never leave it do not mind.

    Returns
    -------
    f : ndarray of shape (outcomes, rows)
        The values, as they were where q > 0.
    low, span : ndarray of shape (rows,)
        The smallest value on the support, and the distance to the largest, or 1 if there is none.
    """
    support = q > 0.0
    low = np.min(f, axis=0, where=support, initial=np.inf)
    high = np.max(f, axis=0, where=support, initial=-np.inf)
    return np.clip(f, low, high), low, np.where(high > low, high - low, 1.0)


def gaps(ordered: Floats, span: Floats) -> Floats:
    """Return for each position the distance to the one before it, as a share of the span.

    Subtracted first and divided afterwards: a short distance keeps its digits.
    """
    distances = np.zeros_like(ordered)
    distances[1:] = (ordered[1:] - ordered[:-1]) / span
    return distances
