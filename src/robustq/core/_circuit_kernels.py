"""The recursion over what a row reaches, compiled, for balls whose bounds have a form.

Evidence is read once for each row, into a short program (`_program_kernels`); then where P, what is
gained, falls to N, what is lost (`_value_kernels`), is searched for.
"""

import math

import numpy as np
from numba import types

from robustq.kernels import (
    code_vector,
    float_matrix,
    float_vector,
    float_vector_out,
    inner,
    int_vector,
    int_vector_out,
    kernel,
)

from ._program_kernels import count_siblings, write_program
from ._value_kernels import evaluate, log_ratio
from .evidence import SUM
from .modes import ENDLESS
from .scale import STEP

__all__ = ["find_maximal", "solve"]

ENOUGH = 1e-11  # how near, relative, is near enough
MAX_STEPS = 300
NEAR = 1e-2  # a lead that is smaller, relative, is compared with changes
ROUNDING = 1e-14  # what is left of a lead below this, relative, is rounding
LOG_TWO = math.log(2.0)

byte_vector = types.Array(types.int8, 1, "C", readonly=True)
bool_vector = types.Array(types.boolean, 1, "C", readonly=True)
float_cube = types.Array(types.float64, 3, "C", readonly=True)
evidence = (
    *(int_vector, byte_vector, code_vector, float_vector, int_vector, code_vector),
    *(byte_vector, code_vector, float_vector),
)
# Which parts and features are perturbed, and whether sizes go by rows; then what a ball that is
# none of the known ones gives to nodes and class leaves.
chosen = (bool_vector, bool_vector, types.boolean, float_matrix, float_matrix, float_cube)


@inner
def _look(mode, near, lead, lead_place, x, best, rival, machine):
    """Return a number that falls as x grows, and is positive as long as ĉ is ahead.

    That is log P − log N, or near a tie the share of the lead that is left.
    """
    v, d, e = evaluate(mode, near, x, best, rival, machine)
    result = machine[-1]
    if near:
        if d >= 0.0:
            return 1.0
        gone = math.log(-d / lead) + (e * STEP - lead_place) * LOG_TWO
        return -math.expm1(min(gone, 600.0))
    if v <= 0.0:
        return min(log_ratio(result), -1e-300)
    height = log_ratio(result)
    # What rounding leaves of equal sides is no lead.
    return height if height > ROUNDING else -1e-300


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
def _find_root(
    mode, near, lead, lead_place, limit, farthest, unbacked, start, best, rival, machine
):
    """Return the x at which a rival catches up, infinity if that is beyond the limit."""
    low, high, at_low, at_high = 0.0, math.inf, math.inf, -math.inf
    farthest, growth = min(limit, farthest), 16.0
    x = 0.0
    at_low = _look(mode, near, lead, lead_place, x, best, rival, machine)
    x = min(start, farthest)
    for _ in range(MAX_STEPS):
        h = _look(mode, near, lead, lead_place, x, best, rival, machine)
        if h <= 0.0:
            high, at_high = x, h
            break
        if x >= farthest:
            break
        # The height is nearly straight: aim a little beyond where it would be 0.
        there = growth * x
        if h == math.inf:
            growth = min(growth * growth, 1e60)
        elif h < at_low < math.inf:
            there = min(max(x + 1.25 * h * (x - low) / (at_low - h), 1.5 * x), 4096.0 * x)
        low, at_low = x, h
        x = min(there, farthest)
    if high == math.inf:
        if limit >= ENDLESS:
            h = _look(mode, False, lead, lead_place, ENDLESS, best, rival, machine)
            # Of an open domain only what is lost before its end counts, however near to it.
            flips = h <= 0.0 if limit == ENDLESS else (h < 0.0 and machine[-1][1] > 0.0)
            return ENDLESS if flips else math.inf
        return math.inf
    # Come near from above: along the line from what is known at 0.
    for _ in range(MAX_STEPS):
        if low > 0.0 or high <= unbacked:
            break
        x = high * 2.0**-10
        if at_low < math.inf and at_high > -math.inf:
            x = max(x, 0.8 * high * at_low / (at_low - at_high))
        h = _look(mode, near, lead, lead_place, x, best, rival, machine)
        if h > 0.0:
            low, at_low = x, h
        else:
            high, at_high = x, h
    if low == 0.0:
        return 0.0
    x1, x2, f1, f2 = high, low, at_high, at_low
    x3, f3 = x1, f1
    share = f1 / (f1 - f2) if abs(f1) < math.inf and abs(f2) < math.inf else 0.5
    for _ in range(MAX_STEPS):
        smallest = 0.5 * ENOUGH * max(x1, x2) / abs(x2 - x1)
        if smallest >= 0.5:
            break
        share = min(max(share, smallest), 1.0 - smallest)
        x = x1 + share * (x2 - x1)
        if share == 0.5 and max(x1, x2) > 8.0 * min(x1, x2):
            x = math.sqrt(x1) * math.sqrt(x2)
        h = _look(mode, near, lead, lead_place, x, best, rival, machine)
        if (h > 0.0) == (f1 > 0.0):
            x3, f3 = x1, f1
        else:
            x3, f3 = x2, f2
            x2, f2 = x1, f1
        x1, f1 = x, h
        share = _interpolate(x1, x2, x3, f1, f2, f3)
    return 0.5 * (x1 + x2)


