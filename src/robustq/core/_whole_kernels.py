"""Mixtures of trees of which everything is perturbed, for rows that reach one leaf of each tree.

The value of a tree is the lower expectation of 1_ĉ − 1_c at its leaf, times lower bounds of all
factors above and beside it if that is positive, or else upper ones. Bounds are straight lines in y,
cut to [0, 1]; products of them are the same whichever classes are compared.
"""

import math

import numpy as np
from numba import types

from robustq.kernels import (
    code_matrix,
    float_matrix,
    float_matrix_out,
    float_vector_out,
    inner,
    int_matrix_out,
    int_vector,
    int_vector_out,
    kernel,
    reordered,
)

from ._ball_kernels import shift_chi2, shift_tv, sort
from .modes import CHI2, EPSILON, TV

__all__ = ["LANES", "solve"]

LANES = 4  # factors are filled up to a multiple of this
ENOUGH = 2e-11  # how near, relative, is near enough
MAX_STEPS = 200
FINE, COARSE = 1e-7, 1e-2  # steps between these, relative, tell slopes
CLOSE = 1e-10  # how near, relative, a straight line leads to the root
UNCLEAR = 1e-10  # what rounding may do to a root, relative
SMALLEST = 1e-150  # the largest value of a tree, below which others might underflow
FAINT = 1e-100  # what is left of it
RARE = 1e-9
# The rows of what is known of two classes at the leaves: both probabilities, that of all others,
# and the deviation of 1_ĉ − 1_c.
CONTEST = A, B, REST, DEVIATION = range(4)

free_type = types.Tuple((types.int64, types.boolean, types.boolean))
float_cube_out = types.Array(types.float64, 3, "C")


# Factors


@inner
def _set_slopes(mode, count, p, fall, rise):
    """Write how fast bounds leave probabilities, and fill up with factors of 1."""
    if mode == EPSILON:
        for k in range(count):
            fall[k], rise[k] = p[k], 1.0 - p[k]
    elif mode == TV:
        for k in range(count):
            fall[k], rise[k] = 1.0, 1.0
    else:
        for k in range(count):
            spread = math.sqrt(p[k] * (1.0 - p[k]))
            fall[k], rise[k] = spread, spread
    end = (count + LANES - 1) // LANES * LANES
    for k in range(count, end):
        p[k], fall[k], rise[k] = 1.0, 0.0, 0.0
    return end


@reordered
def _multiply(y, p, fall, rise, count):
    """Return the products of all lower and of all upper bounds."""
    low, high = 1.0, 1.0
    for k in range(count):
        falls, rises = p[k] - y * fall[k], p[k] + y * rise[k]
        low *= falls if falls > 0.0 else 0.0
        high *= rises if rises < 1.0 else 1.0
    return low, high


@inner
def _find_products(y, machine):
    """Write the products of bounds of every tree."""
    p, slopes, ends, products = machine[1], machine[2], machine[3], machine[4]
    for tree in range(len(ends)):
        products[0, tree], products[1, tree] = _multiply(
            y, p[tree], slopes[0, tree], slopes[1, tree], ends[tree]
        )


# Classes


@inner
def _oppose(row, best, rival, class_probs, leaves, contest):
    """Write what the leaves of a row say of two classes."""
    classes = class_probs.shape[1]
    for tree in range(len(leaves)):
        leaf = leaves[tree, row]
        a, b = class_probs[leaf, best], class_probs[leaf, rival]
        rest = 1.0 - a - b if classes > 2 else 0.0
        if classes > 2 and rest < RARE:
            # Others may be there or not: a difference does not tell.
            rest = 0.0
            for c in range(classes):
                rest += class_probs[leaf, c] if c != best and c != rival else 0.0
        contest[A, tree], contest[B, tree], contest[REST, tree] = a, b, rest
        contest[DEVIATION, tree] = math.sqrt((a + b) * rest + 4.0 * a * b)


@inner
def _contrast_chi2(y, a, b, rest, deviation):
    """Return the lower expectation of 1_ĉ − 1_c: μ − σy, until ĉ is empty; see `ChiSquared`."""
    if y == 0.0 or deviation == 0.0:
        return a - b
    if y * (1.0 - a + b) < deviation and a > 0.0:
        return a - b - y * deviation
    if b == 0.0:
        return 0.0
    mass = rest + b
    excess = max(y * y * mass - a, 0.0)
    if excess * b >= rest:
        return -1.0
    return -(b + math.sqrt(excess * b * rest)) / mass


@inner
def _contrast(mode, y, a, b, rest, deviation):
    if mode == EPSILON:
        return (1.0 - y) * (a - b) - y
    if mode == TV:
        return max(a - y, 0.0) - min(b + y, 1.0)
    return _contrast_chi2(y, a, b, rest, deviation)


# The root


