"""What rows reach of a network, node by node; features that are missing are sums over their values.

Below each class stands one product. A missing feature that matters is a sum over its values, each
a product of what hangs on it; the product for one value stands below the first value of a missing
parent, and other nodes of the row refer to it.
"""

import math

import numpy as np
from numba import types

from robustq.core.evidence import CLASS, FEATURE, NONE, PRODUCT, SAME, SIDE, SUM, VALUE
from robustq.kernels import (
    bool_vector,
    code_matrix,
    code_matrix_out,
    code_vector,
    code_vector_out,
    float_matrix,
    float_matrix_out,
    float_vector,
    float_vector_out,
    inner,
    int_vector,
    int_vector_out,
    kernel,
)

__all__ = ["evaluate", "lay", "sort_cells"]

DROPPED, SEEN, SUMMED = range(3)
PRIOR, FEATURES = range(2)

byte_vector = types.Array(types.int8, 1, "C", readonly=True)
byte_vector_out = types.Array(types.int8, 1, "C")


@kernel(
    types.void(
        *(code_matrix, code_vector, code_vector, code_vector, code_vector, bool_vector),
        *(bool_vector, code_matrix_out, code_vector_out),
    )
)
def sort_cells(codes, order, starts, parents, class_parents, from_class, alone, state, tangled):
    """Write which features a row has, which are summed over, and what cannot be told apart.

    Parameters
    ----------
    codes : (rows, features)
    order : the features, parents before children
    starts, parents : see `structure.Wiring`
    class_parents : the features that are parents of the class
    from_class : which features have the class as a parent
    alone : which have a single category: nothing hangs on what is seen there
    state : (rows, features), written: `DROPPED`, `SEEN` or `SUMMED`
    tangled : (rows,), written: a missing feature whose sum does not split, −1 if there is none
    """
    for row in range(codes.shape[0]):
        tangled[row] = -1
        for feature in range(codes.shape[1]):
            seen = codes[row, feature] >= 0 and not alone[feature]
            state[row, feature] = SEEN if seen else DROPPED
        for k in range(len(class_parents)):
            if codes[row, class_parents[k]] < 0:
                state[row, class_parents[k]] = SUMMED
                tangled[row] = class_parents[k]
        for i in range(len(order) - 1, -1, -1):
            feature = order[i]
            if state[row, feature] == DROPPED:
                continue
            sums = 0
            for k in range(starts[feature], starts[feature + 1]):
                parent = parents[k]
                if codes[row, parent] < 0:
                    state[row, parent] = SUMMED
                    sums += 1
                    if sums > 1 or not from_class[feature]:
                        tangled[row] = parent
            if state[row, feature] == SUMMED and not from_class[feature]:
                tangled[row] = feature


@inner
def _find_cell(value, feature, c, starts, parents, steps, offsets, widths):
    cell = offsets[feature] + value[feature] * widths[feature]
    for k in range(starts[feature], starts[feature + 1]):
        cell += value[parents[k]] * steps[k]
    return cell + (c if widths[feature] > 1 else 0)


@inner
def _put(at, kind, arity, p, extra, local, slot, part, feature, count, nodes):
    """Write a node."""
    ops, arities, probs, extras, locals_, slots, parts, features, rows = nodes
    ops[at], arities[at], probs[at], extras[at] = kind, arity, p, extra
    locals_[at], slots[at], parts[at], features[at], rows[at] = local, slot, part, feature, count


@inner
def _put_value(at, kind, arity, extra, feature, c, value, model, nodes):
    """Write a node that a probability of a feature belongs to: a leaf, or a child of its sum."""
    starts, parents, steps, offsets, widths, sizes, row_offsets, first, probs, rows = model
    cell = _find_cell(value, feature, c, starts, parents, steps, offsets, widths)
    beside = widths[feature]
    line = row_offsets[feature] + (cell - offsets[feature]) // beside // sizes[feature] * beside
    line += c if beside > 1 else 0
    part = FEATURES if sizes[feature] > 1 else NONE
    _put(
        *(at, kind, arity, probs[cell], extra, first + line, value[feature], part, feature),
        *(rows[line], nodes),
    )