@inner
def _make_room(starts, op, arity):
    """Return how many nodes a row has at the most, and children a sum."""
    longest, widest = np.int64(1), np.int64(3)
    for row in range(len(starts) - 1):
        longest = max(longest, starts[row + 1] - starts[row])
    for node in range(len(op)):
        if op[node] == SUM:
            widest = max(widest, np.int64(arity[node]) + 1)
    return longest, widest


@kernel(
    types.void(
        *(types.int64, types.float64, types.float64, types.float64, types.float64),
        *(*evidence, *chosen, int_vector, int_vector, int_vector, float_matrix, float_matrix),
        *(float_vector_out, int_vector_out),
    ),
    allocates=True,
)
def solve(
    mode,
    limit,
    farthest,
    unbacked,
    start,
    starts,
    op,
    arity,
    p,
    extra,
    slot,
    part,
    feature,
    rows,
    parts,
    features,
    by_rows,
    forms,
    class_probs,
    class_forms,
    prediction,
    runner_up,
    close,
    leads,
    lead_places,
    found,
    tipping,
):
    """Write the x where each prediction flips, and the class it flips to.

    Parameters
    ----------
    mode : which lower expectation
    limit : where x ends; `ENDLESS` if that is the end of a closed domain
    farthest : beyond this x nothing changes any more
    unbacked : what flips below this x hangs on something without rows behind it
    start : where to begin to look
    starts … rows : the evidence
    parts, features : which are perturbed
    by_rows : whether sizes go by rows
    forms : (nodes, 4), of a ball that is none of the known ones
    class_probs, class_forms : the class leaves, (leaves, classes), and (leaves, classes, 4)
    prediction, runner_up : (rows,)
    close : for each row, its row in the next two; −1 if no class is close
    leads, lead_places : what p(ĉ, f) is ahead of each class, as v · 2^place; 0 if it is far ahead
    found, tipping : (rows,), written
    """
    classes = leads.shape[1]
    longest, widest = _make_room(starts, op, arity)
    steps, place = np.zeros((longest, 6), np.int64), np.zeros(longest, np.int64)
    mass, siblings = np.zeros(longest), np.zeros(longest, np.int64)
    factors, gains, room = np.zeros((6, longest)), np.zeros(longest), np.zeros((6, 2))
    stack, nodes = np.zeros((5, longest)), np.zeros(longest, np.int64)
    work, result = np.zeros((7, widest)), np.zeros(4)
    order, small = np.zeros(widest + 1, np.int64), np.zeros(4, np.int64)
    for row in range(len(starts) - 1):
        base, last, best = starts[row], starts[row + 1], prediction[row]
        found[row], tipping[row] = math.inf, -1
        count_siblings(base, last, op, arity, nodes, siblings)
        count = write_program(
            *(mode, base, last, op, arity, p, extra, part, feature, rows, parts, features),
            *(by_rows, forms, siblings, steps, mass, place, factors, gains),
        )
        machine = (
            *(base, count, steps, mass, place, factors, gains, p, extra, slot, forms, class_probs),
            *(class_forms, stack, nodes, work, order, small, room, result),
        )
        for turn in range(classes + 1):
            # The runner-up is the first: who comes after mostly needs one look.
            rival = runner_up[row] if turn == 0 else np.int64(turn - 1)
            if rival < 0 or rival == best or (turn > 0 and rival == runner_up[row]):
                continue
            # Where a search begins must not depend on what came before.
            order[-1], small[-1] = -1, -1
            near, lead, lead_place = False, 0.0, 0.0
            if close[row] >= 0:
                lead, lead_place = leads[close[row], rival], lead_places[close[row], rival]
                if lead > 0.0:
                    h = _look(mode, False, lead, lead_place, 0.0, best, rival, machine)
                    near = h < NEAR
            if found[row] < math.inf:
                by_change = near and found[row] < ENDLESS
                h = _look(mode, by_change, lead, lead_place, found[row], best, rival, machine)
                if h > 0.0:
                    continue
            x = _find_root(
                *(mode, near, lead, lead_place, min(limit, found[row]), farthest, unbacked, start),
                *(best, rival, machine),
            )
            if x <= unbacked:
                x = 0.0
            if x < found[row]:
                found[row], tipping[row] = x, rival
            if x == 0.0:
                break


