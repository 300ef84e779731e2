"""What rows reach, as `core.evidence.Evidence` has it.

Local mass functions are numbered: 0 is the root, then the weights of each node, the class leaves,
and the features of each leaf.
"""

import math

import numpy as np
from numba import types

from robustq.core.evidence import CLASS, NONE, PRODUCT, SUM, VALUE
from robustq.core.evidence import FEATURE as FEATURE_LEAF
from robustq.core.scale import STEP
from robustq.kernels import (
    code_matrix,
    code_vector_out,
    float_matrix,
    float_vector,
    float_vector_out,
    inner,
    int_vector,
    int_vector_out,
    kernel,
)

from ._mass_kernels import contents, density, locate, weigh_leaf
from ._route_kernels import goes_right, routes
from .local_models import CLASSES, FEATURES, ROOT, WEIGHTS
from .nodes import CHILD, FEATURE, LEAF, NUMERIC

__all__ = ["count_reached", "reach"]


@inner
def _first_side(nodes, sets, thresholds, lists, kinds, slots, node, codes, numbers, row):
    """Return which child a row reaches, or 2 if it reaches both."""
    feature = nodes[node, FEATURE]
    if codes[row, feature] < 0:
        return np.int64(2)
    return goes_right(
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
        mass, scale = weigh_leaf(
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
            p[at], steps = density(
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
