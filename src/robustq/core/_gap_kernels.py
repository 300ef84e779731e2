"""Mixtures of trees of which rows reach several leaves, for balls with straight bounds.

Where a split's value is missing a row goes both ways, and the split is a sum of two:

    leaf     V = (p(ĉ) − p(c)) Π p(f_i)
    edge     V times max(0, w − x l) if V > 0, or else min(1, w + x u)
    join     the higher child times its lower bound, and the lower one times its upper bound

and R_c(x) = Σ V(tree) = P(x) − N(x), trees of one sign on either side. The root of log P − log N is
kept between two of several x that are looked at together (`_lane_kernels`); the next ones stand
around where x, as a cubic function of this height h, says that it is. What a row reaches is copied
to one place first, children before parents: it is read again every time.
"""

import math

import numpy as np
from numba import types

from robustq.kernels import (
    code_vector,
    float_matrix,
    float_matrix_out,
    float_vector,
    float_vector_out,
    inner,
    int_matrix_out,
    int_vector,
    int_vector_out,
    kernel,
)

from ._lane_kernels import (
    COLUMNS,
    FALL,
    LANES,
    RISE,
    SIZE,
    SUMS,
    N,
    P,
    W,
    add_up,
    climb,
    join,
    start,
)
from ._mixture_kernels import FALL as FALLS
from ._mixture_kernels import NOTHING
from ._mixture_kernels import RISE as RISES
from ._mixture_kernels import W as WEIGHT
from ._scale_kernels import shrink

__all__ = ["ABOUT", "COLUMNS", "KNOTS", "LANES", "SUMS", "search"]

LEAF, UP = range(2)  # the columns of entries
# What is known next to the root: two points below and two above; of each x, h, and R.
KNOTS = BELOW, LOW, HIGH, ABOVE = (0, 1, 2, 3)
X, HEIGHT, LEAD = range(3)
# What is known of leaves: the product of the weights on the path, and how fast its bounds change,
# relative to it.
ABOUT = REACH, FALLS_BY, RISES_BY = (0, 1, 2)
TINY = 1e-250  # sums below this are left to the recursion, which has more range
SMALL = 1e-100  # and leaves that have so much less mass than others
ENOUGH = 1e-10  # how near, relative, is near enough
LOCAL = 1e-7  # slopes are taken from points that are farther from each other
MAX_STEPS = 60
FARTHEST = 1e12  # roots beyond are left to the recursion
# Where to look first, relative to where the root would be if logarithms were straight.
FIRST = np.array([0.7, 1.05, 1.2, 1.32, 1.45, 1.6, 1.9, 3.0])
# And then: how far from where the root seems to be, relative to how wrong that might be, but never
# farther than these shares of the way to the ends.
ERRORS = np.array([0.0, 0.02, 0.25, 2.0])
WAYS = np.array([0.2, 0.4, 0.6, 0.8])


@inner
def _find_largest(starts, mass, scale, row, rows):
    """Return the largest scale of what a row reaches."""
    largest = NOTHING
    for at in range(row, len(starts) - 1, rows):
        for entry in range(starts[at], starts[at + 1]):
            if mass[entry] != 0.0:
                largest = max(largest, np.int64(scale[entry]))
    return largest


@inner
def _copy_edge(edges, node, copied, used):
    """Copy the edge above a node."""
    copied[used, W] = edges[node, WEIGHT]
    copied[used, FALL], copied[used, RISE] = -edges[node, FALLS], edges[node, RISES]


