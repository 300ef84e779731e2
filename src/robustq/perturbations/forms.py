"""Bounds that are simple functions of one number: what lets one kernel serve many balls."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from robustq.exceptions import InputError, UnsupportedError

from . import arguments
from .form_checks import find_fault

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import ArrayLike

    from robustq.arrays import Floats

    from .base import Perturbation

__all__ = ["Form", "as_masses", "check_form", "rows_behind"]

# What stands for no rows at all: its inverse, and the square of that, are finite.
NO_ROWS = 1e-150


class Form(NamedTuple):
    """The bounds on single outcomes as functions of one number x ≥ 0 that grows with δ.

    The lower bound on a probability p is (p − x·fall)/(1 + x·fall_scale), the upper bound
    (p + x·rise)/(1 + x·rise_scale), each cut to [0, 1]. Each array has the shape of p; they may
    share memory, so do not write to them.
    """

    fall: Floats
    fall_scale: Floats
    rise: Floats
    rise_scale: Floats

    def lower(self, p: ArrayLike, x: ArrayLike) -> Floats:
        """Return the lower bounds on p at x; p and x broadcast against the arrays.

        Examples
        --------
        >>> from robustq.perturbations import get
        >>> p = np.array([0.5, 0.3, 0.2])
        >>> get("tv").form(p).lower(p, 0.25)
        array([0.25, 0.05, 0.  ])
        """
        x = np.asarray(x, dtype=np.float64)
        bound = (np.asarray(p) - x * self.fall) / (1.0 + x * self.fall_scale)
        return np.clip(bound, 0.0, 1.0)

    def upper(self, p: ArrayLike, x: ArrayLike) -> Floats:
        """Return the upper bounds on p at x; p and x broadcast against the arrays."""
        x = np.asarray(x, dtype=np.float64)
        bound = (np.asarray(p) + x * self.rise) / (1.0 + x * self.rise_scale)
        return np.clip(bound, 0.0, 1.0)


def as_masses(p: ArrayLike) -> Floats:
    """Return p as float64, at most 1: rounding may have left it a little above."""
    return np.minimum(arguments.numbers(p, "p"), 1.0)


def rows_behind(p: Floats, rows: ArrayLike | None) -> Floats:
    """Return the rows behind each probability, in the shape of p: 1 for sizes that are equal."""
    if rows is None:
        return np.ones_like(p)
    counted = np.maximum(arguments.numbers(rows, "rows"), NO_ROWS)
    try:
        return np.broadcast_to(counted, p.shape)
    except ValueError as error:
        msg = f"rows has the shape {counted.shape}, which does not fit p, {p.shape}"
        raise InputError(msg) from error


_CHECKED: dict[Hashable, str | None] = {}  # what is wrong with the balls of these keys
_LOCK = threading.RLock()


def check_form(ball: Perturbation) -> None:
    """Check on samples that a ball's form, and what else it claims, agrees with the ball.

    Kernels take a ball at its word: with a wrong form, or where `together` or `keeps_zero`
    does not hold, their results would be wrong without a sign of it. What is compared are
    the bounds of the form with the expectations of indicators, with equal sizes and by rows,
    on random mass functions of two to five outcomes and sizes over the domain. It takes a few
    milliseconds, once for each `Perturbation.key`.

    Raises
    ------
    UnsupportedError
        If something differs; the message names the ball, what was compared, and both numbers.
    """
    key = ball.key
    with _LOCK:
        if key not in _CHECKED:
            _CHECKED[key] = find_fault(ball)
        fault = _CHECKED[key]
    if fault is not None:
        raise UnsupportedError(fault)
