"""Rows with missing cells: which leaves they reach, and how likely they are there.

A path is a word: its turns from the root downward, a bit each, the highest one first. Two paths
part after as many turns as they have bits in common.

Where all features are narrow and no path is too long for a word, what a row reaches of a tree is
the intersection of sets, of the leaves that each of its values may reach: so many words instead of
nodes. Else the row goes down the tree, both ways where a value is missing.
"""

import numpy as np
from numba import types

from robustq.core._scale_kernels import times
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
    kernel,
    leading_zeros,
    lowest_bit,
)

from ._route_kernels import (
    NOTHING,
    _add,
    _goes_right,
    _multiply_sets,
    _take_logarithms,
    _weigh,
    contents,
    reaches,
    routes,
)
from .model import CHILD, FEATURE, LEAF

__all__ = ["LONGEST", "fill_sets", "intersect", "lay_out", "walk", "weigh_reached"]

LONGEST = 64  # turns of a path that is a word
word_vector = types.Array(types.uint64, 1, "C", readonly=True)
word_vector_out = types.Array(types.uint64, 1, "C")
word_matrix = types.Array(types.uint64, 2, "C", readonly=True)


@kernel(
    types.void(
        *(code_matrix, code_vector, code_vector_out, code_vector_out, word_vector_out),
        code_vector_out,
    )
)
def lay_out(nodes, roots, counts, firsts, paths, depths):
    """Write of each node how many leaves it has and which is the first, its path, and its depth.

    Leaves are counted from left to right, through all trees. Parents stand before their children.
    """
    for node in range(len(nodes) - 1, -1, -1):
        counts[node] = 1
        if nodes[node, FEATURE] != LEAF:
            child = nodes[node, CHILD]
            counts[node] = counts[child] + counts[child + 1]
    first = 0
    for tree in range(len(roots) - 1):
        root = roots[tree]
        firsts[root], paths[root], depths[root] = first, 0, 0
        first += counts[root]
    for node in range(len(nodes)):
        if nodes[node, FEATURE] == LEAF:
            continue
        left, depth = nodes[node, CHILD], depths[node]
        firsts[left], firsts[left + 1] = firsts[node], firsts[node] + counts[left]
        paths[left] = paths[node]
        turn = np.uint64(1) << np.uint64(LONGEST - 1 - depth) if depth < LONGEST else np.uint64(0)
        paths[left + 1] = paths[node] | turn
        depths[left], depths[left + 1] = depth + 1, depth + 1


@inner
def _clear(bits, start, first, last):
    """Take leaves from first to last out of a set that begins somewhere."""
    for leaf in range(first, last):
        bits[start + (leaf >> 6)] &= ~(np.uint64(1) << np.uint64(leaf & 63))


@kernel(
    types.void(
        *(code_matrix, word_matrix, code_vector, code_vector, code_vector, int_vector),
        *(int_vector, word_vector_out),
    )
)
def fill_sets(nodes, sets, roots, counts, firsts, values, starts, bits):
    """Write for each tree and value the set of the leaves it may reach, and last, of all leaves.

    Parameters
    ----------
    nodes, sets, roots : of the forest
    counts, firsts : from `lay_out`
    values : (features + 1,), where the values of each feature begin
    starts : (trees + 1,), where the sets of each tree begin
    bits : written; all bits are set before
    """
    for tree in range(len(roots) - 1):
        root = roots[tree]
        base, leaves = np.int64(firsts[root]), np.int64(counts[root])
        words = (leaves + 63) >> 6
        _clear(bits, starts[tree] + values[-1] * words, leaves, 64 * words)
        for node in range(root, roots[tree + 1]):
            feature, left = nodes[node, FEATURE], nodes[node, CHILD]
            if feature == LEAF:
                continue
            for code in range(values[feature + 1] - values[feature]):
                goes_left = (sets[node, 1] >> np.uint64(code)) & np.uint64(1)
                away = np.int64(left) + np.int64(goes_left)
                first = np.int64(firsts[away]) - base
                start = starts[tree] + (values[feature] + code) * words
                _clear(bits, start, first, first + np.int64(counts[away]))


@inner
def _find_common(bits, start, words, values, codes, row, found):
    """Write the set of the leaves of a tree that a row reaches."""
    every = np.uint64(start + values[-1] * words)
    for word in range(words):
        found[np.uint64(word)] = bits[every + np.uint64(word)]
    for feature in range(codes.shape[1]):
        code = codes[row, feature]
        if code < 0:
            continue
        own = np.uint64(start + (values[feature] + code) * words)
        for word in range(words):
            found[np.uint64(word)] &= bits[own + np.uint64(word)]