@inner
def _parent_summed(feature, state, starts, parents):
    """Return the parent of a feature that is summed over, −1 if there is none."""
    for k in range(starts[feature], starts[feature + 1]):
        if state[parents[k]] == SUMMED:
            return np.int64(parents[k])
    return np.int64(-1)


@inner
def _sum_over(top, at, c, value, state, above, place, walk, model, nodes, writes):
    """Write the sum over a feature and all that hangs on it; return where the next node goes."""
    stack, current, child, arity, sums = walk
    sizes = model[5]
    features = len(state)
    depth = 0
    stack[0], current[top], child[top] = top, 0, -1
    while depth >= 0:
        own = stack[depth]
        value[own] = current[own]
        if child[own] < 0:
            if writes:
                _put(at, CLASS, 0, 1.0, SIDE, NONE, c, NONE, NONE, math.nan, nodes)
            at += 1
            arity[own], sums[own], child[own] = 1, 0, 0
            for feature in range(features):
                if state[feature] == SEEN and above[feature] == own:
                    if writes:
                        _put_value(at, FEATURE, 0, 0, feature, c, value, model, nodes)
                    at += 1
                    arity[own] += 1
        deeper = False
        while child[own] < features:
            other = child[own]
            child[own] += 1
            if state[other] != SUMMED or above[other] != own:
                continue
            arity[own] += 1
            sums[own] += 1
            if current[own] == 0:
                depth += 1
                stack[depth], current[other], child[other] = other, 0, -1
                deeper = True
                break
            for k in range(sizes[other]):
                value[other] = k
                if writes:
                    back = at - place[other, k]
                    _put_value(at, SAME, 0, back, other, c, value, model, nodes)
                at += 1
            if writes:
                _put(at, SUM, sizes[other], 1.0, 0, NONE, 0, NONE, NONE, math.nan, nodes)
            at += 1
        if deeper:
            continue
        place[own, current[own]] = at
        if writes:
            _put_value(at, PRODUCT, arity[own], sums[own], own, c, value, model, nodes)
        at += 1
        current[own] += 1
        child[own] = -1
        if current[own] == sizes[own]:
            if writes:
                _put(at, SUM, sizes[own], 1.0, 0, NONE, 0, NONE, NONE, math.nan, nodes)
            at += 1
            depth -= 1
    return at


