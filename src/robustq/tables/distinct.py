"""Rows that are equal, found by hashing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from robustq.arrays import Codes, Indices

__all__ = ["find_distinct"]


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
