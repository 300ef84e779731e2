"""Loops over the bytes of CSV, where it is plain: no cell holds a quote, a delimiter or a line end.

Cells may stand in quotes. A text is plain if each of its cells either has no quote, or one at its
beginning, one at its end, and no other: then quotes hide nothing, and every delimiter and line end
is one. So it is enough to count the quotes.
"""

import numpy as np
from numba import types

from robustq.kernels import (
    code_matrix_out,
    count_bits,
    find_bytes,
    inner,
    int_vector,
    kernel,
    lowest_bit,
)

__all__ = ["BLOCK", "NOT_PLAIN", "cut"]

BLOCK = 64  # bytes that are looked at at once
NOT_PLAIN = -1
NEWLINE, RETURN, QUOTE = 10, 13, 34

byte_vector = types.Array(types.uint8, 1, "C", readonly=True)


@inner
def _first_bits(count):
    """Return a word whose first bits are set."""
    if count >= BLOCK:
        return ~np.uint64(0)
    return (np.uint64(1) << np.uint64(count)) - np.uint64(1)


@kernel(
    types.int64(
        *(byte_vector, types.int64, types.int64, int_vector, code_matrix_out, code_matrix_out)
    )
)
def cut(text, size, delimiter, places, begins, ends):
    """Write where the cells of rows begin and end; return how many rows, or `NOT_PLAIN`.

    Parameters
    ----------
    text : whole blocks of bytes, at least
    size : how many of them count; a row ends there
    delimiter : a byte
    places : for each cell of a row where it is wanted, −1 if it is not
    begins, ends : (rows, wanted cells), written
    """
    columns = len(places)
    row, column, begin = np.int64(0), np.int64(0), np.int64(0)
    quotes, returns = np.int64(0), np.int64(0)  # what there is, less what stands at its place
    for at in range(0, size, BLOCK):
        own = _first_bits(size - at)
        lines = find_bytes(text, at, np.uint8(NEWLINE)) & own
        marks = lines | (find_bytes(text, at, np.uint8(delimiter)) & own)
        quotes += np.int64(count_bits(find_bytes(text, at, np.uint8(QUOTE)) & own))
        returns += np.int64(count_bits(find_bytes(text, at, np.uint8(RETURN)) & own))
        while marks != np.uint64(0):
            bit = lowest_bit(marks)
            marks &= marks - np.uint64(1)
            start, stop = begin, at + np.int64(bit)
            begin = stop + 1
            is_last = (lines >> bit) & np.uint64(1) != np.uint64(0)
            if is_last and stop > start and text[np.uint64(stop - 1)] == np.uint8(RETURN):
                stop, returns = stop - 1, returns - 1
            if stop > start and text[np.uint64(start)] == np.uint8(QUOTE):
                if stop < start + 2 or text[np.uint64(stop - 1)] != np.uint8(QUOTE):
                    return NOT_PLAIN
                start, stop, quotes = start + 1, stop - 1, quotes - 2
            place = places[np.uint64(column)]
            if place >= 0:
                begins[row, place], ends[row, place] = start, stop
            column += 1
            if is_last != (column == columns):
                return NOT_PLAIN
            if is_last:
                row, column = row + 1, np.int64(0)
    return row if quotes == 0 and returns == 0 else NOT_PLAIN
