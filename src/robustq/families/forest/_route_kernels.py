"""Loops over rows and trees: which way rows go, and where they end.

A block of rows goes through one tree at a time, which so stays in the cache.
"""

import numpy as np
from numba import types

from robustq.core._scale_kernels import times
from robustq.kernels import (
    code_matrix,
    code_matrix_out,
    code_vector,
    code_vector_out,
    float_matrix,
    float_vector,
    float_vector_out,
    inner,
    int_vector,
    int_vector_out,
    kernel,
)

from .nodes import CHILD, FEATURE, FIRST, LEAF, LENGTH, NARROW, NUMERIC

__all__ = [
    "find",
    "goes_right",
    "longest_path",
    "multiply_weights",
    "route",
    "routes",
    "settle",
]

# The arrays of `forest.Arrays` that route rows.
routes = (
    *(code_matrix, types.Array(types.uint64, 2, "C", readonly=True), float_matrix),
    *(code_vector, code_vector, code_vector, code_vector),
)

LONG = 16  # lists longer than this are searched by halving


@inner
def find(values, start, stop, value):
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
def goes_right(nodes, sets, thresholds, lists, kind, slot, node, code, numbers, row):
    """Return 1 if a value goes to the right child, else 0."""
    if kind == NARROW:
        right = 1 - np.int64((sets[node, 1] >> np.uint64(code)) & np.uint64(1))
    elif kind == NUMERIC:
        right = np.int64(numbers[row, slot] > thresholds[node, 1])
    else:
        first, length = np.int64(nodes[node, FIRST]), np.int64(nodes[node, LENGTH])
        stop = first + (length if length >= 0 else ~length)
        at = find(lists, first, stop, code)
        right = np.int64((at < stop and lists[at] == code) == (length >= 0))
    return right


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


@kernel(types.void(*routes, code_matrix, float_matrix, code_matrix_out))
def route(nodes, sets, thresholds, lists, kinds, slots, roots, codes, numbers, leaves):
    """Write the leaf where each complete row ends in each tree, (trees, rows)."""
    for tree in range(len(roots) - 1):
        for row in range(len(codes)):
            node = np.int64(roots[tree])
            feature = nodes[node, FEATURE]
            while feature != LEAF:
                right = goes_right(
                    *(nodes, sets, thresholds, lists, kinds[feature], slots[feature]),
                    *(node, codes[row, feature], numbers, row),
                )
                node = nodes[node, CHILD] + right
                feature = nodes[node, FEATURE]
            leaves[tree, row] = nodes[node, CHILD]


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
                right = goes_right(
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
