"""Products of factors, one for each class, compared by a kernel: several rows side by side.

See `_height_kernels` for h, whose root is searched for. The search for one root is a chain of
steps that wait for each other, so `LANES` rows are searched side by side; when most are
done, the lanes of these take further rows, or further rivals of their own.
"""

import math

import numpy as np
from numba import types

from robustq.kernels import (
    code_matrix,
    float_matrix,
    float_vector_out,
    fused,
    inlined,
    inner,
    int_vector,
    int_vector_out,
    kernel,
)

from ._height_kernels import L_RATE, LANES, SAFE, U_RATE, L, P, S, T, U, chi2_prior, climb, weigh
from ._log_kernels import log_of

__all__ = ["search"]

TINY = 1e-280
ALL_BUT_ONE = 1.0 - 1e-5
MOST_STEPS = 12  # before those who are done are looked at, and others take their lanes
PATIENCE, MOST_LOOKS = 2, 100  # after so many looks every further one bisects
# A step this small, relative, is the last but one: what is left of its cube, times what the slope
# is off by, which is of the order of its square, is below 1e-12.
ENOUGH = 2e-3
EXACTLY = 1e-11  # where h has a kink as near as a step is long
ROUNDING = 2.0**-53


# Steps


@inlined
def _grow(t):
    """Return (e^t − 1)/t, roughly: e^(t/4) by its rational function of second order."""
    y = 0.25 * min(max(t, -16.0), 16.0)
    part = 1.0 / (1.0 - 0.5 * y + y * y * (1.0 / 12.0))
    half = y * part
    return 0.25 * part * (2.0 + half) * (2.0 + half * (2.0 + half))


@inlined
def stride(h, slope, bend):
    """Return how far the root is away, by a step of third order.

    The step of Newton for e^(ph), with p = −h″/h′² such that it has no bend here: it is straight
    where all factors of one side are equal, and nearly so where one of them vanishes, or is about
    to. With t = −ph, that is −h/h′ (e^t − 1)/t.
    """
    return -h / slope * _grow(h * bend / (slope * slope))


@inlined
def approach(h, slope, bend, way):
    """Return how far below the pole the root is, `way` being how far the pole is away.

    There a lower factor vanishes and h is −log(1 − s/way) + g(s), with g(s) ≈ log(1 + p g′ s)/p
    as in `stride`: at the root close to the pole, 1 − s/way = e^(h + g(way)).
    """
    steep = 1.0 / way
    left, p = slope - steep, bend - steep * steep
    ratio = -p * way / left
    inside = 1.0 + ratio
    rest = left * left / -p * log_of(inside if inside > 1e-3 else 1e-3)
    rest = rest if abs(ratio) > 1e-3 else left * way
    t = min(h + rest, -0.05)
    return way * (1.0 + t * _grow(t))


@fused
def _advance(x, h, slope, bend, near, low, high, end, steep, done):
    """Take a step in each lane that is not done, within its bracket."""
    for lane in range(LANES):
        here, height = x[lane], h[lane]
        least = here if height < 0.0 else low[lane]
        most = high[lane] if height < 0.0 else here
        way = end[lane] - here
        there = here + stride(height, slope[lane], bend[lane])
        past = end[lane] - approach(height, slope[lane], bend[lane], way)
        there = past if height < 0.0 and there > here + 0.9 * way else there
        inside = there >= least and there <= most
        # Beyond the bracket the root is likely close to its end.
        past = 0.15 * here + 0.85 * most
        short = 0.5 * least + 0.5 * here if least > 0.0 else 0.0625 * here
        there = there if inside else (past if height < 0.0 else short)
        size = abs(there - here)
        enough = ENOUGH if near[lane] * here > 1.1 * size else EXACTLY
        last = inside and size <= enough * min(there, end[lane] - there)
        last = last or most - least <= 4.0 * ROUNDING * here
        going = done[lane] == 0.0
        x[lane] = there if going else here
        low[lane] = least if going else low[lane]
        high[lane] = most if going else high[lane]
        done[lane] = 1.0 if last and going else done[lane]
        steep[lane] = slope[lane] + bend[lane] * (there - here) if last and going else steep[lane]


