"""Loops over rows and trees: where rows end, how likely they are there, and the mixture.

A block of rows goes through one tree at a time, which so stays in the cache. Masses are
mantissas and scales, m · 2^(STEP · s): hundreds of features underflow.
"""

import math

import numpy as np
from numba import types

from robustq.core._scale_kernels import shrink, times
from robustq.core.evidence import CLASS, NONE, PRODUCT, SUM, VALUE
from robustq.core.evidence import FEATURE as FEATURE_LEAF
from robustq.core.scale import LOG_STEP, LOWEST, STEP
from robustq.kernels import (
    code_matrix,
    code_matrix_out,
    code_vector,
    code_vector_out,
    count_bits,
    float_matrix,
    float_matrix_out,
    float_vector,
    float_vector_out,
    inner,
    int_vector,
    int_vector_out,
    kernel,
)

from .local_models import CLASSES, FEATURES, ROOT, WEIGHTS
from .model import CHILD, FARTHEST, FEATURE, FIRST, LEAF, LENGTH, NARROW, NUMERIC

__all__ = [
    "count_reached",
    "locate",
    "longest_path",
    "mix",
    "multiply_weights",
    "reach",
    "route",
    "settle",
    "weigh",
]

# The arrays of `forest.Arrays`: what routes rows, and what leaves hold.
routes = (
    *(code_matrix, types.Array(types.uint64, 2, "C", readonly=True), float_matrix),
    *(code_vector, code_vector, code_vector, code_vector),
)
reaches = (float_vector, code_vector)
contents = (
    types.Array(types.uint64, 1, "C", readonly=True),
    *(code_vector, code_vector, float_vector, float_matrix),
)

LANES = 8
LONG = 16  # lists longer than this are searched by halving
LOWEST_SCALE = -(2**30)  # what is smaller is 0: scales are 32 bits
NOTHING = -(2**40)  # the scale of a total of 0


@inner
def _find(values, start, stop, value):
    """Return where a value stands in a sorted part of an array, or would stand."""
    while stop - start > LONG:
        middle = (start + stop) // 2
        if values[middle] <= value:
            start = middle
        else:
            stop = middle
    while start < stop and values[start] < value:
        start += 1
    return start


@inner
def _goes_right(nodes, sets, thresholds, lists, kind, slot, node, code, numbers, row):
    """Return 1 if a value goes to the right child, else 0."""
    if kind == NARROW:
        right = 1 - np.int64((sets[node, 1] >> np.uint64(code)) & np.uint64(1))
    elif kind == NUMERIC:
        right = np.int64(numbers[row, slot] > thresholds[node, 1])
    else:
        first, length = np.int64(nodes[node, FIRST]), np.int64(nodes[node, LENGTH])
        stop = first + (length if length >= 0 else ~length)
        at = _find(lists, first, stop, code)
        right = np.int64((at < stop and lists[at] == code) == (length >= 0))
    return right


@inner
def _density(x, mean, spread, low, high, height):
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
    at = _find(entry_codes, first, stop, code)
    return start + (at - first + 1 if at < stop and entry_codes[at] == code else 0)


@inner
def _multiply_sets(seen, starts, entry_probs, leaf, width, known, some, codes, row):
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
def _weigh(
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
            factor, steps = _density(
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
        *(code_matrix, float_vector, code_vector, float_vector_out, int_vector_out),
        *(float_vector_out, code_vector_out),
    )
)
def multiply_weights(nodes, weights, roots, mass, scale, reach, reach_scale):
    """Write the product of the weights on the path to each leaf, as mantissa and scale.

    Mass and scale of the nodes are room to work in.
    """
    for tree in range(len(roots) - 1):
        mass[roots[tree]], scale[roots[tree]] = 1.0, 0
        for node in range(roots[tree], roots[tree + 1]):
            child = nodes[node, CHILD]
            if nodes[node, FEATURE] == LEAF:
                reach[child], reach_scale[child] = mass[node], scale[node]
                continue
            for side in range(2):
                part, steps = times(mass[node], scale[node], weights[child + side])
                mass[child + side], scale[child + side] = part, steps


@kernel(types.int64(code_vector, code_vector_out))
def longest_path(parents, depth):
    """Return the largest depth; parents stand before their children, depth is 0 everywhere."""
    longest = np.int64(0)
    for node in range(len(parents)):
        if parents[node] >= 0:
            depth[node] = depth[parents[node]] + 1
            longest = max(longest, np.int64(depth[node]))
    return longest