@inner
def _copy_row(reached, ends, edges, row, rows, entries, masses, copied, waiting):
    """Bring what a row reaches in all trees to one place; return how many entries there are.

    −1 if their masses are of too different size.

    An entry is the number of a leaf, or −1 for a join, and how many edges lead up from there to a
    child of a join; or ~length, to a root. Masses are divided by one power of two for all.
    """
    starts, leaves, meets, mass, scale = reached
    path_starts, paths = ends
    count, used, largest = np.int64(0), np.uint64(0), _find_largest(starts, mass, scale, row, rows)
    most, least = 0.0, math.inf
    for tree in range(row, len(starts) - 1, rows):
        # Who waits for a sibling: at which depth they meet.
        height = np.int64(0)
        waiting[0] = -1
        for entry in range(starts[tree], starts[tree + 1]):
            leaf, after = np.int64(leaves[entry]), np.int64(meets[entry])
            at = np.uint64(path_starts[leaf])
            depth = path_starts[leaf + 1] - path_starts[leaf]
            masses[count] = mass[entry] * shrink(largest - np.int64(scale[entry]))
            most = max(most, masses[count])
            if mass[entry] != 0.0:
                least = min(least, masses[count])
            what = leaf
            while True:
                before = waiting[height]
                up = max(before, after) + 1
                length = depth - up
                for k in range(np.uint64(length)):
                    _copy_edge(edges, np.uint64(paths[at + k]), copied, used + k)
                at, used = at + np.uint64(length), used + np.uint64(length)
                entries[count, LEAF], entries[count, UP] = what, length if up > 0 else ~length
                count += 1
                if before <= after:
                    break
                # The right one of two has come: they go on together.
                node = np.uint64(paths[at])
                _copy_edge(edges, node - np.uint64(1), copied, used)
                _copy_edge(edges, node, copied, used + np.uint64(1))
                at, used = at + np.uint64(1), used + np.uint64(2)
                what, depth = np.int64(-1), before
                height -= 1
            if after >= 0:
                height += 1
                waiting[height] = after
    # What is so small might vanish on its way up, and yet decide after the others are gone.
    return count if least > SMALL * most else np.int64(-1)


@inner
def _set_terms(entries, count, class_probs, masses, best, rival, about, terms, first):
    """Write V of each leaf; return 2 if some are negative, 1 if some are not 0, and else 0.

    Also, as if each leaf were a tree: P and N at x = 0, and what they lose and gain there.
    """
    signs = 0
    positive, fall, negative, rise = 0.0, 0.0, 0.0, 0.0
    for entry in range(count):
        leaf = entries[entry, LEAF]
        terms[entry] = 0.0
        if leaf >= 0:
            term = (class_probs[leaf, best] - class_probs[leaf, rival]) * masses[entry]
            terms[entry] = term
            if term != 0.0:
                signs = max(signs, 2 if term < 0.0 else 1)
            share = term * about[leaf, REACH]
            positive += max(share, 0.0)
            fall += max(share, 0.0) * about[leaf, FALLS_BY]
            negative -= min(share, 0.0)
            rise -= min(share, 0.0) * about[leaf, RISES_BY]
    first[0], first[1], first[2], first[3] = positive, fall, negative, rise
    return signs


@inner
def _evaluate(xs, entries, count, edges, terms, stack, sums):
    """Write P, N, and what all leaves have, whatever their sign, for each x.

    Rounding is of the size of the last.
    """
    for lane in range(LANES):
        sums[P, lane], sums[N, lane], sums[SIZE, lane] = 0.0, 0.0, 0.0
    height, at = np.int64(0), np.int64(0)
    for entry in range(count):
        length = entries[entry, UP]
        ways = length if length >= 0 else ~length
        if entries[entry, LEAF] >= 0:
            start(stack, height, terms[entry], xs, edges, at, at + ways)
        else:
            height -= 2
            join(stack, height, xs, edges, at)
            at += 2
            climb(stack, height, xs, edges, at, at + ways)
        at += ways
        if length >= 0:
            height += 1
        else:
            add_up(stack, sums)


@inner
def _find_end(entries, count, edges, terms, stack):
    """Return where P vanishes, no leaf being negative.

    Of a join whose children vanish at a ≤ b there is something left up to a, and beyond, as long as
    the other child has something and a weight.
    """
    latest = 0.0
    height, at = np.int64(0), np.int64(0)
    for entry in range(count):
        vanishes = math.inf if terms[entry] > 0.0 else 0.0
        if entries[entry, LEAF] < 0:
            height -= 2
            one, two, edge = stack[height, 0], stack[height + 1, 0], at + 1
            if one > two:
                one, two, edge = two, one, at
            vanishes = max(one, min(two, _vanishing(edges, edge)))
            at += 2
        length = entries[entry, UP]
        end = at + (length if length >= 0 else ~length)
        for k in range(at, end):
            vanishes = min(vanishes, _vanishing(edges, k))
        at = end
        if length >= 0:
            stack[height, 0] = vanishes
            height += 1
        else:
            latest = max(latest, vanishes)
    return latest


