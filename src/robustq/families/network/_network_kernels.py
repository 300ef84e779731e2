"""Loops over rows of codes and the tables of networks. A negative code is a missing value."""

import math
from typing import TYPE_CHECKING

import numpy as np
from numba import types

from robustq.kernels import (
    bool_vector,
    code_matrix,
    code_matrix_out,
    code_vector,
    float_matrix,
    float_matrix_out,
    float_vector,
    float_vector_out,
    inner,
    int_vector,
    kernel,
)
from robustq.vectors import LANES, fill, load, store

__all__ = ["count", "count_pair", "extend", "read"]

if TYPE_CHECKING:
    from robustq.arrays import Floats

SMALL = 1e-150  # products are kept above this by taking their logarithm in time
SAFE = 1e-250  # a product above this has not underflowed on the way

wiring = (code_vector, code_vector, int_vector, int_vector, int_vector)


def extend(probs: "Floats") -> "Floats":
    """Return probabilities that can be read beyond the last."""
    return np.concatenate([probs, np.ones(LANES)])


@inner
def find_cell(codes, row, feature, starts, parents, steps, offsets, widths):
    """Return where the code of a feature stands in its table; −1 where a parent is missing."""
    cell = offsets[feature] + codes[row, feature] * widths[feature]
    for k in range(starts[feature], starts[feature + 1]):
        code = codes[row, parents[k]]
        if code < 0:
            return np.int64(-1)
        cell += code * steps[k]
    return cell


@kernel(types.void(code_matrix, int_vector, float_vector, *wiring, float_vector_out))
def count(codes, labels, weights, starts, parents, steps, offsets, widths, counts):
    """Add the weight of each row to the cells of its codes and label, where all are there."""
    for feature in range(codes.shape[1]):
        wide = widths[feature] > 1
        for row in range(codes.shape[0]):
            if codes[row, feature] >= 0:
                cell = find_cell(codes, row, feature, starts, parents, steps, offsets, widths)
                if cell >= 0:
                    counts[cell + (labels[row] if wide else 0)] += weights[row]


@inner
def _log(x):
    return math.log(x) if x > 0.0 else -math.inf


@inner
def _multiply(cells, widths, classes, probs, product):
    """Write the products of what stands in cells, classes side by side."""
    for first in range(0, classes, LANES):
        whole = fill(1.0)
        for feature in range(len(cells)):
            cell = cells[feature]
            if cell >= 0 and widths[feature] > 1:
                whole *= load(probs, cell + first)
            elif cell >= 0:
                whole *= probs[cell]
        store(product, first, whole)


@kernel(
    types.void(
        *(code_matrix, *wiring, bool_vector, bool_vector, code_vector, float_matrix),
        *(float_vector, code_matrix_out, code_matrix_out, types.Array(types.boolean, 1, "C")),
        float_matrix_out,
    ),
    allocates=True,
)
def read(
    codes,
    starts,
    parents,
    steps,
    offsets,
    widths,
    alone,
    from_class,
    prior_row,
    class_probs,
    probs,
    cells,
    others,
    gap,
    joint,
):
    """Write where the codes of rows stand in the tables, and log p(c, f).

    Parameters
    ----------
    codes : (rows, features)
    starts … widths : see `structure.Wiring`
    alone : which features have a single category; no ball moves it
    from_class : which features have the class as a parent
    prior_row : (rows,), the row of the class's table; −1 where a parent of the class is missing
    class_probs : (configurations, classes)
    probs : the tables of the features; `LANES` more numbers follow the last
    cells : (rows, features), written: features of the class; −1 where the factor is constant
    others : (rows, features), written: the other features; may have no columns, if there are none
    gap : (rows,), written: whether something that is missing matters
    joint : (rows, classes), written where there is no gap
    """
    classes = class_probs.shape[1]
    found = np.zeros(codes.shape[1], np.int64)
    product = np.zeros(classes + LANES)
    for row in range(codes.shape[0]):
        gap[row] = prior_row[row] < 0
        for feature in range(codes.shape[1]):
            cell = np.int64(-1)
            if codes[row, feature] >= 0 and not alone[feature]:
                cell = find_cell(codes, row, feature, starts, parents, steps, offsets, widths)
                gap[row] |= cell < 0
            found[feature] = cell
            cells[row, feature] = cell if from_class[feature] else -1
            if others.shape[1] > 0:
                others[row, feature] = -1 if from_class[feature] else cell
        _multiply(found, widths, classes, probs, product)
        for c in range(classes):
            part, total = class_probs[max(prior_row[row], 0), c], 0.0
            # Products of probabilities only fall: one that is not tiny has never been.
            if part * product[c] > SAFE:
                joint[row, c] = math.log(part * product[c])
                continue
            for feature in range(codes.shape[1]):
                cell = found[feature]
                if cell < 0:
                    continue
                factor = probs[cell + (c if widths[feature] > 1 else 0)]
                if part < SMALL or factor < SMALL:
                    total += _log(part)
                    part = factor
                else:
                    part *= factor
            joint[row, c] = total + _log(part)


@kernel(
    types.void(
        *(code_vector, code_vector, int_vector, float_vector, float_vector_out),
        *(types.int64, types.int64),
    )
)
def count_pair(one, other, labels, weights, counts, size, classes):
    """Add the weight of each row to the cell of two codes and the label, where both are there."""
    for row in range(len(one)):
        if one[row] >= 0 and other[row] >= 0:
            counts[(one[row] * size + other[row]) * classes + labels[row]] += weights[row]
