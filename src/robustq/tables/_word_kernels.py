"""Loops over the words of a text: which are the same, and what they are."""

import numpy as np
from numba import types

from robustq.kernels import (
    code_matrix,
    code_matrix_out,
    code_vector_out,
    inlined,
    int_vector,
    int_vector_out,
    joined,
    kernel,
)

__all__ = ["SLOT_BITS", "copy_words", "eights_vector", "encode"]

SLOT_BITS = 13  # of the number of slots for the words of a column
SCATTER = 0x9E3779B97F4A7C15
LONG = 1 << 63

# What begins at each byte of some text: eight bytes as a number.
eights_vector = types.Array(types.uint64, 1, "A", readonly=True, aligned=False)
eights_vector_out = types.Array(types.uint64, 1, "A", aligned=False)
eights_matrix = types.Array(types.uint64, 2, "A", readonly=True, aligned=False)
byte_matrix_out = types.Array(types.uint8, 2, "C")
key_matrix_out = types.Array(types.uint64, 2, "C")


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
def _is_known(eights, start, length, kept_eights, column, other):
    """Tell whether a word of eight bytes or more is one that is kept, of the same length."""
    for step in range(0, np.int64(length) - 8, 8):
        if eights[start + np.uint64(step)] != kept_eights[column, other + np.uint64(step)]:
            return False
    rest = length - np.uint64(8)
    return eights[start + rest] == kept_eights[column, other + rest]


@joined
def _find_slot(eights, start, length, key, column, keys, slots, kept_eights, offsets):
    """Return the slot of a word: an empty one, if the word is new."""
    slot, mask = (key * np.uint64(SCATTER)) >> np.uint64(64 - SLOT_BITS), slots.shape[1] - 1
    while slots[column, slot] > 0:
        if keys[column, slot] == key:
            word = np.uint64(slots[column, slot] - 1)
            other = np.uint64(offsets[column, word])
            # A short word is its key.
            if length < np.uint64(8) or (
                np.uint64(offsets[column, word + np.uint64(1)]) - other == length
                and _is_known(eights, start, length, kept_eights, column, other)
            ):
                break
        slot = (slot + np.uint64(1)) & np.uint64(mask)
    return slot


@joined
def _keep(eights, start, length, column, count, kept, offsets):
    """Keep a new word behind the others; tell whether there is room."""
    end = np.int64(offsets[column, count])
    if count + 1 == offsets.shape[1] or end + np.int64(length) + 8 > kept.shape[1]:
        return False
    last = np.uint64(len(eights) - 1)
    for i in range(np.int64(length)):
        at = min(start + np.uint64(i), last)
        shift = np.uint64(8) * (start + np.uint64(i) - at)
        kept[column, end + i] = (eights[at] >> shift) & np.uint64(255)
    offsets[column, count + 1] = end + np.int64(length)
    return True


@kernel(
    types.boolean(
        *(eights_vector, code_matrix, code_matrix, int_vector),
        *(key_matrix_out, code_matrix_out, int_vector_out),
        *(byte_matrix_out, eights_matrix, code_matrix_out, code_matrix_out, types.int64),
    )
)
def encode(
    eights, begins, ends, chosen, keys, slots, counts, kept, kept_eights, offsets, codes, at
):
    """Write which word each cell of some columns has; return whether there was room for all words.

    Parameters
    ----------
    eights : what begins at each byte of the text
    begins, ends : (rows, cells), where the cells of each row begin and end
    chosen : (columns,), which cells
    keys, slots : (columns, 2 ** SLOT_BITS), where words are found: a number of their bytes, and,
        counted from 1, which word it is; 0 where none is
    counts : (columns,), how many words there are
    kept, offsets : the words one behind the other, and where each of them begins and ends
    kept_eights : what begins at each byte of what is kept
    codes : (columns, …), written from one place on
    at : that place
    """
    for row in range(len(begins)):
        for column in range(len(chosen)):
            cell = chosen[column]
            start = np.uint64(begins[row, cell])
            length = np.uint64(ends[row, cell]) - start
            long = length >= np.uint64(8)
            key = (
                _digest_long(eights, start, length) if long else _read_short(eights, start, length)
            )
            slot = _find_slot(eights, start, length, key, column, keys, slots, kept_eights, offsets)
            if slots[column, slot] == 0:
                if not _keep(eights, start, length, column, counts[column], kept, offsets):
                    return False
                counts[column] += 1
                keys[column, slot], slots[column, slot] = key, counts[column]
            codes[column, at + row] = slots[column, slot] - 1
    return True


@kernel(
    types.void(
        *(eights_vector, code_matrix, code_matrix, types.int64),
        *(eights_vector_out, code_vector_out),
    )
)
def copy_words(eights, begins, ends, cell, text, offsets):
    """Write one cell of each row, one behind the other, and where they begin and end.

    Parameters
    ----------
    eights, begins, ends : see `encode`; eight more bytes can be read behind the last cell
    cell : which
    text : written, as eight bytes at each; there is room for eight more
    offsets : (rows + 1,), written
    """
    end = np.int64(0)
    offsets[0] = 0
    for row in range(len(begins)):
        start, length = np.int64(begins[row, cell]), np.int64(ends[row, cell] - begins[row, cell])
        for step in range(0, length, 8):
            text[end + step] = eights[start + step]
        end += length
        offsets[row + 1] = end