@inner
def _vanishing(edges, at):
    """Return where the lower bound of an edge's weight becomes 0."""
    if edges[at, W] == 0.0:
        return 0.0
    return edges[at, W] / -edges[at, FALL] if edges[at, FALL] < 0.0 else math.inf


@inner
def _set_knot(knots, knot, xs, sums, lane):
    positive, negative = sums[P, lane], sums[N, lane]
    knots[knot, X], knots[knot, LEAD] = xs[lane], positive - negative
    height = math.inf if positive > 0.0 else -math.inf
    if positive > 0.0 and negative > 0.0:
        height = math.log(positive / negative)
    knots[knot, HEIGHT] = height


@inner
def _move_knot(knots, knot, to):
    for column in range(3):
        knots[to, column] = knots[knot, column]


@inner
def _narrow(xs, sums, knots):
    """Keep the points next to the root; return the first lane that has flipped, or how many."""
    flipped = 0
    while flipped < LANES and sums[P, flipped] > sums[N, flipped]:
        flipped += 1
    if flipped > 0:
        if flipped > 1:
            _set_knot(knots, BELOW, xs, sums, flipped - 2)
        else:
            _move_knot(knots, LOW, BELOW)
        _set_knot(knots, LOW, xs, sums, flipped - 1)
    if flipped < LANES:
        if flipped < LANES - 1:
            _set_knot(knots, ABOVE, xs, sums, flipped + 1)
        else:
            _move_knot(knots, HIGH, ABOVE)
        _set_knot(knots, HIGH, xs, sums, flipped)
    return flipped


@inner
def _between(knots, first, last, left, right):
    """Return the next guess of Neville's scheme for x at h = 0."""
    one, two = knots[first, HEIGHT], knots[last, HEIGHT]
    return (one * right - two * left) / (one - two)


@inner
def _guess(knots):
    """Return where the root seems to be, and how wrong that might be."""
    low, high = knots[LOW, X], knots[HIGH, X]
    line = _between(knots, LOW, HIGH, low, high)
    before = _between(knots, BELOW, LOW, knots[BELOW, X], low)
    after = _between(knots, HIGH, ABOVE, high, knots[ABOVE, X])
    left = _between(knots, BELOW, HIGH, before, line)
    right = _between(knots, LOW, ABOVE, line, after)
    guess, other = _between(knots, BELOW, ABOVE, left, right), left
    if not low < guess < high:
        # What is infinite, or not there, is left out.
        guess, other = left, line
        if not low < guess < high:
            guess = right
    if low < guess < high and low < other < high:
        return guess, abs(guess - other)
    if low < line < high:
        return line, 0.25 * (high - low)
    middle = math.sqrt(low) * math.sqrt(high) if 0.0 < 4.0 * low < high else 0.5 * (low + high)
    return middle, high - low