@inner
def _route_sets(nodes, sets, root, codes, start, some, lanes):
    """Send a few rows side by side to their leaves, all splits being sets.

    A step waits for the one before, and a branch nobody can foresee costs more than what it
    saves: a row that has arrived goes on the spot.
    """
    for lane in range(some):
        lanes[lane] = root
    going = np.int64(1)
    while going:
        going = np.int64(0)
        for lane in range(some):
            # Indices without a sign need no check for negative ones.
            node = np.uint64(lanes[lane])
            feature = np.int64(nodes[node, FEATURE])
            inner = np.int64(feature >= 0)
            code = np.uint64(codes[np.uint64(start + lane), np.uint64(feature * inner)])
            right = np.int64(((sets[node, 1] >> code) & np.uint64(1)) ^ np.uint64(1))
            lanes[lane] = nodes[node, CHILD] + right if inner else np.int64(node)
            going |= inner


@kernel(
    types.void(types.boolean, *routes, code_matrix, float_matrix, int_vector_out, code_matrix_out)
)
def route(plain, nodes, sets, thresholds, lists, kinds, slots, roots, codes, numbers, lanes, ends):
    """Write the node where each complete row ends in each tree.

    Lanes are room, `LANES` long; `plain` tells that all features are narrow.
    """
    for tree in range(len(roots) - 1):
        for start in range(0, len(codes), LANES):
            some = min(LANES, len(codes) - start)
            if plain:
                _route_sets(nodes, sets, np.int64(roots[tree]), codes, start, some, lanes)
            for lane in range(0 if plain else some):
                node, row = np.int64(roots[tree]), start + lane
                feature = nodes[node, FEATURE]
                while feature != LEAF:
                    right = _goes_right(
                        *(nodes, sets, thresholds, lists, kinds[feature], slots[feature]),
                        *(node, codes[row, feature], numbers, row),
                    )
                    node = nodes[node, CHILD] + right
                    feature = nodes[node, FEATURE]
                lanes[lane] = node
            for lane in range(some):
                ends[start + lane, tree] = lanes[lane]


@kernel(
    types.void(
        *(*routes[:-1], code_vector, code_matrix, float_matrix, code_vector, int_vector),
        *(code_vector_out, int_vector_out, code_vector_out),
    )
)
def settle(
    nodes,
    sets,
    thresholds,
    lists,
    kinds,
    slots,
    heavier,
    codes,
    numbers,
    some_order,
    some_starts,
    ends,
    leaf_starts,
    order,
):
    """Write all rows in the order of the leaves where they end, some being in order already.

    Where a value is missing, a row goes to the heavier side. `ends` is −1 before, `leaf_starts` 0.
    """
    for leaf in range(len(some_starts) - 1):
        for i in range(some_starts[leaf], some_starts[leaf + 1]):
            ends[some_order[i]] = leaf
        leaf_starts[leaf + 1] = some_starts[leaf + 1] - some_starts[leaf]
    for row in range(len(codes)):
        if ends[row] >= 0:
            continue
        node = np.int64(0)
        feature = nodes[node, FEATURE]
        while feature != LEAF:
            code, right = codes[row, feature], np.int64(heavier[node])
            if code >= 0:
                right = _goes_right(
                    *(nodes, sets, thresholds, lists, kinds[feature], slots[feature]),
                    *(node, code, numbers, row),
                )
            node = np.int64(nodes[node, CHILD]) + right
            feature = nodes[node, FEATURE]
        ends[row] = nodes[node, CHILD]
        leaf_starts[ends[row] + 1] += 1
    for leaf in range(len(leaf_starts) - 1):
        leaf_starts[leaf + 1] += leaf_starts[leaf]
    for row in range(len(codes)):
        order[leaf_starts[ends[row]]] = row
        leaf_starts[ends[row]] += 1
    for leaf in range(len(leaf_starts) - 1, 0, -1):
        leaf_starts[leaf] = leaf_starts[leaf - 1]
    leaf_starts[0] = 0


@kernel(
    types.void(
        *(types.boolean, code_vector, code_matrix, code_vector, code_vector, *contents),
        *(code_matrix, float_matrix, code_matrix, float_matrix_out, code_matrix_out),
    )
)
def weigh(
    plain,
    every,
    nodes,
    kinds,
    slots,
    seen,
    starts,
    entry_codes,
    entry_probs,
    normals,
    codes,
    numbers,
    ends,
    mass,
    scale,
):
    """Write the mass of each complete row where it ends in each tree.

    `plain` tells that all features are narrow; `every` lists them.
    """
    for tree in range(ends.shape[1]):
        for row in range(len(codes)):
            leaf = np.int64(nodes[ends[row, tree], CHILD])
            part, steps = 0.0, np.int64(0)
            if plain:
                part = _multiply_sets(
                    *(seen, starts, entry_probs, leaf, codes.shape[1]),
                    *(every, codes.shape[1], codes, row),
                )
            # Factors above 1 make up for 2^STEP at most: what is not tiny has not underflowed.
            if part < LOWEST:
                part, steps = _weigh(
                    *(1.0, np.int64(0), kinds, slots, seen, starts, entry_codes, entry_probs),
                    *(normals, leaf, codes, numbers, row),
                )
            mass[row, tree], scale[row, tree] = part, steps


