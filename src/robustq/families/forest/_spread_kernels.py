"""Rows with missing cells: which leaves they reach, and how likely they are there.

A path is a word: its turns from the root downward, a bit each, the highest one first. Two paths
part after as many turns as they have bits in common.

Where all features are narrow and no path is too long for a word, what a row reaches of a tree is
the intersection of sets, of the leaves that each of its values may reach: so many words instead of
nodes. Else the row goes down the tree, both ways where a value is missing.
"""

import math

import numpy as np
from numba import types

from robustq.core._scale_kernels import shrink, times
from robustq.core.scale import LOWEST
from robustq.kernels import (
    code_matrix,
    code_matrix_out,
    code_vector,
    code_vector_out,
    float_matrix,
    float_matrix_out,
    float_vector_out,
    inner,
    int_matrix_out,
    int_vector,
    int_vector_out,
    kernel,
    leading_zeros,
    lowest_bit,
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

__all__ = [
    "EXTENTS",
    "FACTS",
    "LONGEST",
    "fill_sets",
    "intersect",
    "lay_out",
    "walk",
    "weigh_reached",
]

LONGEST = 64  # turns of a path that is a word
SMALL = 1e-100  # how much less mass leaves may have than others
# What is known of rows: how many features, the scale of the total, and whether leaves have scales.
FACTS = SOME, EXPONENT, SCALED = (0, 1, 2)
EXTENTS = MOST, LEAST = (0, 1)  # of masses
word_vector = types.Array(types.uint64, 1, "C", readonly=True)
word_vector_out = types.Array(types.uint64, 1, "C")
flags_out = types.Array(types.boolean, 1, "C")
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
                        node = child + goes_right(
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


@inner
def _list_known(codes, places, known, facts):
    """Write which features of each row are there, and where their values stand among all."""
    features = codes.shape[1]
    for row in range(len(codes)):
        some = np.int64(0)
        for feature in range(features):
            if codes[row, feature] >= 0:
                known[row, some] = feature
                known[row, features + some] = np.int32(places[feature] + codes[row, feature])
                some += 1
        facts[row, SOME] = some


@inner
def _multiply_known(factors, leaf, known, row, some, features):
    """Return the mass of a row at a leaf, by what its values have there."""
    mass = 1.0
    for i in range(some):
        mass *= factors[leaf, np.uint64(known[row, np.uint64(features + i)])]
    return mass


@inner
def _even_out(entry_starts, row, rows, mass, scale):
    """Divide the masses of a row by one power of two; return the largest and the least."""
    largest = np.int64(NOTHING)
    for tree in range(row, len(entry_starts) - 1, rows):
        for entry in range(entry_starts[tree], entry_starts[tree + 1]):
            if mass[entry] != 0.0:
                largest = max(largest, np.int64(scale[entry]))
    most, least = 0.0, math.inf
    for tree in range(row, len(entry_starts) - 1, rows):
        for entry in range(entry_starts[tree], entry_starts[tree + 1]):
            if mass[entry] != 0.0:
                mass[entry] *= shrink(largest - np.int64(scale[entry]))
                most, least = max(most, mass[entry]), min(least, mass[entry])
    return most, least


@kernel(
    types.void(
        *(types.boolean, code_vector, code_vector, *reaches, *contents, float_matrix),
        *(float_matrix, int_vector, code_matrix, float_matrix, code_matrix_out, int_matrix_out),
        *(float_matrix_out, float_matrix_out, int_vector, code_vector, float_vector_out),
        *(code_vector_out, flags_out),
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
    factors,
    places,
    codes,
    numbers,
    known,
    facts,
    extents,
    out,
    entry_starts,
    leaves,
    mass,
    scale,
    uneven,
):
    """Write log p(c, f) for rows with any evidence, and their mass at the leaves they reach.

    Parameters
    ----------
    plain : whether all features are narrow
    kinds … class_probs : of the forest
    factors, places : (leaves, values), the probability of each value, and where those of features
        begin; empty where they are too many
    codes, numbers : of the rows
    known : (rows, 2 · features), room
    facts, extents : (rows, 3) and (rows, 2), room
    out : (rows, classes), 0 before
    entry_starts, leaves : what rows reach
    mass, uneven : written, see `gaps.Reached`
    scale : room, one for each leaf, 0 before
    """
    rows, features = len(codes), codes.shape[1]
    trees = (len(entry_starts) - 1) // rows
    _list_known(codes, places, known, facts)
    for row in range(rows):
        facts[row, EXPONENT], facts[row, SCALED] = NOTHING, 0
        extents[row, MOST], extents[row, LEAST] = 0.0, math.inf
    for tree in range(trees):
        for row in range(rows):
            first, last = entry_starts[tree * rows + row], entry_starts[tree * rows + row + 1]
            some, exponent = facts[row, SOME], facts[row, EXPONENT]
            most, least = extents[row, MOST], extents[row, LEAST]
            # By themselves, leaves do not wait for the way to the next one.
            for entry in range(first, last):
                leaf = np.uint64(leaves[entry])
                mass[entry] = 0.0
                if len(factors):
                    mass[entry] = _multiply_known(factors, leaf, known, row, some, features)
                elif plain:
                    mass[entry] = multiply_sets(
                        *(seen, starts, entry_probs, np.int64(leaf), features),
                        *(known[row], some, codes, row),
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
                            *(1.0, steps, kinds, slots, seen, starts, entry_codes, entry_probs),
                            *(normals, np.int64(leaf), codes, numbers, row),
                        )
                        scale[entry] = np.int32(steps)
                        facts[row, SCALED] |= steps
                    steps += np.int64(reach_scale[leaf])
                    part, steps = times(mass[entry], steps, reach[leaf])
                    exponent = add_leaf(out, row, exponent, class_probs, leaf, part, steps)
                most = max(most, mass[entry])
                least = min(least, mass[entry] if mass[entry] > 0.0 else math.inf)
            facts[row, EXPONENT] = exponent
            extents[row, MOST], extents[row, LEAST] = most, least
    for row in range(rows):
        take_logarithms(out, row, facts[row, EXPONENT], trees)
        most, least = extents[row, MOST], extents[row, LEAST]
        if facts[row, SCALED]:
            most, least = _even_out(entry_starts, row, rows, mass, scale)
        # What is so small might vanish on its way up, and yet decide after the others are gone.
        uneven[row] = not least > SMALL * most
