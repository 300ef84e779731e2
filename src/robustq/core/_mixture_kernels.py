"""Mixtures of paths of weights, for balls whose bounds are straight lines.

Of each tree only the leaf that f falls into counts, with v = (p(ĉ) − p(c)) Π p(f_i). So

    R_c(x) = P(x) − N(x),   P = Σ over v > 0 of v Π max(0, w − x l),
                            N = Σ over v < 0 of |v| Π min(1, w + x u),

with the weights w of the edges on the path, and slopes l and u that the ball gives them
(`mixtures.BallTables`). P falls and N rises; the robustness is the root of log P − log N, found by
Newton's method in a kept bracket. The edges of all paths of a row are copied to one place first:
they are read again in every step.
"""

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

from ._scale_kernels import shrink
from .scale import LOG_STEP

__all__ = ["EDGES", "ENDS", "TERMS", "find_ends", "search"]

EDGES = W, FALL, RISE, PARENT = range(4)
ENDS = VANISHES, SETTLES = range(2)
# The rows of the room to work in, one column for each tree.
TERMS = TERM, LOG_TERM, PRODUCT, SLOPE = range(4)
TINY = 1e-250  # sums below this are computed in logarithms
MAX_STEPS = 300
ENOUGH = 1e-10  # how near, relative, is near enough
NARROW_BRACKET = 1e-13
NOTHING = np.int64(-(2**40))  # the scale of 0
FARTHEST = 45.0  # e to the minus this is nothing beside 1


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


@inner
def _copy_paths(edges, leaf_nodes, leaves, terms, room, weights, slopes):
    """Copy the edges on the paths of a row, with the slopes that count; return how many levels.

    Trees stand side by side: their steps do not wait for each other, and they are multiplied
    several at once. A root is its own parent, with the factor 1: short paths fill themselves up.
    """
    trees = len(leaves)
    for tree in range(trees):
        room[tree] = leaf_nodes[leaves[tree]]
        # Slopes are picked by position: FALL, or RISE.
        room[trees + tree] = FALL if math.copysign(1.0, terms[TERM, tree]) > 0.0 else RISE
    level, going = 0, np.int64(1)
    while going:
        going = np.int64(0)
        for tree in range(trees):
            node = np.uint64(room[tree])
            parent = np.int64(edges[node, PARENT])
            weights[level, tree] = edges[node, W]
            slopes[level, tree] = edges[node, np.uint64(room[trees + tree])]
            going |= np.int64(parent != room[tree])
            room[tree] = parent
        level += 1
    for k in range(level):
        for tree in range(trees):
            slopes[k, tree] *= -math.copysign(1.0, terms[TERM, tree])
    return level


@inner
def _set_terms(leaves, class_probs, mass, scale, row, best, rival, terms):
    """Write v of each tree, divided by one power of two for all; return whether any is not 0."""
    largest = NOTHING
    for tree in range(len(leaves)):
        leaf = leaves[tree]
        gap = class_probs[leaf, best] - class_probs[leaf, rival]
        terms[TERM, tree] = gap * mass[tree, row]
        if terms[TERM, tree] != 0.0:
            largest = max(largest, np.int64(scale[tree, row]))
    for tree in range(len(leaves)):
        steps = largest - np.int64(scale[tree, row])
        term = abs(terms[TERM, tree])
        terms[LOG_TERM, tree] = math.log(term) - steps * LOG_STEP if term > 0.0 else -math.inf
        if steps > 0:
            terms[TERM, tree] *= shrink(steps)
    return largest > NOTHING


@inner
def _weigh_lead(reach, reach_scale, leaves, terms, trees):
    """Return P − N and P + N at x = 0, both scaled."""
    largest = NOTHING
    for tree in range(trees):
        if terms[TERM, tree] != 0.0:
            largest = max(largest, np.int64(reach_scale[leaves[tree]]))
    lead, total = 0.0, 0.0
    for tree in range(trees):
        steps = largest - reach_scale[leaves[tree]]
        part = terms[TERM, tree] * reach[leaves[tree]]
        if steps > 0:
            part *= shrink(steps)
        lead += part
        total += abs(part)
    return lead, total


