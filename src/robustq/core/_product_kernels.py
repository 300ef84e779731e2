"""Products of factors, one for each class, compared by a kernel: several rows side by side.

See `_height_kernels` for h, whose root is searched for. The search for one root is a chain of
steps that wait for each other, so `LANES` rows are searched side by side; when most are
done, the lanes of these take further rows, or further rivals of their own.
"""

import math
from typing import Any

import numpy as np
from numba import types

from robustq.kernels import (
    code_matrix,
    float_matrix,
    float_matrix_out,
    float_vector_out,
    fused,
    inlined,
    inner,
    int_vector,
    int_vector_out,
    kernel,
)

from ._height_kernels import (
    BEND,
    BEYOND,
    DONE,
    DOWN,
    END,
    FINE,
    FLOORS,
    HIGH,
    KINDS,
    L_RATE,
    LANES,
    LOW,
    LOWER,
    NEAR,
    NEXT,
    SAFE,
    SIZE,
    SLOPE,
    STEEP,
    U_RATE,
    UP,
    UPPER,
    WIDTH,
    A,
    B,
    H,
    L,
    P,
    S,
    T,
    U,
    X,
    climb,
    weigh,
)
from ._log_kernels import log_of

__all__ = ["make_room", "search"]

TINY = 1e-280
ALL_BUT_ONE = 1.0 - 1e-5
MOST_STEPS = 12  # before those who are done are looked at, and others take their lanes
PATIENCE, MOST_LOOKS = 2, 100  # after so many looks every further one bisects
# A step this small, relative, is the last but one: what is left of its cube, times what the slope
# is off by, which is of the order of its square, is below 1e-12.
ENOUGH = 2e-3
EXACTLY = 1e-11  # where h has a kink as near as a step is long
ROUNDING = 2.0**-53
# Where lanes keep their row, their rival, how many others were looked at, how often they waited.
ITEM, RIVAL, TURN, LOOKS = range(0, 4 * LANES, LANES)


def make_room(features: int, fractional: bool) -> tuple[Any, ...]:
    """Return arrays to work in: what lanes know, their factors, and what rows they have."""
    even = features + 1 + (features + 1) % 2
    factors = np.zeros((2 * even if fractional else even, WIDTH))
    factors[:, A : A + LANES] = factors[:, B : B + LANES] = 1.0
    return np.zeros(KINDS * LANES), factors, np.zeros(4 * LANES, dtype=np.int64)


# Steps


@inlined
def _grow(t):
    """Return (e^t − 1)/t, roughly: e^(t/4) by its rational function of second order."""
    y = 0.25 * min(max(t, -16.0), 16.0)
    part = 1.0 / (1.0 - 0.5 * y + y * y * (1.0 / 12.0))
    half = y * part
    return 0.25 * part * (2.0 + half) * (2.0 + half * (2.0 + half))


@inner
def _approach(h, slope, bend, way):
    """Return how far below the pole the root is, `way` being how far the pole is away.

    There a lower factor vanishes and h is −log(1 − s/way) + g(s), with g(s) ≈ log(1 + p g′ s)/p
    as in `_aim`: at the root close to the pole, 1 − s/way = e^(h + g(way)).
    """
    steep = 1.0 / way
    left, p = slope - steep, bend - steep * steep
    ratio = -p * way / left
    rest = left * way
    if abs(ratio) > 1e-3:
        rest = left * left / -p * log_of(max(1.0 + ratio, 1e-3))
    t = min(h + rest, -0.05)
    return way * (1.0 + t * _grow(t))


@fused
def _aim(lanes):
    """Write where the root seems to be, by a step of third order.

    The step of Newton for e^(ph), with p = −h″/h′² such that it has no bend here: it is straight
    where all factors of one side are equal, and nearly so where one of them vanishes, or is about
    to. With t = −ph, that is −h/h′ (e^t − 1)/t.
    """
    far = 0
    for lane in range(LANES):
        here, h, inverse = lanes[X + lane], lanes[H + lane], 1.0 / lanes[SLOPE + lane]
        step = -h * inverse
        there = here + step * _grow(-step * lanes[BEND + lane] * inverse)
        lanes[NEXT + lane] = there
        beyond = there - 0.1 * here - 0.9 * lanes[END + lane] if h < 0.0 else 0.0
        lanes[BEYOND + lane] = beyond
        far += 1 if beyond > 0.0 else 0
    if far == 0:
        return
    for lane in range(LANES):
        if lanes[BEYOND + lane] > 0.0 and lanes[DONE + lane] == 0.0:
            h, slope, bend = lanes[H + lane], lanes[SLOPE + lane], lanes[BEND + lane]
            end = lanes[END + lane]
            lanes[NEXT + lane] = end - _approach(h, slope, bend, end - lanes[X + lane])


