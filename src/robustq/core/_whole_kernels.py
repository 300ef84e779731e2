"""Mixtures of trees of which everything is perturbed: where predictions flip.

The root of log P − log N, of what is gained and lost (`_whole_value_kernels`), is searched for by
interpolation between the last three points, in a coordinate in which the height is nearly straight:
where all that speaks for a prediction vanishes, and where something begins to speak against it, the
height goes to infinity as a logarithm does.
"""

import math

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
from robustq.vectors import LANES

from ._whole_value_kernels import (
    EDGES,
    WORK,
    W,
    compare,
    find_ends,
    find_products,
    load,
    look,
    oppose,
)

__all__ = ["EDGES", "LANES", "WORK", "W", "solve"]

ENOUGH = 2e-11  # how near, relative, the y are between which what speaks for a side vanishes
NARROW = 1e-10  # how near, relative, two points are between which a root is told
MAX_STEPS = 200
FINE, COARSE = 1e-7, 1e-4  # steps between these, relative, tell slopes
CLOSE = 1e-10  # sizes that are nearer, relative, are one
ACROSS, FARTHER = 0.9, 4.0  # then the other side is looked at: at first as far as is narrow
LOW = 0.1  # from heights that are lower
UNCLEAR = 1e-10  # what rounding may do to a root, relative
FIRST = 1e-4  # of how far the prediction is ahead: tells the slope at 0
FARTHEST = 40.0  # e to the minus this is nothing beside 1
ENDLESS = 300.0  # and to the minus this nothing
EARLY = 1.0 - 1e-9
FAR = 1e150  # the square of a y that is endless

free_type = types.Tuple((types.int64, types.boolean, types.boolean))
paths_type = types.Tuple((types.Array(types.int64, 2, "C", readonly=True), float_vector))
factors_in = types.Array(types.float64, 3, "C", readonly=True)
room_type = types.Tuple(
    (
        types.Array(types.float64, 4, "C"),
        *(int_vector_out, int_vector_out, float_matrix_out, int_vector_out),
    )
)


@inner
def _straighten(y, late, birth, death):
    """Return t: its logit between birth and death, if late; or t with y = death (1 − e^(−t))."""
    if late and y <= birth:
        return -(FARTHEST if birth > 0.0 else ENDLESS)
    if y >= death:
        return FARTHEST
    if late:
        return math.log((y - birth) / (death - y) if death < math.inf else y - birth)
    return min(-math.log1p(-y / death), FARTHEST) if death < math.inf else y


@inner
def _bend(t, late, birth, death):
    """Return y."""
    if late:
        if death == math.inf:
            return birth + math.exp(t)
        return birth + (death - birth) / (1.0 + math.exp(-t))
    return -death * math.expm1(-t) if death < math.inf else t


@inner
def _interpolate(t1, t2, t3, f1, f2, f3):
    """Return where the height is 0, as an inverse parabola or a line tells; NaN where none does."""
    if not (abs(f1) < math.inf and abs(f2) < math.inf) or f1 == f2:
        return math.nan
    line = t1 - f1 * (t1 - t2) / (f1 - f2)
    if not abs(f3) < math.inf or f3 == f1 or f3 == f2:
        return line
    bent = line + f1 * f2 / (f3 - f1) * ((t2 - t3) / (f2 - f3) - (t1 - t2) / (f1 - f2))
    # What is bent too much is bent by a kink.
    return bent if abs(bent - line) <= 0.5 * abs(line - t1) else line


@inner
def _check_death(death, machine):
    """Return the y at which all that speaks for a prediction vanishes, if it holds till then.

    Otherwise NaN. Where floats end before, nothing but that is left that could tell otherwise.
    """
    before, after = look(death * (1.0 - ENOUGH), machine), look(death * (1.0 + ENOUGH), machine)
    falls = not (before <= 0.0 or after > 0.0)
    return death if falls else math.nan


@inner
def _find_root(limit, far, near, rounding, machine):
    """Return the y at which a rival catches up, infinity if that is beyond the limit.

    NaN where rounding would show; also if the limit is no end, but far, and it is beyond.
    """
    at_zero = look(0.0, machine)
    if not at_zero > near:
        return math.nan
    y = _find_below(limit, near, rounding, at_zero, machine)
    return math.nan if y == math.inf and far and not look(FAR, machine) > near else y


@inner
def _find_below(limit, near, rounding, at_zero, machine):
    """Return the y at which a rival catches up, infinity if that is beyond the limit."""
    birth, death = find_ends(machine)
    if birth >= min(death, limit):
        if death > limit:
            return math.inf if look(limit, machine) > near else math.nan
        y = _check_death(death, machine)
        if not math.isnan(y):
            return y
        birth = 0.0
    return _search(limit, near, rounding, at_zero, birth, death, machine)