@inner
def _move_weights(mode, y, work, order, count):
    """Write the weights of trees that make the expectation of their values smallest."""
    w, f, shift, moved = work[0], work[1], work[2], work[3]
    if mode == TV:
        shift_tv(y, w, f, count, order, shift, moved)
    elif mode == CHI2:
        shift_chi2(y, w, f, count, order, shift, moved, work[4], work[5], work[6])
    else:
        lowest = 0
        for i in range(count):
            lowest = i if f[i] < f[lowest] else lowest
            moved[i] = (1.0 - y) * w[i]
        moved[lowest] += y


@inner
def _find_least(tree, machine):
    """Return the smallest factor of a tree, the first one that falls to 0."""
    p, ends, least = machine[1], machine[3], 1.0
    for k in range(ends[tree]):
        least = min(least, p[tree, k])
    return least if machine[6][tree] > 0.0 else 0.0


@inner
def _fall_of(mode, p):
    """Return how fast a lower bound falls."""
    if mode == TV:
        return 1.0
    return p if mode == EPSILON else math.sqrt(p * (1.0 - p))


@inner
def _vanishes(y, machine):
    """Tell whether all values that count are 0, and none of them only too small for a float."""
    f, moved = machine[7][1], machine[7][3]
    for tree in range(len(machine[3])):
        least = _find_least(tree, machine)
        falls = least - y * _fall_of(machine[0][0], least) > 0.0
        if moved[tree] > 0.0 and (f[tree] != 0.0 or falls):
            return False
    return True


@inner
def _compare(y, machine):
    """Return log P − log N, of what is gained and lost; NaN where either may have underflowed."""
    mode, classes_move, root_moves = machine[0]
    products, contest, still, work, order = machine[4:]
    count = len(still)
    w, f, moved = work[0], work[1], work[3]
    size, largest = y if classes_move else 0.0, 0.0
    for i in range(count):
        v = _contrast(
            mode, size, contest[A, i], contest[B, i], contest[REST, i], contest[DEVIATION, i]
        )
        f[i] = v * (products[0, i] if v > 0.0 else products[1, i]) * still[i]
        largest, moved[i] = max(largest, abs(f[i])), w[i]
    if not largest > SMALLEST:
        return -math.inf if largest == 0.0 and _vanishes(y, machine) else math.nan
    for i in range(count):
        f[i] /= largest
    if root_moves:
        _move_weights(mode, y, work, order, count)
    gained, lost = 0.0, 0.0
    for i in range(count):
        part = moved[i] * f[i]
        gained += part if part > 0.0 else 0.0
        lost -= part if part < 0.0 else 0.0
    if max(gained, lost) < FAINT:
        return -math.inf if max(gained, lost) == 0.0 and _vanishes(y, machine) else math.nan
    if gained == 0.0:
        return -math.inf
    return math.log(gained / lost) if lost > 0.0 else math.inf


@inner
def _look(y, machine):
    _find_products(y, machine)
    return _compare(y, machine)


# The search


