"""The smallest root of a function that never increases, for many rows at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from robustq.arrays import Floats, Indices
    from robustq.perturbations import Domain

    Margin = Callable[[Indices, Floats], Floats]

__all__ = ["smallest_roots"]

TOLERANCE = 1e-11
LARGEST_EXPONENT, SMALLEST_EXPONENT = 1023, -1074


def smallest_roots(margin: Margin, domain: Domain, rows: int) -> Floats:
    """Return for each row the smallest size at which its margin is no longer positive.

    Parameters
    ----------
    margin : callable
        Takes rows and as many sizes; returns their margins, which are positive where the
        prediction is still robust and never become positive again.
    domain : Domain
    rows : int
        The margins of all rows are taken to be positive at size 0.

    Returns
    -------
    ndarray of shape (rows,)
        Infinite where the margin is positive in the whole domain.
    """
    roots = np.full(rows, np.inf)
    last = _last_size(domain)
    flips = np.flatnonzero(margin(np.arange(rows), np.full(rows, last)) <= 0.0)
    low, high = _bracket(margin, flips, last)
    roots[flips] = _narrow(margin, flips, low, high)
    return roots


def _last_size(domain: Domain) -> float:
    if domain.closed:
        return domain.end
    # The largest float inside; what flips only beyond it cannot be told from what never does.
    return (
        math.ldexp(1.0, LARGEST_EXPONENT)
        if math.isinf(domain.end)
        else math.nextafter(domain.end, 0)
    )


def _bracket(margin: Margin, rows: Indices, last: float) -> tuple[Floats, Floats]:
    """Return for each row two sizes, at most a factor of two apart, that enclose its root."""
    # Robust at 2^low, not at 2^high (or at `last`, the one end that is no power of two).
    low = np.full(len(rows), SMALLEST_EXPONENT)
    high = np.full(len(rows), math.ceil(math.log2(last)))
    # Most roots lie a little below 1: look there first, then at the middle.
    guess = np.full(len(rows), -4)
    while len(active := np.flatnonzero(high - low > 1)):
        middle = (low[active] + high[active]) // 2
        tried = np.where(
            (low[active] < guess[active]) & (guess[active] < high[active]), guess[active], middle
        )
        robust = margin(rows[active], np.ldexp(1.0, tried)) > 0.0
        low[active] = np.where(robust, tried, low[active])
        high[active] = np.where(robust, high[active], tried)
        guess[active] = np.where(robust, tried + 2, tried - 8)
    return np.ldexp(1.0, low), np.minimum(np.ldexp(1.0, high), last)


def _narrow(margin: Margin, rows: Indices, low: Floats, high: Floats) -> Floats:
    """Shrink the brackets to relative width `TOLERANCE` and return their upper ends.

    The ITP method (Oliveira and Takahashi 2020): interpolate, truncate, project. It never needs
    many more steps than bisection, and few where the function is smooth.
    """
    low, high = low.copy(), high.copy()
    at_low, at_high = margin(rows, low), margin(rows, high)
    # A root below the smallest positive float.
    settled = at_low <= 0.0
    high[settled] = low[settled]
    steps = math.ceil(math.log2(1.0 / TOLERANCE)) + 1
    start = high - low
    for step in range(steps + 1):
        active = np.flatnonzero(high - low > TOLERANCE * high)
        if not len(active):
            break
        a, b, fa, fb = low[active], high[active], at_low[active], at_high[active]
        width = b - a
        middle = 0.5 * (a + b)
        interpolated = a + width * (fa / (fa - fb))
        toward = np.sign(middle - interpolated)
        truncation = np.minimum(
            0.2 * width * (width / start[active]), np.abs(middle - interpolated)
        )
        nearest = np.clip(
            middle - interpolated - toward * truncation,
            -(radius := start[active] * 2.0**-step - 0.5 * width),
            radius,
        )
        tried = np.clip(middle - nearest, a + 0.25 * TOLERANCE * b, b - 0.25 * TOLERANCE * b)
        value = margin(rows[active], tried)
        robust = value > 0.0
        low[active], at_low[active] = np.where(robust, tried, a), np.where(robust, value, fa)
        high[active], at_high[active] = np.where(robust, b, tried), np.where(robust, fb, value)
    return high