@inner
def _evaluate(x, levels, weights, slopes, terms, trees):
    """Return P, its slope, N, and its slope."""
    for tree in range(trees):
        terms[PRODUCT, tree], terms[SLOPE, tree] = abs(terms[TERM, tree]), 0.0
    for level in range(levels):
        for tree in range(trees):
            slope = slopes[level, tree]
            factor = weights[level, tree] + x * slope
            slope = slope if 0.0 < factor <= 1.0 else 0.0
            factor = factor if factor > 0.0 else 0.0
            factor = factor if factor < 1.0 else 1.0
            product = terms[PRODUCT, tree]
            terms[SLOPE, tree] = terms[SLOPE, tree] * factor + product * slope
            terms[PRODUCT, tree] = product * factor
    positive, fall, negative, rise = 0.0, 0.0, 0.0, 0.0
    for tree in range(trees):
        if terms[TERM, tree] > 0.0:
            positive += terms[PRODUCT, tree]
            fall += terms[SLOPE, tree]
        else:
            negative += terms[PRODUCT, tree]
            rise += terms[SLOPE, tree]
    return positive, fall, negative, rise


@inner
def _log_ratio(x, levels, weights, slopes, terms, trees):
    """Return log P − log N where products may underflow."""
    most, least = -math.inf, -math.inf  # the largest logarithms on both sides
    positive, negative = 0.0, 0.0
    for tree in range(trees):
        height = terms[LOG_TERM, tree]
        for level in range(levels):
            factor = weights[level, tree] + x * slopes[level, tree]
            height += math.log(min(factor, 1.0)) if factor > 0.0 else -math.inf
        if height == -math.inf:
            continue
        if math.copysign(1.0, terms[TERM, tree]) > 0.0:
            top = max(most, height)
            positive = positive * math.exp(most - top) + math.exp(height - top)
            most = top
        else:
            top = max(least, height)
            negative = negative * math.exp(least - top) + math.exp(height - top)
            least = top
    if positive == 0.0:
        return -math.inf
    if negative == 0.0:
        return math.inf
    return (most - least) + math.log(positive / negative)


@inner
def _height(x, levels, weights, slopes, terms, trees):
    """Return h = log P − log N, and its slope (NaN where it is not to be had)."""
    positive, fall, negative, rise = _evaluate(x, levels, weights, slopes, terms, trees)
    if positive < TINY or negative < TINY:
        return _log_ratio(x, levels, weights, slopes, terms, trees), math.nan
    return math.log(positive / negative), fall / positive - rise / negative


@inner
def _combine_ends(ends, leaf_nodes, reach, leaves, terms, trees):
    """Return where P vanishes, where nothing changes any more, and whether N is 0 for ever.

    Also where the largest tree of P vanishes.
    """
    vanishes, settles, alone = 0.0, 0.0, True
    main, largest = 0.0, 0.0
    for tree in range(trees):
        if terms[LOG_TERM, tree] == -math.inf:
            continue
        node = leaf_nodes[leaves[tree]]
        settles = max(settles, ends[node, SETTLES])
        if math.copysign(1.0, terms[TERM, tree]) > 0.0:
            vanishes = max(vanishes, ends[node, VANISHES])
            share = terms[TERM, tree] * reach[leaves[tree]]
            if share >= largest:
                main, largest = ends[node, VANISHES], share
        else:
            alone = False
    return vanishes, settles, alone, main


