"""Products of factors under Kullback–Leibler, compared by a kernel: several rows side by side.

See `_tilt_kernels` for H, whose root in s = √δ is searched for. When a lane is done, it takes the
next rival of its row, or the next row; no lane minds what the others do.
"""

import math
from typing import Any

import numpy as np
from numba import types

from robustq.kernels import (
    code_matrix,
    float_matrix,
    float_matrix_out,
    float_vector,
    float_vector_out,
    inner,
    int_vector,
    int_vector_out,
    kernel,
)

from ._tilt_kernels import (
    AT,
    BEND,
    END,
    FIRST,
    GAIN,
    GAP,
    KINDS,
    LANES,
    LAST,
    LEAD,
    LEAD_AT,
    LEAD_FIRST,
    LEAD_SECOND,
    LOSES,
    LOST,
    MOVED,
    PER_REST,
    PER_UP,
    PRIOR_A,
    PRIOR_B,
    REST,
    SECOND,
    SLOPE,
    UP,
    WIDTH,
    H,
    S,
    continue_factors,
    continue_prior,
)

__all__ = ["make_room", "search"]

# The columns of a table; see `products.TILTS`.
P, PER_P, PER_Q, ROOT, SPREAD, FALL_END, RISE_END = range(7)
MAX_STEPS = 40
RAREST = 1e4  # one over the smallest probability that a first guess sees
ENOUGH = 5e-11  # what may be left out of H, relative to what it changes by from 0
CLOSE = 2e10 * 2.0**-53  # leads of this size, for each factor, are for exact arithmetic
RARE, ALL_BUT_ONE = 1e-9, 1.0 - 1e-6  # a prior beyond these leaves too few digits
# Where lanes keep their row, their rival, how many others were looked at, and their steps.
ITEM, RIVAL, TURN, STEPS = range(0, 4 * LANES, LANES)


def make_room(features: int) -> tuple[Any, ...]:
    """Return arrays to work in: what lanes know, their factors, and what rows they have."""
    return (
        np.zeros(KINDS * LANES),
        np.zeros((2 * features, WIDTH)),
        np.full(4 * LANES, -1, dtype=np.int64),
    )


@inner
def _load(cells, i, c, falls, table, factors, lane):
    """Write the factors of a class, before they have moved.

    Return the first two derivatives of their logarithms' sum at 0, whichever way they go, but
    for the sign, and where one of them can go no further.
    """
    slope, bend, last, width = 0.0, 0.0, math.inf, cells.shape[1]
    for k in range(width):
        cell, line = cells[i, k], factors[k if falls else width + k]
        entry = table[np.uint64(cell + c if cell >= 0 else len(table) - 1)]
        p, gain, per_p, per_q = entry[P], entry[ROOT], entry[PER_P], entry[PER_Q]
        up, rest = (1.0 - p, p) if falls else (p, 1.0 - p)
        end = entry[FALL_END] if falls else entry[RISE_END]
        line[UP + lane], line[REST + lane], line[GAIN + lane] = up, rest, gain
        line[PER_UP + lane] = per_q if falls else per_p
        line[PER_REST + lane] = per_p if falls else per_q
        line[MOVED + lane], line[AT + lane], line[END + lane] = 0.0, 0.0, end
        # At 0 the mass moves by √(2 up rest), and a little more if there is less here than there.
        line[FIRST + lane], line[SECOND + lane] = entry[SPREAD], (rest - up) * (2.0 / 3.0)
        # A rare value's logarithm rises steeply, but not for long.
        per_p = min(per_p, RAREST)
        slope += gain * math.sqrt(2.0 * (1.0 - p) * per_p)
        bend += gain * gain * (2.0 / 3.0) * (2.0 - p) * per_p
        last = min(last, end / gain)
    return slope, bend, last


@inner
def _load_prior(prior, best, rival, lanes, lane):
    """Write what is known of the prior before the first step."""
    a, b = prior[best], prior[rival]
    if min(a, b) < RARE or max(a, b) > ALL_BUT_ONE:
        a = math.nan
    lanes[PRIOR_A + lane], lanes[PRIOR_B + lane] = a, b
    lanes[LEAD + lane], lanes[LEAD_AT + lane] = 0.0, 0.0
    mean = a * b / (a + b)
    lanes[LEAD_FIRST + lane] = math.sqrt(2.0 / mean)
    lanes[LEAD_SECOND + lane] = -(4.0 / 3.0) * (a - b) / (a * b)


@inner
def _grow(t):
    """Return (e^t − 1)/t."""
    return math.expm1(t) / t if abs(t) > 1e-9 else 1.0 + 0.5 * t


@inner
def _aim(lanes, lane):
    """Return where the root seems to be, by a step of third order.

    The step of Newton for e^(pH), with p such that it has no bend here: nearly straight where a
    factor is about to vanish.
    """
    slope = lanes[SLOPE + lane]
    step = -lanes[H + lane] / slope
    turn = -step * lanes[BEND + lane] / slope
    return lanes[S + lane] + step * _grow(min(max(turn, -16.0), 16.0))


