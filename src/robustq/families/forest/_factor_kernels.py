"""The factors of complete rows at the leaves where they end: weights above, features beside."""

import math

import numpy as np
from numba import types

from robustq.core._scale_kernels import times
from robustq.core.scale import LOWEST
from robustq.kernels import (
    code_matrix,
    code_vector,
    float_matrix,
    float_matrix_out,
    float_vector,
    inner,
    int_matrix_out,
    int_vector,
    kernel,
)

from ._mass_kernels import contents, density, locate
from .nodes import NUMERIC

__all__ = ["gather"]


@inner
def _feature(
    feature,
    leaf,
    kinds,
    slots,
    seen,
    starts,
    entry_codes,
    entry_probs,
    normals,
    base,
    base_starts,
    codes,
    numbers,
    row,
):
    """Return the probability of a value at a leaf; or its density, and the scale of that."""
    numeric, slot = numbers.shape[1], slots[feature]
    if kinds[feature] == NUMERIC:
        at = leaf * numeric + slot
        return density(
            numbers[row, slot],
            normals[at, 0],
            normals[at, 1],
            normals[at, 2],
            normals[at, 3],
            normals[at, 4],
        )
    code, cell = codes[row, feature], leaf * (codes.shape[1] - numeric) + slot
    p = entry_probs[locate(kinds[feature], seen, starts, entry_codes, cell, code)]
    if len(base):
        p *= base[base_starts[slot] + code]
    return min(p, 1.0), np.int64(0)  # rounding may go beyond


@inner
def _take_dense(dense, places, features_move, leaf, codes, row, factors, tree, at):
    """Write the factors of the features that are perturbed; return where they end.

    Also the product of the others, NaN where it may have underflowed. There are no branches: nobody
    could foresee them.
    """
    mass, least = 1.0, 1.0
    for feature in range(codes.shape[1]):
        p = dense[np.uint64(leaf), np.uint64(places[feature]) + np.uint64(codes[row, feature])]
        moves = features_move and p >= 0.0
        p = abs(p)
        factors[row, tree, at] = p
        at += np.int64(moves)
        mass *= 1.0 if moves else p
        least = min(least, 1.0 if moves else p)
    return at, mass if mass >= LOWEST or least == 0.0 else math.nan


@kernel(
    types.void(
        *(code_vector, code_vector, *contents, float_vector, int_vector, code_matrix),
        *(float_matrix, int_vector, float_vector, types.boolean, types.boolean),
        *(code_matrix, float_matrix, code_matrix),
        *(types.Array(types.float64, 3, "C"), int_matrix_out, float_matrix_out),
    )
)
def gather(
    kinds,
    slots,
    seen,
    starts,
    entry_codes,
    entry_probs,
    normals,
    base,
    base_starts,
    allowed,
    dense,
    path_starts,
    path_weights,
    weights_move,
    features_move,
    codes,
    numbers,
    leaves,
    factors,
    counts,
    still,
):
    """Write what of complete rows is perturbed, and the product of what is not.

    Parameters
    ----------
    allowed : (leaves, categorical features), how many values each leaf allows
    dense : (leaves, values), the probability of each value, negative where a leaf allows no other;
        empty if there would be too many, or some features are numbers
    path_starts, path_weights : the weights on the path to each leaf
    leaves : (trees, rows), where rows end
    factors : (rows, trees, most), written
    counts : (rows, trees), written, how many there are
    still : (rows, trees), written; NaN where it needs a scale
    """
    features = codes.shape[1]
    for tree in range(len(leaves)):
        for row in range(len(codes)):
            leaf, at = np.int64(leaves[tree, row]), np.int64(0)
            mass, scale = 1.0, np.int64(0)
            for k in range(path_starts[leaf], path_starts[leaf + 1]):
                if weights_move:
                    factors[row, tree, at] = path_weights[k]
                    at += 1
                else:
                    mass, scale = times(mass, scale, path_weights[k])
            if len(dense):
                at, part = _take_dense(
                    dense, base_starts, features_move, leaf, codes, row, factors, tree, at
                )
                mass *= part
            for feature in range(0 if len(dense) else features):
                p, steps = _feature(
                    *(feature, leaf, kinds, slots, seen, starts, entry_codes, entry_probs),
                    *(normals, base, base_starts, codes, numbers, row),
                )
                moves = features_move and kinds[feature] != NUMERIC
                if moves and allowed[leaf, slots[feature]] > 1:
                    factors[row, tree, at] = p
                    at += 1
                else:
                    mass, scale = times(mass, scale + steps, p)
            counts[row, tree] = at
            still[row, tree] = mass if scale == 0 or mass == 0.0 else math.nan
