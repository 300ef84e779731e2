"""How a tree grows: the best split of a node, again and again.

Columns are codes; a number is its rank among the numbers of its column. A node is a range of
`order`, the rows sorted so that those of a leaf stand together.
"""

import math

import numpy as np
from numba import types

from robustq.kernels import (
    code_matrix,
    code_matrix_out,
    code_vector,
    code_vector_out,
    float_matrix_out,
    float_vector,
    inner,
    int_matrix_out,
    int_vector,
    int_vector_out,
    kernel,
)

from .nodes import CHILD, FEATURE, FIRST, LEAF, LENGTH, NARROW, NUMERIC

__all__ = ["BY_CLASS", "CODES", "ITEMS", "KEYS", "ORDERED", "REALS", "grow", "sort_items"]

# The whole numbers that `grow` takes.
OPTIONS = ("max_features", "max_depth", "entropy", "seed")
# The rows of the room it works in: of floats, one for each value; of codes; of floats, one for
# each class.
REALS = SIZE, KEYS = range(2)
CODES = SEEN, ITEMS, CHOSEN, SIDE = range(4)
BY_CLASS = DIRECTION, MEAN, NEXT, LEFT, RIGHT, TOTAL = range(6)
GAIN = 1e-10  # of the weight of a node: less than this is rounding
POWER_STEPS = 30
ORDERED = 3  # beside `NARROW`, `WIDE` and `NUMERIC`
MOST_ORDERS = 16  # of the classes, the heaviest ones: each order costs as much as one class