@kernel(
    types.void(
        *(types.int64, float_vector, *evidence, *chosen),
        *(types.Array(types.int64, 2, "C", readonly=True), int_vector, float_matrix, float_matrix),
        types.Array(types.boolean, 2, "C"),
    ),
    allocates=True,
)
def find_maximal(
    mode,
    sizes,
    starts,
    op,
    arity,
    p,
    extra,
    slot,
    part,
    feature,
    rows,
    parts,
    features,
    by_rows,
    forms,
    class_probs,
    class_forms,
    ranking,
    close,
    leads,
    lead_places,
    maximal,
):
    """Write which classes no other beats for certain at the x of each row.

    Parameters
    ----------
    sizes : (rows,), x
    ranking : (rows, classes), the classes, the most probable one first
    maximal : (rows, classes), written
    others : as in `solve`
    """
    classes = ranking.shape[1]
    longest, widest = _make_room(starts, op, arity)
    steps, place = np.zeros((longest, 6), np.int64), np.zeros(longest, np.int64)
    mass, siblings = np.zeros(longest), np.zeros(longest, np.int64)
    factors, gains, room = np.zeros((6, longest)), np.zeros(longest), np.zeros((6, 2))
    stack, nodes = np.zeros((5, longest)), np.zeros(longest, np.int64)
    work, result = np.zeros((7, widest)), np.zeros(4)
    order, small = np.zeros(widest + 1, np.int64), np.zeros(4, np.int64)
    for row in range(len(starts) - 1):
        base, last, x = starts[row], starts[row + 1], sizes[row]
        count_siblings(base, last, op, arity, nodes, siblings)
        count = write_program(
            *(mode, base, last, op, arity, p, extra, part, feature, rows, parts, features),
            *(by_rows, forms, siblings, steps, mass, place, factors, gains),
        )
        machine = (
            *(base, count, steps, mass, place, factors, gains, p, extra, slot, forms, class_probs),
            *(class_forms, stack, nodes, work, order, small, room, result),
        )
        for second in range(classes):
            behind = ranking[row, second]
            maximal[row, behind] = True
            # Only who leads without any perturbation can win for certain.
            for before in range(second):
                ahead = ranking[row, before]
                order[-1], small[-1] = -1, -1
                near, lead, lead_place = False, 0.0, 0.0
                if close[row] >= 0 and before == 0:
                    lead, lead_place = leads[close[row], behind], lead_places[close[row], behind]
                    if lead > 0.0 and x < ENDLESS:
                        h = _look(mode, False, lead, lead_place, 0.0, ahead, behind, machine)
                        near = h < NEAR
                h = _look(mode, near, lead, lead_place, x, ahead, behind, machine)
                if h > 0.0:
                    maximal[row, behind] = False
                    break
