"""Loops over rows of codes. A negative code is a missing value: its factor is 1.

Cells of a table stand at offsets[feature] + code * classes + class.
"""

from numba import types

from robustq.kernels import (
    code_matrix,
    float_vector,
    float_vector_out,
    int_vector,
    kernel,
)

__all__ = ["count"]


@kernel(
    types.void(code_matrix, int_vector, float_vector, int_vector, types.int64, float_vector_out)
)
def count(codes, labels, weights, offsets, classes, counts):
    """Add the weight of each row to the cells of its codes and label."""
    for row in range(codes.shape[0]):
        for feature in range(codes.shape[1]):
            code = codes[row, feature]
            if code >= 0:
                counts[offsets[feature] + code * classes + labels[row]] += weights[row]
