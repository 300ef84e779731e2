"""Quantiles of numbers that are in parts: exact, and the same for any parts.

A sketch would need a single look at the numbers, but what it gives depends on how they are parted,
and bins would with it. Here each look counts the weights of numbers by their first bits, among
those that may still be a quantile, until the quantiles are known to the last bit. Two or three
looks are enough for most columns: as soon as few numbers are left they are counted one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from robustq.arrays import Floats

__all__ = ["Histogram", "Search", "Window"]

FIRST_BITS = 16
MOST_BUCKETS = 1 << 18  # that a look counts
FEW_NUMBERS = 1 << 16  # are counted one by one
SIGN = np.uint64(1 << 63)


@dataclass(frozen=True)
class Window:
    """What the next look at a column counts.

    Attributes
    ----------
    open : ndarray of uint64
        First bits of the numbers to count, sorted; all are counted before the first look.
    known, wanted : int
        How many bits these are, and how many are to be told apart.
    """

    open: np.ndarray[Any, Any]
    known: int
    wanted: int

    def count(self, numbers: Floats, weights: Floats) -> Histogram:
        """Count numbers, NaN where one is missing."""
        present = ~np.isnan(numbers)
        keys, weights = _as_keys(numbers[present]), weights[present]
        if self.known:
            chosen = np.isin(_first(keys, self.known), self.open)
            keys, weights = keys[chosen], weights[chosen]
        return Histogram.of(_first(keys, self.wanted), weights, np.ones(len(keys)))


class Histogram(NamedTuple):
    """Weights, and how many numbers, by their first bits."""

    keys: np.ndarray[Any, Any]
    weights: Floats
    rows: Floats

    @classmethod
    def of(cls, keys: np.ndarray[Any, Any], weights: Floats, rows: Floats) -> Histogram:
        """Add up what has the same key."""
        found, at = np.unique(keys, return_inverse=True)
        size = len(found)
        sums = (np.bincount(at, each, size).astype(np.float64) for each in (weights, rows))
        return cls(found, *sums)

    def __add__(self, other: Histogram) -> Histogram:  # type: ignore[override]
        """Return the sum of two parts."""
        both = zip(self, other, strict=True)
        return Histogram.of(*(np.concatenate(pair) for pair in both))


@dataclass
class Search:
    """The search for the quantiles of a column, by looks at all of its parts.

    The quantile of a share is the smallest number whose cumulative share of the weights reaches
    it: numpy's "inverted_cdf".

    Attributes
    ----------
    shares : ndarray
    keys : ndarray of uint64
        What is known of each quantile, its first bits.
    before : ndarray
        The weight of all numbers whose first bits are smaller.
    total : float
        The weight of all numbers.
    bits : int
        How many bits are known.
    left : float
        How many numbers may still be a quantile.
    """

    shares: Floats
    keys: np.ndarray[Any, Any]
    before: Floats
    total: float = 0.0
    bits: int = 0
    left: float = np.inf

    @classmethod
    def begin(cls, shares: Floats) -> Search:
        """Return a search that knows nothing yet."""
        return cls(shares, np.zeros(len(shares), dtype=np.uint64), np.zeros(len(shares)))

    @property
    def done(self) -> bool:
        """Whether the quantiles are known."""
        return self.bits == 64 or not len(self.shares) or (self.bits > 0 and not self.total)

    @property
    def window(self) -> Window:
        """What to look at next."""
        found = np.unique(self.keys)
        if not self.bits:
            return Window(found, 0, FIRST_BITS)
        if self.left <= FEW_NUMBERS:
            return Window(found, self.bits, 64)
        more = max(1, int(np.log2(MOST_BUCKETS / len(found))))
        return Window(found, self.bits, min(64, self.bits + more))

    def narrow(self, window: Window, found: Histogram) -> None:
        """Learn from what all parts counted in a window."""
        if not window.known:
            self.total = float(found.weights.sum())
        parents = _drop(found.keys, window.wanted - window.known)
        sums = np.cumsum(found.weights)
        for index, share in enumerate(self.shares if self.total else ()):
            if window.known:
                start = int(np.searchsorted(parents, self.keys[index], "left"))
                stop = int(np.searchsorted(parents, self.keys[index], "right"))
            else:
                start, stop = 0, len(found.keys)
            base = self.before[index] - (sums[start - 1] if start else 0.0)
            # Divided as numpy does it, so that rounding decides alike.
            reached = (sums[start:stop] + base) / self.total >= share
            at = start + (int(reached.argmax()) if reached.any() else stop - start - 1)
            self.before[index] = base + (sums[at - 1] if at else 0.0)
            self.keys[index] = found.keys[at]
        self.left = float(found.rows[np.isin(found.keys, self.keys)].sum())
        self.bits = window.wanted

    @property
    def quantiles(self) -> Floats:
        """The quantiles, once they are known."""
        return _as_numbers(self.keys) if self.total else np.empty(0)


def _as_keys(numbers: Floats) -> np.ndarray[Any, Any]:
    """Return whole numbers of 64 bits that are ordered as the numbers are."""
    bits = (numbers + 0.0).view(np.uint64)
    return np.where(bits & SIGN, ~bits, bits | SIGN)


def _as_numbers(keys: np.ndarray[Any, Any]) -> Floats:
    return np.where(keys & SIGN, keys & ~SIGN, ~keys).view(np.float64)


def _first(keys: np.ndarray[Any, Any], bits: int) -> np.ndarray[Any, Any]:
    return _drop(keys, 64 - bits)


def _drop(keys: np.ndarray[Any, Any], bits: int) -> np.ndarray[Any, Any]:
    # A shift by all 64 bits is undefined.
    return keys >> np.uint64(bits) if bits < 64 else np.zeros_like(keys)
