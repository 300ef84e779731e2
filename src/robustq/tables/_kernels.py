"""Loops over the cells of a table."""

import numba
import numpy as np
from numba import types

from robustq.kernels import (
    code_matrix,
    code_matrix_out,
    code_vector,
    int_vector,
    int_vector_out,
    kernel,
)

__all__ = ["find_distinct", "look_up", "look_up_column", "recode"]


@kernel(
    types.void(
        types.Array(types.int64, 2, "A", readonly=True),
        *(int_vector, int_vector, code_vector),
        code_matrix_out,
    )
)
def look_up(values, starts, offsets, table, codes):
    """Write the code of each integer: column j's stand from offsets[j], for starts[j] upward.

    The first of each column, and the last, are of unknown values: whatever is outside has them.
    """
    for row in range(values.shape[0]):
        for j in range(values.shape[1]):
            last = np.uint64(offsets[j + 1] - offsets[j] - 1)
            # What is below 0 is far above the last.
            position = min(np.uint64(values[row, j] - starts[j]), last)
            codes[row, j] = table[np.uint64(offsets[j]) + position]


column_out = types.Array(types.int32, 1, "A")


@kernel(types.void(int_vector, types.int64, code_vector, column_out))
def look_up_column(values, start, table, codes):
    """Write the code of each integer of a column: what stands in the table from start upward.

    The first and the last of the table are of unknown values: whatever is outside has them.
    """
    last = np.uint64(len(table) - 1)
    for row in range(len(values)):
        # What is below 0 is far above the last.
        codes[row] = table[min(np.uint64(values[row] - start), last)]


@kernel(types.void(code_vector, code_vector, column_out))
def recode(indices, table, codes):
    """Write what stands in a table for each index; whatever is outside has the last."""
    last = np.uint64(len(table) - 1)
    for row in range(len(indices)):
        codes[row] = table[min(np.uint64(indices[row]), last)]


@numba.njit(nogil=True, inline="always")
def _first_equal(codes, row, slots):
    key = np.uint64(1469598103934665603)
    for feature in range(codes.shape[1]):
        key = (key ^ np.uint64(codes[row, feature] + 2)) * np.uint64(1099511628211)
    key ^= key >> np.uint64(32)
    mask = np.uint64(len(slots) - 1)
    slot = key & mask
    while slots[slot] > 0:
        other = slots[slot] - 1
        same = True
        for feature in range(codes.shape[1]):
            if codes[row, feature] != codes[other, feature]:
                same = False
                break
        if same:
            return other
        slot = (slot + np.uint64(1)) & mask
    slots[slot] = row + 1
    return row


@kernel(types.int64(code_matrix, int_vector_out, int_vector_out, int_vector_out))
def find_distinct(codes, slots, twins, firsts):
    """Find the rows that differ; return how many.

    Parameters
    ----------
    codes : (rows, columns)
    slots : zeros, a power of two of them, at least twice as many as rows
    twins : (rows,), written: for each row, which of the distinct ones it is
    firsts : (rows,), written: for each distinct row, the first row that is like it
    """
    count = 0
    for row in range(codes.shape[0]):
        first = _first_equal(codes, row, slots)
        if first < row:
            twins[row] = twins[first]
        else:
            twins[row], firsts[count] = count, row
            count += 1
    return count