@fused
def _advance(lanes):
    """Take a step in each lane that is not done, within its bracket."""
    for lane in range(LANES):
        here, height, there = lanes[X + lane], lanes[H + lane], lanes[NEXT + lane]
        low, high, end = lanes[LOW + lane], lanes[HIGH + lane], lanes[END + lane]
        least = here if height < 0.0 else low
        most = high if height < 0.0 else here
        inside = there >= least and there <= most
        # Beyond the bracket the root is likely close to its end.
        past = 0.15 * here + 0.85 * most
        short = 0.5 * least + 0.5 * here if least > 0.0 else 0.0625 * here
        there = there if inside else (past if height < 0.0 else short)
        size = abs(there - here)
        steep = lanes[SLOPE + lane] + lanes[BEND + lane] * (there - here)
        # It is neither where a derivative overflows.
        sound = steep > 0.0 and steep < math.inf
        last = inside and sound and size <= lanes[FINE + lane] * min(there, end - there)
        last = last or most - least <= 4.0 * ROUNDING * here
        going = lanes[DONE + lane] == 0.0
        lanes[X + lane] = there if going else here
        lanes[LOW + lane] = least if going else low
        lanes[HIGH + lane] = most if going else high
        lanes[STEEP + lane] = steep if going else lanes[STEEP + lane]
        lanes[SIZE + lane] = size if going else lanes[SIZE + lane]
        lanes[DONE + lane] = 1.0 if last and going else lanes[DONE + lane]


@fused
def _polish(lanes):
    """Take the last step in each lane that is done, with the slope that is expected there.

    Where a cut is as near as the step before was long, the slope may be another: go on.
    """
    for lane in range(LANES):
        here, done = lanes[X + lane], lanes[DONE + lane]
        there = here - lanes[H + lane] / lanes[STEEP + lane]
        smooth = lanes[NEAR + lane] * here > 1.1 * lanes[SIZE + lane]
        good = done == 1.0 and (smooth or lanes[FINE + lane] < ENOUGH)
        inside = there >= lanes[LOW + lane] and there <= lanes[HIGH + lane]
        lanes[X + lane] = there if good and inside else here
        lanes[FINE + lane] = EXACTLY if done == 1.0 else lanes[FINE + lane]
        lanes[DONE + lane] = 0.0 if done == 1.0 and not good else done


@fused
def _begin(lanes):
    """Go where the root seems to be, seen from 0, in each lane of which nothing is known yet."""
    for lane in range(LANES):
        there, end, x = lanes[NEXT + lane], lanes[END + lane], lanes[X + lane]
        inside = there > 0.0 and there < end
        there = there if inside else (0.85 * end if end < math.inf else 1.0)
        lanes[X + lane] = there if x == 0.0 else x


@inner
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


# Rows come


@inner
def _load_denominators(cells, i, best, rival, class_table, table, factors, lanes, lane):
    """Write denominators: 1 + x s_k of a lower factor is a factor of the other side."""
    nothing, first = len(table) - 1, len(factors) // 2
    for k in range(cells.shape[1] + 1):
        s, t = class_table[best, S], class_table[rival, T]
        if k > 0:
            cell = cells[i, k - 1]
            s = table[cell + best if cell >= 0 else nothing, S]
            t = table[cell + rival if cell >= 0 else nothing, T]
        factors[first + k, UPPER + lane], factors[first + k, LOWER + lane] = s, -t
        lanes[SLOPE + lane] += s - t
        lanes[BEND + lane] += (t - s) * (t + s)


