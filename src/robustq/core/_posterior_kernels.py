"""What is left of joint probabilities when a row is given: p(c | f)."""

import math

from numba import types

from robustq.kernels import float_matrix, float_matrix_out, kernel

__all__ = ["condition"]


@kernel(types.void(float_matrix, float_matrix_out))
def condition(joint, probs):
    """Write p(c | f), given log p(c, f); all classes are equally likely where p(f) = 0.

    Parameters
    ----------
    joint : (rows, classes)
    probs : (rows, classes), written
    """
    rows, classes = joint.shape
    for row in range(rows):
        best = -math.inf
        for c in range(classes):
            best = max(best, joint[row, c])
        total = 0.0
        for c in range(classes):
            share = 1.0 if best == -math.inf else math.exp(joint[row, c] - best)
            probs[row, c] = share
            total += share
        for c in range(classes):
            probs[row, c] /= total