@inner
def _interpolate(x1, x2, x3, f1, f2, f3):
    """Return where between x1 and x2 a root is (Chandrupatla): a share from 0 to 1."""
    if not (abs(f1) < math.inf and abs(f2) < math.inf and abs(f3) < math.inf):
        return 0.5
    xi, phi = (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
    if phi * phi < xi and (1.0 - phi) * (1.0 - phi) < 1.0 - xi:
        return f1 / (f2 - f1) * f3 / (f2 - f3) + (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (
            f3 - f2
        )
    return 0.5


@inner
def _bracket(limit, start, at_zero, machine):
    """Return a y that is not enough, one that is, and the heights there; NaN if none is."""
    low, at_low = 0.0, at_zero
    high = min(start * -math.expm1(-at_low), limit)
    for _ in range(MAX_STEPS):
        at_high = _look(high, machine)
        if not at_high > 0.0 or high >= limit:
            return low, high, at_low, at_high
        # The height is nearly straight: aim a little beyond where it would be 0.
        there = 4.0 * high
        if at_high < at_low < math.inf:
            there = high + 1.1 * at_high * (high - low) / (at_low - at_high)
        low, at_low = high, at_high
        there = min(max(there, 1.1 * high), 8.0 * high)
        high = min(there, limit)
    return low, high, at_low, math.nan


@inner
def _sort_ends(mode, machine):
    """Write where trees stop to speak for a prediction, sorted."""
    work, order = machine[7], machine[8]
    ends, sorted_ends = work[2], work[7]
    for tree in range(len(machine[3])):
        least = _find_least(tree, machine)
        ends[tree] = least / _fall_of(mode, least) if 0.0 < least < 1.0 else least * math.inf
    sort(ends, len(machine[3]), order)
    for i in range(len(machine[3])):
        sorted_ends[i] = ends[order[i]]


@inner
def _narrow(low, high, at_low, at_high, machine):
    """Narrow a bracket down to where no tree vanishes but at its upper end."""
    _sort_ends(machine[0][0], machine)
    ends, first, last = machine[7][7], 0, len(machine[3])
    while first < last:
        middle = (first + last) // 2
        y = ends[middle]
        if y <= low:
            first = middle + 1
        elif y >= high:
            last = middle
        else:
            h = _look(y, machine)
            if h > 0.0:
                low, at_low, first = y, h, middle + 1
            else:
                high, at_high, last = y, h, middle
                if math.isnan(h):
                    break
    return low, high, at_low, at_high


@inner
def _find_root(limit, start, near, rounding, machine):
    """Return the y at which a rival catches up, infinity if that is beyond the limit.

    NaN where rounding would show.
    """
    at_zero = _look(0.0, machine)
    if not at_zero > near:
        return math.nan
    low, high, at_low, at_high = _bracket(limit, start, at_zero, machine)
    if not at_high <= 0.0:
        return math.inf if at_high > near else math.nan
    if at_low == math.inf and at_high == -math.inf:
        low, high, at_low, at_high = _narrow(low, high, at_low, at_high, machine)
        before = high * (1.0 - ENOUGH)
        if math.isnan(at_high):
            return at_high
        if at_high == -math.inf and before > low and _look(before, machine) > 0.0:
            return high
    x1, x2, f1, f2 = high, low, at_high, at_low
    x3, f3, share = x1, f1, 0.5
    slope = 0.0
    if abs(f1) < math.inf and f2 < math.inf:
        slope, share = (f1 - f2) / (x1 - x2), f1 / (f1 - f2)
    for _ in range(MAX_STEPS):
        smallest = 0.5 * ENOUGH * max(x1, x2) / abs(x2 - x1)
        if smallest >= 0.5:
            break
        x = x1 + min(max(share, smallest), 1.0 - smallest) * (x2 - x1)
        h = _look(x, machine)
        if (h > 0.0) == (f1 > 0.0):
            x3, f3 = x1, f1
        else:
            x3, f3 = x2, f2
            x2, f2 = x1, f1
        step = abs(x - x1)
        if step > FINE * x and abs(f1) < math.inf and abs(h) < math.inf:
            slope = (h - f1) / (x - x1)
        x1, f1 = x, h
        if math.isnan(h) or (step < COARSE * x and abs(h) <= CLOSE * x * -slope):
            break
        share = _interpolate(x1, x2, x3, f1, f2, f3)
    if math.isnan(f1) or math.isnan(f2):
        return math.nan
    if f1 * f2 == -math.inf:
        # All that speaks for one side vanishes at once.
        return 0.5 * (x1 + x2)
    # What rounding does to heights moves the root by so much.
    if not rounding < UNCLEAR * x1 * -slope:
        return math.nan
    there = x1 - f1 / slope
    return there if min(x1, x2) <= there <= max(x1, x2) else 0.5 * (x1 + x2)


@inner
def _load(row, mode, p, counts, slopes, ends):
    for tree in range(len(ends)):
        ends[tree] = _set_slopes(
            mode, counts[row, tree], p[row, tree], slopes[0, tree], slopes[1, tree]
        )


@kernel(
    types.void(
        *(
            free_type,
            types.UniTuple(types.float64, 4),
            float_matrix,
            code_matrix,
            int_vector,
            int_vector,
        ),
        *(float_cube_out, int_matrix_out, float_matrix_out),
        *(float_cube_out, int_vector_out, float_matrix_out, float_matrix_out, float_matrix_out),
        *(int_vector_out, float_vector_out, int_vector_out),
    )
)
def solve(
    free,
    ends,
    class_probs,
    leaves,
    prediction,
    runner_up,
    factors,
    counts,
    still,
    slopes,
    filled,
    products,
    contest,
    work,
    order,
    found,
    tipping,
):
    """Write the y where each prediction flips, and the class it flips to.

    Parameters
    ----------
    free : which ball, and whether the classes of leaves and the weights of trees are perturbed
    ends : where y ends; what the first y to look at is a share of; how near a tie is near, and
        what rounding does to a height
    leaves : (trees, rows)
    factors : (rows, trees, most), probabilities that are perturbed; they are filled up
    counts : (rows, trees), how many there are
    still : (rows, trees), the product of all that is not perturbed; NaN where that underflows
    slopes, filled, products, contest, work, order : room
    found, tipping : (rows,), written; NaN where rounding would show
    """
    limit, start, near, rounding = ends
    for row in range(len(found)):
        best = prediction[row]
        found[row], tipping[row] = math.inf, -1
        order[-1] = -1
        _load(row, free[0], factors, counts, slopes, filled)
        machine = (
            *(free, factors[row], slopes, filled, products, contest, still[row], work, order),
        )
        for turn in range(class_probs.shape[1] + 1):
            # The runner-up is the first: who comes after mostly needs one look.
            rival = runner_up[row] if turn == 0 else np.int64(turn - 1)
            if rival < 0 or rival == best or (turn > 0 and rival == runner_up[row]):
                continue
            _oppose(row, best, rival, class_probs, leaves, contest)
            if found[row] < math.inf and _compare(found[row], machine) > 0.0:
                continue
            y = _find_root(min(limit, found[row]), start, near, rounding, machine)
            if math.isnan(y):
                found[row] = y
                break
            # Of rivals that tip at once the runner-up is named.
            if y * (1.0 + CLOSE) < found[row]:
                found[row], tipping[row] = y, rival
            if found[row] < math.inf:
                _find_products(found[row], machine)