@inner
def sort_items(reals, codes, count):
    """Sort the first codes of the row `ITEMS` by the row `KEYS` (Shell's method)."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            key, item = reals[KEYS, i], codes[ITEMS, i]
            j = i
            while j >= gap and reals[KEYS, j - gap] > key:
                reals[KEYS, j], codes[ITEMS, j] = reals[KEYS, j - gap], codes[ITEMS, j - gap]
                j -= gap
            reals[KEYS, j], codes[ITEMS, j] = key, item
        gap //= 3


@inner
def _order_ranks(reals, codes, values):
    """Sort the ranks that were seen: by walking over all of them, if they are many."""
    low, high = codes[SEEN, 0], codes[SEEN, 0]
    for k in range(values):
        low, high = min(low, codes[SEEN, k]), max(high, codes[SEEN, k])
        codes[ITEMS, k], reals[KEYS, k] = codes[SEEN, k], codes[SEEN, k]
    if high - low >= 4 * values:
        sort_items(reals, codes, values)
        return
    k = 0
    for rank in range(low, high + 1):
        if reals[SIZE, rank] > 0.0:
            codes[ITEMS, k] = rank
            k += 1


@inner
def _order_values(hist, reals, codes, values, by_class, present, classes_here, which):
    """Sort values by their share of a class, or (the last order) by the principal direction."""
    if which == classes_here:
        _direct(hist, codes, values, by_class, present, classes_here)
    for k in range(values):
        value = codes[SEEN, k]
        whole, along = 0.0, 0.0
        for j in range(classes_here):
            whole += hist[value, present[j]]
            along += hist[value, present[j]] * by_class[DIRECTION, j]
        part = along if which == classes_here else hist[value, present[which]]
        codes[ITEMS, k], reals[KEYS, k] = value, part / whole
    sort_items(reals, codes, values)


@inner
def _direct(hist, codes, values, by_class, present, classes_here):
    """Write the first principal direction of the class weights of the values."""
    total = 0.0
    for j in range(classes_here):
        by_class[MEAN, j], by_class[DIRECTION, j] = 0.0, 1.0 / (j + 1.0)
        for k in range(values):
            by_class[MEAN, j] += hist[codes[SEEN, k], present[j]]
        total += by_class[MEAN, j]
    for _ in range(POWER_STEPS):
        for j in range(classes_here):
            by_class[NEXT, j] = 0.0
        for k in range(values):
            value = codes[SEEN, k]
            weight, along = 0.0, 0.0
            for j in range(classes_here):
                weight += hist[value, present[j]]
            for j in range(classes_here):
                share = hist[value, present[j]] / weight - by_class[MEAN, j] / total
                along += share * by_class[DIRECTION, j]
            for j in range(classes_here):
                share = hist[value, present[j]] / weight - by_class[MEAN, j] / total
                by_class[NEXT, j] += weight * along * share
        norm = 0.0
        for j in range(classes_here):
            norm += by_class[NEXT, j] * by_class[NEXT, j]
        if norm <= 0.0:
            break
        for j in range(classes_here):
            by_class[DIRECTION, j] = by_class[NEXT, j] / math.sqrt(norm)


@inner
def _put_heaviest_first(by_class, present, classes_here):
    for first in range(MOST_ORDERS):
        heaviest = first
        for j in range(first + 1, classes_here):
            if by_class[TOTAL, present[j]] > by_class[TOTAL, present[heaviest]]:
                heaviest = j
        present[first], present[heaviest] = present[heaviest], present[first]


@inner
def _draw(state):
    """Return the next state of a generator and a number of 53 random bits (splitmix64)."""
    state += np.uint64(0x9E3779B97F4A7C15)
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state, np.int64((z ^ (z >> np.uint64(31))) >> np.uint64(11))


@inner
def _purity(weight, total, entropy):
    """Return what a class adds to the purity of a side; the sides are added up."""
    if weight <= 0.0:
        return 0.0
    return weight * math.log(weight / total) if entropy else weight * weight / total


@inner
def _best_prefix(hist, reals, codes, values, by_class, present, classes_here, entropy, min_leaf):
    """Return the gain in purity of the best cut of ordered values, and how many go left."""
    total, count = 0.0, 0.0
    for j in range(classes_here):
        by_class[LEFT, j], by_class[RIGHT, j] = 0.0, 0.0
    for k in range(values):
        value = codes[ITEMS, k]
        count += reals[SIZE, value]
        for j in range(classes_here):
            by_class[RIGHT, j] += hist[value, present[j]]
    for j in range(classes_here):
        total += by_class[RIGHT, j]
    before = 0.0
    for j in range(classes_here):
        before += _purity(by_class[RIGHT, j], total, entropy)
    best, cut = 0.0, 0
    on_left, weight_left = 0.0, 0.0
    for k in range(values - 1):
        value = codes[ITEMS, k]
        on_left += reals[SIZE, value]
        for j in range(classes_here):
            weight = hist[value, present[j]]
            weight_left += weight
            by_class[LEFT, j] += weight
            by_class[RIGHT, j] -= weight
        if on_left < min_leaf or count - on_left < min_leaf:
            continue
        gain = -before
        for j in range(classes_here):
            gain += _purity(by_class[LEFT, j], weight_left, entropy)
            gain += _purity(by_class[RIGHT, j], total - weight_left, entropy)
        if gain > best:
            best, cut = gain, k + 1
    return best, cut


@inner
def _split_rows(columns, weights, order, start, stop, feature, codes, on_left):
    """Move the rows that go left before the others; return where those begin, and who is heavier.

    Rows without a value go to the heavier side.
    """
    for k in range(on_left):
        codes[SIDE, codes[CHOSEN, k]] = 1
    balance = 0.0
    for i in range(start, stop):
        code = columns[feature, order[i]]
        if code >= 0:
            balance += weights[order[i]] if codes[SIDE, code] else -weights[order[i]]
    left_heavier = balance >= 0.0
    middle, end = start, stop
    while middle < end:
        code = columns[feature, order[middle]]
        if (codes[SIDE, code] > 0) if code >= 0 else left_heavier:
            middle += 1
        else:
            end -= 1
            order[middle], order[end] = order[end], order[middle]
    for k in range(on_left):
        codes[SIDE, codes[CHOSEN, k]] = 0
    return middle, left_heavier


@inner
def _write_set(nodes, node, codes, on_left, values, left_heavier):
    """Write the set of values that go left; those that are not here go to the heavier side."""
    bits = ~np.uint64(0) if left_heavier else np.uint64(0)
    for k in range(values):
        bit = np.uint64(1) << np.uint64(codes[CHOSEN, k])
        bits = (bits | bit) if k < on_left else (bits & ~bit)
    nodes[node, FIRST] = np.int32(bits & np.uint64(0xFFFFFFFF))
    nodes[node, LENGTH] = np.int32(bits >> np.uint64(32))


@inner
def _write_prefix(nodes, node, last):
    """Write the set of the values up to the last one that goes left."""
    bits = (np.uint64(2) << np.uint64(last)) - np.uint64(1)
    nodes[node, FIRST] = np.int32(bits & np.uint64(0xFFFFFFFF))
    nodes[node, LENGTH] = np.int32(bits >> np.uint64(32))


@inner
def _write_list(nodes, node, reals, codes, on_left, values, left_heavier, lists, listed):
    """Write the values of the lighter side to a list; return where it ends, or −1: no room."""
    first = on_left if left_heavier else 0
    length = (values if left_heavier else on_left) - first
    if listed + length > len(lists):
        return np.int64(-1)
    for k in range(length):
        codes[ITEMS, k], reals[KEYS, k] = codes[CHOSEN, first + k], codes[CHOSEN, first + k]
    sort_items(reals, codes, length)
    for k in range(length):
        lists[listed + k] = codes[ITEMS, k]
    nodes[node, FIRST] = listed
    nodes[node, LENGTH] = length if left_heavier else ~length
    return listed + length


@kernel(
    types.int64(
        *(code_matrix, code_vector, code_vector, float_vector, float_vector),
        *(int_vector, float_vector, code_vector_out, code_vector_out),
        *(code_matrix_out, code_vector_out, int_vector_out, int_vector_out),
        *(float_matrix_out, float_matrix_out, code_matrix_out),
        *(float_matrix_out, code_vector_out, int_vector_out, int_matrix_out),
        *(code_vector_out, float_matrix_out),
    )
)
def grow(
    columns,
    kinds,
    labels,
    weights,
    repeats,
    options,
    limits,
    order,
    heavier,
    nodes,
    lists,
    leaf_starts,
    used,
    hist,
    reals,
    codes,
    by_class,
    present,
    tried,
    stack,
    own_labels,
    own_reals,
):
    """Grow a tree; return 0, or 1 if there was no room for the lists.

    Parameters
    ----------
    columns : (features, rows); negative where missing
    kinds : (features,), how each is split; `ORDERED` are sets of neighbours
    labels, weights, repeats : (rows,)
        `repeats` is what counts for the sizes of nodes.
    options : the whole numbers named in `OPTIONS`
    limits : min_samples_split, min_samples_leaf, purity
    order : the rows to learn from; sorted by leaf when done
    heavier : written, for each inner node: 0 if more weight goes left, else 1
    nodes, lists, leaf_starts : written
    used : (3,), written: how many nodes, values in lists, and leaves there are
    hist, reals, codes, by_class, present, tried, stack, own_labels, own_reals
        Room to work in; the first three must be 0, `tried` must number the features.
    """
    max_features, max_depth, entropy = options[0], options[1], options[2] > 0
    state = np.uint64(options[3])
    min_split, min_leaf, purity = limits[0], limits[1], limits[2]
    features, classes = len(columns), hist.shape[1]
    sizes, own_weights, own_repeats = reals[SIZE], own_reals[0], own_reals[1]
    count_nodes, listed, leaves = np.int64(1), np.int64(0), np.int64(0)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, 0, len(order), 0
    waiting = 1
    while waiting > 0:
        waiting -= 1
        node, start = stack[waiting, 0], stack[waiting, 1]
        stop, depth = stack[waiting, 2], stack[waiting, 3]
        for c in range(classes):
            by_class[TOTAL, c] = 0.0
        count = 0.0
        # Beside each other, they are read much faster for one feature after another.
        for i in range(start, stop):
            row = order[i]
            own_labels[i], own_weights[i], own_repeats[i] = labels[row], weights[row], repeats[row]
            by_class[TOTAL, own_labels[i]] += own_weights[i]
            count += own_repeats[i]
        weight, most, classes_here = 0.0, 0.0, 0
        for c in range(classes):
            if by_class[TOTAL, c] > 0.0:
                present[classes_here] = c
                classes_here += 1
                weight += by_class[TOTAL, c]
                most = max(most, by_class[TOTAL, c])
        if classes_here > MOST_ORDERS:
            _put_heaviest_first(by_class, present, classes_here)
        best, best_feature, on_left, best_values = GAIN * weight, np.int64(-1), 0, 0
        closed = most >= purity * weight or count < min_split or depth >= max_depth
        for i in range(0 if closed else features):
            if i >= max_features and best_feature >= 0:
                break
            state, number = _draw(state)
            j = i + number % (features - i)
            feature = tried[j]
            tried[j], tried[i] = tried[i], feature
            values = 0
            for at in range(np.uint64(start), np.uint64(stop)):
                # Indices without a sign need no check for negative ones.
                code = columns[feature, np.uint64(order[at])]
                if code >= 0:
                    own = np.uint64(code)
                    if sizes[own] == 0.0:
                        codes[SEEN, values] = code
                        values += 1
                    hist[own, np.uint64(own_labels[at])] += own_weights[at]
                    sizes[own] += own_repeats[at]
            ranks = kinds[feature] == NUMERIC or kinds[feature] == ORDERED
            # Two classes, two values or numbers have one order; else one per class and one more.
            orders = 1
            if not (ranks or classes_here == 2 or values == 2):
                orders = min(classes_here, MOST_ORDERS) + 1
            for which in range(orders if values > 1 else 0):
                if ranks:
                    _order_ranks(reals, codes, values)
                else:
                    by = classes_here if which == orders - 1 and orders > 1 else which
                    _order_values(hist, reals, codes, values, by_class, present, classes_here, by)
                gain, cut = _best_prefix(
                    hist, reals, codes, values, by_class, present, classes_here, entropy, min_leaf
                )
                if gain > best:
                    best, best_feature, on_left, best_values = gain, feature, cut, values
                    for k in range(values):
                        codes[CHOSEN, k] = codes[ITEMS, k]
            for k in range(values):
                reals[SIZE, codes[SEEN, k]] = 0.0
                for j in range(classes_here):
                    hist[codes[SEEN, k], present[j]] = 0.0
        nodes[node, FEATURE], nodes[node, CHILD] = best_feature, count_nodes
        if best_feature < 0:
            nodes[node, FEATURE], nodes[node, CHILD] = LEAF, leaves
            nodes[node, FIRST], nodes[node, LENGTH] = 0, 0
            leaf_starts[leaves] = start
            leaves += 1
            continue
        middle, left_heavier = _split_rows(
            columns, weights, order, start, stop, best_feature, codes, on_left
        )
        heavier[node] = 0 if left_heavier else 1
        if kinds[best_feature] == ORDERED:
            # What lies between goes to the nearer side.
            last = (codes[CHOSEN, on_left - 1] + codes[CHOSEN, on_left]) // 2
            _write_prefix(nodes, node, last)
        elif kinds[best_feature] == NUMERIC:
            nodes[node, FIRST] = codes[CHOSEN, on_left - 1]
            nodes[node, LENGTH] = codes[CHOSEN, on_left]
        elif kinds[best_feature] == NARROW:
            _write_set(nodes, node, codes, on_left, best_values, left_heavier)
        else:
            listed = _write_list(
                nodes, node, reals, codes, on_left, best_values, left_heavier, lists, listed
            )
            if listed < 0:
                return 1
        # The left side is next, so that leaves come in the order of their rows.
        for side in range(2):
            stack[waiting, 0] = count_nodes + 1 - side
            stack[waiting, 1] = start if side else middle
            stack[waiting, 2] = middle if side else stop
            stack[waiting, 3] = depth + 1
            waiting += 1
        count_nodes += 2
    leaf_starts[leaves] = len(order)
    used[0], used[1], used[2] = count_nodes, listed, leaves
    return 0