@inner
def _add(out, row, exponent, class_probs, leaf, mass, scale):
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
def _take_logarithms(out, row, exponent, trees):
    """Replace the total of a row by the logarithm of its mean over the trees."""
    for c in range(out.shape[1]):
        if out[row, c] > 0.0:
            out[row, c] = math.log(out[row, c]) + (exponent * LOG_STEP - math.log(trees))
        else:
            out[row, c] = -math.inf


@kernel(
    types.void(
        *(code_matrix, *reaches, float_matrix, code_matrix, float_matrix, code_matrix),
        float_matrix_out,
    )
)
def mix(nodes, reach, reach_scale, class_probs, ends, mass, scale, out):
    """Write log p(c, f) from what `trace` found; `out` is 0 before."""
    for row in range(len(ends)):
        exponent = np.int64(NOTHING)
        for tree in range(ends.shape[1]):
            leaf = nodes[ends[row, tree], CHILD]
            steps = np.int64(scale[row, tree] + reach_scale[leaf])
            part, steps = times(mass[row, tree], steps, reach[leaf])
            exponent = _add(out, row, exponent, class_probs, leaf, part, steps)
        _take_logarithms(out, row, exponent, ends.shape[1])


# What rows reach, as `core.evidence.Evidence` has it. Local mass functions are numbered: 0 is the
# root, then the weights of each node, the class leaves, and the features of each leaf.


@inner
def _first_side(nodes, sets, thresholds, lists, kinds, slots, node, codes, numbers, row):
    """Return which child a row reaches, or 2 if it reaches both."""
    feature = nodes[node, FEATURE]
    if codes[row, feature] < 0:
        return np.int64(2)
    return _goes_right(
        *(nodes, sets, thresholds, lists, kinds[feature], slots[feature]),
        *(node, codes[row, feature], numbers, row),
    )


@kernel(
    types.void(
        *(*routes, types.boolean, int_vector_out, code_matrix, float_matrix, int_vector_out),
    )
)
def count_reached(
    nodes, sets, thresholds, lists, kinds, slots, roots, fold, stack, codes, numbers, counts
):
    """Write how many nodes of evidence each row has."""
    for row in range(len(codes)):
        seen = np.int64(0)
        for feature in range(codes.shape[1]):
            seen += codes[row, feature] >= 0
        if fold:
            seen = np.int64(1)
        total = np.int64(1)
        for tree in range(len(roots) - 1):
            stack[0] = roots[tree]
            waiting = 1
            while waiting > 0:
                waiting -= 1
                node = stack[waiting]
                if nodes[node, FEATURE] == LEAF:
                    total += 2 + seen
                    continue
                total += 1
                side = _first_side(
                    *(nodes, sets, thresholds, lists, kinds, slots, node, codes, numbers, row)
                )
                child = np.int64(nodes[node, CHILD])
                if side == 2:
                    stack[waiting], stack[waiting + 1] = child, child + 1
                    waiting += 2
                else:
                    stack[waiting] = child + side
                    waiting += 1
        counts[row] = total


