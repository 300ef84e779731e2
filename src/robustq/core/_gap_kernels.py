"""Mixtures of trees of which rows reach several leaves, for balls with straight bounds.

Where a split's value is missing a row goes both ways, and the split is a sum of two:

    leaf     V = (p(ĉ) − p(c)) Π p(f_i)
    edge     V times max(0, w − x l) if V > 0, or else min(1, w + x u)
    join     the higher child times its lower bound, and the lower one times its upper bound

and R_c(x) = Σ V(tree) = P(x) − N(x), trees of one sign on either side. The root of log P − log N is
found by Newton's method in a kept bracket, or by a cubic through the last two points. What a row
reaches is copied to one place, children before parents (`gaps.Reached` has it the other way round).
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

from ._mixture_kernels import FALL, NOTHING, RISE, W
from ._scale_kernels import shrink

__all__ = ["SLOTS", "search"]

# The columns of the stack: a value, its slope, its size without signs, and where it vanishes.
SLOTS = V, SLOPE, SIZE, END = range(4)
LEAF, UP = range(2)  # the columns of entries
TINY = 1e-250  # sums below this are left to the recursion, which has more range
SMALL = 1e-100  # and leaves that have so much less mass than others
ENOUGH = 2e-10  # how near, relative, is near enough
MAX_STEPS = 200
FARTHEST = 1e12  # roots beyond are left to the recursion


@inner
def _copy_row(reached, edges, row, rows, entries, masses, copied):
    """Bring what a row reaches in all trees to one place; return how many entries there are.

    −1 if their masses are of too different size.

    An entry is the number of a leaf, or −1 for a join, and how many edges lead up from there.
    Masses are divided by one power of two for all.
    """
    starts, chain_starts, what, lengths, mass, scale, chain = reached
    trees = (len(starts) - 1) // rows
    count, used, largest = np.int64(0), np.int64(0), NOTHING
    most, least = 0.0, math.inf
    for tree in range(trees):
        for entry in range(starts[tree * rows + row], starts[tree * rows + row + 1]):
            if mass[entry] != 0.0:
                largest = max(largest, np.int64(scale[entry]))
    for tree in range(trees):
        at = tree * rows + row
        # Backwards: children come first.
        for entry in range(starts[at + 1] - 1, starts[at] - 1, -1):
            entries[count, LEAF], entries[count, UP] = what[entry], lengths[entry]
            masses[count] = mass[entry] * shrink(largest - np.int64(scale[entry]))
            most = max(most, masses[count])
            if mass[entry] != 0.0:
                least = min(least, masses[count])
            count += 1
        for edge in range(chain_starts[at + 1] - 1, chain_starts[at] - 1, -1):
            node = np.uint64(chain[edge])
            copied[used, W] = edges[node, W]
            copied[used, FALL], copied[used, RISE] = -edges[node, FALL], edges[node, RISE]
            used += 1
    # What is so small might vanish on its way up, and yet decide after the others are gone.
    return count if least > SMALL * most else np.int64(-1)


@inner
def _set_terms(entries, count, class_probs, masses, best, rival, terms):
    """Write V of each leaf; return 2 if some are negative, 1 if some are not 0, and else 0."""
    signs = 0
    for entry in range(count):
        leaf = entries[entry, LEAF]
        terms[entry] = 0.0
        if leaf >= 0:
            terms[entry] = (class_probs[leaf, best] - class_probs[leaf, rival]) * masses[entry]
            if terms[entry] != 0.0:
                signs = max(signs, 2 if terms[entry] < 0.0 else 1)
    return signs


@inner
def _lower(x, edges, at):
    """Return the lower bound of an edge's weight, and its slope.

    Without branches: nobody could foresee them.
    """
    slope = edges[at, FALL]
    bound = edges[at, W] + x * slope
    return max(bound, 0.0), (slope if bound > 0.0 else 0.0)


@inner
def _upper(x, edges, at):
    """Return the upper bound of an edge's weight, and its slope."""
    slope = edges[at, RISE]
    bound = edges[at, W] + x * slope
    return min(bound, 1.0), (slope if bound < 1.0 else 0.0)