@kernel(
    types.void(
        *(code_matrix, code_matrix, code_vector, bool_vector, float_matrix, float_vector),
        *(code_vector, code_vector, int_vector, int_vector, int_vector, int_vector, int_vector),
        *(float_vector, float_vector, types.boolean, int_vector_out),
        *(byte_vector_out, code_vector_out, float_vector_out, int_vector_out, int_vector_out),
        *(code_vector_out, byte_vector_out, code_vector_out, float_vector_out),
    ),
    allocates=True,
)
def lay(
    codes,
    states,
    prior_row,
    from_class,
    class_probs,
    class_rows,
    starts,
    parents,
    steps,
    offsets,
    widths,
    sizes,
    row_offsets,
    probs,
    rows,
    writes,
    ends,
    ops,
    arities,
    node_probs,
    extras,
    locals_,
    slots,
    parts,
    features_,
    node_rows,
):
    """Write the nodes of rows; or, to make room for them, only where those of each row end.

    Parameters
    ----------
    codes, states : (rows, features); see `sort_cells`
    prior_row : (rows,), the row of the class's table
    from_class, class_probs, class_rows, probs, rows : the model
    starts … row_offsets : see `structure.Wiring`
    writes : whether nodes are to be written
    ends : (rows + 1,), written
    others : the columns of the evidence
    """
    features, classes = codes.shape[1], class_probs.shape[1]
    most = np.int64(1)
    for feature in range(features):
        most = max(most, sizes[feature])
    model = (
        *(starts, parents, steps, offsets, widths, sizes, row_offsets),
        *(np.int64(len(class_probs)), probs, rows),
    )
    nodes = (*(ops, arities, node_probs, extras, locals_, slots, parts, features_, node_rows),)
    value, above = np.zeros(features, np.int64), np.zeros(features, np.int64)
    place = np.zeros((features, most), np.int64)
    stack, current = np.zeros(features, np.int64), np.zeros(features, np.int64)
    child, arity = np.zeros(features, np.int64), np.zeros(features, np.int64)
    walk = (stack, current, child, arity, np.zeros(features, np.int64))
    at = np.int64(0)
    ends[0] = 0
    for row in range(codes.shape[0]):
        state, prior = states[row], np.int64(prior_row[row])
        for feature in range(features):
            value[feature] = codes[row, feature]
            above[feature] = _parent_summed(feature, state, starts, parents)
        for c in range(classes):
            if writes:
                _put(at, CLASS, 0, 1.0, -1, NONE, c, NONE, NONE, math.nan, nodes)
            at += 1
            count, sums = 1, 0
            for feature in range(features):
                if state[feature] == SEEN and from_class[feature] and above[feature] < 0:
                    if writes:
                        _put_value(at, FEATURE, 0, 0, feature, c, value, model, nodes)
                    at += 1
                    count += 1
            for feature in range(features):
                if state[feature] == SUMMED and above[feature] < 0:
                    at = _sum_over(
                        feature, at, c, value, state, above, place, walk, model, nodes, writes
                    )
                    count += 1
                    sums += 1
            if writes:
                part = PRIOR if classes > 1 else NONE
                _put(
                    *(at, PRODUCT, count, class_probs[prior, c], sums, prior, c, part, NONE),
                    *(class_rows[prior], nodes),
                )
            at += 1
        if writes:
            _put(at, SUM, classes, 1.0, 0, NONE, 0, NONE, NONE, math.nan, nodes)
        at += 1
        count = 1
        for feature in range(features):
            if state[feature] == SEEN and not from_class[feature]:
                if writes:
                    _put_value(at, FEATURE, 0, 0, feature, 0, value, model, nodes)
                at += 1
                count += 1
        if count > 1:
            if writes:
                _put(at, PRODUCT, count, 1.0, 0, NONE, 0, NONE, NONE, math.nan, nodes)
            at += 1
        ends[row + 1] = at


@kernel(
    types.void(
        *(int_vector, byte_vector, code_vector, float_vector, int_vector, code_vector),
        *(types.int64, float_matrix_out),
    ),
    allocates=True,
)
def evaluate(starts, op, arity, p, extra, slot, classes, joint):
    """Write log p(c, f) of rows from what they reach; classes are told by indicators."""
    longest = 0
    for row in range(len(starts) - 1):
        longest = max(longest, starts[row + 1] - starts[row])
    stack, logs = np.zeros(longest + 1), np.zeros(longest + 1)
    kept, kept_logs = np.zeros(longest + 1), np.zeros(longest + 1)
    weight = np.zeros(longest + 1)
    for row in range(len(starts) - 1):
        for c in range(classes):
            top, first = -1, starts[row]
            for node in range(first, starts[row + 1]):
                kind = op[node]
                v, log = 1.0, 0.0
                if kind == FEATURE or kind == VALUE:
                    v = p[node]
                    if kind == VALUE:
                        log = extra[node] * math.log(2.0)
                elif kind == CLASS:
                    v = 1.0 if extra[node] == SIDE or slot[node] == c else 0.0
                elif kind == SAME:
                    v, log = kept[node - extra[node] - first], kept_logs[node - extra[node] - first]
                elif kind == PRODUCT:
                    top -= arity[node]
                    for k in range(1, arity[node] + 1):
                        v *= stack[top + k]
                        log += logs[top + k]
                        if 0.0 < v < 1e-200:
                            log += math.log(v)
                            v = 1.0
                else:
                    top -= arity[node]
                    most = -math.inf
                    for k in range(1, arity[node] + 1):
                        if stack[top + k] * weight[top + k] > 0.0:
                            most = max(most, logs[top + k])
                    v = 0.0
                    if most > -math.inf:
                        log = most
                        for k in range(1, arity[node] + 1):
                            part = weight[top + k] * stack[top + k]
                            if part > 0.0:
                                v += part * math.exp(logs[top + k] - most)
                top += 1
                stack[top], logs[top], weight[top] = v, log, p[node]
                kept[node - first], kept_logs[node - first] = v, log
            joint[row, c] = math.log(stack[0]) + logs[0] if stack[0] > 0.0 else -math.inf
