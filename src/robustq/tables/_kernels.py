"""Loops over the cells of a table."""

import numba
import numpy as np
from numba import types

from robustq.kernels import (
    code_matrix,
    code_matrix_out,
    code_vector,
    code_vector_out,
    inlined,
    int_vector,
    int_vector_out,
    joined,
    kernel,
)

__all__ = ["SLOT_BITS", "find_distinct", "find_words", "look_up", "look_up_column", "recode"]

SLOT_BITS = 13  # of the number of slots for words


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


# What begins at each byte of some text: eight bytes as a number.
eights_vector = types.Array(types.uint64, 1, "A", readonly=True, aligned=False)
key_vector_out = types.Array(types.uint64, 1, "C")
SCATTER = 0x9E3779B97F4A7C15
LONG = 1 << 63


@inlined
def _read_short(eights, start, length):
    """Return the bytes of a word of less than eight, and how many they are, as a number."""
    at = min(start, np.uint64(len(eights) - 1))
    # An empty word may begin behind the last byte.
    ends = eights[at] >> (np.uint64(8) * min(start - at, np.uint64(7)))
    own = (np.uint64(1) << (np.uint64(8) * length)) - np.uint64(1)
    return (ends & own) | (length << np.uint64(56))


@joined
def _digest_long(eights, start, length):
    """Return a number that depends on all bytes of a word of eight or more; no short one's."""
    key = eights[start + length - np.uint64(8)] ^ length
    for step in range(0, np.int64(length) - 8, 8):
        key = (key ^ (key >> np.uint64(32))) * np.uint64(SCATTER) ^ eights[start + np.uint64(step)]
    return key | np.uint64(LONG)


@joined
def _are_equal(eights, one, other, length):
    """Tell whether two words of eight bytes or more are equal."""
    for step in range(0, np.int64(length) - 8, 8):
        if eights[one + np.uint64(step)] != eights[other + np.uint64(step)]:
            return False
    rest = length - np.uint64(8)
    return eights[one + rest] == eights[other + rest]


@kernel(
    types.int64(
        *(eights_vector, code_vector, key_vector_out),
        *(code_vector_out, code_vector_out, code_vector_out),
    )
)
def find_words(eights, offsets, keys, slots, firsts, codes):
    """Find the words that differ; return how many, or −1 if they are more than there is room for.

    Parameters
    ----------
    eights : what begins at each byte of the text
    offsets : (rows + 1,), where each word begins; the last one ends at the last of them
    keys : room for as many as there are slots
    slots : zeros, 2 ** SLOT_BITS of them
    firsts : (most,), written: for each word, the first row that has it; fewer than slots
    codes : (rows,), written: for each row, which word it has
    """
    count = 0
    mask = np.uint64(len(slots) - 1)
    for row in range(len(codes)):
        start = np.uint64(offsets[row])
        length = np.uint64(offsets[row + 1]) - start
        long = length >= np.uint64(8)
        key = _digest_long(eights, start, length) if long else _read_short(eights, start, length)
        slot = (key * np.uint64(SCATTER)) >> np.uint64(64 - SLOT_BITS)
        while slots[slot] > 0:
            if keys[slot] == key:
                first = firsts[slots[slot] - 1]
                other = np.uint64(offsets[first])
                # A short word is its key.
                if not long or (
                    np.uint64(offsets[first + 1]) - other == length
                    and _are_equal(eights, start, other, length)
                ):
                    break
            slot = (slot + np.uint64(1)) & mask
        if slots[slot] == 0:
            if count == len(firsts):
                return -1
            firsts[count], keys[slot] = row, key
            count += 1
            slots[slot] = count
        codes[row] = slots[slot] - 1
    return count