@fused
def _polish(x, h, low, high, steep, done):
    """Take the last step in each lane that is done, with the slope that is expected there."""
    for lane in range(LANES):
        there = x[lane] - h[lane] / steep[lane]
        good = done[lane] == 1.0 and there >= low[lane] and there <= high[lane]
        x[lane] = there if good else x[lane]


@inlined
def _middle(low, high):
    if high == math.inf:
        return 2.0 * low + 1.0
    if low == 0.0:
        # Nothing is known of the magnitude.
        return high * 2.0**-16
    # On a logarithmic scale while the ends are of different magnitude.
    if high > 4.0 * low:
        return math.sqrt(low) * math.sqrt(high)
    return 0.5 * (low + high)


@fused
def _guess(gap, slope, bend, end, x):
    """Write where to begin, given Δ and the derivatives of h at 0, where nothing is known yet."""
    for lane in range(LANES):
        there = stride(-gap[lane], slope[lane], bend[lane])
        near = end[lane] - approach(-gap[lane], slope[lane], bend[lane], end[lane])
        there = there if there < 0.9 * end[lane] else near
        inside = there > 0.0 and there < end[lane]
        there = there if inside else (0.85 * end[lane] if end[lane] < math.inf else 1.0)
        x[lane] = there if x[lane] == 0.0 else x[lane]


# Rivals


@inlined
def _other(index, best, second):
    """Return the class at a position among those that are neither best nor second."""
    first, last = min(best, second), max(best, second)
    if index >= first:
        index += 1
    if index >= last:
        index += 1
    return index


@inner
def _load(cells, i, best, rival, class_table, table, lane, fractional, tables):
    """Write the factors of a row's best class and a rival; return where one of the best's ends.

    Also the derivatives of h at 0, and the smallest factor. What is missing has the last line of
    the table, which never moves.
    """
    a, b, lower, upper = tables[0], tables[1], tables[2], tables[3]
    own, other = class_table[best], class_table[rival]
    a[0, lane], lower[0, lane], b[0, lane], upper[0, lane] = own[P], own[L], other[P], other[U]
    steepest, smallest, rise = own[L_RATE], own[P], other[U_RATE]
    slope, bend = steepest + rise, (steepest - rise) * (steepest + rise)
    features, nothing = cells.shape[1], len(table) - 1
    for feature in range(features):
        cell, k = cells[i, feature], np.uint64(feature + 1)
        at = np.uint64(cell + best if cell >= 0 else nothing)
        behind = np.uint64(cell + rival if cell >= 0 else nothing)
        fall, rise = table[at, L_RATE], table[behind, U_RATE]
        a[k, lane], lower[k, lane] = table[at, P], table[at, L]
        b[k, lane], upper[k, lane] = table[behind, P], table[behind, U]
        smallest = min(smallest, table[at, P])
        steepest = max(steepest, fall)
        slope += fall + rise
        bend += (fall - rise) * (fall + rise)
    if fractional:
        more, more_bend = _load_denominators(
            cells, i, best, rival, class_table, table, lane, lower, upper
        )
        slope, bend = slope + more, bend + more_bend
    return 1.0 / steepest, slope, bend, smallest


@inner
def _load_denominators(cells, i, best, rival, class_table, table, lane, lower, upper):
    """Write denominators: 1 + x s_k of a lower factor is a factor of the other side."""
    nothing, first = len(table) - 1, lower.shape[0] // 2
    s, t = class_table[best, S], class_table[rival, T]
    upper[first, lane], lower[first, lane] = s, -t
    slope, bend = s - t, (t - s) * (t + s)
    for feature in range(cells.shape[1]):
        cell, k = cells[i, feature], first + 1 + feature
        s = table[cell + best if cell >= 0 else nothing, S]
        t = table[cell + rival if cell >= 0 else nothing, T]
        upper[k, lane], lower[k, lane] = s, -t
        slope += s - t
        bend += (t - s) * (t + s)
    return slope, bend