@inner
def _load(cells, i, best, rival, class_table, table, factors, lanes, lane):
    """Write the factors of a row's best class and a rival, and the derivatives of h at 0.

    Return where one of the best's ends, and the smallest of these. What is missing has the last
    line of the table, which never moves.
    """
    own, other = class_table[best], class_table[rival]
    factors[0, A + lane], factors[0, LOWER + lane] = own[P], own[L]
    factors[0, B + lane], factors[0, UPPER + lane] = other[P], other[U]
    steepest, smallest, down, rise = own[L_RATE], own[P], own[P], other[U_RATE]
    slope, bend = steepest + rise, (steepest - rise) * (steepest + rise)
    nothing = len(table) - 1
    for feature in range(cells.shape[1]):
        cell, line = cells[i, feature], factors[feature + 1]
        at = np.uint64(cell + best if cell >= 0 else nothing)
        behind = np.uint64(cell + rival if cell >= 0 else nothing)
        p, fall, rise = table[at, P], table[at, L_RATE], table[behind, U_RATE]
        line[A + lane], line[LOWER + lane] = p, table[at, L]
        line[B + lane], line[UPPER + lane] = table[behind, P], table[behind, U]
        smallest, steepest = min(smallest, p), max(steepest, fall)
        down *= p
        slope += fall + rise
        bend += (fall - rise) * (fall + rise)
    lanes[SLOPE + lane], lanes[BEND + lane], lanes[DOWN + lane] = slope, bend, down
    return 1.0 / steepest, smallest


@inner
def _load_all(
    filled,
    cells,
    joint,
    prediction,
    class_table,
    table,
    limit,
    keeps_zero,
    chi2,
    fractional,
    lanes,
    factors,
    whole,
):
    """Write what is known of each lane before its first step; the others have nothing to do."""
    for lane in range(filled):
        i, c = whole[ITEM + lane], whole[RIVAL + lane]
        best = prediction[i]
        end, smallest = _load(cells, i, best, c, class_table, table, factors, lanes, lane)
        if fractional:
            _load_denominators(cells, i, best, c, class_table, table, factors, lanes, lane)
        # A factor that small drowns in what stands for 0, and a prior so near to 1 leaves no
        # digits to what κ leaves of it.
        vague = smallest < TINY
        if chi2 > 0.0:
            # As `chi2_prior` has it at 0.
            a, b = factors[0, A + lane], factors[0, B + lane]
            lanes[SLOPE + lane] += chi2 * math.sqrt(1.0 / a + 1.0 / b)
            lanes[BEND + lane] += chi2 * chi2 * (1.0 / a - 1.0 / b)
            end = min(end, math.sqrt(a / (1.0 - a)) / chi2) if a < 1.0 else end
            vague |= a > ALL_BUT_ONE
        end = min(end, limit)
        gap = joint[i, best] - joint[i, c]
        lanes[END + lane], lanes[HIGH + lane] = end, min(lanes[HIGH + lane], end)
        lanes[H + lane] = -gap
        lanes[DONE + lane] = 2.0 if vague else 0.0
        if gap == math.inf and keeps_zero and not vague:
            # Nothing flips before ĉ itself has no probability left.
            lanes[X + lane], lanes[DONE + lane] = end, 1.0
            lanes[STEEP + lane], lanes[FINE + lane] = math.inf, EXACTLY
    for lane in range(filled, LANES):
        lanes[DONE + lane] = 1.0


@inner
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


# Rivals, and rows that go


@inner
def _other(index, best, second):
    """Return the class at a position among those that are neither best nor second."""
    first, last = min(best, second), max(best, second)
    if index >= first:
        index += 1
    if index >= last:
        index += 1
    return index