@inner
def _evaluate(x, entries, count, edges, terms, stack):
    """Return P, its slope, N, its slope, and what all leaves have there, whatever their sign.

    Rounding is of the size of the last.
    """
    positive, fall, negative, rise, total = 0.0, 0.0, 0.0, 0.0, 0.0
    # Numbers without a sign need no check for negative ones.
    height, at, one, two = np.uint64(0), np.uint64(0), np.uint64(1), np.uint64(2)
    for entry in range(count):
        v, slope = terms[entry], 0.0
        size = abs(v)
        if entries[entry, LEAF] < 0:
            height -= two
            # Of the two the higher one loses what the lower one gains; one of them if they tie.
            above = np.uint64(0 if stack[height, V] > stack[height + one, V] else 1)
            high, low = height + above, height + one - above
            lower, change = _lower(x, edges, at + above)
            upper, other_change = _upper(x, edges, at + one - above)
            v = stack[high, V] * lower + stack[low, V] * upper
            slope = stack[high, SLOPE] * lower + stack[high, V] * change
            slope += stack[low, SLOPE] * upper + stack[low, V] * other_change
            size = stack[high, SIZE] * lower + stack[low, SIZE] * upper
            at += two
        length = entries[entry, UP]
        end = at + np.uint64(length if length >= 0 else ~length)
        # No bound changes a sign: edges need not wait for each other.
        if v > 0.0:
            while at < end:
                bound, change = _lower(x, edges, at)
                slope = slope * bound + v * change
                v *= bound
                size *= bound
                at += one
        else:
            while at < end:
                bound, change = _upper(x, edges, at)
                slope = slope * bound + v * change
                v *= bound
                size *= bound
                at += one
        if length >= 0:
            stack[height, V], stack[height, SLOPE], stack[height, SIZE] = v, slope, size
            height += one
        else:
            total += size
            positive += v if v > 0.0 else 0.0
            fall += slope if v > 0.0 else 0.0
            negative -= 0.0 if v > 0.0 else v
            rise -= 0.0 if v > 0.0 else slope
    return positive, fall, negative, rise, total


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
            one, two, edge = stack[height, END], stack[height + 1, END], at + 1
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
            stack[height, END] = vanishes
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
def _interpolate(x, height, slope, last):
    """Return where h is 0: x as a cubic function of h, by this point and the last; or NaN."""
    last_x, last_height, last_slope = last
    span = last_height - height
    t = -height / span
    if not (last_slope < 0.0 and slope < 0.0 and abs(t) < 1.0):
        return math.nan
    bend = (1.0 - t) / slope - t / last_slope
    return x + t * (1.0 - t) * span * bend + t * t * (3.0 - 2.0 * t) * (last_x - x)


@inner
def _step(x, low, high, newton, straight, far, cubic, before):
    """Return where to look next, the root being between low and high; high may be infinite.

    The farthest of three guesses that stay inside, or the cubic if it agrees with the first; a step
    must be half as long as the one before the last.
    """
    enough = ENOUGH * x
    there = newton if low < newton < high + enough else -math.inf
    if low < straight < high + enough:
        there = max(there, straight)
    if high == math.inf and low < far:
        there = max(there, far)
    if abs(cubic - newton) < abs(newton - x) and low < cubic < high:
        there = cubic
    step = there - x
    if high == math.inf:
        # A flip has not been seen yet: if steps do not shrink, go on faster.
        return x + (step if 2.0 * step < before else 2.0 * step)
    if abs(there - high) <= enough:
        return high - enough
    if low < there < high and 2.0 * abs(step) < before:
        return there
    if low > 0.0 and high > 4.0 * low:
        return math.sqrt(low) * math.sqrt(high)
    return 0.5 * (low + high)


