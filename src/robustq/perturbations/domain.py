"""The sizes a perturbation can have."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from robustq.exceptions import DomainError, InputError

from . import arguments

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from robustq.arrays import Bools, Floats

__all__ = ["Domain"]


@dataclass(frozen=True)
class Domain:
    """The interval from 0 to `end`, closed at 0 and open or closed at `end`.

    Parameters
    ----------
    end : float
        The largest size, positive; may be infinite.
    closed : bool
        Whether `end` itself is a size.

    Examples
    --------
    >>> print(Domain(1, closed=True))
    [0, 1]
    >>> 1.0 in Domain(1, closed=False)
    False
    >>> Domain(1, closed=False).largest
    0.9999999999999999
    """

    end: float = math.inf
    closed: bool = False

    def __post_init__(self) -> None:
        if not (isinstance(self.end, Real) and self.end > 0):
            msg = f"a domain ends above 0, got end={self.end!r}"
            raise InputError(msg)
        if not isinstance(self.closed, bool):
            msg = f"closed must be True or False, got {self.closed!r}"
            raise InputError(msg)
        if self.closed and math.isinf(self.end):
            msg = "an infinite domain is open: give closed=False"
            raise InputError(msg)

    def __str__(self) -> str:
        end = "∞" if math.isinf(self.end) else f"{self.end:g}"
        return f"[0, {end}{']' if self.closed else ')'}"

    def __contains__(self, delta: float) -> bool:
        return bool(np.all(self.contains(arguments.numbers(delta, "delta"))))

    def contains(self, delta: Floats) -> Bools:
        """Tell for each size whether it lies in the domain (NaN never does)."""
        below_end = delta <= self.end if self.closed else delta < self.end
        return (delta >= 0) & below_end

    @property
    def largest(self) -> float:
        """The largest size, as a float: the end, or the last number before it."""
        if self.closed:
            return float(self.end)
        return float(np.nextafter(np.float64(self.end), 0.0))

    def check(self, delta: ArrayLike) -> Floats:
        """Return `delta` as float64, or raise if any size lies outside."""
        sizes = arguments.numbers(delta, "delta")
        inside = self.contains(sizes)
        if not np.all(inside):
            outside = sizes[~inside].flat[0]
            msg = f"delta must lie in {self}, got {outside!s}"
            raise DomainError(msg)
        return sizes
