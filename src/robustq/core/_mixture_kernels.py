"""Mixtures of paths of weights, for balls whose bounds are straight lines.

Of each tree only the leaf that f falls into counts, with v = (p(ĉ) − p(c)) Π p(f_i). So

    R_c(x) = P(x) − N(x),   P = Σ over v > 0 of v Π max(0, w − x l),
                            N = Σ over v < 0 of |v| Π min(1, w + x u),

with the weights w of the edges on the path, and slopes l and u that the ball gives them
(`mixtures.BallTables`). P falls and N rises; the robustness is the root of log P − log N, found by
Newton's method in a kept bracket. Coarse products of all paths at a few x tell where to begin. The
edges of all paths of a row are copied to one place: they are read again in every step.
"""

import math

import numpy as np
from numba import types

from robustq.kernels import (
    add_scaled,
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
from robustq.vectors import LANES, choose, fill, load, store, total

from ._path_kernels import FALL, PARENT, POINTS, RISE, SETTLES, VANISHES, W
from ._rival_kernels import DONE, bound_paths, clear_some, pick_next, settle, survey, take_calm
from ._scale_kernels import shrink
from .scale import LOG_STEP, NOTHING

__all__ = ["FALL", "HEIGHTS", "LANES", "PATHS", "RISE", "TERMS", "W", "search"]

# The rows of the room to work in, one column for each tree: v, v divided by a power of two for all
# trees, how much smaller than the largest the scale of v is, and both products of the path.
TERMS = RAW, STEPS, TERM, BOUNDS, _ = range(5)
HEIGHTS = POSITIVE, NEGATIVE = range(2)
PICKED = 3
PATHS = (W, FALL, RISE, PICKED)
products_in = types.Array(types.float32, 3, "C", readonly=True)
heights_out = types.Array(types.float32, 2, "C")
paths_out = types.Array(types.float64, 3, "C")
TINY = 1e-250  # sums below this are computed in logarithms
MAX_STEPS, FEW_STEPS = 300, 12
ENOUGH = 1e-10  # how near, relative, is near enough
NARROW_BRACKET = 1e-13
SHORT = 1e-3  # steps of y below this move x as its slope tells
CLOSE = 1e-4  # steps below this, relative, lead to the root
FARTHEST = 45.0  # e to the minus this is nothing beside 1
UNSURE = -1.0


@inner
def _copy_paths(edges, leaf_nodes, leaves, room, levels, paths):
    """Copy the edges on the paths of a row; write how many levels each lane of trees has.

    Trees stand side by side: their steps do not wait for each other, and they are multiplied
    several at once. A root is its own parent, with the factor 1: short paths fill themselves up.
    """
    trees = len(leaves)
    for tree in range(trees):
        room[tree] = leaf_nodes[leaves[tree]]
    level, going = np.int64(0), np.int64(1)
    while going:
        going = np.int64(0)
        for lane in range(len(levels)):
            below = np.int64(0)
            for tree in range(lane * LANES, min((lane + 1) * LANES, trees)):
                node = np.uint64(room[tree])
                parent = np.int64(edges[node, PARENT])
                paths[W, level, tree] = edges[node, W]
                paths[FALL, level, tree] = edges[node, FALL]
                paths[RISE, level, tree] = edges[node, RISE]
                below |= parent ^ room[tree]
                room[tree] = parent
            levels[lane] = level + 1 if below or level == 0 else levels[lane]
            going |= below
        level += 1


@inner
def _pick_slopes(levels, paths, terms):
    """Write the slopes that count: how fast the trees of P fall, and those of N rise."""
    most, width = paths.shape[1:]
    for lane in range(len(levels)):
        ahead = load(terms, RAW * width + lane * LANES) > 0.0
        for level in range(levels[lane]):
            at = level * width + lane * LANES
            fall = load(paths, FALL * most * width + at)
            rise = load(paths, RISE * most * width + at)
            store(paths, PICKED * most * width + at, choose(ahead, -fall, rise))


@inner
def _set_terms(leaves, class_probs, mass, scale, row, best, rival, terms):
    """Write v of each tree, and v divided by one power of two for all; return how many are not 0.

    Also how many of them are negative.
    """
    largest, some, against = np.int64(NOTHING), np.int64(0), np.int64(0)
    for tree in range(len(leaves)):
        leaf = leaves[tree]
        gap = class_probs[leaf, best] - class_probs[leaf, rival]
        raw = gap * mass[tree, row]
        terms[RAW, tree] = raw
        some += np.int64(raw != 0.0)
        against += np.int64(raw < 0.0)
        if raw != 0.0:
            largest = max(largest, np.int64(scale[tree, row]))
    for tree in range(len(leaves)):
        steps = largest - np.int64(scale[tree, row])
        terms[TERM, tree], terms[STEPS, tree] = terms[RAW, tree], steps
        if steps > 0:
            terms[TERM, tree] *= shrink(steps)
    return some, against


@inner
def _weigh_lead(reach, reach_scale, leaves, terms, trees):
    """Return P − N and P + N at x = 0, both scaled."""
    largest = np.int64(NOTHING)
    for tree in range(trees):
        if terms[TERM, tree] != 0.0:
            largest = max(largest, np.int64(reach_scale[leaves[tree]]))
    lead, size = 0.0, 0.0
    for tree in range(trees):
        steps = largest - reach_scale[leaves[tree]]
        part = terms[TERM, tree] * reach[leaves[tree]]
        if steps > 0:
            part *= shrink(steps)
        lead += part
        size += abs(part)
    return lead, size


@inner
def _evaluate(x, levels, paths, terms):
    """Return P, its slope, N, and its slope.

    Lanes go beyond the trees, over terms of 0 to which no path leads.
    """
    most, width = paths.shape[1:]
    positive, fall, negative, rise = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
    for lane in range(len(levels)):
        term = load(terms, TERM * width + lane * LANES)
        product, slope = abs(term), fill(0.0)
        for level in range(levels[lane]):
            at = level * width + lane * LANES
            picked = load(paths, PICKED * most * width + at)
            factor = load(paths, W * most * width + at) + x * picked
            picked = choose((factor > 0.0) & (factor <= 1.0), picked, 0.0)
            factor = min(max(factor, 0.0), 1.0)
            slope = slope * factor + product * picked
            product *= factor
        ahead = term > 0.0
        positive, fall = positive + choose(ahead, product, 0.0), fall + choose(ahead, slope, 0.0)
        negative, rise = negative + choose(ahead, 0.0, product), rise + choose(ahead, 0.0, slope)
    return total(positive), total(fall), total(negative), total(rise)


@inner
def _log_ratio(x, levels, paths, terms, trees):
    """Return log P − log N where products may underflow."""
    most, least = -math.inf, -math.inf  # the largest logarithms on both sides
    positive, negative = 0.0, 0.0
    for tree in range(trees):
        raw = abs(terms[RAW, tree])
        if raw == 0.0:
            continue
        height = math.log(raw) - terms[STEPS, tree] * LOG_STEP
        for level in range(levels[tree // LANES]):
            factor = paths[W, level, tree] + x * paths[PICKED, level, tree]
            height += math.log(min(factor, 1.0)) if factor > 0.0 else -math.inf
        if height == -math.inf:
            continue
        if terms[RAW, tree] > 0.0:
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
def _height(x, levels, paths, terms, trees):
    """Return h = log P − log N, and its slope (NaN where it is not to be had)."""
    positive, fall, negative, rise = _evaluate(x, levels, paths, terms)
    if positive < TINY or negative < TINY:
        return _log_ratio(x, levels, paths, terms, trees), math.nan
    return math.log(positive / negative), fall / positive - rise / negative


@inner
def _combine_ends(ends, reach, leaves, terms, trees):
    """Return where P vanishes, where nothing changes any more, and where P's largest tree ends."""
    vanishes, settles, main, largest = 0.0, 0.0, 0.0, -1.0
    for tree in range(trees):
        leaf, raw = leaves[tree], terms[RAW, tree]
        end, settled = ends[leaf, VANISHES], ends[leaf, SETTLES]
        settles = max(settles, settled if raw != 0.0 else 0.0)
        vanishes = max(vanishes, end if raw > 0.0 else 0.0)
        share = terms[TERM, tree] * reach[leaf] if raw > 0.0 else -1.0
        if share >= largest:
            main, largest = end, share
    return vanishes, settles, main


@inner
def _look(products, reach, leaves, terms, size, heights):
    """Write P and N at all points, coarsely, relative to P + N at x = 0."""
    unit = 1.0 / size
    for k in range(POINTS):
        heights[POSITIVE, k] = heights[NEGATIVE, k] = 0.0
    for tree in range(len(leaves)):
        leaf = leaves[tree]
        share = np.float32(abs(terms[TERM, tree]) * reach[leaf] * unit)
        side = NEGATIVE if terms[RAW, tree] < 0.0 else POSITIVE
        add_scaled(heights, side, products, leaf, side, share)


@inner
def _straighten(x, end):
    """Return y with x = a (1 − e^(−y)), for an a at which P vanishes; or x if there is none."""
    return min(-math.log1p(-x / end), FARTHEST) if end < math.inf else x


@inner
def _guess(points, heights, lead, main, vanishes):
    """Return about where the root is, or infinity if it is beyond the last point."""
    k = 0
    while k < POINTS and heights[POSITIVE, k] > heights[NEGATIVE, k]:
        k += 1
    if k == POINTS:
        return math.inf
    # From two points around the root; or, where P has vanished, from two before it.
    after = k if heights[POSITIVE, k] > 0.0 else k - 1
    x, y = (points[after - 1] if after > 0 else 0.0), points[max(after, 0)]
    positive, negative = 0.5 + 0.5 * lead, 0.5 - 0.5 * lead
    if after > 0:
        positive, negative = heights[POSITIVE, after - 1], heights[NEGATIVE, after - 1]
    if after < 0 or negative <= 0.0 or heights[NEGATIVE, after] <= 0.0:
        return x
    end = main if y < main else vanishes
    before = math.log(positive / negative)
    drop = before - math.log(heights[POSITIVE, after] / heights[NEGATIVE, after])
    x, y = _straighten(x, end), _straighten(y, end)
    y = x + (y - x) * before / drop
    return -end * math.expm1(-y) if end < math.inf else y


@inner
def _solve(levels, paths, terms, trees, vanishes, settles, main, limit, near):
    """Return the root of h below a limit, infinity beyond it; NaN where rounding decides."""
    top = min(limit, vanishes)
    if top == math.inf:
        top = settles
    if top < vanishes:
        height, _ = _height(top, levels, paths, terms, trees)
        if abs(height) <= near:
            return math.nan
        if height > 0.0:
            return math.inf
    end, bottom = vanishes, 0.0
    if main < top:
        height, _ = _height(main, levels, paths, terms, trees)
        if height > 0.0:
            bottom = main
        else:
            end, top = main, main
    return _narrow(bottom, top, end, bottom, MAX_STEPS, levels, paths, terms, trees, near)


@inner
def _narrow(bottom, top, end, start, most, levels, paths, terms, trees, near):
    """Return the root of h in a bracket; NaN where rounding decides.

    Where P vanishes at some x = a, or falls steeply because its largest tree does, the search is
    for y with x = a (1 − e^(−y)): in y, log P is nearly straight.

    With fewer steps than `MAX_STEPS` the upper end of the bracket need not be one: it is `UNSURE`
    if none is found.
    """
    bent, sure = end < math.inf, most == MAX_STEPS
    low, high, y = _straighten(bottom, end), _straighten(top, end), _straighten(start, end)
    last, before, flat = high - low, high - low, math.inf
    for _ in range(most):
        x, left = y, 1.0
        if bent:
            x, left = -end * math.expm1(-y), end * math.exp(-y)
        height, slope = _height(x, levels, paths, terms, trees)
        if height > 0.0:
            low, bottom = y, x
        else:
            high, top, sure = y, x, True
        # A root is one only when the sign has been seen to change: at a kink, slopes deceive.
        if top - bottom <= 3.0 * ENOUGH * top or high - low <= NARROW_BRACKET * high:
            flat = min(flat, abs(slope) * x)
            break
        # Where it is bent, x is straight in y only over short ways.
        step, enough = -height / (slope * left), min(ENOUGH * x / left, SHORT if bent else math.inf)
        if abs(step) <= enough:
            flat = abs(slope) * x
            if height <= 0.0 and bottom > 0.0:
                # Left of a kink h is steeper: from the right, slopes tell no less than the truth.
                return math.nan if flat <= near else max(x + step * left, bottom)
            step = abs(step) + enough if height > 0.0 else -abs(step) - enough
        elif abs(step) <= CLOSE * y:
            step += 0.5 * enough  # what is left is a square: come from the right
        # Newton's step is taken as long as steps shrink by half, every other time at least.
        if not (low < y + step < high and 2.0 * abs(step) < before):
            step = 0.5 * (low + high) - y
        before, last = last, abs(step)
        y += step
    if not sure or (most < MAX_STEPS and top - bottom > 3.0 * ENOUGH * top):
        return UNSURE
    return math.nan if flat <= near else 0.5 * (bottom + top)


@inner
def _oppose(forest, ball, leaves, paths, terms, heights, levels, against, limit, near):
    """Return where the prediction flips to a rival, whose terms are set, below a limit."""
    ends, products, points = ball
    reach, reach_scale = forest
    trees = len(leaves)
    if against == 0:
        # Nobody minds: until the last tree has vanished.
        vanishes = 0.0
        for tree in range(trees):
            end = ends[leaves[tree], VANISHES]
            vanishes = max(vanishes, end if terms[RAW, tree] > 0.0 else 0.0)
        return vanishes if vanishes <= limit else math.inf
    lead, size = _weigh_lead(reach, reach_scale, leaves, terms, trees)
    if lead <= near * size:
        return math.nan
    vanishes, settles, main = _combine_ends(ends, reach, leaves, terms, trees)
    _pick_slopes(levels, paths, terms)
    _look(products, reach, leaves, terms, size, heights)
    guess = _guess(points, heights, lead / size, main, vanishes)
    top = min(limit, vanishes)
    if guess < top:
        end = main if guess < main else vanishes
        x = _narrow(0.0, min(top, end), end, guess, FEW_STEPS, levels, paths, terms, trees, near)
        if x != UNSURE:
            return x
    return _solve(levels, paths, terms, trees, vanishes, settles, main, limit, near)


@kernel(
    types.void(
        *(int_vector, float_matrix, float_vector, code_vector, float_matrix),
        types.Tuple((float_matrix, products_in, float_vector)),
        *(code_matrix, float_matrix, code_matrix, int_vector, int_vector),
        *(types.float64, types.float64, int_vector_out, int_vector_out, int_vector_out),
        *(paths_out, float_matrix_out, heights_out, float_matrix_out),
        *(float_vector_out, int_vector_out),
    )
)
def search(
    leaf_nodes,
    edges,
    reach,
    reach_scale,
    class_probs,
    ball,
    ends_at,
    mass,
    scale,
    prediction,
    runner_up,
    limit,
    near,
    leaves,
    room,
    levels,
    paths,
    terms,
    heights,
    rivals,
    found,
    tipping,
):
    """Write the x where each prediction flips, infinity where none does, and the tipping class.

    NaN where the two classes are so near that rounding would show.

    Parameters
    ----------
    leaf_nodes, reach, reach_scale, class_probs : of the forest
    edges : (nodes, 4), the weight of the edge to each node, its slopes, and the parent
    ball : (leaves, 2), from `find_ends`; (leaves, 2, points), from `find_products`; (points,)
    ends_at, mass, scale : (trees, rows), see `mixtures.Mixtures`
    prediction, runner_up : (rows,)
    limit : where x ends
    near : how near, relative, is too near
    leaves, room, levels, paths, terms, heights, rivals : to work in
    """
    (trees, rows), classes = ends_at.shape, class_probs.shape[1]
    ends = ball[0]
    for row in range(rows):
        best, rival = prediction[row], runner_up[row]
        found[row], tipping[row] = math.inf, -1
        copied, surveyed = False, False
        for tree in range(trees):
            leaves[tree] = ends_at[tree, row]
        while rival >= 0:
            some, against = _set_terms(leaves, class_probs, mass, scale, row, best, rival, terms)
            if some == 0:
                found[row], tipping[row] = 0.0, rival
                break
            if not copied and against > 0:
                _copy_paths(edges, leaf_nodes, leaves, room, levels, paths)
                copied = True
            below = min(limit, found[row])
            x = _oppose(
                *((reach, reach_scale), ball, leaves, paths, terms, heights, levels),
                *(against, below, near),
            )
            if math.isnan(x):
                found[row], tipping[row] = x, rival
                break
            moved = x < found[row] or not surveyed
            if x < found[row]:
                found[row], tipping[row] = x, rival
            if classes == 2:
                break
            if not surveyed:
                survey(class_probs, ends, reach, leaves, mass, row, best, rivals)
                rivals[DONE, best] = rivals[DONE, rival] = 1.0
                found[row], tipping[row] = take_calm(rivals, limit, found[row], tipping[row])
                surveyed = True
            rivals[DONE, rival] = 1.0
            rival = pick_next(rivals)
            if rival >= 0 and moved:
                if not copied:
                    _copy_paths(edges, leaf_nodes, leaves, room, levels, paths)
                    copied = True
                at = min(found[row], limit)
                at = at if at < math.inf else settle(ends, leaves)
                bound_paths(at, levels, paths, terms[BOUNDS:])
                clear_some(
                    class_probs, leaves, mass, scale, row, best, terms[BOUNDS:], near, rivals
                )
                rival = pick_next(rivals)
