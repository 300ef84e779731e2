"""Loops over rows of codes and the tables of networks. A negative code is a missing value."""

import math
from typing import TYPE_CHECKING

import numpy as np
from numba import types

from robustq.core._joint_kernels import (
    ROWS,
    SAFE,
    keep,
    multiply_four,
    rank_some,
    take_logs,
    write_joint,
)
from robustq.kernels import (
    bool_vector,
    code_matrix,
    code_matrix_out,
    code_vector,
    code_vector_out,
    float_matrix_out,
    float_vector,
    float_vector_out,
    inner,
    int_vector,
    int_vector_out,
    kernel,
)
from robustq.vectors import LANES, load

__all__ = ["count", "count_pair", "extend", "is_whole", "read"]

if TYPE_CHECKING:
    from robustq.arrays import Floats

SMALL = 1e-150  # products are kept above this by taking their logarithm in time

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
def _find_cells(codes, row, wires, alone, found):
    """Write where the codes of a row stand; −1 where one is not there, or moves nothing.

    Return whether a parent is missing of one that is there.
    """
    starts, parents, steps, offsets, widths = wires
    least = np.int32(0)
    for feature in range(len(found)):
        code = codes[row, feature]
        least = min(least, code)
        found[feature] = offsets[feature] + code * widths[feature]
    if least < 0:
        return _find_some_cells(codes, row, wires, alone, found)
    for feature in range(len(found)):
        for k in range(starts[feature], starts[feature + 1]):
            found[feature] += codes[row, parents[k]] * steps[k]
        found[feature] = -1 if alone[feature] else found[feature]
    return False


@inner
def _find_some_cells(codes, row, wires, alone, found):
    """As `_find_cells`, where something is missing."""
    starts, parents, steps, offsets, widths = wires
    gap = False
    for feature in range(len(found)):
        found[feature] = -1
        if codes[row, feature] >= 0 and not alone[feature]:
            found[feature] = find_cell(codes, row, feature, starts, parents, steps, offsets, widths)
            gap |= found[feature] < 0
    return gap


@inner
def _multiply(found, widths, classes, class_probs, prior, probs, lane, room):
    """Write the products of what stands in cells, classes side by side."""
    for first in range(0, classes, LANES):
        whole = load(class_probs, prior * classes + first)
        for feature in range(len(found)):
            cell = found[feature]
            if cell >= 0 and widths[feature] > 1:
                whole *= load(probs, cell + first)
            elif cell >= 0:
                whole *= probs[cell]
        keep(whole, first, classes, lane, room)


@inner
def _log_product(row, c, prior, from_class, class_probs, probs, cells, others):
    """Return the logarithm of a product that may underflow."""
    part, total = class_probs[prior + c], 0.0
    for feature in range(cells.shape[1]):
        own = from_class[feature]
        cell = cells[row, feature] if own else others[row, feature]
        if cell < 0:
            continue
        factor = probs[cell + (c if own else 0)]
        if part < SMALL or factor < SMALL:
            total += _log(part)
            part = factor
        else:
            part *= factor
    return total + _log(part)


@inner
def is_whole(codes):
    """Tell whether no code is missing."""
    least = np.int32(0)
    for i in range(len(codes)):
        least = min(least, codes[i])
    return least == 0


@inner
def _find_plain_cells(codes, offsets, classes, parents, steps, places, cells):
    """Write where the codes of rows stand, if none is missing and all features have the class."""
    for i in range(len(codes)):
        places[i] = np.int32(offsets[i] + codes[i] * np.int32(classes))
    for k in range(parents.shape[0]):
        whose, step = parents[k], steps[k]
        for i in range(len(codes)):
            places[i] += np.int32(codes[whose[i]] * step[i])
    for i in range(len(codes)):
        cells[i] = places[i]


@kernel(
    types.void(
        *(code_matrix, code_vector, *wiring, bool_vector, bool_vector, code_vector, float_vector),
        *(float_vector, types.boolean, code_vector, code_matrix, code_matrix, int_vector_out),
        *(code_vector_out, float_vector_out, code_matrix_out, code_vector_out, code_matrix_out),
        *(types.Array(types.boolean, 1, "C"), float_matrix_out, int_vector_out, int_vector_out),
        *(float_vector_out, float_vector_out, float_vector_out),
    )
)
def read(
    codes,
    flat,
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
    plain,
    all_offsets,
    all_parents,
    all_steps,
    found,
    places,
    room,
    cells,
    flat_cells,
    others,
    gap,
    joint,
    prediction,
    runner_up,
    probability,
    top,
    lead,
):
    """Write where the codes of rows stand in the tables, log p(c, f), and who leads.

    Parameters
    ----------
    codes : (rows, features)
    flat : the same, row after row
    starts … widths : see `structure.Wiring`
    alone : which features have a single category; no ball moves it
    from_class : which features have the class as a parent
    prior_row : (rows,), the row of the class's table; −1 where a parent of the class is missing
    class_probs, probs : the tables of the class and of the features, from `_joint_kernels.extend`
    plain : whether the class is a parent of every feature and has none, and no feature is alone
    all_offsets, all_parents, all_steps : where to look for the cells of as many rows as are looked
        at at once, if they are plain: see `Structure.repeat`
    found, places, room : to work in: one for each feature, like `all_offsets`, and see
        `_joint_kernels.make_room`
    cells : (rows, features), written: features of the class; −1 where the factor is constant
    flat_cells : the same, row after row
    others : (rows, features), written: the other features; may have no columns, if there are none
    gap : (rows,), written: whether something that is missing matters
    joint : (rows, classes), written where there is no gap
    prediction … lead : (rows,), written where there is no gap, see `_joint_kernels.rank`
    """
    classes, features = joint.shape[1], codes.shape[1]
    wires = starts, parents, steps, offsets, widths
    for start in range(0, codes.shape[0], ROWS):
        some = min(ROWS, codes.shape[0] - start)
        first, last = start * features, (start + some) * features
        if plain and is_whole(flat[first:last]):
            _find_plain_cells(
                *(flat[first:last], all_offsets, classes, all_parents, all_steps),
                *(places, flat_cells[first:last]),
            )
            for lane in range(some):
                gap[start + lane] = False
            for lane in range(0, some, 4):
                multiply_four(places, lane, features, classes, class_probs, probs, room)
        else:
            for lane in range(some):
                row = start + lane
                prior = np.int64(max(prior_row[row], 0))
                gap[row] = _find_cells(codes, row, wires, alone, found) or prior_row[row] < 0
                for feature in range(features):
                    cells[row, feature] = found[feature] if from_class[feature] else -1
                    if others.shape[1] > 0:
                        others[row, feature] = -1 if from_class[feature] else found[feature]
                _multiply(found, widths, classes, class_probs, prior, probs, lane, room)
        if take_logs(classes, room):
            for lane in range(some):
                row = start + lane
                prior = np.int64(max(prior_row[row], 0)) * classes
                for c in range(classes):
                    if not room[c * ROWS + lane] > SAFE:
                        room[(classes + c) * ROWS + lane] = _log_product(
                            row, c, prior, from_class, class_probs, probs, cells, others
                        )
        write_joint(start, some, room, joint)
        rank_some(start, some, room, joint, prediction, runner_up, probability, top, lead)


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
