"""Rows that are equal, found by hashing, and numbers that differ, counted so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from robustq.arrays import Codes, Indices

    from .encoding import Rows

__all__ = ["MOST_COUNTED", "Different", "Kinds", "find_distinct"]

EVERY = slice(None)

MOST_COUNTED = 1 << 20  # numbers: of more different ones, those are kept whose hash is rare


@dataclass(frozen=True)
class Different:
    """The different numbers of a column; of very many, a sample that tells how many there are.

    What is kept depends on the set of numbers alone, not on their order nor on how they were
    parted (Gibbons' distinct sampling): those whose hash ends in as many zeros as it takes.

    Attributes
    ----------
    values : ndarray
        Sorted.
    level : int
        How many zeros the hash of each ends in, at least.
    most : int
        How many are kept.
    """

    values: np.ndarray[Any, Any]
    level: int
    most: int

    @classmethod
    def of(cls, values: np.ndarray[Any, Any], most: int = MOST_COUNTED) -> Different:
        """Look at numbers, none missing."""
        return _thin(cls(np.unique(values), 0, most))

    def __add__(self, other: Different) -> Different:
        """Return those of both."""
        level = max(self.level, other.level)
        values = np.unique(np.concatenate([self.values, other.values]))
        return _thin(Different(values[_count_zeros(values) >= level], level, self.most))

    @property
    def count(self) -> int:
        """How many there are, about if some were left out."""
        return len(self.values) << self.level


def _thin(found: Different) -> Different:
    values, level, most = found.values, found.level, found.most
    if len(values) > most:
        zeros = _count_zeros(values)
        while np.count_nonzero(zeros >= level) > most:
            level += 1
        values = values[zeros >= level]
    return Different(values, level, most)


def _count_zeros(values: np.ndarray[Any, Any]) -> Indices:
    """Return in how many zeros the hash of each number ends (splitmix64 of it as a float)."""
    z = (values.astype(np.float64) + 0.0).view(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    # The lowest bit alone is a power of two.
    lowest = (z & (~z + np.uint64(1))).astype(np.float64)
    return np.where(z == 0, 64, np.log2(np.maximum(lowest, 1.0))).astype(np.int64)


def find_distinct(codes: Codes) -> tuple[Indices, Indices]:
    """Return the first row of each kind, and for each row which kind it is.

    Parameters
    ----------
    codes : ndarray of shape (rows, columns)
    """
    from . import _kernels  # noqa: PLC0415 (numba is imported when it is needed)

    rows = len(codes)
    slots = np.zeros(1 << (2 * rows).bit_length(), dtype=np.int64)
    twins, firsts = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64)
    count = _kernels.find_distinct(np.ascontiguousarray(codes), slots, twins, firsts)
    return firsts[:count], twins


@dataclass(frozen=True)
class Kinds:
    """Rows, each kind of which is looked at once.

    Attributes
    ----------
    rows : Rows
    firsts : ndarray
        The first row of each kind.
    twins : ndarray of shape (rows,)
        Of which kind each row is.
    """

    rows: Rows
    firsts: Indices
    twins: Indices

    @classmethod
    def of(cls, rows: Rows) -> Kinds:
        """Find equal rows."""
        return cls(rows, *find_distinct(rows.bits))

    def __len__(self) -> int:
        """Return how many kinds there are."""
        return len(self.firsts)

    @property
    def all_differ(self) -> bool:
        """Whether no two rows are equal."""
        return len(self.firsts) == len(self.rows)

    def take(self, block: slice = EVERY) -> Rows:
        """Return the first row of each kind, or of some."""
        return self.rows[block] if self.all_differ else self.rows[self.firsts[block]]
