"""Loops over rows and leaves: how likely rows are where they end, and the mixture of that.

Masses are mantissas and scales, m · 2^(STEP · s): hundreds of features underflow.
"""

import math

import numpy as np
from numba import types

from robustq.core._scale_kernels import shrink, times
from robustq.core.scale import LOG_STEP, LOWEST, NOTHING
from robustq.kernels import (
    code_matrix,
    code_matrix_out,
    code_vector,
    count_bits,
    float_matrix,
    float_matrix_out,
    float_vector,
    inner,
    kernel,
)

from ._route_kernels import find
from .nodes import FARTHEST, NARROW, NUMERIC

__all__ = [
    "add_leaf",
    "contents",
    "density",
    "locate",
    "mix",
    "multiply_sets",
    "reaches",
    "take_logarithms",
    "weigh",
    "weigh_leaf",
]

# The arrays of `forest.Arrays` that tell how likely leaves are, and what they hold.
reaches = (float_vector, code_vector)
contents = (
    types.Array(types.uint64, 1, "C", readonly=True),
    *(code_vector, code_vector, float_vector, float_matrix),
)

LOWEST_SCALE = -(2**30)  # what is smaller is 0: scales are 32 bits


@inner
def density(x, mean, spread, low, high, height):
    """Return a truncated normal density, as mantissa and scale."""
    z = (x - mean) / spread
    exponent = -0.5 * z * z
    if not (low <= x <= high and exponent > FARTHEST):
        return 0.0, np.int64(0)
    steps = np.int64(exponent / LOG_STEP)
    return math.exp(exponent - steps * LOG_STEP) * height, steps


@inner
def locate(kind, seen, starts, entry_codes, cell, code):
    """Return where the probability of a value stands; the first of a cell is of those unseen."""
    start = np.int64(starts[cell])
    if kind == NARROW:
        bit = np.uint64(1) << np.uint64(code)
        rank = np.int64(count_bits(seen[cell] & (bit - np.uint64(1)))) + 1
        return start + (rank if seen[cell] & bit else 0)
    first = np.int64(seen[cell])
    stop = first + np.int64(starts[cell + 1]) - start - 1
    at = find(entry_codes, first, stop, code)
    return start + (at - first + 1 if at < stop and entry_codes[at] == code else 0)


@inner
def multiply_sets(seen, starts, entry_probs, leaf, width, known, some, codes, row):
    """Return the mass of a row at a leaf, by its known features, all features being narrow."""
    mass = 1.0
    first = np.uint64(leaf) * np.uint64(width)
    for i in range(some):
        feature = np.uint64(known[i])
        cell, code = first + feature, np.uint64(codes[row, feature])
        values = seen[cell]
        rank = count_bits(values & ((np.uint64(1) << code) - np.uint64(1))) + np.uint64(1)
        rank *= (values >> code) & np.uint64(1)
        mass *= entry_probs[np.uint64(starts[cell]) + rank]
    return mass


@inner
def weigh_leaf(
    mass,
    scale,
    kinds,
    slots,
    seen,
    starts,
    entry_codes,
    entry_probs,
    normals,
    leaf,
    codes,
    numbers,
    row,
):
    """Multiply by the mass of a row at a leaf, as mantissa and scale; what is missing is 1."""
    numeric = numbers.shape[1]
    categorical = codes.shape[1] - numeric
    for feature in range(codes.shape[1]):
        code, slot = codes[row, feature], slots[feature]
        if code < 0:
            continue
        if kinds[feature] != NUMERIC:
            cell = leaf * categorical + slot
            factor = entry_probs[locate(kinds[feature], seen, starts, entry_codes, cell, code)]
        else:
            at = leaf * numeric + slot
            factor, steps = density(
                numbers[row, slot],
                normals[at, 0],
                normals[at, 1],
                normals[at, 2],
                normals[at, 3],
                normals[at, 4],
            )
            scale += steps
        if factor == 0.0 or scale < LOWEST_SCALE:
            return 0.0, np.int64(0)
        mass, scale = times(mass, scale, factor)
    return mass, scale


@kernel(
    types.void(
        *(types.boolean, code_vector, code_vector, code_vector, *contents),
        *(code_matrix, float_matrix, code_matrix, float_matrix_out, code_matrix_out),
    )
)
def weigh(
    plain,
    every,
    kinds,
    slots,
    seen,
    starts,
    entry_codes,
    entry_probs,
    normals,
    codes,
    numbers,
    leaves,
    mass,
    scale,
):
    """Write the mass of each complete row where it ends in each tree, (trees, rows).

    `plain` tells that all features are narrow; `every` lists them.
    """
    for tree in range(len(leaves)):
        for row in range(len(codes)):
            leaf = np.int64(leaves[tree, row])
            part, steps = 0.0, np.int64(0)
            if plain:
                part = multiply_sets(
                    *(seen, starts, entry_probs, leaf, codes.shape[1]),
                    *(every, codes.shape[1], codes, row),
                )
            # Factors above 1 make up for 2^STEP at most: what is not tiny has not underflowed.
            if part < LOWEST:
                part, steps = weigh_leaf(
                    *(1.0, np.int64(0), kinds, slots, seen, starts, entry_codes, entry_probs),
                    *(normals, leaf, codes, numbers, row),
                )
            mass[tree, row], scale[tree, row] = part, steps


@inner
def add_leaf(out, row, exponent, class_probs, leaf, mass, scale):
    """Add mass · p(c) to the total of a row, both scaled; return the scale of the total."""
    if mass == 0.0:
        return exponent
    if scale > exponent:
        factor = shrink(scale - exponent)
        for c in range(out.shape[1]):
            out[row, c] *= factor
        exponent = scale
    elif scale < exponent:
        mass *= shrink(exponent - scale)
    for c in range(out.shape[1]):
        out[row, c] += mass * class_probs[leaf, c]
    return exponent


@inner
def take_logarithms(out, row, exponent, trees):
    """Replace the total of a row by the logarithm of its mean over the trees."""
    for c in range(out.shape[1]):
        if out[row, c] > 0.0:
            out[row, c] = math.log(out[row, c]) + (exponent * LOG_STEP - math.log(trees))
        else:
            out[row, c] = -math.inf


@kernel(
    types.void(*reaches, float_matrix, code_matrix, float_matrix, code_matrix, float_matrix_out)
)
def mix(reach, reach_scale, class_probs, leaves, mass, scale, out):
    """Write log p(c, f) of complete rows from where they end; `out` is 0 before."""
    trees, rows = leaves.shape
    for row in range(rows):
        exponent = np.int64(NOTHING)
        for tree in range(trees):
            leaf = leaves[tree, row]
            steps = np.int64(scale[tree, row] + reach_scale[leaf])
            part, steps = times(mass[tree, row], steps, reach[leaf])
            exponent = add_leaf(out, row, exponent, class_probs, leaf, part, steps)
        take_logarithms(out, row, exponent, trees)