@inner
def _solve(levels, weights, slopes, terms, trees, vanishes, settles, main, limit, near):
    """Return the root of h below a limit, infinity if it lies beyond; NaN where rounding decides.

    Where P vanishes at some x = a, or falls steeply because its largest tree does, the search is
    for y with x = a (1 − e^(−y)): in y, log P is nearly straight.
    """
    top = min(limit, vanishes)
    if top == math.inf:
        top = settles
    if top < vanishes:
        height, _ = _height(top, levels, weights, slopes, terms, trees)
        if abs(height) <= near:
            return math.nan
        if height > 0.0:
            return math.inf
    end, bottom = vanishes, 0.0
    if main < top:
        height, _ = _height(main, levels, weights, slopes, terms, trees)
        if height > 0.0:
            bottom = main
        else:
            end, top = main, main
    bent = end < math.inf
    low, high = bottom, top
    if bent:
        low, high = -math.log1p(-bottom / end), min(-math.log1p(-top / end), FARTHEST)
    y, last, before, flat = low, high - low, high - low, math.inf
    for _ in range(MAX_STEPS):
        x, left = y, 1.0
        if bent:
            x, left = -end * math.expm1(-y), end * math.exp(-y)
        height, slope = _height(x, levels, weights, slopes, terms, trees)
        if height > 0.0:
            low, bottom = y, x
        else:
            high, top = y, x
        # A root is one only when the sign has been seen to change: at a kink, slopes deceive.
        if top - bottom <= 3.0 * ENOUGH * top or high - low <= NARROW_BRACKET * high:
            flat = min(flat, abs(slope) * x)
            break
        step, enough = -height / (slope * left), ENOUGH * x / left
        if abs(step) <= enough:
            flat = abs(slope) * x
            step = abs(step) + enough if height > 0.0 else -abs(step) - enough
        # Newton's step is taken as long as steps shrink by half, every other time at least.
        if not (low < y + step < high and 2.0 * abs(step) < before):
            step = 0.5 * (low + high) - y
        before, last = last, abs(step)
        y += step
    return math.nan if flat <= near else 0.5 * (bottom + top)


@kernel(
    types.void(
        *(int_vector, float_matrix, float_matrix, float_vector, code_vector, float_matrix),
        *(code_matrix, float_matrix, code_matrix, int_vector, int_vector),
        *(types.float64, types.float64, int_vector_out, int_vector_out),
        *(float_matrix_out, float_matrix_out, float_matrix_out, float_vector_out, int_vector_out),
    )
)
def search(
    leaf_nodes,
    edges,
    ends,
    reach,
    reach_scale,
    class_probs,
    ends_at,
    mass,
    scale,
    prediction,
    runner_up,
    limit,
    near,
    leaves,
    room,
    weights,
    slopes,
    terms,
    found,
    tipping,
):
    """Write the x where each prediction flips, infinity where none does, and the tipping class.

    NaN where the two classes are so near that rounding would show.

    Parameters
    ----------
    leaf_nodes, reach, reach_scale, class_probs : of the forest
    edges : (nodes, 4), the weight of the edge to each node, its slopes, and the parent
    ends : (nodes, 2), from `find_ends`
    ends_at, mass, scale : (trees, rows), see `mixtures.Mixtures`
    prediction, runner_up : (rows,)
    limit : where x ends
    near : how near, relative, is too near
    leaves, room, weights, slopes, terms : to work in
    """
    (trees, rows), classes = ends_at.shape, class_probs.shape[1]
    for row in range(rows):
        best = prediction[row]
        found[row], tipping[row] = math.inf, -1
        if classes == 1:
            continue
        for tree in range(trees):
            leaves[tree] = ends_at[tree, row]
        for turn in range(classes + 1):
            # The runner-up is the first: who comes after mostly needs one look.
            rival = runner_up[row] if turn == 0 else np.int64(turn - 1)
            if rival == best or (turn > 0 and rival == runner_up[row]):
                continue
            if not _set_terms(leaves, class_probs, mass, scale, row, best, rival, terms):
                found[row], tipping[row] = 0.0, rival
                break
            lead, total = _weigh_lead(reach, reach_scale, leaves, terms, trees)
            if lead <= near * total:
                found[row], tipping[row] = math.nan, rival
                break
            vanishes, settles, alone, main = _combine_ends(
                ends, leaf_nodes, reach, leaves, terms, trees
            )
            if alone:
                x = vanishes if vanishes <= limit else math.inf
            else:
                levels = _copy_paths(edges, leaf_nodes, leaves, terms, room, weights, slopes)
                below = min(limit, found[row])
                x = _solve(
                    levels, weights, slopes, terms, trees, vanishes, settles, main, below, near
                )
            if math.isnan(x):
                found[row], tipping[row] = x, rival
                break
            if x < found[row]:
                found[row], tipping[row] = x, rival
