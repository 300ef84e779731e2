"""Rows as products of probabilities, one for each class: their logarithms, and who leads."""

import math
from typing import TYPE_CHECKING

import numpy as np
from numba import types

from robustq.kernels import (
    code_matrix,
    code_matrix_out,
    code_vector,
    float_matrix,
    float_matrix_out,
    float_vector,
    float_vector_out,
    inlined,
    inner,
    int_vector_out,
    kernel,
)
from robustq.vectors import LANES, load, store

from ._log_kernels import log_of

__all__ = [
    "ROWS",
    "SAFE",
    "extend",
    "log_joint",
    "make_room",
    "rank",
    "rank_some",
    "read",
    "take_logs",
]

if TYPE_CHECKING:
    from robustq.arrays import Codes, Floats

FEW = 1 << 10  # rows
ROWS = 32  # whose products are kept until their logarithms are taken
SMALL = 1e-150  # products are kept above this by taking their logarithm in time
SAFE = 1e-250  # a product above this has not underflowed on the way


def extend(class_probs: "Floats", feature_probs: "Floats") -> "tuple[Floats, Floats]":
    """Return tables that can be read beyond their last class; then come factors of 1."""
    one = np.ones(len(class_probs) + LANES)
    return np.concatenate([class_probs, one]), np.concatenate([feature_probs, one])


def make_room(classes: int, features: int) -> "tuple[Floats, Codes]":
    """Return arrays to work in: products and their logarithms, and where factors stand."""
    return np.ones(2 * (ROWS * classes + LANES)), np.zeros((2, features), dtype=np.int32)


@inlined
def _best_two(joint):
    """Return the best class and the second, −1 if there is none; the first ones of equals."""
    best, second = np.int64(0), np.int64(-1)
    if len(joint) > 1:
        best = np.int64(joint[1] > joint[0])
        second = 1 - best
    top, next_to = joint[best], joint[second]
    for c in range(2, len(joint)):
        # Nobody could foresee the order: bits take the place of jumps.
        value = joint[c]
        first, other = -np.int64(value > top), -np.int64(value > next_to)
        second = (best & first) | (~first & ((c & other) | (second & ~other)))
        best = (c & first) | (best & ~first)
        next_to, top = max(next_to, min(top, value)), max(top, value)
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
def _locate(codes, row, offsets, classes, nothing, at, cells):
    """Write where the factors of the first class stand; cells are −1 where they are missing."""
    for feature in range(len(at)):
        code = codes[row, feature]
        place = np.int32(offsets[feature] + code * classes)
        at[feature] = place if code >= 0 else nothing
        cells[feature] = place if code >= 0 else -1


@inner
def _multiply(at, classes, class_probs, feature_probs, place, product):
    """Write the products of all classes from a place on; what comes after them is overwritten."""
    for first in range(0, classes, LANES):
        whole = load(class_probs, first)
        for feature in range(len(at)):
            whole *= load(feature_probs, at[feature] + first)
        store(product, place + first, whole)


@inner
def take_logs(some, classes, product):
    """Write the logarithms of products behind them.

    The logarithm of a product, not a sum of logarithms: faster, and closer.
    """
    logs = len(product) // 2
    for place in range(0, some * classes, LANES):
        store(product, logs + place, log_of(max(load(product, place), SAFE)))


@inner
def _write_joint(codes, start, some, classes, class_probs, feature_probs, offsets, product, joint):
    """Write the logarithms of products that do not underflow, and of others."""
    take_logs(some, classes, product)
    logs = len(product) // 2
    for lane in range(some):
        for c in range(classes):
            # Products of probabilities only fall: one that is not tiny has never been.
            if product[lane * classes + c] > SAFE:
                joint[start + lane, c] = product[logs + lane * classes + c]
            else:
                joint[start + lane, c] = _log_product(
                    codes, start + lane, c, classes, class_probs, feature_probs, offsets
                )


@inner
def rank_some(start, some, product, joint, prediction, runner_up, probability, top, lead):
    """Write what `rank` does for some rows, given their products."""
    classes = joint.shape[1]
    for lane in range(some):
        row, first = start + lane, lane * classes
        best, second = _best_two(joint[row])
        prediction[row], runner_up[row] = best, second
        top[row] = joint[row, best]
        lead[row] = joint[row, best] - joint[row, second] if second >= 0 else math.inf
        if product[first + best] > SAFE:
            total = 0.0
            for c in range(classes):
                total += product[first + c]
            probability[row] = product[first + best] / total
        else:
            probability[row] = _share(joint[row], best)


@kernel(
    types.void(
        *(code_matrix, float_vector, float_vector, code_vector, float_vector_out),
        *(code_matrix_out, float_matrix_out),
    )
)
def _log_joint(codes, class_probs, feature_probs, offsets, product, places, joint):
    classes = joint.shape[1]
    at, unused = places[0], places[1]
    nothing = np.int32(len(feature_probs) - classes - LANES)
    for start in range(0, codes.shape[0], ROWS):
        some = min(ROWS, codes.shape[0] - start)
        for lane in range(some):
            _locate(codes, start + lane, offsets, classes, nothing, at, unused)
            _multiply(at, classes, class_probs, feature_probs, lane * classes, product)
        _write_joint(
            *(codes, start, some, classes, class_probs, feature_probs, offsets),
            *(product, joint),
        )


def log_joint(
    codes: "Codes",
    class_probs: "Floats",
    feature_probs: "Floats",
    offsets: "Codes",
    product: "Floats",
    places: "Codes",
    joint: "Floats",
) -> None:
    """Write log p(c, f) for each row and class, given tables from `extend` and room to work in."""
    given = codes, class_probs, feature_probs, offsets, product, places
    if len(codes) > FEW:
        _log_joint(*given, joint)
        return
    # What else `read` finds takes no time, and who asks for this mostly asks for that, too: one
    # kernel less to compile.
    found = (np.empty(len(codes), dtype) for dtype in (np.int64, np.int64, *[np.float64] * 3))
    read(*given, np.empty_like(codes), joint, *found)


@kernel(
    types.void(
        *(code_matrix, float_vector, float_vector, code_vector, float_vector_out),
        *(code_matrix_out, code_matrix_out, float_matrix_out, int_vector_out, int_vector_out),
        *(float_vector_out, float_vector_out, float_vector_out),
    )
)
def read(
    codes,
    class_probs,
    feature_probs,
    offsets,
    product,
    places,
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
    class_probs, feature_probs : of a naive Bayes model, from `extend`
    offsets : where each feature begins in the table, see `learning.counts.Layout`
    product, places : to work in, see `make_room`
    cells : (rows, features), written; −1 where there is no value
    joint : (rows, classes), written
    prediction, runner_up, probability, top, lead : (rows,), written; see `rank`
    """
    classes = joint.shape[1]
    at = places[0]
    nothing = np.int32(len(feature_probs) - classes - LANES)
    for start in range(0, codes.shape[0], ROWS):
        some = min(ROWS, codes.shape[0] - start)
        for lane in range(some):
            _locate(codes, start + lane, offsets, classes, nothing, at, cells[start + lane])
            _multiply(at, classes, class_probs, feature_probs, lane * classes, product)
        _write_joint(
            *(codes, start, some, classes, class_probs, feature_probs, offsets),
            *(product, joint),
        )
        rank_some(start, some, product, joint, prediction, runner_up, probability, top, lead)