@inner
def _compare(limit, near, entries, count, edges, terms, stack):
    """Return the root of h = log P − log N below a limit, infinity if it lies beyond.

    NaN where rounding would show, or numbers leave their range.
    """
    x, low, high = 0.0, 0.0, min(limit, FARTHEST)
    bounded, change, before, latest = False, math.inf, math.inf, math.inf
    last, last_ratio, last_x = (math.nan, math.nan, math.nan), math.nan, math.nan
    for _ in range(MAX_STEPS):
        positive, fall, negative, rise, total = _evaluate(x, entries, count, edges, terms, stack)
        if max(positive, negative) < TINY or 0.0 < min(positive, negative) < TINY:
            return math.nan
        lead = positive - negative
        if x == 0.0 or (x == high and not bounded and lead > 0.0):
            if not lead > near * total:
                return math.nan
            if x > 0.0:
                return math.inf if limit < FARTHEST else math.nan
        newton, straight, cubic, far = math.nan, math.nan, math.nan, math.nan
        if min(positive, negative) > 0.0:
            height, slope = math.log(positive / negative), fall / positive - rise / negative
            newton = x - height / slope
            change = (rise - fall) * x
            if abs(newton - x) <= ENOUGH * x:
                return newton if change > near * total else math.nan
            cubic = _interpolate(x, height, slope, last)
            last = x, height, slope
        if lead > 0.0:
            low = x
            # Logarithms see their own pole only, at N = 0, while little is lost.
            straight = x - lead / (fall - rise)
            # Where P vanishes, P / P′ = (x − pole) / k is straight: two points show where that is.
            ratio = positive / fall
            pole = x - ratio * (x - last_x) / (ratio - last_ratio)
            if x < pole < math.inf:
                far = pole
                if negative > 0.0:
                    far -= (pole - x) * math.exp(height / (slope * (pole - x)))
            last_x, last_ratio = x, ratio
        else:
            high, bounded = x, True
        if bounded and high - low <= 2.0 * ENOUGH * high:
            return high if change > near * total else math.nan
        # Until a flip has been seen, the end may be looked at too.
        there = _step(x, low, high if bounded else math.inf, newton, straight, far, cubic, before)
        there = there if there < high else high
        before, latest = latest, abs(there - x) if x > 0.0 else math.inf
        x = there
    return math.nan


@kernel(
    types.void(
        *(float_matrix, float_matrix),
        *(int_vector, int_vector, code_vector, code_vector, float_vector, code_vector, code_vector),
        *(int_vector, int_vector, types.float64, types.float64),
        *(int_matrix_out, float_vector_out, float_vector_out, float_matrix_out, float_matrix_out),
        *(float_vector_out, int_vector_out),
    )
)
def search(
    class_probs,
    edges,
    starts,
    chain_starts,
    what,
    lengths,
    mass,
    scale,
    chain,
    prediction,
    runner_up,
    limit,
    near,
    entries,
    masses,
    terms,
    copied,
    stack,
    found,
    tipping,
):
    """Write the x where each prediction flips, infinity where none does, and the tipping class.

    NaN where rounding would show.

    Parameters
    ----------
    class_probs : of the leaves
    edges : (nodes, 4), the weight of the edge to each node, its slopes, and the parent
    starts … chain : what rows reach, see `gaps.Reached`
    prediction, runner_up : (rows,)
    limit : where x ends
    near : how near, relative, is too near
    entries, masses, terms, copied, stack : to work in, as long as the longest row
    found, tipping : (rows,), written
    """
    reached = (starts, chain_starts, what, lengths, mass, scale, chain)
    for row in range(len(found)):
        best = prediction[row]
        found[row], tipping[row] = math.inf, -1
        count = _copy_row(reached, edges, row, len(found), entries, masses, copied)
        for turn in range(class_probs.shape[1] + 1):
            # The runner-up is the first: who comes after mostly needs one look.
            rival = runner_up[row] if turn == 0 else np.int64(turn - 1)
            if rival == best or rival < 0 or (turn > 0 and rival == runner_up[row]):
                continue
            signs = _set_terms(entries, count, class_probs, masses, best, rival, terms)
            x = math.nan
            if count < 0:
                signs = 0
            if signs == 1:
                x = _find_end(entries, count, copied, terms, stack)
                x = x if x <= limit else math.inf
            elif signs == 2:
                below = min(limit, found[row])
                x = _compare(below, near, entries, count, copied, terms, stack)
            if math.isnan(x):
                found[row], tipping[row] = x, rival
                break
            if x < found[row]:
                found[row], tipping[row] = x, rival