@inner
def _denominators(x, factors, lane):
    """Return what a lane's Π lower is divided by, and what stands in for a rival's there."""
    product = 1.0
    for k in range(len(factors) // 2, len(factors)):
        product *= 1.0 + x * factors[k, UPPER + lane]
        product *= 1.0 - x * factors[k, LOWER + lane]
    return product * (1.0 + 1e-3)


@inner
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
        at = np.uint64(cell + c if cell >= 0 else nothing)
        above, below = table[at, P] + x * table[at, U], 1.0 + x * table[at, T]
        product *= min(above, cut * below)
        under *= below
    return product / under


@inner
def _settle(
    filled,
    cells,
    prediction,
    runner_up,
    class_table,
    table,
    cut,
    chi2,
    fractional,
    lanes,
    factors,
    whole,
    found,
    tipping,
):
    """Write what was found; return how many lanes go on, which are the first ones then."""
    waiting, classes = 0, len(class_table)
    for lane in range(filled):
        i, c, after = whole[ITEM + lane], -1, whole[TURN + lane]
        floor, fine, looks = lanes[FLOORS + lane], lanes[FINE + lane], whole[LOOKS + lane] + 1
        there, least, most = lanes[X + lane], lanes[LOW + lane], lanes[HIGH + lane]
        if lanes[DONE + lane] == 0.0 and looks <= MOST_LOOKS:
            c = whole[RIVAL + lane]
            if looks > PATIENCE:
                there = _middle(least, most)
        elif lanes[DONE + lane] != 1.0:
            found[i] = math.nan
        else:
            if least < found[i]:
                found[i], tipping[i] = there, whole[RIVAL + lane]
                # Both sides are equal at the root, and this one hardly moves, even by a pole.
                floor = lanes[UP + lane] * (1.0 - 1e-5 * (cells.shape[1] + 1))
                if fractional:
                    floor /= _denominators(there, factors, lane)
            # Most rivals are still behind at what was found: one look will do.
            there, least, most, fine, looks = found[i], 0.0, found[i], ENOUGH, 0
            while c < 0 and after < classes - 2:
                c = _other(after, prediction[i], runner_up[i])
                after += 1
                prior = factors[0, A + lane]
                if floor > SAFE and floor > _product_above(
                    there, cut, chi2, cells, i, c, table, class_table[c], prior
                ):
                    c = -1
        if c >= 0:
            whole[ITEM + waiting], whole[RIVAL + waiting] = i, c
            whole[TURN + waiting], whole[LOOKS + waiting] = after, looks
            lanes[X + waiting], lanes[LOW + waiting], lanes[HIGH + waiting] = there, least, most
            lanes[FLOORS + waiting], lanes[FINE + waiting] = floor, fine
            waiting += 1
    return waiting


@kernel(
    types.void(
        *(code_matrix, float_matrix, int_vector, int_vector, float_matrix, float_matrix),
        *(types.float64, types.float64, types.boolean, types.float64, types.boolean),
        *(types.boolean, float_vector_out, float_matrix_out, int_vector_out),
        *(float_vector_out, int_vector_out),
    )
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
    one_sided,
    lanes,
    factors,
    whole,
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
    one_sided : whether nothing falls, and nothing is cut off
    lanes, factors, whole : to work in, see `make_room`
    found, tipping : (rows,), written; infinite and −1 where there is no root, NaN where the
        classes are so close that rounding would show
    """
    fresh, waiting = 0, 0
    while fresh < len(cells) or waiting > 0:
        # Those who wait come first, in the first lanes.
        filled = waiting
        while filled < LANES and fresh < len(cells):
            c = _first_rival(
                fresh, cells.shape[1] + 1, joint, prediction, runner_up, found, tipping
            )
            if c >= 0:
                whole[ITEM + filled], whole[RIVAL + filled] = fresh, c
                whole[TURN + filled], whole[LOOKS + filled] = 0, 0
                lanes[X + filled], lanes[LOW + filled], lanes[HIGH + filled] = 0.0, 0.0, math.inf
                lanes[FINE + filled] = ENOUGH
                filled += 1
            fresh += 1
        _load_all(
            *(filled, cells, joint, prediction, class_table, feature_table),
            *(limit, keeps_zero, chi2, fractional, lanes, factors, whole),
        )
        _aim(lanes)
        _begin(lanes)
        steps, left = 0, filled
        # To the end: who stopped for its neighbours would take other steps beside other ones.
        while left > 0 and steps < MOST_STEPS:
            climb(cut, chi2, one_sided, factors, lanes)
            _aim(lanes)
            _advance(lanes)
            steps, left = steps + 1, LANES
            for lane in range(LANES):
                left -= 1 if lanes[DONE + lane] > 0.0 else 0
        weigh(cut, chi2, factors, lanes)
        _polish(lanes)
        waiting = _settle(
            *(filled, cells, prediction, runner_up, class_table, feature_table),
            *(cut, chi2, fractional, lanes, factors, whole, found, tipping),
        )