@inner
def _surround(guess, error, low, high, xs):
    """Set points around a guess, on both sides, ever farther away."""
    for k in range(LANES // 2):
        far = max(ERRORS[k] * error, (1 << k) * ENOUGH * guess)
        xs[LANES // 2 - 1 - k] = guess - min(far, WAYS[k] * (guess - low))
        xs[LANES // 2 + k] = guess + min(far, WAYS[k] * (high - guess))


@inner
def _divide(low, high, xs):
    """Set points that divide what lies between two ends."""
    ratio = high / low if 0.0 < 4.0 * low < high else 1.0
    for k in range(LANES):
        share = (k + 1.0) / (LANES + 1.0)
        xs[k] = low * ratio**share if ratio > 1.0 else low + share * (high - low)


@inner
def _look_first(limit, first, xs, knots):
    """Set the first points; what is known at 0 stands below them."""
    for knot in range(len(KNOTS)):
        knots[knot, HEIGHT] = math.nan
    positive, fall, negative, rise = first[0], first[1], first[2], first[3]
    height = math.log(positive / negative)
    knots[LOW, X], knots[LOW, HEIGHT], knots[LOW, LEAD] = 0.0, height, positive - negative
    guess = height / (fall / positive + rise / negative)
    if not guess < FARTHEST:
        guess = 1.0
    for lane in range(LANES):
        xs[lane] = min(FIRST[lane] * guess, limit)


@inner
def _compare(limit, near, first, entries, count, edges, terms, stack, xs, sums, knots):
    """Return the root of h = log P − log N below a limit, infinity if it lies beyond.

    NaN where rounding would show, or numbers leave their range.
    """
    positive, negative = first[0], first[2]
    if not (positive - negative > near * (positive + negative) and negative > TINY):
        return math.nan
    top, steep, width, bounded = min(limit, FARTHEST), 0.0, math.inf, False
    _look_first(top, first, xs, knots)
    for _ in range(MAX_STEPS):
        _evaluate(xs, entries, count, edges, terms, stack, sums)
        for lane in range(LANES):
            if max(sums[P, lane], sums[N, lane]) < TINY:
                return math.nan
        flipped = _narrow(xs, sums, knots)
        low, high = knots[LOW, X], knots[HIGH, X]
        bounded |= flipped < LANES
        if not bounded:
            if low >= top:
                clear = knots[LOW, LEAD] > near * sums[SIZE, LANES - 1] and limit < FARTHEST
                return math.inf if clear else math.nan
            for lane in range(LANES):
                xs[lane] = min(low * 2.0 ** (lane + 1), top)
            continue
        if high - low > LOCAL * high:
            steep = (knots[LOW, LEAD] - knots[HIGH, LEAD]) / (high - low)
        if high - low <= 3.0 * ENOUGH * high:
            clear = steep * high > near * sums[SIZE, min(flipped, LANES - 1)]
            return 0.5 * (low + high) if clear else math.nan
        if high - low > 0.125 * width:
            _divide(low, high, xs)
        else:
            guess, error = _guess(knots)
            _surround(guess, error, low, high, xs)
        width = high - low
    return math.nan


@kernel(
    types.void(
        *(float_matrix, float_matrix, float_matrix, int_vector, code_vector),
        *(int_vector, code_vector, code_vector, float_vector, code_vector),
        *(int_vector, int_vector, types.float64, types.float64),
        *(int_matrix_out, float_vector_out, float_vector_out, float_matrix_out, int_vector_out),
        *(float_matrix_out, float_matrix_out, float_vector_out, int_vector_out),
    )
)
def search(
    class_probs,
    edges,
    about,
    path_starts,
    paths,
    starts,
    leaves,
    meets,
    mass,
    scale,
    prediction,
    runner_up,
    limit,
    near,
    entries,
    masses,
    terms,
    copied,
    waiting,
    stack,
    points,
    found,
    tipping,
):
    """Write the x where each prediction flips, infinity where none does, and the tipping class.

    NaN where rounding would show.

    Parameters
    ----------
    class_probs, path_starts, paths : of the leaves
    edges : (nodes, 4), the weight of the edge to each node, its slopes, and the parent
    about : (leaves, 3), where paths begin, and how fast they change
    starts … scale : what rows reach, see `gaps.Reached`
    prediction, runner_up : (rows,)
    limit : where x ends
    near : how near, relative, is too near
    entries, masses, terms, copied, waiting, stack, points : to work in
    found, tipping : (rows,), written
    """
    reached, ends = (starts, leaves, meets, mass, scale), (path_starts, paths)
    xs, first, sums, knots = points[0], points[1], points[2 : 2 + len(SUMS)], points[5:]
    for row in range(len(found)):
        best = prediction[row]
        found[row], tipping[row] = math.inf, -1
        count = _copy_row(reached, ends, edges, row, len(found), entries, masses, copied, waiting)
        for turn in range(class_probs.shape[1] + 1):
            # The runner-up is the first: who comes after mostly needs one look.
            rival = runner_up[row] if turn == 0 else np.int64(turn - 1)
            if rival == best or rival < 0 or (turn > 0 and rival == runner_up[row]):
                continue
            signs = _set_terms(
                *(entries, count, class_probs, masses, best, rival, about, terms, first)
            )
            x = math.nan
            if count < 0:
                signs = 0
            if signs == 1:
                x = _find_end(entries, count, copied, terms, stack)
                x = x if x <= limit else math.inf
            elif signs == 2:
                below = min(limit, found[row])
                x = _compare(
                    *(below, near, first, entries, count, copied, terms, stack, xs, sums, knots)
                )
            if math.isnan(x):
                found[row], tipping[row] = x, rival
                break
            if x < found[row]:
                found[row], tipping[row] = x, rival
