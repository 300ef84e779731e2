"""Complete rows of narrow features, one tree after the other.

A step down a tree waits for the one before, and a branch nobody can foresee costs more than what
it saves: so many rows go down at once, and one that has arrived goes on the spot, since leaves
point to themselves. Or no row goes down at all: of all leaves of a tree, one is in all sets of
leaves that allow the values of a row.
"""

import math

import numpy as np
from numba import types

from robustq.core.scale import LOWEST
from robustq.kernels import (
    code_matrix,
    code_matrix_out,
    code_vector,
    float_matrix,
    float_matrix_out,
    float_vector,
    inner,
    int_matrix_out,
    int_vector,
    int_vector_out,
    kernel,
    lowest_bit,
)

from .nodes import CHILD, FEATURE

__all__ = ["LANES", "find_cells", "mix_dense", "route_narrow", "route_sets"]

byte_matrix = types.Array(types.uint8, 2, "C", readonly=True)
set_vector = types.Array(types.uint64, 1, "C", readonly=True)
set_matrix = types.Array(types.uint64, 2, "C", readonly=True)
set_matrix_out = types.Array(types.uint64, 2, "C")
flags_out = types.Array(types.boolean, 1, "C")

LANES = 16


@inner
def _walk(walk, sets, root, codes, start, lanes):
    """Send the rows from one on down a tree; lanes are the nodes where they end."""
    for lane in range(LANES):
        lanes[lane] = root
    moved = np.int64(1)
    while moved:
        moved = np.int64(0)
        for lane in range(LANES):
            # Indices without a sign need no check for negative ones.
            node = np.uint64(lanes[lane])
            feature = np.uint64(walk[node, FEATURE])
            code = np.uint64(codes[np.uint64(start + lane), feature])
            right = ((sets[node, 1] >> code) & np.uint64(1)) ^ np.uint64(1)
            below = np.int64(walk[node, CHILD]) + np.int64(right)
            moved |= below ^ np.int64(node)
            lanes[lane] = below


@kernel(
    types.void(
        *(code_matrix, set_matrix, code_matrix, code_vector, byte_matrix),
        *(int_vector_out, code_matrix_out),
    )
)
def route_narrow(walk, sets, nodes, roots, codes, lanes, leaves):
    """Write the leaf where each row ends in each tree, (trees, rows).

    Lanes are room, `LANES` long; there are codes for whole lanes, of more rows than there are.
    """
    trees, rows = leaves.shape
    for tree in range(trees):
        for start in range(0, rows, LANES):
            _walk(walk, sets, np.int64(roots[tree]), codes, start, lanes)
            for lane in range(min(LANES, rows - start)):
                leaves[tree, start + lane] = nodes[lanes[lane], CHILD]


@kernel(types.void(code_matrix, set_matrix, code_vector, int_vector, set_matrix_out))
def find_cells(nodes, sets, parents, some, cells):
    """Write which values of each feature the paths to some nodes allow, as bits."""
    for i in range(len(some)):
        for feature in range(cells.shape[1]):
            cells[i, feature] = ~np.uint64(0)
        node = some[i]
        parent = np.int64(parents[node])
        while parent >= 0:
            left = sets[parent, 1]
            cells[i, nodes[parent, FEATURE]] &= left if node == nodes[parent, CHILD] else ~left
            node, parent = parent, np.int64(parents[parent])


@inner
def _join(codes, row, strides, offset, group):
    """Return the value of a group of features."""
    value = offset
    for feature in range(codes.shape[1]):
        value += strides[group, feature] * codes[row, feature]
    return value


@inner
def _meet(sets, start, words, values, row):
    """Return the place of the bit that four sets have in common; there is one."""
    first = start + values[0, row] * words
    a = sets[first : first + words]
    first = start + values[1, row] * words
    b = sets[first : first + words]
    first = start + values[2, row] * words
    c = sets[first : first + words]
    first = start + values[3, row] * words
    d = sets[first : first + words]
    found, where = np.uint64(0), np.uint64(0)
    # One word has a bit: several may be looked at in any order.
    for word in range(words):
        common = a[word] & b[word] & c[word] & d[word]
        found |= common
        where |= np.uint64(word) if common != np.uint64(0) else np.uint64(0)
    return where * np.uint64(64) + lowest_bit(found)


