"""Loops over rows of codes. A negative code is a missing value: its factor is 1.

Cells of a table stand at offsets[feature] + code * classes + class.
"""

import math

import numpy as np
from numba import types

from robustq.kernels import (
    code_matrix,
    float_matrix_out,
    float_vector,
    float_vector_out,
    int_vector,
    kernel,
)

__all__ = ["count", "log_joint"]

READ = 8  # rows read at a time
SAFE = 1e-250  # a product above this has not underflowed on the way
SMALL = 1e-150  # products are kept above this by taking their logarithm in time


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


@kernel(
    types.void(code_matrix, float_vector, float_vector, int_vector, float_matrix_out),
    allocates=True,
)
def log_joint(codes, class_probs, feature_probs, offsets, out):
    """Write log p(c, f) for each row and class.

    The logarithm of a product, not a sum of logarithms: faster, and closer.
    """
    classes = len(class_probs)
    product = np.zeros((READ, classes))
    for start in range(0, codes.shape[0], READ):
        # A few rows at a time: their products do not wait for each other.
        some = min(READ, codes.shape[0] - start)
        for i in range(some):
            for c in range(classes):
                product[i, c] = class_probs[c]
        for feature in range(codes.shape[1]):
            for i in range(some):
                code = codes[start + i, feature]
                if code >= 0:
                    cell = offsets[feature] + code * classes
                    for c in range(classes):
                        product[i, c] *= feature_probs[cell + c]
        for i in range(some):
            for c in range(classes):
                # Products of probabilities only fall: one that is not tiny has never been.
                if product[i, c] > SAFE:
                    out[start + i, c] = math.log(product[i, c])
                    continue
                part, total = class_probs[c], 0.0
                for feature in range(codes.shape[1]):
                    code = codes[start + i, feature]
                    if code >= 0:
                        factor = feature_probs[offsets[feature] + code * classes + c]
                        if part < SMALL or factor < SMALL:
                            total += math.log(part) if part > 0.0 else -math.inf
                            part = factor
                        else:
                            part *= factor
                out[start + i, c] = total + (math.log(part) if part > 0.0 else -math.inf)
