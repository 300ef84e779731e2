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

from .model import NUMERIC

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
        *(code_matrix, code_vector, float_vector, code_vector, code_vector),
        *(code_vector, int_vector, int_vector, code_vector, float_matrix_out, float_matrix),
        *(float_vector, int_vector, float_vector, float_vector, types.float64),
        *(float_vector_out, int_vector_out, float_vector_out, float_matrix_out, float_matrix_out),
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
    counts,
    masses,
    base,
    base_starts,
    strengths,
    class_strengths,
    added,
    hist,
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
    counts : (nodes, classes), 0; written: the weight of the rows
    masses : (leaves, categorical features), see `Cells`
    hist, path, p, logs : room; hist is 0
    tops : (places, strengths)
        The logarithm of what the totals are multiples of; −∞ before.
    totals : (places, strengths, class strengths, classes), added to
    """
    for leaf in range(len(leaf_starts) - 1):
        for i in range(leaf_starts[leaf], leaf_starts[leaf + 1]):
            counts[leaf_nodes[leaf], labels[order[i]]] += weights[order[i]]
    for node in range(len(parents) - 1, 0, -1):
        for c in range(counts.shape[1]):
            counts[parents[node], c] += counts[node, c]
    whole = 0.0
    for c in range(counts.shape[1]):
        whole += counts[0, c]
    for leaf in range(len(leaf_starts) - 1):
        start, stop = leaf_starts[leaf], leaf_starts[leaf + 1]
        rows, asked = 0.0, False
        for i in range(start, stop):
            rows += weights[order[i]]
            if places[order[i]] >= 0:
                asked = True
                for s in range(len(strengths)):
                    logs[places[order[i]], s] = 0.0
        if not asked:
            continue
        slot = 0
        for feature in range(len(kinds)):
            if kinds[feature] == NUMERIC:
                continue
            total, room = 0.0, masses[leaf, slot]
            for i in range(start, stop):
                code = codes[order[i], feature]
                if code >= 0:
                    hist[code] += weights[order[i]]
                    total += weights[order[i]]
            for i in range(start, stop):
                place, code = places[order[i]], codes[order[i], feature]
                if place >= 0 and code >= 0:
                    weight = weights[order[i]]
                    share = max(0.0, hist[code] - weight) / base[base_starts[slot] + code]
                    for s in range(len(strengths)):
                        own = (share + strengths[s] / room) / (total - weight + strengths[s])
                        logs[place, s] += math.log(own)
            for i in range(start, stop):
                if codes[order[i], feature] >= 0:
                    hist[codes[order[i], feature]] = 0.0
            slot += 1
        length, node = 0, leaf_nodes[leaf]
        while node >= 0:
            path[length] = node
            length += 1
            node = np.int64(parents[node])
        for i in range(start, stop):
            place, weight = places[order[i]], weights[order[i]]
            if place < 0 or rows - weight <= 0.0:
                continue
            reach = math.log((rows - weight) / (whole - weight))
            for j in range(len(class_strengths)):
                _share_classes(
                    path, length, counts, labels[order[i]], weight, class_strengths[j], added, p
                )
                for s in range(len(strengths)):
                    log = reach + logs[place, s]
                    if log > tops[place, s]:
                        factor = math.exp(tops[place, s] - log)
                        tops[place, s] = log
                        for k in range(len(class_strengths)):
                            for c in range(len(p)):
                                totals[place, s, k, c] *= factor
                    factor = math.exp(log - tops[place, s])
                    for c in range(len(p)):
                        totals[place, s, j, c] += factor * p[c]
