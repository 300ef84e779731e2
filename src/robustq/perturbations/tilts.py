"""How far a mass function must be tilted to lie at a given Kullback–Leibler divergence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from robustq.arrays import Floats, Indices

    Measure = Callable[[Floats, Indices], "Tilt"]

__all__ = ["Tilt", "divergence_terms", "room_left", "solve"]

MAX_STEPS = 300
# After a step of Newton's method that is this small only rounding is left ...
TOLERANCE = 1e-9
# ... if the equation nearly holds: on a plateau, where the slope is but rounding, it need not.
NEAR = 1e-3
LARGEST_FACTOR = 20.0
STRAIGHT = 30.0  # from here on log(eᵗ−1) is t
ROUNDING = 2.0**-52

SMALL = 0.1
# The coefficients of Σ (n−1)/n! xⁿ⁻², highest power first: see `divergence_terms`.
SERIES = tuple((n - 1) / math.factorial(n) for n in range(11, 1, -1))


class Tilt(NamedTuple):
    """What the mass function q_t ∝ q e^(−tf) is like, one number per row."""

    divergence: Floats  # KL(q_t‖q)
    room: Floats  # how much further it can go: KL(q_∞‖q) − KL(q_t‖q)
    slope: Floats  # of the divergence against log t


def divergence_terms(q: Floats, p: Floats, x: Floats) -> Floats:
    """Return p log(p/q) − p + q with x = log(p/q), never negative; their sum is KL(p‖q).

    Near x = 0 a term is q x² Σ (n−1)/n! xⁿ⁻², because its parts cancel.
    """
    series = q * x * x * np.polyval(SERIES, x)
    return np.where(np.abs(x) < SMALL, series, p * x - (p - q))


def room_left(mass: Floats, rest: Floats, delta: Floats) -> Floats:
    """Return −log(mass) − δ, not positive where a ball of size δ holds all of {mass}.

    Parameters
    ----------
    mass, rest : ndarray
        The probability of an event and of its complement, both with all their digits.
    delta : ndarray
        Sizes.
    """
    grown = mass * np.exp(delta)  # has more digits than the logarithm of a small mass
    from_grown = np.where(grown > 0.5, -np.log1p(grown - 1.0), -np.log(grown))
    return np.where(mass > 0.5, -np.log1p(-rest) - delta, from_grown)


def solve(measure: Measure, delta: Floats, room: Floats, spread: Floats) -> Floats:
    """Return the t > 0 at which the divergence is δ, by Newton's method in a kept bracket.

    The equation is that of the log odds of the divergence within [0, limit], and
    the unknown log(eᵗ−1), which is log t for small t and t for large: the one is nearly
    linear in the other at both ends.

    Parameters
    ----------
    measure : callable
        Takes tilts t and the rows they are for; returns their `Tilt`.
    delta, room : ndarray of shape (rows,)
        The size, and what it leaves of the limit; both positive.
    spread : ndarray of shape (rows,)
        The standard deviation of f under q, where f goes from 0 to 1.

    Returns
    -------
    ndarray of shape (rows,)
    """
    # A variance on [0, 1] is at most 1/4, so the divergence is at most t²/8.
    low = np.sqrt(8.0 * delta) * (1.0 - 8.0 * ROUNDING)
    high = np.full_like(low, np.inf)
    t = np.maximum(low, 2.0 * np.log1p(np.sqrt(0.5 * delta) / spread))
    last = np.full_like(low, np.inf)
    rows = np.arange(len(delta))
    for _ in range(MAX_STEPS):
        here, tilt = t[rows], measure(t[rows], rows)
        error = np.log(tilt.divergence / delta[rows]) - np.log(tilt.room / room[rows])
        short = error < 0.0
        low[rows] = np.where(short, here, low[rows])
        high[rows] = np.where(short, high[rows], here)
        step = _newton_step(here, error, tilt)
        there = _move(here, step)
        small = (np.abs(step) <= TOLERANCE) | (np.abs(there - here) <= 2.0 * ROUNDING * here)
        near = np.abs(error) < NEAR
        # Newton must stay inside and at least halve its steps, or it may go in circles.
        inside = (there >= low[rows]) & (there <= high[rows])
        good = inside & (np.abs(step) <= 0.5 * last[rows]) & (near | ~small)
        t[rows] = np.where(good, there, _between(low[rows], high[rows], here))
        last[rows] = np.where(good, np.abs(step), np.inf)
        narrow = high[rows] - low[rows] <= 4.0 * ROUNDING * here
        rows = rows[~((good & small) | narrow)]
        if not len(rows):
            break
    return t


def _newton_step(t: Floats, error: Floats, tilt: Tilt) -> Floats:
    """Return the change of log(eᵗ−1) that would make the error vanish."""
    rate = tilt.slope * (1.0 / tilt.divergence + 1.0 / tilt.room)  # of the error, per log t
    return error / rate * t / np.expm1(-t)


def _move(t: Floats, step: Floats) -> Floats:
    """Change log(eᵗ−1) by a step, t itself by no more than `LARGEST_FACTOR`."""
    curved = np.log1p(np.expm1(np.minimum(t, STRAIGHT)) * np.exp(step))
    moved = np.where(t < STRAIGHT, curved, t + step)
    return np.clip(moved, t / LARGEST_FACTOR, t * LARGEST_FACTOR)


def _between(low: Floats, high: Floats, t: Floats) -> Floats:
    """Return the middle of the bracket in log t, or further on where it has no end yet."""
    return np.where(np.isinf(high), LARGEST_FACTOR * t, np.sqrt(low) * np.sqrt(high))
