"""The mean of several curves, over runs or data sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from robustq.exceptions import InputError

from .curves import Curve, check_rates

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike

    from robustq.arrays import Floats

__all__ = ["GRID", "AverageCurve", "average_curves"]

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


def average_curves(curves: Iterable[Curve], rates: ArrayLike = GRID) -> AverageCurve:
    """Return the mean of curves, of any lengths, at common rejection rates.

    Parameters
    ----------
    curves : iterable of Curve
    rates : array_like, default 0, 0.01, …, 0.99
    """
    given = list(curves)
    if not given:
        msg = "there must be at least one curve"
        raise InputError(msg)
    grid = check_rates(rates)
    values = np.stack([curve.at(grid) for curve in given])
    deviation = values.std(axis=0, ddof=1) if len(given) > 1 else np.zeros_like(grid)
    area = float(np.mean([curve.auc for curve in given]))
    return AverageCurve(grid, values.mean(axis=0), deviation, area, len(given))
