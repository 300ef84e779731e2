"""The factors of complete rows at the leaves where they end: weights above, features beside."""

import math

import numpy as np
from numba import types

from robustq.core._scale_kernels import times
from robustq.core.scale import FILLING, LOWEST
from robustq.kernels import (
    code_matrix,
    code_vector,
    float_matrix,
    float_matrix_out,
    float_vector,
    inner,
    int_vector,
    kernel,
)
from robustq.vectors import LANES, choose, fill, pick, product, some, store

from ._mass_kernels import contents, density, locate
from .nodes import NUMERIC

__all__ = ["gather", "gather_dense"]

factors_out = types.Array(types.float64, 3, "C")


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


@kernel(
    types.void(
        *(code_vector, code_vector, *contents, float_vector, int_vector, code_matrix),
        *(float_vector, code_vector, types.boolean, types.boolean),
        *(code_matrix, float_matrix, code_matrix, factors_out, float_matrix_out),
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
    reach,
    reach_scale,
    weights_move,
    features_move,
    codes,
    numbers,
    leaves,
    factors,
    still,
):
    """Write what of the features of complete rows is perturbed, and the product of what is not.

    Parameters
    ----------
    allowed : (leaves, categorical features), how many values each leaf allows
    reach, reach_scale : (leaves,), the products of the weights above
    leaves : (trees, rows), where rows end
    factors : (rows, trees, at least features), written; `FILLING` where nothing is perturbed
    still : (rows, trees), written; NaN where it needs a scale
    """
    for tree in range(len(leaves)):
        for row in range(len(codes)):
            leaf = np.int64(leaves[tree, row])
            mass, scale = 1.0, np.int64(0)
            if not weights_move:
                mass, scale = reach[leaf], np.int64(reach_scale[leaf])
            for feature in range(codes.shape[1]):
                p, steps = _feature(
                    *(feature, leaf, kinds, slots, seen, starts, entry_codes, entry_probs),
                    *(normals, base, base_starts, codes, numbers, row),
                )
                moves = features_move and kinds[feature] != NUMERIC
                moves = moves and allowed[leaf, slots[feature]] > 1
                factors[row, tree, feature] = p if moves else FILLING
                if not moves:
                    mass, scale = times(mass, scale + steps, p)
            still[row, tree] = mass if scale == 0 or mass == 0.0 else math.nan


@kernel(
    types.void(
        *(float_matrix, float_vector, code_vector, types.boolean, types.boolean),
        *(code_matrix, code_matrix, factors_out, float_matrix_out),
    )
)
def gather_dense(
    values, reach, reach_scale, weights_move, features_move, places, leaves, factors, still
):
    """Do the same with the probabilities of all values at all leaves; see `unfold_values`.

    Places are where the values of each row stand, (rows, features in whole lanes). There are no
    branches: nobody could foresee them.
    """
    width, least = places.shape[1], 0.0 if features_move else math.inf
    for tree in range(len(leaves)):
        for row in range(len(places)):
            leaf = leaves[tree, row]
            above, scale = (1.0, 0) if weights_move else (reach[leaf], reach_scale[leaf])
            mass, nothing = fill(1.0), fill(above)
            for first in range(0, width, LANES):
                p = pick(values[leaf], places, row * width + first)
                moves = p >= least
                at = (row * len(leaves) + tree) * width + first
                store(factors, at, choose(moves, p, FILLING))
                p = choose(moves, 1.0, abs(p))
                mass, nothing = mass * p, min(nothing, p)
            part = product(mass) * above
            known = (scale == 0 and part >= LOWEST) or some(nothing == 0.0)
            still[row, tree] = part if known else math.nan
