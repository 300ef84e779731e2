"""Rows with missing cells: which leaves they reach, and how likely they are there.

A row goes down a tree both ways where a value is missing. What it reaches waits in a line, which is
the list of splits itself; no step asks which way it goes, since nobody could foresee that.
"""

import math

import numpy as np
from numba import types

from robustq.core._scale_kernels import shrink, times
from robustq.core.scale import LOWEST
from robustq.kernels import (
    code_matrix,
    code_vector,
    code_vector_out,
    float_matrix,
    float_matrix_out,
    float_vector_out,
    inner,
    int_vector,
    int_vector_out,
    joined,
    kernel,
)

from ._mass_kernels import (
    NOTHING,
    add_leaf,
    contents,
    multiply_sets,
    reaches,
    take_logarithms,
    weigh_leaf,
)
from ._route_kernels import goes_right, routes
from .model import CHILD, FEATURE, LEAF

__all__ = ["CHILD_AT", "FEATURE_AT", "SET", "TURNS", "WAYS", "spread", "weigh_reached"]

SMALL = 1e-100  # how much less mass leaves may have than others
flags_out = types.Array(types.boolean, 1, "C")
word_vector = types.Array(types.uint64, 1, "C", readonly=True)
word_vector_out = types.Array(types.uint64, 1, "C")
# What splits are: the set of values that go left; and the first child, the feature, and on which
# sides there is a leaf, from the highest bit down.
TURNS = SET, WAYS = range(2)
CHILD_AT, FEATURE_AT = 32, 2
HALF = np.uint64(2**32 - 1)
ONE, TWO, THREE = np.uint64(1), np.uint64(2), np.uint64(3)


@inner
def _read_row(codes, row, cells):
    """Write the value of each feature, and 1 if it is missing."""
    for feature in range(codes.shape[1]):
        code = codes[row, feature]
        cells[2 * feature], cells[2 * feature + 1] = code & 63, code < 0


@joined
def _enter(ways, side, goes, first, at, end, begin, leaf, splits, leaves):
    """Let a child of a split wait, or be a leaf; return where leaves and splits end.

    Nobody could foresee which: it is written as both, and written over where it is not.
    """
    ends = (ways >> side) & ONE
    child = np.int32((ways >> np.uint64(CHILD_AT)) + side)
    leaves[leaf] = splits[THREE * end] = child
    place = (end - first + ONE) * (ONE - ends) - (leaf - begin + ONE) * ends
    splits[THREE * at + side + ONE] = np.int32(place * goes)
    return leaf + (goes & ends), end + (goes & (ONE - ends))


@inner
def _go_down(turns, cells, leaves, leaf, begin, splits, at, end):
    """Write what a row reaches below some splits; return where leaves and splits end."""
    first = at
    while at < end:
        node = np.uint64(splits[THREE * at])
        ways = turns[TWO * node + np.uint64(WAYS)]
        cell = ((ways & HALF) >> np.uint64(FEATURE_AT)) * TWO
        missing = cells[cell + ONE]
        left = (turns[TWO * node + np.uint64(SET)] >> cells[cell]) & ONE
        for side in (np.uint64(0), ONE):
            goes = missing | (left ^ side)
            leaf, end = _enter(ways, side, goes, first, at, end, begin, leaf, splits, leaves)
        at += ONE
    return leaf, end


@inner
def _go_anywhere(route, turns, row, codes, numbers, leaves, leaf, begin, splits, at, end):
    """As `_go_down`, whatever the features are."""
    nodes, kinds, slots, first = route[0], route[4], route[5], at
    while at < end:
        node = np.uint64(splits[THREE * at])
        ways, feature = turns[TWO * node + np.uint64(WAYS)], nodes[node, FEATURE]
        code = codes[row, feature]
        missing, right = np.uint64(code < 0), np.uint64(0)
        if code >= 0:
            right = np.uint64(
                goes_right(
                    *(*route[:4], kinds[feature], slots[feature], np.int64(node)),
                    *(code, numbers, row),
                )
            )
        for side in (np.uint64(0), ONE):
            goes = missing | (right ^ side ^ ONE)
            leaf, end = _enter(ways, side, goes, first, at, end, begin, leaf, splits, leaves)
        at += ONE
    return leaf, end


@kernel(
    types.int64(
        *(types.boolean, *routes, word_vector, types.int64, code_matrix, float_matrix),
        *(word_vector_out, int_vector_out, code_vector_out, int_vector_out, code_vector_out),
    )
)
def spread(
    narrow,
    nodes,
    sets,
    thresholds,
    lists,
    kinds,
    slots,
    roots,
    turns,
    most,
    codes,
    numbers,
    cells,
    starts,
    leaves,
    split_starts,
    splits,
):
    """Write the leaves and splits that rows reach, see `gaps.Reached`; return of how many rows.

    All trees wait in one line: of what comes next nothing has just been written.

    Parameters
    ----------
    narrow : whether all features are
    nodes … roots : of the forest
    turns : see `TURNS`, those of one node after the other
    most : for so many leaves and splits there must be room before a row begins
    codes, numbers : of the rows
    cells : (2 · features,), room
    starts … splits : written; of leaves their nodes, and the splits one after the other
    """
    route = nodes, sets, thresholds, lists, kinds, slots
    leaf, split = np.uint64(0), np.uint64(0)
    starts[0], split_starts[0] = 0, 0
    for row in range(len(codes)):
        if np.int64(leaf) + most > len(leaves) or 3 * (np.int64(split) + most) > len(splits):
            return row
        begin, first = leaf, split
        for tree in range(len(roots) - 1):
            leaves[leaf] = splits[THREE * split] = roots[tree]
            ends = np.uint64(nodes[roots[tree], FEATURE] == LEAF)
            leaf, split = leaf + ends, split + (ONE - ends)
        if narrow:
            _read_row(codes, row, cells)
            leaf, split = _go_down(turns, cells, leaves, leaf, begin, splits, first, split)
        else:
            leaf, split = _go_anywhere(
                *(route, turns, row, codes, numbers, leaves, leaf, begin, splits, first, split)
            )
        starts[row + 1], split_starts[row + 1] = np.int64(leaf), np.int64(split)
    return len(codes)


