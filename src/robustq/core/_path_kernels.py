"""Paths of weights from the roots of trees to their nodes, and what a ball makes of them."""

import math

import numpy as np
from numba import types

from robustq.kernels import float_matrix, float_matrix_out, float_vector, kernel

__all__ = ["EDGES", "ENDS", "POINTS", "VANISHES", "find_ends", "find_products"]

EDGES = W, FALL, RISE, PARENT = range(4)
ENDS = VANISHES, SETTLES = range(2)
POINTS = 16

products_out = types.Array(types.float32, 3, "C")


@kernel(types.void(float_matrix, float_matrix_out))
def find_ends(edges, ends):
    """Write for each node where its lower path product vanishes, and where nothing changes.

    Parents stand before their children.
    """
    for node in range(len(edges)):
        parent = np.int64(edges[node, PARENT])
        weight, fall, rise = edges[node, W], edges[node, FALL], edges[node, RISE]
        if parent == node:
            ends[node, VANISHES], ends[node, SETTLES] = math.inf, 0.0
            continue
        vanishes = 0.0 if weight == 0.0 else (weight / fall if fall > 0.0 else math.inf)
        settles = (1.0 - weight) / rise if rise > 0.0 else 0.0
        ends[node, VANISHES] = min(ends[parent, VANISHES], vanishes)
        # Beyond all of these, whichever side the tree is on.
        settles = max(settles, vanishes if vanishes < math.inf else 0.0)
        ends[node, SETTLES] = max(ends[parent, SETTLES], settles)


@kernel(types.void(float_matrix, float_vector, products_out))
def find_products(edges, points, products):
    """Write the lower and the upper path products of each node at some x, coarsely.

    They are divided by the product of the weights, which may be too small for their few digits.
    Parents stand before their children.
    """
    for node in range(len(edges)):
        parent = np.int64(edges[node, PARENT])
        weight, fall, rise = edges[node, W], edges[node, FALL], edges[node, RISE]
        share = 1.0 / weight if weight > 0.0 else 0.0
        for k in range(POINTS):
            lower = max(weight - points[k] * fall, 0.0) * share
            upper = min(weight + points[k] * rise, 1.0) * share
            if parent != node:
                lower *= products[parent, 0, k]
                upper *= products[parent, 1, k]
            products[node, 0, k], products[node, 1, k] = lower, upper
