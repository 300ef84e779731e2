"""Kullback–Leibler bounds on single outcomes: the equation KL((x, 1−x)‖(p, 1−p)) = δ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from robustq.blocks import for_each_block

from . import tilts
from .tilts import divergence_terms

if TYPE_CHECKING:
    from robustq.arrays import Floats

__all__ = ["raise_probability"]

# Beyond it the exponential is soon too large for a float.
LARGEST_EXPONENT = 700.0
BLOCK_ROWS = 1 << 14


def raise_probability(p: Floats, rest: Floats, delta: Floats) -> tuple[Floats, Floats]:
    """Return the largest x with KL((x, 1−x)‖(p, 1−p)) ≤ δ, and 1 − x; each with its own digits.

    Parameters
    ----------
    p, rest : ndarray
        A probability, and one minus it with all its digits.
    delta : ndarray
        Sizes; they broadcast.
    """
    shape = np.broadcast_shapes(p.shape, delta.shape)
    # numpy rounds logarithms and exponentials of a view in steps differently.
    p, rest, delta = (
        np.ascontiguousarray(np.broadcast_to(a, shape)).reshape(-1) for a in (p, rest, delta)
    )
    raised = np.empty((2, delta.size))

    def fill(block: slice) -> None:
        with np.errstate(all="ignore"):  # in a branch that is not taken
            raised[:, block] = _raise(p[block], rest[block], delta[block])

    for_each_block(fill, delta.size, BLOCK_ROWS)
    return raised[0].reshape(shape)[()], raised[1].reshape(shape)[()]


def _raise(p: Floats, rest: Floats, delta: Floats) -> tuple[Floats, Floats]:
    possible = (p > 0.0) & (rest > 0.0) & (delta > 0.0)
    room = tilts.room_left(p, rest, delta)
    full = possible & ~(room > 0.0)
    x, y = np.where(full, 1.0, p), np.where(full, 0.0, rest)
    rows = np.flatnonzero(possible & (room > 0.0))
    p, rest, delta, room = p[rows], rest[rows], delta[rows], room[rows]
    t = tilts.solve(
        lambda t, some: _measure(p[some], rest[some], t), delta, room, np.sqrt(p) * np.sqrt(rest)
    )
    x[rows], y[rows] = _polish(p, rest, delta, room, t)
    return x, y


def _shares(p: Floats, rest: Floats, t: Floats) -> tuple[Floats, Floats]:
    """Return x and 1 − x whose odds are eᵗ times those of p."""
    half = np.exp(-0.5 * t)  # by halves, because eᵗ alone may be too large
    against = (rest * half) / p * half
    return 1.0 / (1.0 + against), against / (1.0 + against)


def _measure(p: Floats, rest: Floats, t: Floats) -> tilts.Tilt:
    x, y = _shares(p, rest, t)
    # The larger of the two outcomes changes by the factor e^(−log_mean), the other by eᵗ more or
    # less: so seen, the smaller one adds to the logarithm what it can, and nothing cancels.
    small = p <= rest
    log_mean = np.log1p(np.where(small, p * np.expm1(t), rest * np.expm1(-t)))
    log_mean = np.where(small & (t > LARGEST_EXPONENT), -np.log(y / rest), log_mean)
    rise = np.where(small, t, 0.0) - log_mean
    fall = np.where(small, 0.0, -t) - log_mean
    divergence = divergence_terms(p, x, rise) + divergence_terms(rest, y, fall)
    return tilts.Tilt(divergence, t * y + np.log1p(y / x), t * t * x * y)


def _polish(
    p: Floats, rest: Floats, delta: Floats, room: Floats, t: Floats
) -> tuple[Floats, Floats]:
    """Take one last step of Newton's method in x or 1 − x itself, whichever is smaller.

    A tilt of several hundred, even with all its digits, leaves two less for the probability.
    Of the divergence and the room left, the smaller one is looked at: it has the digits.
    """
    x, y = _shares(p, rest, t)
    by_x = x <= y
    moved = np.where(by_x, x - p, rest - y)
    rise = np.where(moved < p, np.log1p(moved / p), np.log(x / p))
    fall = np.where(moved < 0.5 * rest, np.log1p(-moved / rest), np.log(y / rest))
    divergence = divergence_terms(p, x, rise) + divergence_terms(rest, y, fall)
    left = y * (np.log(rest) - np.log(p) - np.log(y)) - x * np.log1p(-y)
    excess = np.where(by_x | (delta <= room), divergence - delta, room - left)
    # The slope of either, against x, is t.
    x, y = x - excess / t, y + excess / t
    return np.where(by_x, x, 1.0 - y), np.where(by_x, 1.0 - x, y)
