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
    float_matrix_out,
    float_vector,
    float_vector_out,
    inner,
    int_matrix_out,
    int_vector,
    int_vector_out,
    kernel,
)

from ._ball_kernels import lower_bound, upper_bound
from ._program_kernels import (
    DONE,
    FALL,
    FALL_SCALE,
    NODE,
    PUSH,
    RISE,
    RISE_SCALE,
    WHAT,
    count_siblings,
    set_form,
    write_program,
)
from ._scale_kernels import shrink
from ._value_kernels import EVERY, EXPONENT, VALUE_AT, evaluate, log_ratio
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
# What rows reach: starts, op, arity, p, extra, slot, part, feature, rows.
evidence_type = types.Tuple(
    (
        *(int_vector, byte_vector, code_vector, float_vector, int_vector, code_vector),
        *(byte_vector, code_vector, float_vector),
    )
)
# Which parts and features are perturbed, and whether sizes go by rows; then what a ball that is
# none of the known ones gives to nodes and class leaves, (…, 4), with the class leaves between.
chosen_type = types.Tuple(
    (bool_vector, bool_vector, types.boolean, float_matrix, float_matrix, float_cube)
)
# For each row, its row in the next two, −1 if no class is close; what p(ĉ, f) is ahead of each
# class, as v · 2^place, 0 if it is far ahead.
leads_type = types.Tuple((int_vector, float_matrix, float_matrix))
# See `circuits.make_room`.
room_type = types.Tuple(
    (
        *(int_matrix_out, int_vector_out, float_vector_out, int_vector_out, float_matrix_out),
        *(float_vector_out, float_matrix_out, float_matrix_out, int_vector_out),
        *(float_matrix_out, float_vector_out, int_vector_out, int_vector_out, float_matrix_out),
    )
)
# What a machine consists of, see `_load`; in ORDER and SMALL it keeps in what order outcomes stand.
BASE, COUNT, STEPS, GAINS, PROBS, EXTRA, SLOT, KEPT, FORMS = 0, 1, 2, 6, 7, 8, 9, 10, 11
ORDER, SMALL, TWO = 17, 18, 19
SIBLINGS = 3  # of the room
FEW = 8  # classes that are looked at one by one


@inner
def _load(mode, row, evidence, chosen, room):
    """Write the program of a row; return all that is needed to run it."""
    starts, op, arity, p, extra, slot, part, feature, rows = evidence
    parts, features, by_rows, forms, class_probs, class_forms = chosen
    steps, place, mass, siblings, factors, gains, two, stack, nodes, work, result = room[:11]
    order, small, kept = room[11:]
    base, last = starts[row], starts[row + 1]
    count_siblings(base, last, op, arity, nodes, siblings)
    count = write_program(
        *(mode, base, last, op, arity, p, extra, part, feature, rows, parts, features),
        *(by_rows, forms, siblings, steps, mass, place, factors, gains),
    )
    return (
        *(base, count, steps, mass, place, factors, gains, p, extra, slot, kept, forms),
        *(class_probs, class_forms, stack, nodes, work, order, small, two, result),
    )


@inner
def _find_lead(mode, row, leads, best, rival, machine):
    """Return the lead over a rival, its place, and whether it must be compared with changes."""
    close, lead, place = leads
    # Where a search begins must not depend on what came before.
    machine[ORDER][-1], machine[SMALL][-1] = -1, -1
    if close[row] < 0 or lead[close[row], rival] <= 0.0:
        return 0.0, 0.0, False
    ahead, at = lead[close[row], rival], place[close[row], rival]
    return ahead, at, _look(mode, False, ahead, at, 0.0, best, rival, machine) < NEAR


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
def _is_one_sum(classes, machine):
    """Tell whether all there is is a sum over the classes of products, each of one class."""
    count, steps, extra, slot = machine[COUNT], machine[STEPS], machine[EXTRA], machine[SLOT]
    if count != classes + 1:
        return False
    for c in range(classes):
        node = steps[c, NODE]
        if steps[c, WHAT] != PUSH or extra[node] >= 0 or slot[node] != c:
            return False
    return True


