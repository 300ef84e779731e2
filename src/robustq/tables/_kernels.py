"""Loops over the cells of a table."""

from numba import types

from robustq.kernels import code_matrix_out, int_vector, kernel

from .codes import UNKNOWN

__all__ = ["look_up"]


@kernel(
    types.void(
        types.Array(types.int64, 2, "A", readonly=True),
        *(int_vector, int_vector, types.Array(types.int32, 1, "C", readonly=True)),
        code_matrix_out,
    )
)
def look_up(values, starts, offsets, table, codes):
    """Write the code of each integer: column j's stand from offsets[j], for starts[j] upward."""
    for row in range(values.shape[0]):
        for j in range(values.shape[1]):
            position = values[row, j] - starts[j]
            if 0 <= position < offsets[j + 1] - offsets[j]:
                codes[row, j] = table[offsets[j] + position]
            else:
                codes[row, j] = UNKNOWN
