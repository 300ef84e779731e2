"""Loops over rows of codes. A negative code is a missing value: its factor is 1.

Cells of a table stand at offsets[feature] + code * classes + class.
"""

import math

import numba
import numpy as np
from numba import types

from robustq.kernel_types import (
    code_matrix,
    float_matrix_out,
    float_vector,
    float_vector_out,
    int_vector,
)

__all__ = ["count", "log_joint"]

# Products are kept above this by taking their logarithm in time.
SMALL = 1e-150


@numba.njit(
    types.void(code_matrix, int_vector, float_vector, int_vector, types.int64, float_vector_out),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def count(codes, labels, weights, offsets, classes, counts):
    """Add the weight of each row to the cells of its codes and label."""
    for row in range(codes.shape[0]):
        for feature in range(codes.shape[1]):
            code = codes[row, feature]
            if code >= 0:
                counts[offsets[feature] + code * classes + labels[row]] += weights[row]


@numba.njit(
    types.void(code_matrix, float_vector, float_vector, int_vector, float_matrix_out),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def log_joint(codes, class_probs, feature_probs, offsets, out):
    """Write log p(c, f) for each row and class."""
    classes = len(class_probs)
    product = np.empty(classes)
    for row in range(codes.shape[0]):
        for c in range(classes):
            product[c] = class_probs[c]
            out[row, c] = 0.0
        for feature in range(codes.shape[1]):
            code = codes[row, feature]
            if code < 0:
                continue
            start = offsets[feature] + code * classes
            for c in range(classes):
                # A few logarithms of products, not a sum of logarithms: faster, and closer.
                factor = feature_probs[start + c]
                if product[c] < SMALL or factor < SMALL:
                    out[row, c] += math.log(product[c]) if product[c] > 0.0 else -math.inf
                    product[c] = factor
                else:
                    product[c] *= factor
        for c in range(classes):
            out[row, c] += math.log(product[c]) if product[c] > 0.0 else -math.inf
