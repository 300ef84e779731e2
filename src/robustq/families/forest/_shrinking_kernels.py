"""What rows would get from leaves that had not seen them, for several strengths of shrinking."""

import math

import numpy as np
from numba import types

from robustq.kernels import (
    code_matrix,
    code_vector,
    float_matrix,
    float_matrix_out,
    float_vector,
    float_vector_out,
    inner,
    int_vector,
    int_vector_out,
    kernel,
)

from ._mass_kernels import locate
from .nodes import NUMERIC

__all__ = ["rate"]


@inner
def _share_classes(path, length, counts, label, weight, strength, added, p):
    """Write p(c) at the end of a path, shrunk on the way down, without a row."""
    classes = counts.shape[1]
    for level in range(length - 1, -1, -1):
        node, total = path[level], 0.0
        for c in range(classes):
            total += counts[node, c]
        root = level == length - 1
        total += (added * classes if root else strength) - weight
        for c in range(classes):
            own = counts[node, c] - (weight if c == label else 0.0)
            p[c] = (own + (added if root else strength * p[c])) / total


@kernel(
    types.void(
        *(code_matrix, code_vector, float_vector, code_vector, code_vector, code_vector),
        *(int_vector, int_vector, code_vector, float_matrix, float_matrix_out),
        *(types.Array(types.uint64, 1, "C", readonly=True), int_vector, code_vector),
        *(float_vector, float_matrix, float_vector, int_vector),
        *(float_vector, float_vector, types.float64),
        *(int_vector_out, float_vector_out, float_vector_out, float_matrix_out),
        types.Array(types.float64, 4, "C"),
    )
)
def rate(
    codes,
    labels,
    weights,
    places,
    kinds,
    order,
    leaf_starts,
    leaf_nodes,
    parents,
    class_counts,
    counts,
    seen,
    starts,
    entry_codes,
    entry_counts,
    masses,
    base,
    base_starts,
    strengths,
    class_strengths,
    added,
    path,
    p,
    logs,
    tops,
    totals,
):
    """Add p(c, f) of rows that a tree did not grow on, as if its leaves had not seen them either.

    Parameters
    ----------
    places : (rows,)
        Where the totals of a row stand; negative for rows that are not asked for.
    class_counts, seen, starts, entry_codes, entry_counts, masses : see `Counted`
    counts : (nodes, classes), 0; written: the weight of the rows
    path, p, logs : room
    tops : (places, strengths)
        The logarithm of what the totals are multiples of; −∞ before.
    totals : (places, strengths, class strengths, classes), added to
    """
    classes = counts.shape[1]
    for leaf in range(len(leaf_nodes)):
        for c in range(classes):
            counts[leaf_nodes[leaf], c] = class_counts[leaf, c]
    for child in range(len(parents) - 1, 0, -1):
        for c in range(classes):
            counts[parents[child], c] += counts[child, c]
    whole = 0.0
    for c in range(classes):
        whole += counts[0, c]
    for leaf in range(len(leaf_nodes)):
        rows = 0.0
        for c in range(classes):
            rows += class_counts[leaf, c]
        length, node = 0, np.int64(leaf_nodes[leaf])
        while node >= 0:
            path[length] = node
            length += 1
            node = np.int64(parents[node])
        for i in range(leaf_starts[leaf], leaf_starts[leaf + 1]):
            row = order[i]
            place, weight = places[row], weights[row]
            if place < 0 or rows - weight <= 0.0:
                continue
            for s in range(len(strengths)):
                logs[s] = math.log((rows - weight) / (whole - weight))
            slot = 0
            for feature in range(len(kinds)):
                if kinds[feature] == NUMERIC:
                    continue
                code, cell = codes[row, feature], leaf * masses.shape[1] + slot
                if code >= 0:
                    at = locate(kinds[feature], seen, starts, entry_codes, cell, code)
                    own = max(0.0, entry_counts[at] - weight) / base[base_starts[slot] + code]
                    total = entry_counts[starts[cell]] - weight
                    for s in range(len(strengths)):
                        more = strengths[s] / masses[leaf, slot]
                        logs[s] += math.log((own + more) / (total + strengths[s]))
                slot += 1
            for j in range(len(class_strengths)):
                _share_classes(
                    path, length, counts, labels[row], weight, class_strengths[j], added, p
                )
                for s in range(len(strengths)):
                    if logs[s] > tops[place, s]:
                        factor = math.exp(tops[place, s] - logs[s])
                        tops[place, s] = logs[s]
                        for k in range(len(class_strengths)):
                            for c in range(classes):
                                totals[place, s, k, c] *= factor
                    factor = math.exp(logs[s] - tops[place, s])
                    for c in range(classes):
                        totals[place, s, j, c] += factor * p[c]
