"""What a tree becomes when it is planted: the weights of its nodes, cells, and what leaves hold."""

import math

import numpy as np
from numba import types

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

from ._growing_kernels import ITEMS, KEYS, sort_items
from .nodes import CHILD, FEATURE, FIRST, HIGHEST, LEAF, LENGTH, NARROW, NUMERIC, WIDE

__all__ = [
    "count_values",
    "estimate",
    "find_entries",
    "measure_cells",
    "measure_heights",
    "share",
    "shrink_classes",
]

word_vector = types.Array(types.uint64, 1, "C", readonly=True)
word_vector_out = types.Array(types.uint64, 1, "C")
word_matrix_out = types.Array(types.uint64, 2, "C")

WORD = 64


@kernel(types.void(code_matrix, float_vector, float_vector_out, float_vector_out))
def share(nodes, leaf_rows, rows, weights):
    """Write the rows of each node, and its weight among the children of its parent."""
    for node in range(len(nodes) - 1, -1, -1):
        child = nodes[node, CHILD]
        if nodes[node, FEATURE] == LEAF:
            rows[node] = leaf_rows[child]
            continue
        rows[node] = rows[child] + rows[child + 1]
        weights[child] = rows[child] / rows[node]
        weights[child + 1] = rows[child + 1] / rows[node]
    weights[0] = 1.0  # the root's


@inner
def _lowest(word):
    """Return the position of the lowest bit of a word."""
    return np.int64(count_bits((word & (~word + np.uint64(1))) - np.uint64(1)))


@inner
def _add_base(word, base, first):
    """Return the base of the values in a word, or how many they are."""
    if not len(base):
        return np.float64(count_bits(word))
    total = 0.0
    while word:
        total += base[first + _lowest(word)]
        word &= word - np.uint64(1)
    return total