@inner
def _list_known(codes, row, places, known):
    """Write which features of a row are there, and where their values stand; return how many."""
    features, some = codes.shape[1], np.int64(0)
    for feature in range(features):
        if codes[row, feature] >= 0:
            known[some] = feature
            known[features + some] = np.int32(places[feature] + codes[row, feature])
            some += 1
    return some


@inner
def _multiply_known(factors, leaf, known, some, features):
    """Return the mass of a row at a leaf, by what its values have there."""
    mass = 1.0
    for i in range(some):
        mass *= factors[leaf, np.uint64(known[np.uint64(features + i)])]
    return mass


@inner
def _even_out(first, last, mass, scale):
    """Divide the masses of a row by one power of two; return the largest and the least."""
    largest = np.int64(NOTHING)
    for entry in range(first, last):
        if mass[entry] != 0.0:
            largest = max(largest, np.int64(scale[entry]))
    most, least = 0.0, math.inf
    for entry in range(first, last):
        if mass[entry] != 0.0:
            mass[entry] *= shrink(largest - np.int64(scale[entry]))
            most, least = max(most, mass[entry]), min(least, mass[entry])
    return most, least


@kernel(
    types.void(
        *(types.int64, types.boolean, code_matrix, code_vector, code_vector, *reaches, *contents),
        *(float_matrix, float_matrix, int_vector, code_matrix, float_matrix, code_vector_out),
        *(float_matrix_out, int_vector, code_vector_out, float_vector_out),
        *(code_vector_out, flags_out),
    )
)
def weigh_reached(
    trees,
    plain,
    nodes,
    kinds,
    slots,
    reach,
    reach_scale,
    seen,
    entry_starts,
    entry_codes,
    entry_probs,
    normals,
    class_probs,
    factors,
    places,
    codes,
    numbers,
    known,
    out,
    starts,
    leaves,
    mass,
    scale,
    uneven,
):
    """Write log p(c, f) for rows with any evidence, and their mass at the leaves they reach.

    Parameters
    ----------
    trees : how many there are
    plain : whether all features are narrow
    nodes … class_probs : of the forest
    factors, places : (leaves, values), the probability of each value, and where those of features
        begin; empty where they are too many
    codes, numbers : of the rows
    known : (2 · features,), room
    out : (rows, classes), 0 before
    starts, leaves : what rows reach; of leaves their nodes, in place of which numbers are written
    mass, uneven : written, see `gaps.Reached`
    scale : room, one for each leaf, 0 before
    """
    features = codes.shape[1]
    for row in range(len(codes)):
        some = _list_known(codes, row, places, known)
        first, last = starts[row], starts[row + 1]
        exponent, scaled = np.int64(NOTHING), np.int64(0)
        most, least = 0.0, math.inf
        # By themselves, leaves do not wait for what is done with them.
        for entry in range(first, last):
            leaf = np.uint64(nodes[np.uint64(leaves[entry]), CHILD])
            leaves[entry], mass[entry] = np.int32(leaf), 0.0
            if len(factors):
                mass[entry] = _multiply_known(factors, leaf, known, some, features)
            elif plain:
                mass[entry] = multiply_sets(
                    *(seen, entry_starts, entry_probs, np.int64(leaf), features),
                    *(known, some, codes, row),
                )
        for entry in range(first, last):
            leaf = np.uint64(leaves[entry])
            part = mass[entry] * reach[leaf]
            if part >= LOWEST and exponent == 0 and reach_scale[leaf] == 0:
                for c in range(out.shape[1]):
                    out[row, c] += part * class_probs[leaf, c]
            else:
                steps = np.int64(0)
                if mass[entry] < LOWEST:
                    mass[entry], steps = weigh_leaf(
                        *(1.0, steps, kinds, slots, seen, entry_starts, entry_codes),
                        *(entry_probs, normals, np.int64(leaf), codes, numbers, row),
                    )
                    scale[entry] = np.int32(steps)
                    scaled |= steps
                steps += np.int64(reach_scale[leaf])
                part, steps = times(mass[entry], steps, reach[leaf])
                exponent = add_leaf(out, row, exponent, class_probs, leaf, part, steps)
            most = max(most, mass[entry])
            least = min(least, mass[entry] if mass[entry] > 0.0 else math.inf)
        take_logarithms(out, row, exponent, trees)
        if scaled:
            most, least = _even_out(first, last, mass, scale)
        # What is so small might vanish on its way up, and yet decide after the others are gone.
        uneven[row] = not least > SMALL * most
