"""Room for kernels: arrays that begin where a line of the cache does.

numpy lays arrays out anywhere. What several numbers are read from at once then mostly lies in two
lines of the cache, which takes twice as long; and how long it takes differs from run to run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from robustq.arrays import Floats, Indices

__all__ = ["align", "make_floats", "make_indices"]

LINE = 8  # numbers of 64 bits to a line of the cache


def make_floats(size: int) -> Floats:
    """Return so many zeros."""
    return make_indices(size).view(np.float64)


def make_indices(size: int) -> Indices:
    """Return so many whole zeros."""
    made = np.zeros(size + LINE, dtype=np.int64)
    first = -(made.ctypes.data // made.itemsize) % LINE
    return made[first : first + size]


def align(table: Floats) -> Floats:
    """Return a copy of a table."""
    made = make_floats(table.size).reshape(table.shape)
    made[...] = table
    return made