@inner
def _bound_weight(mode, x, c, falls, machine):
    """Return the lower bound of the weight of a class, or the upper one."""
    node, room = machine[STEPS][c, DONE], machine[TWO]
    weight, gain = machine[PROBS][node], machine[GAINS][node - machine[BASE]]
    set_form(mode, weight, gain, node, machine[FORMS], room, 0)
    if falls:
        return lower_bound(mode, x, weight, gain, room[FALL, 0], room[FALL_SCALE, 0])
    return upper_bound(mode, x, weight, gain, room[RISE, 0], room[RISE_SCALE, 0])


@inner
def _mark_behind(mode, x, best, classes, machine, behind):
    """Write which classes have not caught up at x for certain.

    All are looked at in one go, as if each could have the weight that suits it best.
    """
    for c in range(classes):
        behind[c] = 0
    if classes <= FEW or x >= ENDLESS or not _is_one_sum(classes, machine):
        return
    _look(mode, False, 0.0, 0.0, x, best, EVERY, machine)
    kept = machine[KEPT]
    low = kept[VALUE_AT, best] * _bound_weight(mode, x, best, True, machine)
    for c in range(classes):
        steps = np.int64(kept[EXPONENT, best] - kept[EXPONENT, c])
        high = -kept[VALUE_AT, c] * _bound_weight(mode, x, c, False, machine)
        # Far apart in scale, only the higher one can be ahead.
        ahead = high * shrink(steps) >= low * shrink(-steps) * (1.0 - 1e-9)
        behind[c] = np.int64(not ahead)


@kernel(
    types.void(
        *(types.int64, types.UniTuple(types.float64, 4), evidence_type, chosen_type, leads_type),
        *(int_vector, int_vector, room_type, float_vector_out, int_vector_out),
    )
)
def solve(mode, ends, evidence, chosen, leads, prediction, runner_up, room, found, tipping):
    """Write the x where each prediction flips, and the class it flips to.

    Parameters
    ----------
    mode : which lower expectation
    ends : where x ends, `ENDLESS` if that is the end of a closed domain; beyond which x nothing
        changes any more; below which x what flips hangs on something without rows behind it; and
        where to begin to look
    prediction, runner_up : (rows,)
    room : from `circuits.make_room`
    found, tipping : (rows,), written
    """
    limit, farthest, unbacked, start = ends
    classes, behind = leads[1].shape[1], room[SIBLINGS]  # of which nobody asks any more
    for row in range(len(found)):
        best = prediction[row]
        found[row], tipping[row] = math.inf, -1
        machine = _load(mode, row, evidence, chosen, room)
        for turn in range(classes + 1):
            if turn == 1:
                _mark_behind(mode, found[row], best, classes, machine, behind)
            # The runner-up is the first: who comes after mostly needs one look.
            rival = runner_up[row] if turn == 0 else np.int64(turn - 1)
            if rival < 0 or rival == best or (turn > 0 and rival == runner_up[row]):
                continue
            if turn > 0 and behind[rival] > 0:
                continue
            lead, place, near = _find_lead(mode, row, leads, best, rival, machine)
            if found[row] < math.inf:
                by_change = near and found[row] < ENDLESS
                if _look(mode, by_change, lead, place, found[row], best, rival, machine) > 0.0:
                    continue
            x = _find_root(
                *(mode, near, lead, place, min(limit, found[row]), farthest, unbacked, start),
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
        *(types.int64, float_vector, evidence_type, chosen_type, leads_type),
        *(types.Array(types.int64, 2, "C", readonly=True), room_type),
        types.Array(types.boolean, 2, "C"),
    )
)
def find_maximal(mode, sizes, evidence, chosen, leads, ranking, room, maximal):
    """Write which classes no other beats for certain at the x of each row.

    Parameters
    ----------
    sizes : (rows,), x
    ranking : (rows, classes), the classes, the most probable one first
    maximal : (rows, classes), written
    others : as in `solve`
    """
    for row in range(len(sizes)):
        x = sizes[row]
        machine = _load(mode, row, evidence, chosen, room)
        for second in range(ranking.shape[1]):
            behind = ranking[row, second]
            maximal[row, behind] = True
            # Only who leads without any perturbation can win for certain.
            for before in range(second):
                ahead = ranking[row, before]
                lead, place, near = 0.0, 0.0, False
                machine[ORDER][-1], machine[SMALL][-1] = -1, -1
                if before == 0 and x < ENDLESS:
                    lead, place, near = _find_lead(mode, row, leads, ahead, behind, machine)
                if _look(mode, near, lead, place, x, ahead, behind, machine) > 0.0:
                    maximal[row, behind] = False
                    break
