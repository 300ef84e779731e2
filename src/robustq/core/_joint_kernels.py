"""Rows as products of probabilities, one for each class: their logarithms, and who leads."""

import math

import numpy as np
from numba import types

from robustq.kernels import (
    bool_vector,
    code_matrix,
    code_matrix_out,
    float_matrix,
    float_matrix_out,
    float_vector,
    float_vector_out,
    inlined,
    inner,
    int_vector,
    int_vector_out,
    kernel,
)

from ._log_kernels import log_of

__all__ = ["log_joint", "rank", "read"]

LANES = 32  # rows read at a time: their products do not wait for each other
SMALL = 1e-150  # products are kept above this by taking their logarithm in time
SAFE = 1e-250  # a product above this has not underflowed on the way


@inlined
def _best_two(joint):
    best, second = 0, -1
    for c in range(1, len(joint)):
        if joint[c] > joint[best]:
            best, second = c, best
        elif second < 0 or joint[c] > joint[second]:
            second = c
    return best, second


@inlined
def _share(joint, best):
    """Return p(ĉ | f); all classes are equally likely where p(f) = 0."""
    if joint[best] == -math.inf:
        return 1.0 / len(joint)
    total = 0.0
    for c in range(len(joint)):
        total += math.exp(joint[c] - joint[best])
    return 1.0 / total


@kernel(
    types.void(
        *(float_matrix, int_vector_out, int_vector_out, float_vector_out),
        *(float_vector_out, float_vector_out),
    )
)
def rank(joint, prediction, runner_up, probability, top, lead):
    """Write the best two classes of each row, the probability of the best and its logarithm.

    And by how much that is ahead; infinity if there is only one class.
    """
    for row in range(joint.shape[0]):
        best, second = _best_two(joint[row])
        prediction[row], runner_up[row] = best, second
        probability[row] = _share(joint[row], best)
        top[row] = joint[row, best]
        lead[row] = joint[row, best] - joint[row, second] if second >= 0 else math.inf


@inner
def _log_product(codes, row, c, classes, class_probs, feature_probs, offsets):
    """Return the logarithm of a product that may underflow."""
    part, total = class_probs[c], 0.0
    for feature in range(codes.shape[1]):
        code = codes[row, feature]
        if code >= 0:
            factor = feature_probs[offsets[feature] + code * classes + c]
            if part < SMALL or factor < SMALL:
                total += math.log(part) if part > 0.0 else -math.inf
                part = factor
            else:
                part *= factor
    return total + (math.log(part) if part > 0.0 else -math.inf)


@inner
def _multiply(codes, start, some, class_probs, feature_probs, offsets, at, product):
    """Write the products of some rows, classes by lanes; `at` is room for a number each."""
    classes = len(class_probs)
    for c in range(classes):
        for lane in range(LANES):
            product[c, lane] = class_probs[c]
    if len(feature_probs) == 0:
        return
    for feature in range(codes.shape[1]):
        first = offsets[feature]
        for lane in range(some):
            code = codes[start + lane, feature]
            at[lane] = first + code * classes if code >= 0 else -1
        for c in range(classes):
            for lane in range(some):
                # No branch: what is missing reads anything, and multiplies by 1.
                factor = feature_probs[np.uint64(max(at[lane], 0) + c)]
                product[c, lane] *= factor if at[lane] >= 0 else 1.0


@inner
def _take_logs(codes, start, some, class_probs, feature_probs, offsets, product, logs, joint):
    """Write the logarithms of products.

    The logarithm of a product, not a sum of logarithms: faster, and closer.
    """
    classes = len(class_probs)
    for c in range(classes):
        for lane in range(LANES):
            logs[c, lane] = log_of(max(product[c, lane], SAFE))
    for lane in range(some):
        for c in range(classes):
            # Products of probabilities only fall: one that is not tiny has never been.
            if product[c, lane] > SAFE:
                joint[start + lane, c] = logs[c, lane]
            else:
                joint[start + lane, c] = _log_product(
                    codes, start + lane, c, classes, class_probs, feature_probs, offsets
                )


@kernel(
    types.void(code_matrix, float_vector, float_vector, int_vector, float_matrix_out),
    allocates=True,
)
def log_joint(codes, class_probs, feature_probs, offsets, joint):
    """Write log p(c, f) for each row and class."""
    product, logs = np.zeros((len(class_probs), LANES)), np.zeros((len(class_probs), LANES))
    at = np.zeros(LANES, np.int64)
    for start in range(0, codes.shape[0], LANES):
        some = min(LANES, codes.shape[0] - start)
        _multiply(codes, start, some, class_probs, feature_probs, offsets, at, product)
        _take_logs(
            *(codes, start, some, class_probs, feature_probs, offsets),
            *(product, logs, joint),
        )


@kernel(
    types.void(
        *(code_matrix, float_vector, float_vector, int_vector, bool_vector, code_matrix_out),
        *(float_matrix_out, int_vector_out, int_vector_out, float_vector_out),
        *(float_vector_out, float_vector_out),
    ),
    allocates=True,
)
def read(
    codes,
    class_probs,
    feature_probs,
    offsets,
    alone,
    cells,
    joint,
    prediction,
    runner_up,
    probability,
    top,
    lead,
):
    """Write log p(c, f), where the factors stand, and who leads, in one pass over the rows.

    Parameters
    ----------
    codes : (rows, features); negative where missing
    class_probs, feature_probs : of a naive Bayes model
    offsets : where each feature begins in the table, see `learning.counts.Layout`
    alone : which features have a single category; no ball moves it
    cells : (rows, features), written; −1 where the factor is constant
    joint : (rows, classes), written
    prediction, runner_up, probability, top, lead : (rows,), written; see `rank`
    """
    classes = len(class_probs)
    product, logs = np.zeros((classes, LANES)), np.zeros((classes, LANES))
    at = np.zeros(LANES, np.int64)
    for start in range(0, codes.shape[0], LANES):
        some = min(LANES, codes.shape[0] - start)
        _multiply(codes, start, some, class_probs, feature_probs, offsets, at, product)
        _take_logs(
            *(codes, start, some, class_probs, feature_probs, offsets),
            *(product, logs, joint),
        )
        for lane in range(some):
            row = start + lane
            for feature in range(codes.shape[1]):
                code = codes[row, feature]
                free = code >= 0 and not alone[feature]
                cells[row, feature] = offsets[feature] + code * classes if free else -1
            best, second = _best_two(joint[row])
            prediction[row], runner_up[row] = best, second
            top[row] = joint[row, best]
            lead[row] = joint[row, best] - joint[row, second] if second >= 0 else math.inf
            if product[best, lane] > SAFE:
                total = 0.0
                for c in range(classes):
                    total += product[c, lane]
                probability[row] = product[best, lane] / total
            else:
                probability[row] = _share(joint[row], best)