@kernel(
    types.void(
        *(code_matrix, types.Array(types.uint64, 2, "C", readonly=True), float_matrix),
        *(code_vector, code_vector, code_vector, code_vector, code_vector),
        *(float_vector, int_vector),
        *(word_matrix_out, word_matrix_out, float_matrix_out, float_matrix_out),
        *(float_matrix_out, int_vector_out, float_matrix_out, float_matrix_out),
    )
)
def measure_cells(
    nodes,
    sets,
    thresholds,
    lists,
    kinds,
    slots,
    sizes,
    parents,
    base,
    base_starts,
    cell,
    cut_words,
    ends,
    cut_ends,
    sums,
    stack,
    masses,
    bounds,
):
    """Write what base each leaf of a tree allows, and between which numbers it lies.

    A walk through the tree that keeps the cell of the node it is at: on the way back, what the
    node had cut off is put back.

    Parameters
    ----------
    base, base_starts : see `Forest`; without a base values are counted
    cell : (features + 1, words), zeros; the last row is room for a list
    cut_words : (depth + 1, words)
    ends : (2, numeric features): −∞ and ∞
    cut_ends : (depth + 1, 2)
    sums : (2, features + depth + 1)
    stack : (3 · depth + 3,), its first entry 0
    masses : (leaves, categorical features), written
    bounds : (leaves, 2 · numeric features), written: all lower ends, then all upper ends
    """
    features, numbers = len(kinds), ends.shape[1]
    for feature in range(features):
        sums[0, feature] = 0.0
        for value in range(sizes[feature] if kinds[feature] != NUMERIC else 0):
            cell[feature, value // WORD] |= np.uint64(1) << np.uint64(value % WORD)
            sums[0, feature] += base[base_starts[slots[feature]] + value] if len(base) else 1.0
    waiting, level = 1, 0
    while waiting > 0:
        waiting -= 1
        node = stack[waiting]
        back = node < 0
        if back:
            node = ~node
        parent = parents[node]
        if parent >= 0 and not back:
            # Enter: keep what the cell of the parent was, and cut it.
            level += 1
            feature = nodes[parent, FEATURE]
            right = node != nodes[parent, CHILD]
            if kinds[feature] == NUMERIC:
                slot = slots[feature]
                cut_ends[level, 0], cut_ends[level, 1] = ends[0, slot], ends[1, slot]
                if right:
                    ends[0, slot] = max(ends[0, slot], thresholds[parent, 1])
                else:
                    ends[1, slot] = min(ends[1, slot], thresholds[parent, 1])
            else:
                used = (sizes[feature] + WORD - 1) // WORD
                invert = right
                if kinds[feature] == NARROW:
                    cell[features, 0] = sets[parent, 1]
                else:
                    first, length = nodes[parent, FIRST], nodes[parent, LENGTH]
                    if length >= 0:
                        invert = not right
                    else:
                        length = ~length
                    for w in range(used):
                        cell[features, w] = np.uint64(0)
                    for k in range(length):
                        value = lists[first + k]
                        cell[features, value // WORD] |= np.uint64(1) << np.uint64(value % WORD)
                sums[1, level] = sums[0, feature]
                sums[0, feature] = 0.0
                for w in range(used):
                    cut_words[level, w] = cell[feature, w]
                    cell[feature, w] &= ~cell[features, w] if invert else cell[features, w]
                    first = base_starts[slots[feature]] + w * WORD
                    sums[0, feature] += _add_base(cell[feature, w], base, first)
        child = nodes[node, CHILD]
        if nodes[node, FEATURE] == LEAF:
            for feature in range(features):
                if kinds[feature] != NUMERIC:
                    masses[child, slots[feature]] = sums[0, feature]
            for slot in range(numbers):
                bounds[child, slot], bounds[child, numbers + slot] = ends[0, slot], ends[1, slot]
            back = True
        elif not back:
            stack[waiting], stack[waiting + 1], stack[waiting + 2] = ~node, child + 1, child
            waiting += 3
        if back and parent >= 0:
            feature = nodes[parent, FEATURE]
            if kinds[feature] == NUMERIC:
                slot = slots[feature]
                ends[0, slot], ends[1, slot] = cut_ends[level, 0], cut_ends[level, 1]
            else:
                sums[0, feature] = sums[1, level]
                for w in range((sizes[feature] + WORD - 1) // WORD):
                    cell[feature, w] = cut_words[level, w]
            level -= 1


@kernel(
    types.int64(
        *(code_matrix, code_vector, code_vector, int_vector, int_vector_out),
        *(word_vector_out, int_vector_out),
    )
)
def find_entries(codes, kinds, order, leaf_starts, last, seen, starts):
    """Write where the entries of each leaf and categorical feature begin, and what it saw.

    Return how many codes have to be listed. `last` is room, one −1 for each value.
    """
    entries, listed, cell = np.int64(0), np.int64(0), 0
    for leaf in range(len(leaf_starts) - 1):
        for feature in range(len(kinds)):
            if kinds[feature] == NUMERIC:
                continue
            starts[cell] = entries
            entries += 1
            if kinds[feature] == NARROW:
                word = np.uint64(0)
                # Indices without a sign need no check for negative ones.
                for at in range(np.uint64(leaf_starts[leaf]), np.uint64(leaf_starts[leaf + 1])):
                    code = codes[np.uint64(order[at]), np.uint64(feature)]
                    word |= np.uint64(code >= 0) << np.uint64(max(code, 0))
                seen[cell] = word
                entries += np.int64(count_bits(word))
            else:
                seen[cell] = np.uint64(listed)
                for i in range(leaf_starts[leaf], leaf_starts[leaf + 1]):
                    code = codes[order[i], feature]
                    if code >= 0 and last[code] != cell:
                        last[code] = cell
                        entries += 1
                        listed += 1
            cell += 1
    starts[cell] = entries
    return listed


@kernel(
    types.void(
        *(code_matrix, float_matrix, code_vector, float_vector, code_vector, code_vector),
        *(int_vector, float_matrix, float_matrix),
        *(word_vector, int_vector, code_matrix_out, float_matrix_out, float_vector_out),
        *(float_matrix_out, code_vector_out, float_vector_out, float_matrix_out),
    )
)
def count_values(
    codes,
    numbers,
    labels,
    weights,
    kinds,
    order,
    leaf_starts,
    bounds,
    columns,
    seen,
    starts,
    room_codes,
    room_reals,
    hist,
    class_counts,
    entry_codes,
    entry_counts,
    normals,
):
    """Write the weight of the classes and values in each leaf, and describe its numbers.

    Parameters
    ----------
    columns : (3, numeric features)
        Mean and standard deviation of each column, for leaves that know nothing, and the
        smallest standard deviation allowed.
    seen, starts : from `find_entries`
    room_codes, room_reals, hist : as in `grow`; hist is a vector of zeros
    class_counts : (leaves, classes), 0; written
    entry_counts : written: of all values of a cell together, and then of each
    """
    width, cell = numbers.shape[1], 0
    for leaf in range(len(leaf_starts) - 1):
        start, stop = leaf_starts[leaf], leaf_starts[leaf + 1]
        for k in range(start, stop):
            class_counts[leaf, labels[order[k]]] += weights[order[k]]
        for feature in range(len(kinds)):
            if kinds[feature] == NUMERIC:
                continue
            at, values, total = starts[cell] + 1, starts[cell + 1] - starts[cell] - 1, 0.0
            found, wide = 0, kinds[feature] == WIDE
            for i in range(np.uint64(start), np.uint64(stop)):
                row = np.uint64(order[i])
                code = codes[row, np.uint64(feature)]
                if code >= 0:
                    own = np.uint64(code)
                    if wide and hist[own] == 0.0:
                        room_codes[ITEMS, found], room_reals[KEYS, found] = code, code
                        found += 1
                    hist[own] += weights[row]
                    total += weights[row]
            sort_items(room_reals, room_codes, found)
            entry_counts[at - 1], word = total, seen[cell]
            for k in range(values):
                if wide:
                    value = np.int64(room_codes[ITEMS, k])
                    entry_codes[np.int64(seen[cell]) + k] = value
                else:
                    value = _lowest(word)
                    word &= word - np.uint64(1)
                entry_counts[at + k] = hist[value]
                hist[value] = 0.0
            cell += 1
        for slot in range(width):
            total, mean, square = 0.0, 0.0, 0.0
            for k in range(start, stop):
                x, weight = numbers[order[k], slot], weights[order[k]]
                if not math.isnan(x):
                    # Welford's method
                    total += weight
                    step = x - mean
                    mean += step * (weight / total)
                    square += weight * step * (x - mean)
            spread = math.sqrt(square / total) if total > 0.0 else columns[1, slot]
            mean = mean if total > 0.0 else columns[0, slot]
            at, low, high = leaf * width + slot, bounds[leaf, slot], bounds[leaf, width + slot]
            normals[at, 0] = min(max(mean, low), high)
            normals[at, 1] = max(spread, columns[2, slot], 1.0 / HIGHEST)
            normals[at, 2], normals[at, 3] = low, high


@kernel(
    types.void(
        *(code_vector, float_matrix, types.float64, types.boolean, float_vector, int_vector),
        *(word_vector, int_vector, code_vector, float_vector_out),
    )
)
def estimate(
    kinds, masses, smoothing, shrink, base, base_starts, seen, starts, entry_codes, entries
):
    """Replace the counts of values by probabilities, over their base.

    `smoothing` is added to the count of a value, times its base; or, if leaves are shrunk, to that
    of all values of a cell together.
    """
    cell = 0
    for leaf in range(len(masses)):
        slot = 0
        for feature in range(len(kinds)):
            if kinds[feature] == NUMERIC:
                continue
            room, at, word = masses[leaf, slot], starts[cell], seen[cell]
            added = smoothing / room if shrink and room > 0.0 else smoothing
            whole = entries[at] + added * room
            # Where nothing is known, all values of the cell are as likely as their base.
            entries[at] = added / whole if whole > 0.0 else (1.0 / room if room > 0.0 else 1.0)
            for k in range(starts[cell + 1] - at - 1):
                share = entries[at + k + 1]
                if len(base):
                    wide = kinds[feature] == WIDE
                    code = np.int64(entry_codes[np.int64(word) + k]) if wide else _lowest(word)
                    word &= ~np.uint64(0) if wide else word - np.uint64(1)
                    share /= base[base_starts[slot] + code]
                entries[at + k + 1] = (share + added) / whole
            slot += 1
            cell += 1


@kernel(types.void(code_matrix, types.float64, types.float64, float_matrix_out, float_matrix_out))
def shrink_classes(nodes, strength, added, counts, class_probs):
    """Replace the class counts of leaves by probabilities, shrunk to those of their parents.

    p(c) = (n(c) + strength · p_parent(c)) / (n + strength); at the root `added` is added to n(c).
    `counts` is room, (nodes, classes).
    """
    classes = class_probs.shape[1]
    for node in range(len(nodes) - 1, -1, -1):
        child = nodes[node, CHILD]
        for c in range(classes):
            if nodes[node, FEATURE] == LEAF:
                counts[node, c] = class_probs[child, c]
            else:
                counts[node, c] = counts[child, c] + counts[child + 1, c]
    total = 0.0
    for c in range(classes):
        total += counts[0, c]
    for c in range(classes):
        counts[0, c] = (counts[0, c] + added) / (total + added * classes)
    for node in range(len(nodes)):
        child = nodes[node, CHILD]
        if nodes[node, FEATURE] == LEAF:
            for c in range(classes):
                class_probs[child, c] = counts[node, c]
            continue
        for side in range(2):
            total = strength
            for c in range(classes):
                total += counts[child + side, c]
            for c in range(classes):
                shared = counts[child + side, c] + strength * counts[node, c]
                counts[child + side, c] = shared / total


@kernel(types.void(float_matrix_out))
def measure_heights(normals):
    """Write the height of each normal: 1 over the integral of e^(−z²/2) over its cell."""
    half = math.sqrt(0.5)
    for i in range(len(normals)):
        mean, spread = normals[i, 0], normals[i, 1]
        below, above = (mean - normals[i, 2]) / spread, (normals[i, 3] - mean) / spread
        if below >= 0.0 and above >= 0.0:
            mass = math.erf(above * half) + math.erf(below * half)
        else:
            # The mean lies outside: a difference of tails.
            near, far = min(below, above), max(below, above)
            mass = math.erfc(-near * half) - math.erfc(far * half)
        # A cell may be so narrow, or so far from the mean, that nothing is left of it.
        normals[i, 4] = min(1.0 / (math.sqrt(2.0 * math.pi) * spread * 0.5 * mass), HIGHEST)