@inner
def _write_leaf(
    at,
    leaf,
    nodes_count,
    leaves,
    kinds,
    slots,
    seen,
    starts,
    entry_codes,
    entry_probs,
    normals,
    codes,
    numbers,
    row,
    base,
    base_starts,
    allowed,
    count,
    fold,
    op,
    arity,
    p,
    extra,
    local,
    slot,
    part,
    split,
    rows,
):
    """Write a class leaf and the leaves of the features that are there; return where they end."""
    numeric = numbers.shape[1]
    features = codes.shape[1]
    op[at], local[at], slot[at], extra[at] = CLASS, 1 + nodes_count + leaf, -1, leaf
    arity[at], p[at] = 0, 1.0
    part[at], split[at], rows[at] = CLASSES, NONE, count
    at += 1
    if fold:
        op[at], arity[at], slot[at], local[at] = VALUE, 0, -1, NONE
        part[at], split[at], rows[at] = NONE, NONE, count
        mass, scale = _weigh(
            *(1.0, np.int64(0), kinds, slots, seen, starts, entry_codes, entry_probs, normals),
            *(leaf, codes, numbers, row),
        )
        p[at], extra[at] = mass, STEP * scale
        return at + 1
    for feature in range(features):
        code, place = codes[row, feature], slots[feature]
        if code < 0:
            continue
        arity[at], split[at], rows[at] = 0, feature, count
        if kinds[feature] != NUMERIC:
            cell = leaf * (features - numeric) + place
            op[at], slot[at], extra[at] = FEATURE_LEAF, code, 0
            p[at] = entry_probs[locate(kinds[feature], seen, starts, entry_codes, cell, code)]
            if len(base):
                p[at] *= base[base_starts[place] + code]
            local[at] = 1 + nodes_count + leaves + leaf * features + feature
            part[at] = FEATURES if allowed[leaf, place] > 1 else NONE
        else:
            normal = leaf * numeric + place
            op[at], slot[at], local[at], part[at] = VALUE, -1, NONE, NONE
            p[at], steps = _density(
                numbers[row, place],
                normals[normal, 0],
                normals[normal, 1],
                normals[normal, 2],
                normals[normal, 3],
                normals[normal, 4],
            )
            extra[at] = STEP * steps
        at += 1
    return at


@kernel(
    types.void(
        *(*routes, *contents, float_vector, int_vector),
        *(float_vector, float_vector, code_matrix, types.int64),
        *(types.boolean, int_vector_out, int_vector_out),
        *(code_matrix, float_matrix, int_vector, types.Array(types.int8, 1, "C")),
        *(code_vector_out, float_vector_out, int_vector_out, int_vector_out, code_vector_out),
        *(types.Array(types.int8, 1, "C"), code_vector_out, float_vector_out),
    )
)
def reach(
    nodes,
    sets,
    thresholds,
    lists,
    kinds,
    slots,
    roots,
    seen,
    starts,
    entry_codes,
    entry_probs,
    normals,
    base,
    base_starts,
    weights,
    node_rows,
    allowed,
    leaves,
    fold,
    stack,
    state,
    codes,
    numbers,
    row_starts,
    op,
    arity,
    p,
    extra,
    local,
    slot,
    part,
    split,
    rows,
):
    """Write the evidence of rows; see `core.evidence.Evidence`.

    Stack and state have room for one more than the longest path. A node's state is the child that
    comes next, and 4 if both are to come.
    """
    trees = len(roots) - 1
    for row in range(len(codes)):
        at = row_starts[row]
        for tree in range(trees):
            depth = 0
            stack[0], state[0] = roots[tree], -1
            while depth >= 0:
                node = stack[depth]
                if nodes[node, FEATURE] == LEAF:
                    begin = at
                    at = _write_leaf(
                        *(at, np.int64(nodes[node, CHILD]), len(nodes), leaves, kinds, slots),
                        *(seen, starts, entry_codes, entry_probs, normals, codes, numbers, row),
                        *(
                            base,
                            base_starts,
                            allowed,
                            node_rows[node],
                            fold,
                            op,
                            arity,
                            p,
                            extra,
                            local,
                            slot,
                            part,
                        ),
                        *(split, rows),
                    )
                    op[at], arity[at], extra[at] = PRODUCT, at - begin, 0
                elif state[depth] == -1:
                    side = _first_side(
                        *(nodes, sets, thresholds, lists, kinds, slots, node, codes, numbers),
                        row,
                    )
                    # Down to the first child; 3 remembers that the second is to come.
                    state[depth] = 3 if side == 2 else 1
                    depth += 1
                    stack[depth] = nodes[node, CHILD] + (0 if side == 2 else side)
                    state[depth] = -1
                    continue
                elif state[depth] == 3:
                    state[depth] = 2
                    depth += 1
                    stack[depth], state[depth] = nodes[node, CHILD] + 1, -1
                    continue
                else:
                    op[at], arity[at], extra[at] = SUM, state[depth], 2 - state[depth]
                if depth == 0:
                    p[at], local[at], slot[at] = 1.0 / trees, 0, tree
                    part[at], split[at], rows[at] = ROOT if trees > 1 else NONE, NONE, math.nan
                else:
                    above = stack[depth - 1]
                    p[at], local[at] = weights[node], 1 + above
                    slot[at] = node - nodes[above, CHILD]
                    part[at], split[at], rows[at] = WEIGHTS, nodes[above, FEATURE], node_rows[above]
                at += 1
                depth -= 1
        op[at], arity[at], extra[at], p[at], slot[at] = SUM, trees, 0, 1.0, 0
        local[at], part[at], split[at], rows[at] = NONE, NONE, NONE, math.nan