@inner
def _take(i, cells, joint, prior, table, prior_gain, prediction, runner_up, lanes, factors, lane):
    """Load a row and its runner-up; tell whether there is something to search for."""
    best, rival = prediction[i], runner_up[i]
    score = joint[i, best]
    gap = score - joint[i, rival]
    if not CLOSE * (cells.shape[1] + 1 + abs(score)) <= gap < math.inf:
        return False
    fall, down, last = _load(cells, i, best, True, table, factors, lane)
    rise, up, _ = _load(cells, i, rival, False, table, factors, lane)
    _load_prior(prior, best, rival, lanes, lane)
    slope, bend = -fall - rise, up - down
    if prior_gain > 0.0:
        slope -= prior_gain * lanes[LEAD_FIRST + lane]
        bend -= prior_gain * prior_gain * lanes[LEAD_SECOND + lane]
        last = min(last, math.sqrt(-math.log1p(-prior[best])) / prior_gain)
    lanes[S + lane], lanes[LAST + lane], lanes[GAP + lane] = 0.0, last, gap
    lanes[H + lane], lanes[SLOPE + lane], lanes[BEND + lane] = gap, slope, bend
    lanes[S + lane] = min(_aim(lanes, lane), 0.9 * last)
    return 0.0 < lanes[S + lane] < math.inf


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
def _step(lanes, lane, most):
    """Take a step; return the root if this was the last one, infinity if it is beyond the most.

    NaN as long as it is neither; s is, too, where there is no way to tell.
    """
    s, last = lanes[S + lane], lanes[LAST + lane]
    if not abs(lanes[H + lane]) < math.inf:
        lanes[S + lane] = math.nan
        return math.nan
    if s >= most and lanes[H + lane] > 10.0 * lanes[LOST + lane]:
        return math.inf
    gap = lanes[GAP + lane]
    if lanes[LOST + lane] > min(abs(lanes[H + lane]), gap) + 0.01 * gap:
        # H is not known well enough to go on: its factors have to come along first.
        return math.nan
    there = _aim(lanes, lane)
    size = abs(there - s)
    lost = lanes[LOST + lane] + lanes[LOSES + lane] * size * size * size
    if lost <= ENOUGH * min(-lanes[SLOPE + lane] * s, gap) and 0.0 < there < last:
        return there
    lanes[S + lane] = min(max(there, 0.1 * s), s + 0.9 * (last - s))
    return math.nan


@inner
def _next_rival(cells, joint, prior, table, prediction, runner_up, lanes, factors, whole, lane):
    """Load the next rival of a row, to be looked at where the last one left; −1 if none is left.

    The factors of the best class stay where they are.
    """
    i = whole[ITEM + lane]
    best, rival, gap = prediction[i], -1, math.inf
    # What has no probability gets none before ĉ has lost its own.
    while gap == math.inf:
        if whole[TURN + lane] >= len(prior) - 2:
            return -1
        rival = _other(whole[TURN + lane], best, runner_up[i])
        gap = joint[i, best] - joint[i, rival]
        whole[TURN + lane] += 1
    lanes[GAP + lane] = gap
    _load(cells, i, rival, False, table, factors, lane)
    _load_prior(prior, best, rival, lanes, lane)
    return rival


@kernel(
    types.void(
        *(code_matrix, float_matrix, float_vector, float_matrix, types.float64),
        *(int_vector, int_vector, float_vector_out, float_matrix_out, int_vector_out),
        *(float_vector_out, int_vector_out),
    )
)
def search(
    cells,
    joint,
    prior,
    table,
    prior_gain,
    prediction,
    runner_up,
    lanes,
    factors,
    whole,
    found,
    tipping,
):
    """Write for each row the smallest √δ at which some rival catches up, and which one.

    Parameters
    ----------
    cells, joint, prior : as `products.Products` has them
    table : (probabilities, `products.TILTS`); the last line never moves
    prior_gain : the root of what the prior's size is multiplied by; 0 where it is not perturbed
    prediction, runner_up : (rows,)
    lanes, factors, whole : to work in, see `make_room`
    found, tipping : (rows,), written; NaN where it is hard to tell
    """
    fresh, busy = 0, 0
    while True:
        for lane in range(LANES):
            while whole[ITEM + lane] < 0 and fresh < len(cells):
                found[fresh], tipping[fresh] = math.nan, runner_up[fresh]
                if _take(
                    *(fresh, cells, joint, prior, table, prior_gain, prediction, runner_up),
                    *(lanes, factors, lane),
                ):
                    whole[ITEM + lane], whole[RIVAL + lane] = fresh, runner_up[fresh]
                    whole[TURN + lane], whole[STEPS + lane] = 0, 0
                    found[fresh] = math.inf
                    busy += 1
                fresh += 1
        if busy == 0:
            break
        continue_factors(factors, lanes)
        for lane in range(LANES):
            i = whole[ITEM + lane]
            if i < 0:
                continue
            if prior_gain > 0.0:
                continue_prior(prior_gain, lanes, lane)
            root = _step(lanes, lane, found[i])
            whole[STEPS + lane] += 1
            if math.isnan(root) and whole[STEPS + lane] < MAX_STEPS and lanes[S + lane] < math.inf:
                continue
            if not root >= found[i]:
                found[i], tipping[i] = root, whole[RIVAL + lane]
            rival = -1
            if not math.isnan(root):
                rival = _next_rival(
                    *(cells, joint, prior, table, prediction, runner_up),
                    *(lanes, factors, whole, lane),
                )
            whole[RIVAL + lane], whole[STEPS + lane] = rival, 0
            if rival < 0:
                whole[ITEM + lane] = -1
                busy -= 1
            else:
                lanes[S + lane] = found[i]
