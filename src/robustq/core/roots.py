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
FIRST_GUESS, UP, DOWN = -4, 2, -8  # most roots lie a little below 1
WIDEST = 3  # how many powers of two interpolation may begin with
SLACK = 1  # steps beyond those of bisection


def smallest_roots(
    margin: Margin, domain: Domain, rows: int, before: Floats | None = None
) -> Floats:
    """Return for each row the smallest size at which its margin is no longer positive.

    Parameters
    ----------
    margin : callable
        Takes rows and as many sizes; returns their margins, which are positive where the
        prediction is still robust and never become positive again. The fewer steps are needed
        the smoother they are.
    domain : Domain
    rows : int
        The margins of all rows are taken to be positive at size 0.
    before : ndarray of shape (rows,), optional
        Roots beyond these sizes do not matter.

    Returns
    -------
    ndarray of shape (rows,)
        Infinite where the margin is positive in the whole domain, or up to there; 0 where it is
        so at size 0 alone.
    """
    roots = np.full(rows, np.inf)
    last = np.full(rows, _last_size(domain))
    if before is not None:
        last = np.minimum(last, before)
    at_last = margin(np.arange(rows), last)
    flips = np.flatnonzero((at_last <= 0.0) & (last > 0.0))
    if len(flips):
        bracket = _enclose(margin, flips, last[flips], at_last[flips])
        roots[flips] = _narrow(margin, flips, *bracket)
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


def _enclose(
    margin: Margin, rows: Indices, last: Floats, at_last: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return for each row two sizes that enclose its root, and the margins there."""
    # Robust at 2^low, not at 2^high (or at `last`, the one end that is no power of two).
    low = np.full(len(rows), SMALLEST_EXPONENT)
    high = np.ceil(np.log2(last)).astype(np.int64)
    at_low, at_high = np.full(len(rows), np.nan), at_last.copy()
    guess, stride = np.full(len(rows), FIRST_GUESS), np.zeros(len(rows), dtype=np.int64)
    while len(active := np.flatnonzero(high - low > WIDEST)):
        bottom, top, ahead = low[active], high[active], guess[active]
        tried = np.where((bottom < ahead) & (ahead < top), ahead, (bottom + top) // 2)
        found = margin(rows[active], np.ldexp(1.0, tried))
        robust = found > 0.0
        low[active], high[active] = np.where(robust, tried, bottom), np.where(robust, top, tried)
        at_low[active] = np.where(robust, found, at_low[active])
        at_high[active] = np.where(robust, at_high[active], found)
        # Ever farther as long as it goes one way; then the middle.
        way = np.where(robust, UP, DOWN)
        stride[active] = np.where(stride[active] * way > 0, 2 * stride[active], way)
        guess[active] = tried + stride[active]
    unknown = np.flatnonzero(np.isnan(at_low))
    if len(unknown):
        at_low[unknown] = margin(rows[unknown], np.ldexp(1.0, low[unknown]))
    return np.ldexp(1.0, low), np.minimum(np.ldexp(1.0, high), last), at_low, at_high


def _narrow(
    margin: Margin, rows: Indices, low: Floats, high: Floats, at_low: Floats, at_high: Floats
) -> Floats:
    """Shrink the brackets to relative width `TOLERANCE` and return their upper ends.

    The ITP method (Oliveira and Takahashi 2020): interpolate, truncate, project. It never needs
    many more steps than bisection, and few where the function is smooth.
    """
    # A root below the smallest positive float: any size does it.
    high[at_low <= 0.0] = low[at_low <= 0.0] = 0.0
    start = high - low
    for step in range(math.ceil(WIDEST - math.log2(TOLERANCE)) + SLACK + 1):
        active = np.flatnonzero(high - low > TOLERANCE * high)
        if not len(active):
            break
        a, b, fa, fb = low[active], high[active], at_low[active], at_high[active]
        tried = _interpolate(a, b, fa, fb, start[active], step)
        value = margin(rows[active], tried)
        robust = value > 0.0
        low[active], at_low[active] = np.where(robust, tried, a), np.where(robust, value, fa)
        high[active], at_high[active] = np.where(robust, b, tried), np.where(robust, fb, value)
    return high


def _interpolate(a: Floats, b: Floats, fa: Floats, fb: Floats, start: Floats, step: int) -> Floats:
    """Return where to look next between a and b, which were `start` apart before all steps."""
    width, middle = b - a, 0.5 * (a + b)
    straight = a + width * (fa / (fa - fb))
    off = middle - straight
    truncation = np.minimum(0.2 * width * (width / start), np.abs(off))
    radius = np.maximum(start * 2.0 ** (SLACK - step) - 0.5 * width, 0.0)
    nearest = np.clip(off - np.sign(off) * truncation, -radius, radius)
    return np.clip(middle - nearest, a + 0.25 * TOLERANCE * b, b - 0.25 * TOLERANCE * b)