@inner
def _search(limit, near, rounding, at_zero, birth, death, machine):
    late, sure = at_zero == math.inf, death <= limit
    birth = birth if late else 0.0
    low, high, at_low, at_high = birth, min(death, limit), at_zero, -math.inf
    bottom, top = _straighten(low, late, birth, death), _straighten(high, late, birth, death)
    t2, f2, y2, t3, f3 = bottom, at_zero, low, bottom, math.inf
    y = FIRST * -math.expm1(-at_zero)
    if late:
        y = 0.5 * (birth + death) if death < math.inf else 2.0 * birth + FIRST
    t = _straighten(min(y, EARLY * high), late, birth, death)
    before, last, slope, reach = math.inf, math.inf, 0.0, ACROSS * NARROW
    for _ in range(MAX_STEPS):
        y = _bend(t, late, birth, death) if t < top else high
        h = look(y, machine)
        if math.isnan(h) or (h > 0.0 and y >= high and not sure):
            return math.inf if h > near else math.nan
        if h > 0.0:
            low, at_low, bottom = y, h, t
        else:
            high, at_high, top, sure = y, h, t, True
        step = abs(y - y2)
        if step > FINE * y and abs(h) < math.inf and abs(f2) < math.inf:
            slope = (h - f2) / (y - y2)
        # Heights are logarithms: next to where one side vanishes they are straight for small ones.
        straight = step < COARSE * y and abs(h) <= min(0.5 * NARROW * y * -slope, LOW)
        enough = NARROW if at_low - at_high < math.inf else ENOUGH
        if sure and high - low <= enough * high:
            return _settle(low, high, at_low, at_high, slope, rounding)
        there = _interpolate(t, t2, t3, h, f2, f3)
        if late and last == math.inf and abs(h) < math.inf:
            there = t + h  # near both ends the height falls as t grows
        t3, f3, t2, f2, y2 = t2, f2, t, h, y
        if not sure:
            there = min(there, top)
        shrinks = 2.0 * abs(there - t) < before
        if straight:
            # There may be a kink in between: only from its other side is it known to be a root.
            far = y * (1.0 + reach if h > 0.0 else 1.0 - reach)
            there, shrinks, reach = _straighten(far, late, birth, death), True, FARTHER * reach
        inside = bottom < there and (there < top or not sure)
        # Steps are to shrink by half, every other time at least.
        if not inside or not shrinks:
            there = 0.5 * (bottom + top)
        before, last, t = last, abs(there - t), there
    return math.nan


@inner
def _settle(low, high, at_low, at_high, slope, rounding):
    """Return the root in a bracket, whose heights are known; NaN if it is unclear."""
    if at_low == math.inf and at_high == -math.inf:
        # All that speaks for one side vanishes at once.
        return 0.5 * (low + high)
    # What rounding does to heights moves the root by so much.
    if not rounding < UNCLEAR * high * -slope:
        return math.nan
    if not at_low - at_high < math.inf:
        return 0.5 * (low + high)
    return low + (high - low) * (at_low / (at_low - at_high))


@kernel(
    types.void(
        *(
            free_type,
            types.UniTuple(types.float64, 3),
            types.boolean,
            float_matrix,
            code_matrix,
            paths_type,
        ),
        *(types.int64, factors_in, float_matrix, int_vector, int_vector),
        *(room_type, float_vector_out, int_vector_out),
    )
)
def solve(
    free,
    ends,
    far,
    class_probs,
    leaves,
    paths,
    features,
    factors,
    still,
    prediction,
    runner_up,
    room,
    found,
    tipping,
):
    """Write the y where each prediction flips, and the class it flips to.

    Parameters
    ----------
    free : which ball, and whether the classes of leaves and the weights of trees are perturbed
    ends : where y ends; how near a tie is near, and what rounding does to a height
    far : whether y goes on beyond, and only these are looked at
    leaves : (rows, trees)
    paths : (leaves, 2), where the weights above each leaf start that are perturbed, and how many
        there are; and these
    features : how many other factors each tree has
    factors : (rows, trees, as many in whole lanes), which are `FILLING` if they are not perturbed
    still : (rows, trees), the product of all that is not perturbed; NaN where that underflows
    room : factors, how many levels they have, places to read from, what is known of trees, and the
        order of their values
    found, tipping : (rows,), written; NaN where rounding would show
    """
    limit, near, rounding = ends
    machine = (free, room)
    work, order = room[3], room[4]
    for row in range(len(found)):
        best = prediction[row]
        found[row], tipping[row] = math.inf, -1
        order[-1] = -1
        if not load(row, free[0], leaves, paths, features, factors, still, room):
            found[row] = math.nan
            continue
        for turn in range(class_probs.shape[1] + 1):
            # The runner-up is the first: who comes after mostly needs one look.
            rival = runner_up[row] if turn == 0 else np.int64(turn - 1)
            if rival < 0 or rival == best or (turn > 0 and rival == runner_up[row]):
                continue
            oppose(free[0], row, best, rival, class_probs, leaves, work)
            if found[row] < math.inf and compare(found[row], machine) > 0.0:
                continue
            open_end = far and found[row] == math.inf
            y = _find_root(min(limit, found[row]), open_end, near, rounding, machine)
            if math.isnan(y):
                found[row] = y
                break
            # Of rivals that tip at once the runner-up is named.
            if y * (1.0 + CLOSE) < found[row]:
                found[row], tipping[row] = y, rival
            if found[row] < math.inf:
                find_products(found[row], machine)