@kernel(
    types.void(
        *(code_vector, int_vector, set_vector, int_vector),
        *(types.Array(types.int64, 2, "C", readonly=True), int_vector, byte_matrix),
        *(int_matrix_out, code_matrix_out),
    )
)
def route_sets(ranked, firsts, sets, starts, strides, offsets, codes, values, leaves):
    """Write the leaf where each row ends in each tree, (trees, rows).

    Values are room, (groups, rows); see `leaf_sets.LeafSets` for the others.
    """
    trees, rows = leaves.shape
    for group in range(len(values)):
        for row in range(rows):
            values[group, row] = _join(codes, row, strides, offsets[group], group)
    for tree in range(trees):
        first = np.uint64(firsts[tree])
        words = (firsts[tree + 1] - firsts[tree] + 255) // 256 * 4
        for row in range(rows):
            leaves[tree, row] = ranked[first + _meet(sets, starts[tree], words, values, row)]


@inner
def _multiply(factors, places, leaf, codes, row):
    """Return the mass of a row at a leaf."""
    mass = 1.0
    for feature in range(codes.shape[1]):
        place = np.uint64(places[feature]) + np.uint64(codes[row, feature])
        mass *= factors[leaf, place]
    return mass


@inner
def _multiply_four(factors, places, leaves, codes, row, mass):
    """Write the masses of four rows at their leaves: no product waits for another row's."""
    i, j, k, m = np.uint64(row), np.uint64(row + 1), np.uint64(row + 2), np.uint64(row + 3)
    a, b, c, d = (
        np.uint64(leaves[i]),
        np.uint64(leaves[j]),
        np.uint64(leaves[k]),
        np.uint64(leaves[m]),
    )
    one, two, three, four = 1.0, 1.0, 1.0, 1.0
    for f in range(codes.shape[1]):
        feature = np.uint64(f)
        place = np.uint64(places[feature])
        one *= factors[a, place + np.uint64(codes[i, feature])]
        two *= factors[b, place + np.uint64(codes[j, feature])]
        three *= factors[c, place + np.uint64(codes[k, feature])]
        four *= factors[d, place + np.uint64(codes[m, feature])]
    mass[i], mass[j], mass[k], mass[m] = one, two, three, four


@inner
def _weigh(factors, places, leaves, codes, mass):
    """Write the masses of all rows at their leaves of a tree."""
    fours = len(leaves) // 4 * 4
    for row in range(0, fours, 4):
        _multiply_four(factors, places, leaves, codes, row, mass)
    for row in range(fours, len(leaves)):
        mass[row] = _multiply(factors, places, np.uint64(leaves[row]), codes, row)


@kernel(
    types.void(
        *(float_matrix, int_vector, float_vector, float_vector, code_vector, float_matrix),
        *(byte_matrix, code_matrix, float_matrix_out, flags_out, float_matrix_out),
    )
)
def mix_dense(
    factors, places, base_logs, reach, reach_scale, class_probs, codes, leaves, mass, tiny, out
):
    """Write how likely rows are where they end, (trees, rows), and log p(c, f); `out` is 0 before.

    Where a product is so small that others of its row may have underflowed, `tiny` says so, and
    nothing is to be believed.

    Parameters
    ----------
    factors : (leaves, values), the probability of each value divided by its base
    places : (features,), where the values of each feature begin
    base_logs : (values,), the logarithm of the base
    reach, reach_scale, class_probs : of the forest
    codes, leaves : of the rows
    """
    trees, rows = leaves.shape
    classes = class_probs.shape[1]
    for tree in range(trees):
        _weigh(factors, places, leaves[tree], codes, mass[tree])
        for row in range(rows):
            leaf = np.uint64(leaves[tree, row])
            part = mass[tree, row] * reach[leaf]
            tiny[row] |= part < LOWEST or reach_scale[leaf] < 0
            for c in range(classes):
                out[row, c] += part * class_probs[leaf, c]
    for row in range(rows):
        base = -math.log(trees)
        for feature in range(codes.shape[1]):
            base += base_logs[places[feature] + codes[row, feature]]
        for c in range(classes):
            out[row, c] = math.log(out[row, c]) + base