@kernel(
    types.boolean(
        *(word_vector, int_vector, int_vector, int_vector, code_vector, word_vector, code_matrix),
        *(word_vector_out, int_vector_out, code_vector_out, code_vector_out),
    )
)
def intersect(
    bits, starts, values, tree_firsts, order, paths, codes, found, entry_starts, leaves, meets
):
    """Write the leaves that rows reach, and where they meet, by sets; see `gaps.Reached`.

    Parameters
    ----------
    bits, starts, values : see `fill_sets`
    tree_firsts : (trees + 1,), where the leaves of each tree begin
    order, paths : of the leaves from left to right: the number, and the path
    codes : of the rows
    found : room for a set
    entry_starts, leaves, meets : written

    Gives back whether there was room enough.
    """
    trees, rows, at = len(starts) - 1, len(codes), np.uint64(0)
    for tree in range(trees):
        base = np.uint64(tree_firsts[tree])
        count = tree_firsts[tree + 1] - tree_firsts[tree]
        words = (count + 63) >> 6
        for row in range(rows):
            entry_starts[tree * rows + row] = np.int64(at)
            if np.int64(at) + count > len(leaves):
                return False
            _find_common(bits, starts[tree], words, values, codes, row, found)
            first, last = at, base
            for word in range(words):
                left = found[np.uint64(word)]
                while left:
                    leaf = base + np.uint64(word * 64) + lowest_bit(left)
                    left &= left - np.uint64(1)
                    leaves[at] = order[leaf]
                    # Nobody comes before the first, which itself is overwritten.
                    meets[at - np.uint64(at > first)] = np.int32(
                        leading_zeros(paths[last] ^ paths[leaf] | np.uint64(1))
                    )
                    last = leaf
                    at += np.uint64(1)
            meets[at - np.uint64(1)] = -1
    entry_starts[trees * rows] = np.int64(at)
    return True


@kernel(
    types.boolean(
        *(*routes, code_vector, int_vector_out, code_matrix, float_matrix),
        *(int_vector_out, code_vector_out, code_vector_out),
    )
)
def walk(
    nodes,
    sets,
    thresholds,
    lists,
    kinds,
    slots,
    roots,
    depths,
    stack,
    codes,
    numbers,
    entry_starts,
    leaves,
    meets,
):
    """Write the leaves that rows reach, and where they meet, node by node; see `gaps.Reached`.

    `depths` are those of the nodes; the stack has room for one more than the longest path. Gives
    back whether there was room enough.
    """
    trees, rows, at = len(roots) - 1, len(codes), np.int64(0)
    for tree in range(trees):
        for row in range(rows):
            entry_starts[tree * rows + row] = at
            stack[0], waiting = roots[tree], 1
            while waiting > 0:
                if at >= len(leaves):
                    return False
                waiting -= 1
                node = stack[waiting]
                feature = nodes[node, FEATURE]
                while feature != LEAF:
                    child, code = np.int64(nodes[node, CHILD]), codes[row, feature]
                    if code >= 0:
                        node = child + _goes_right(
                            *(nodes, sets, thresholds, lists, kinds[feature], slots[feature]),
                            *(node, code, numbers, row),
                        )
                    else:
                        stack[waiting] = child + 1
                        waiting += 1
                        node = child
                    feature = nodes[node, FEATURE]
                leaves[at] = nodes[node, CHILD]
                # Whoever waits longest below is the next: its parent is where they meet.
                meets[at] = depths[stack[waiting - 1]] - 1 if waiting > 0 else -1
                at += 1
    entry_starts[trees * rows] = at
    return True


@kernel(
    types.void(
        *(types.boolean, code_vector, code_vector, *reaches, *contents, float_matrix),
        *(code_vector_out, code_matrix, float_matrix, int_vector_out, float_matrix_out),
        *(int_vector, code_vector, float_vector_out, code_vector_out),
    )
)
def weigh_reached(
    plain,
    kinds,
    slots,
    reach,
    reach_scale,
    seen,
    starts,
    entry_codes,
    entry_probs,
    normals,
    class_probs,
    known,
    codes,
    numbers,
    exponents,
    out,
    entry_starts,
    leaves,
    mass,
    scale,
):
    """Write log p(c, f) for rows with any evidence, and their mass at the leaves they reach.

    `plain` tells that all features are narrow; `known` has room for one more than all features;
    `out` is 0 before.
    """
    rows = len(codes)
    trees = (len(entry_starts) - 1) // rows
    for row in range(rows):
        exponents[row] = NOTHING
    for tree in range(trees):
        for row in range(rows):
            first, last = entry_starts[tree * rows + row], entry_starts[tree * rows + row + 1]
            some = np.int64(0)
            for feature in range(codes.shape[1]):
                known[some] = feature
                some += codes[row, feature] >= 0
            # By themselves, leaves do not wait for the way to the next one.
            for entry in range(first, last):
                mass[entry], scale[entry] = 0.0, 0
                if plain:
                    mass[entry] = _multiply_sets(
                        *(seen, starts, entry_probs, np.int64(leaves[entry]), codes.shape[1]),
                        *(known, some, codes, row),
                    )
            for entry in range(first, last):
                leaf = np.int64(leaves[entry])
                if mass[entry] < LOWEST:
                    mass[entry], scale[entry] = _weigh(
                        *(1.0, np.int64(0), kinds, slots, seen, starts, entry_codes, entry_probs),
                        *(normals, leaf, codes, numbers, row),
                    )
                steps = np.int64(scale[entry]) + np.int64(reach_scale[leaf])
                part, steps = times(mass[entry], steps, reach[leaf])
                exponents[row] = _add(out, row, exponents[row], class_probs, leaf, part, steps)
    for row in range(rows):
        _take_logarithms(out, row, exponents[row], trees)
