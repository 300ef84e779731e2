"""The mean of several curves, over runs or data sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.exceptions import InputError

from .curves import Curve, check_rates

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from robustq.arrays import Floats

__all__ = ["GRID", "AverageCurve", "average_curves", "read_grid"]

GRID = np.arange(100) / 100


@dataclass(frozen=True, eq=False)
class AverageCurve:
    """The mean of some curves on a common grid.

    Attributes
    ----------
    rates : ndarray of shape (points,)
    accuracy : ndarray of shape (points,)
        The mean accuracy at each rejection rate.
    deviation : ndarray of shape (points,)
        The standard deviation over the curves; 0 if there is one only.
    auc : float
        The mean of the areas under the curves.
    curves : int
        How many there were.
    """

    rates: Floats
    accuracy: Floats
    deviation: Floats
    auc: float
    curves: int


def read_grid(rates: ArrayLike) -> Floats:
    """Return rejection rates, ascending, at least one."""
    grid = np.atleast_1d(check_rates(rates))
    if grid.ndim != 1 or not len(grid) or np.any(np.diff(grid) <= 0):
        msg = f"rejection rates must be a list that ascends, got {np.asarray(rates).tolist()!r}"
        raise InputError(msg)
    return grid


def average_curves(curves: Iterable[Curve], rates: ArrayLike = GRID) -> AverageCurve:
    """Return the mean of curves, of any lengths, at common rejection rates.

    Parameters
    ----------
    curves : iterable of Curve
    rates : array_like, default 0, 0.01, …, 0.99
    """
    given: list[Any] = list(curves) if isinstance(curves, (Iterator, Sequence)) else [curves]
    if not given or not all(isinstance(curve, Curve) for curve in given):
        msg = f"there must be at least one curve, and nothing else, got {given!r}"
        raise InputError(msg)
    grid = read_grid(rates)
    values = np.stack([curve.at(grid) for curve in given])
    deviation = values.std(axis=0, ddof=1) if len(given) > 1 else np.zeros_like(grid)
    area = float(np.mean([curve.auc for curve in given]))
    return AverageCurve(grid, values.mean(axis=0), deviation, area, len(given))
