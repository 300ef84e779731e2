"""Sizes by rows, and the numbers in which bounds are simple functions of a size."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from . import arguments

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from robustq.arrays import Floats

__all__ = ["from_odds", "hidden_records", "per_row", "to_odds"]

LAST_BELOW_ONE = math.nextafter(1.0, 0.0)


def per_row(delta: ArrayLike, rows: ArrayLike) -> Floats:
    """Return δ/n, infinite for n = 0, but 0 wherever δ is."""
    size, n = _check(delta, rows)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(size > 0.0, size / n, 0.0)


def hidden_records(delta: ArrayLike, rows: ArrayLike) -> Floats:
    """Return δ/(n+δ), the share of δ hidden records among all, but 0 wherever δ is."""
    size, n = _check(delta, rows)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = np.where(size > 0.0, 1.0 / (1.0 + n / size), 0.0)
    # However many they are, those that were seen still count.
    return np.where((n > 0.0) & np.isfinite(size), np.minimum(share, LAST_BELOW_ONE), share)


def to_odds(delta: ArrayLike) -> Floats:
    """Return δ/(1−δ), infinite from 1 on."""
    size = arguments.numbers(delta, "delta")
    return np.where(size < 1.0, size / np.where(size < 1.0, 1.0 - size, 1.0), np.inf)[()]


def from_odds(x: ArrayLike) -> Floats:
    """Return x/(1+x), infinite where x is: no size belongs to it."""
    odds = arguments.numbers(x, "x")
    finite = np.isfinite(odds)
    if finite.all():
        return (odds / (1.0 + odds))[()]
    return np.where(finite, odds / (1.0 + np.where(finite, odds, 0.0)), odds)[()]


def _check(delta: ArrayLike, rows: ArrayLike) -> tuple[Floats, Floats]:
    size = arguments.not_negative(delta, "delta")
    n = arguments.not_negative(rows, "rows")
    arguments.require_broadcast(rows=n, delta=size)
    return size, n