@inlined
def _first_rival(i, factors, joint, prediction, runner_up, found, tipping):
    """Return the runner-up; −1 where there is nothing to search for, which is then written."""
    c = runner_up[i]
    score = joint[i, prediction[i]]
    found[i], tipping[i] = math.inf, -1
    if score == -math.inf:
        found[i], tipping[i] = 0.0, c
        return -1
    if score - joint[i, c] < 1e10 * ROUNDING * (factors + abs(score)):
        # Rounding would show in h: more digits are needed.
        found[i], tipping[i] = math.nan, c
        return -1
    return c


@inner
def _denominators(x, upper, lower, lane):
    """Return what a lane's Π lower is divided by, and what stands in for a rival's there."""
    product = 1.0
    for k in range(lower.shape[0] // 2, lower.shape[0]):
        product *= (1.0 + x * upper[k, lane]) * (1.0 - x * lower[k, lane])
    return product * (1.0 + 1e-3)


@inlined
def _product_above(x, cut, chi2, cells, i, c, table, prior, leading_prior):
    """Return Π upper of a row and class."""
    product = (prior[P] + x * prior[U]) / (1.0 + x * prior[T])
    if chi2 > 0.0:
        kappa = x * chi2 * x * chi2 / (1.0 + x * chi2 * x * chi2)
        rest = max(leading_prior + product - kappa, 0.0)
        product += math.sqrt(kappa * rest * product / leading_prior)
    nothing, under = len(table) - 1, 1.0
    for feature in range(cells.shape[1]):
        cell = cells[i, feature]
        at = cell + c if cell >= 0 else nothing
        above, below = table[at, P] + x * table[at, U], 1.0 + x * table[at, T]
        product *= min(above, cut * below)
        under *= below
    return product / under


@kernel(
    types.void(
        *(code_matrix, float_matrix, int_vector, int_vector, float_matrix, float_matrix),
        *(types.float64, types.float64, types.boolean, types.float64, types.boolean),
        *(float_vector_out, int_vector_out),
    ),
    allocates=True,
)
def search(
    cells,
    joint,
    prediction,
    runner_up,
    class_table,
    feature_table,
    cut,
    limit,
    keeps_zero,
    chi2,
    fractional,
    found,
    tipping,
):
    """Write for each row the smallest root against any rival, and which rival's it is.

    A row faces its rivals one after the other, the runner-up first, and keeps the earliest root.
    Most rivals after the first are still behind there.

    Parameters
    ----------
    cells : where the factors of the first class stand; −1 where they are constant
    joint : log p(c, f) for each row and class
    prediction, runner_up : (rows,)
    class_table, feature_table : (probabilities, `COLUMNS`); the last line of features never moves
    cut : what upper factors are cut off at
    limit : where x ends at the latest
    keeps_zero : whether an outcome of probability 0 stays there
    chi2 : not 0 if the prior is special: what x is multiplied by there
    fractional : whether factors have denominators
    found, tipping : (rows,), written; infinite and −1 where there is no root, NaN where the
        classes are so close that rounding would show
    """
    classes = len(class_table)
    factors = cells.shape[1] + 1
    even = factors + factors % 2
    tables = np.zeros((4, 2 * even if fractional else even, LANES))
    a, b, lower, upper = tables[0], tables[1], tables[2], tables[3]
    a[:], b[:] = 1.0, 1.0
    lanes = np.zeros((14, LANES))
    x, low, high, end, done, near = lanes[0], lanes[1], lanes[2], lanes[3], lanes[4], lanes[5]
    h, slope, bend, up, down, gap = lanes[6], lanes[7], lanes[8], lanes[9], lanes[10], lanes[11]
    steep, floors = lanes[12], lanes[13]
    near[:] = 1.0
    whole = np.zeros((4, LANES), np.int64)
    item, rival, turn, looks = whole[0], whole[1], whole[2], whole[3]
    fresh, waiting = 0, 0
    while fresh < len(cells) or waiting > 0:
        # Those who wait come first, in the first lanes.
        filled = waiting
        while filled < LANES and fresh < len(cells):
            c = _first_rival(fresh, factors, joint, prediction, runner_up, found, tipping)
            if c >= 0:
                item[filled], rival[filled], turn[filled], looks[filled] = fresh, c, 0, 0
                x[filled], low[filled], high[filled] = 0.0, 0.0, math.inf
                filled += 1
            fresh += 1
        for lane in range(filled):
            i, c, best = item[lane], rival[lane], prediction[item[lane]]
            gap[lane] = joint[i, best] - joint[i, c]
            ends, slope[lane], bend[lane], smallest = _load(
                cells, i, best, c, class_table, feature_table, lane, fractional, tables
            )
            if chi2 > 0.0:
                _, _, more_slope, more_bend = chi2_prior(0.0, chi2, a[0, lane], b[0, lane])
                slope[lane] += more_slope
                bend[lane] += more_bend
                if a[0, lane] < 1.0:
                    ends = min(ends, math.sqrt(a[0, lane] / (1.0 - a[0, lane])) / chi2)
            end[lane] = min(ends, limit)
            high[lane] = min(high[lane], end[lane])
            # A factor that small drowns in what stands for 0, and a prior so near to 1 leaves no
            # digits to what κ leaves of it.
            vague = smallest < TINY or (chi2 > 0.0 and a[0, lane] > ALL_BUT_ONE)
            done[lane] = 2.0 if vague else 0.0
            if gap[lane] == math.inf and keeps_zero and not vague:
                # Nothing flips before ĉ itself has no probability left.
                x[lane], done[lane], steep[lane] = end[lane], 1.0, math.inf
        _guess(gap, slope, bend, end, x)
        steps, left = 0, filled
        for lane in range(filled, LANES):
            done[lane] = 1.0
        while left > (filled >> 3) and steps < MOST_STEPS:
            climb(x, cut, chi2, a, b, lower, upper, h, slope, bend, up, down, near)
            _advance(x, h, slope, bend, near, low, high, end, steep, done)
            steps, left = steps + 1, LANES
            for lane in range(LANES):
                left -= done[lane] > 0.0
        weigh(x, cut, chi2, a, b, lower, upper, h, up, down)
        _polish(x, h, low, high, steep, done)
        waiting = 0
        for lane in range(filled):
            i, c, after, floor = item[lane], -1, turn[lane], floors[lane]
            if done[lane] == 0.0 and looks[lane] < MOST_LOOKS:
                c, there, least, most = rival[lane], x[lane], low[lane], high[lane]
                looks[waiting] = looks[lane] + 1
                if looks[waiting] > PATIENCE:
                    there = _middle(least, most)
            elif done[lane] != 1.0:
                found[i] = math.nan
            else:
                if low[lane] < found[i]:
                    found[i], tipping[i] = x[lane], rival[lane]
                    # Both sides are equal at the root, and this one hardly moves, even by a pole.
                    floor = up[lane] * (1.0 - 1e-5 * factors)
                    if fractional:
                        floor /= _denominators(x[lane], upper, lower, lane)
                # Most rivals are still behind at what was found: one look will do.
                there, least, most, looks[waiting] = found[i], 0.0, found[i], 0
                while c < 0 and after < classes - 2:
                    c = _other(after, prediction[i], runner_up[i])
                    after += 1
                    ceiling = _product_above(
                        there, cut, chi2, cells, i, c, feature_table, class_table[c], a[0, lane]
                    )
                    if floor > SAFE and ceiling < floor:
                        c = -1
            if c >= 0:
                item[waiting], rival[waiting], turn[waiting] = i, c, after
                x[waiting], low[waiting], high[waiting] = there, least, most
                floors[waiting] = floor
                waiting += 1
