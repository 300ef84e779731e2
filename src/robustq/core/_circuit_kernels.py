"""The recursion over what a row reaches, compiled, for balls whose bounds have a form.

Evidence is read once for each row and contest, into a short program: numbers that no ball moves
are multiplied at once, a sum with one child is a factor, and so is a leaf. Then, for any x,

    class leaf    V = the lower expectation of 1_ĉ − 1_c
    factor        V times the lower bound if V > 0, or else the upper one
    sum           the lower expectation of its children

and where P, what is gained, falls to N, what is lost, is searched for. Beside each value stands how
much it has changed, with all its digits: near a tie the change is compared with the lead, which
comes from exact arithmetic.

Values are v · 2^(STEP · e).
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

from ._ball_kernels import (
    change_lower,
    change_upper,
    contrast,
    lower_bound,
    shift_weights,
    upper_bound,
)
from ._scale_kernels import shrink
from .evidence import CLASS, FEATURE, PRODUCT, SUM, VALUE
from .modes import ENDLESS, PARI_MUTUEL, USER
from .scale import LOG_STEP, LOWEST, STEP, UPMOST

__all__ = ["find_maximal", "solve"]

# What an item of a program does, and the columns that describe it: what, which node (or row of the
# class table), how many children, and the node that is finished with it.
PUSH, FACTOR, MIX = range(3)
WHAT, NODE, CHILDREN, DONE = range(4)
# The columns of what a ball gives to each node.
GAIN, FALL, FALL_SCALE, RISE, RISE_SCALE = range(5)

RARE = 1e-6
ENOUGH = 1e-11  # how near, relative, is near enough
MAX_STEPS = 300
NEAR = 1e-2  # a lead that is smaller, relative, is compared with changes
ROUNDING = 1e-14  # what is left of a lead below this, relative, is rounding
LOG_TWO = math.log(2.0)

byte_vector = types.Array(types.int8, 1, "C", readonly=True)
float_cube = types.Array(types.float64, 3, "C", readonly=True)


# Scaled values


@inner
def _keep_in_range(v, d, e):
    """Keep a value and its change where neither underflows nor overflows."""
    size = max(abs(v), abs(d))
    if size < LOWEST and size > 0.0:
        return v * UPMOST, d * UPMOST, e - 1
    if size > UPMOST:
        return v * LOWEST, d * LOWEST, e + 1
    return v, d, e


@inner
def _multiply(v, d, e, p, change):
    """Multiply a value by p, and what it is now by p + change."""
    if p < LOWEST and abs(change) < LOWEST:
        p, change, e = p * UPMOST, change * UPMOST, e - 1
    return _keep_in_range(v * p, d * (p + change) + v * change, e)


@inner
def _add(v, e, more, place):
    """Return the sum of two scaled values."""
    if more == 0.0:
        return v, e
    if v == 0.0:
        return more, place
    if place > e:
        return v * shrink(place - e) + more, place
    return v + more * shrink(e - place), e


@inner
def _raise(v, exponent):
    """Return v · 2^exponent as a scaled value."""
    steps = exponent // STEP
    value, _, e = _keep_in_range(v * 2.0 ** (exponent - steps * STEP), 0.0, steps)
    return value, e


# Programs


@inner
def _count_siblings(first, last, op, arity, waiting, siblings):
    """Write for each node how many children its parent has if that is a sum, 0 otherwise."""
    count = 0
    for node in range(first, last):
        siblings[node - first] = 0
        kind = op[node]
        if kind == SUM or kind == PRODUCT:
            count -= arity[node]
            if kind == SUM:
                for k in range(arity[node]):
                    siblings[waiting[count + k] - first] = arity[node]
        waiting[count] = node
        count += 1


@inner
def _write_program(
    first, last, op, arity, p, exponent, slot, ball, class_row, siblings, best, rival, items, mass, place
):
    """Write the items of a row for two classes; return how many there are."""
    count = 0
    for node in range(first, last):
        kind = op[node]
        if kind == CLASS:
            items[count, WHAT], items[count, NODE], items[count, DONE] = PUSH, class_row[node], node
            mass[count], place[count] = 1.0, 0
            if class_row[node] < 0:
                label = slot[node]
                mass[count] = 1.0 if label == best else (-1.0 if label == rival else 0.0)
            count += 1
            continue
        if kind == SUM and arity[node] > 1:
            items[count, WHAT], items[count, NODE] = MIX, node
            items[count, CHILDREN] = arity[node]
            mass[count], place[count] = 1.0, 0
            count += 1
        free = kind == FEATURE or (kind != VALUE and siblings[node - first] == 1)
        if free and ball[node, GAIN] > 0.0:
            items[count, WHAT], items[count, NODE] = FACTOR, node
            mass[count], place[count] = 1.0, 0
            count += 1
        elif free or kind == VALUE:
            v, _, e = _multiply(mass[count - 1], 0.0, place[count - 1], p[node], 0.0)
            steps = np.int64(0)
            if kind == VALUE and exponent[node] != 0:
                v, steps = _raise(v, exponent[node])
            mass[count - 1], place[count - 1] = v, e + steps
        items[count - 1, DONE] = node
    return count


@inner
def _push(mode, near, x, row, class_probs, class_gain, class_ball, best, rival, work, order):
    """Return the value of a class leaf, and how much it has changed (0 unless that is asked for)."""
    a, b = class_probs[row, best], class_probs[row, rival]
    gain = class_gain[row]
    if gain == 0.0:
        return a - b, 0.0
    if x >= ENDLESS:
        # Only a closed domain has such an end, and there everything is possible.
        return -1.0, 0.0
    falls, rises = class_ball[row, best], class_ball[row, rival]
    if not near and mode <= PARI_MUTUEL:
        return lower_bound(mode, x, a, gain, falls[FALL], falls[FALL_SCALE]) - upper_bound(
            mode, x, b, gain, rises[RISE], rises[RISE_SCALE]
        ), 0.0
    if mode <= PARI_MUTUEL:
        low = change_lower(mode, x, a, gain, falls[FALL], falls[FALL_SCALE])
        return a - b, low - change_upper(mode, x, b, gain, rises[RISE], rises[RISE_SCALE])
    d = contrast(mode, x * gain, a, b, class_probs.shape[1], order, work)
    return (a - b, d) if near else (a - b + d, 0.0)


@inner
def _apply(mode, near, x, node, p, ball, v, d, e):
    """Multiply a value by the bound of a probability that makes it smaller."""
    value, q, factors = v + d, p[node], ball[node]
    gain = factors[GAIN]
    if near:
        change = 0.0
        if value > 0.0:
            change = change_lower(mode, x, q, gain, factors[FALL], factors[FALL_SCALE])
        elif value < 0.0:
            change = change_upper(mode, x, q, gain, factors[RISE], factors[RISE_SCALE])
        return _multiply(v, d, e, q, change)
    if value > 0.0:
        if factors[FALL_SCALE] > 0.0 and x < ENDLESS:
            # In two steps: a small probability may be divided by a large number.
            v, d, e = _multiply(v, 0.0, e, 1.0 / (1.0 + x * factors[FALL_SCALE]), 0.0)
            q = max(q - x * factors[FALL], 0.0)
        else:
            q = lower_bound(mode, x, q, gain, factors[FALL], factors[FALL_SCALE])
    elif value < 0.0:
        q = upper_bound(mode, x, q, gain, factors[RISE], factors[RISE_SCALE])
    return _multiply(v, 0.0, e, q, 0.0)


@inner
def _move_two(mode, x, low, high, p, ball, one, other, work):
    """Move the weights of two children: the higher one loses what it can."""
    shift, moved = work[2], work[3]
    gain = ball[high, GAIN]
    falls, rises = ball[high], ball[low]
    moved[other] = lower_bound(mode, x, p[high], gain, falls[FALL], falls[FALL_SCALE])
    moved[one] = upper_bound(mode, x, p[low], gain, rises[RISE], rises[RISE_SCALE])
    if x >= ENDLESS:
        shift[other], shift[one] = -p[high], p[high]
    elif p[high] <= p[low]:
        # Of two complements the smaller one has more digits.
        shift[other] = change_lower(mode, x, p[high], gain, falls[FALL], falls[FALL_SCALE])
        shift[one] = -shift[other]
    else:
        shift[one] = change_upper(mode, x, p[low], gain, rises[RISE], rises[RISE_SCALE])
        shift[other] = -shift[one]


@inner
def _read_children(first, count, p, rest, stack, nodes, work, scale):
    """Write weights and values of the children of a sum, divided by 2^(STEP · scale).

    `rest` tells that there are children that nothing reaches: together they are one more, of value
    0. Gives back how many there are.
    """
    w, f = work[0], work[1]
    left = 1.0
    for k in range(count):
        at = first + k
        w[k] = p[nodes[at]]
        left -= w[k]
        f[k] = (stack[0, at] + stack[1, at]) * shrink(scale - np.int64(stack[2, at]))
    if rest:
        w[count], f[count] = max(left, 0.0), 0.0
        return count + 1
    return count


@inner
def _mix(mode, near, x, first, count, p, ball, rest, stack, nodes, work, order, result):
    """Return the lower expectation of the children of a sum; write what is gained and lost."""
    scale = np.int64(-(2**40))
    for k in range(count):
        if stack[0, first + k] != 0.0 or stack[1, first + k] != 0.0:
            scale = max(scale, np.int64(stack[2, first + k]))
    total = _read_children(first, count, p, rest, stack, nodes, work, scale)
    w, f, shift, moved = work[0], work[1], work[2], work[3]
    gain = ball[nodes[first], GAIN]
    pivot = 0.0
    if gain == 0.0:
        for k in range(total):
            shift[k], moved[k] = 0.0, w[k]
    elif total == 2 and not rest and (mode == USER or min(w[0], w[1]) > RARE):
        # Bounds will do, unless one weight is so small that the other does not tell it.
        high = 1 if f[1] >= f[0] else 0
        low, pivot = 1 - high, f[1 - high]
        _move_two(mode, x, nodes[first + low], nodes[first + high], p, ball, low, high, work)
    else:
        size = ENDLESS if x >= ENDLESS else x * gain
        pivot = shift_weights(mode, size, total, order, work)
    v, d, e = 0.0, 0.0, scale
    result[0], result[1], result[2], result[3] = 0.0, 0.0, scale, scale
    if near:
        for k in range(count):
            part = shrink(scale - np.int64(stack[2, first + k]))
            v += w[k] * stack[0, first + k] * part
            d += w[k] * stack[1, first + k] * part + shift[k] * (f[k] - pivot)
        if rest:
            d -= shift[count] * pivot
        return _keep_in_range(v, d, e)
    gained, lost, top, bottom = 0.0, 0.0, scale, scale
    for k in range(count):
        # A large value of weight 0 must not hide a small one: each has its own exponent.
        part, place = moved[k], np.int64(stack[2, first + k])
        if part < LOWEST:
            part, place = part * UPMOST, place - 1
        part *= stack[0, first + k]
        if part > 0.0:
            gained, top = _add(gained, top, part, place)
        else:
            lost, bottom = _add(lost, bottom, -part, place)
    result[0], result[1], result[2], result[3] = gained, lost, top, bottom
    v, e = _add(gained, top, -lost, bottom)
    return _keep_in_range(v, 0.0, e)


@inner
def _evaluate(
    mode,
    near,
    x,
    count,
    items,
    mass,
    place,
    p,
    ball,
    rest,
    class_probs,
    class_gain,
    class_ball,
    best,
    rival,
    stack,
    nodes,
    work,
    order,
    result,
):
    """Run a program; return the value, its change, and the exponent of both.

    Written beside: what is gained and what is lost in the last sum, and their exponents. Unless
    changes are asked for (`near`), the value is the one at x, and its change 0.
    """
    top = -1
    result[0], result[1], result[2], result[3] = 0.0, 0.0, 0.0, 0.0
    mixed = False
    for i in range(count):
        what, node = items[i, WHAT], items[i, NODE]
        if what == PUSH:
            top += 1
            v, d, e = 1.0, 0.0, np.int64(0)
            if node >= 0:
                v, d = _push(
                    *(mode, near, x, node, class_probs, class_gain, class_ball),
                    *(best, rival, work, order),
                )
        elif what == FACTOR:
            v, d, e = _apply(
                mode, near, x, node, p, ball, stack[0, top], stack[1, top], np.int64(stack[2, top])
            )
        else:
            children = items[i, CHILDREN]
            top -= children - 1
            v, d, e = _mix(
                *(mode, near, x, top, children, p, ball, rest[node], stack, nodes, work, order),
                result,
            )
            mixed = True
        if mass[i] != 1.0 or place[i] != 0:
            v, d, e = _keep_in_range(v * mass[i], d * mass[i], e + place[i])
        stack[0, top], stack[1, top], stack[2, top] = v, d, e
        nodes[top] = items[i, DONE]
    v, d = stack[0, 0], stack[1, 0]
    if not mixed or v + d == 0.0:
        # One side only; or, after the last sum, a factor of 0.
        result[0], result[1] = max(v + d, 0.0), max(-(v + d), 0.0)
        result[2], result[3] = 0.0, 0.0
    return v, d, np.int64(stack[2, 0])


@inner
def _height(result):
    """Return log P − log N."""
    gained, lost = result[0], result[1]
    if gained <= 0.0:
        return -math.inf
    if lost <= 0.0:
        return math.inf
    return math.log(gained / lost) + (result[2] - result[3]) * LOG_STEP


# The search


@inner
def _look(
    mode,
    near,
    lead,
    lead_place,
    x,
    count,
    items,
    mass,
    place,
    p,
    ball,
    rest,
    class_probs,
    class_gain,
    class_ball,
    best,
    rival,
    stack,
    nodes,
    work,
    order,
    result,
):
    """Return a number that falls as x grows, and is positive as long as ĉ is ahead.

    That is log P − log N, or near a tie the share of the lead that is left.
    """
    v, d, e = _evaluate(
        *(mode, near, x, count, items, mass, place, p, ball, rest, class_probs, class_gain),
        *(class_ball, best, rival, stack, nodes, work, order, result),
    )
    if near:
        if d >= 0.0:
            return 1.0
        gone = math.log(-d / lead) + (e * STEP - lead_place) * LOG_TWO
        return -math.expm1(min(gone, 600.0))
    if v <= 0.0:
        return min(_height(result), -1e-300)
    height = _height(result)
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
    mode,
    near,
    lead,
    lead_place,
    limit,
    farthest,
    unbacked,
    start,
    count,
    items,
    mass,
    place,
    p,
    ball,
    rest,
    class_probs,
    class_gain,
    class_ball,
    best,
    rival,
    stack,
    nodes,
    work,
    order,
    result,
):
    """Return the x at which a rival catches up, infinity if that is beyond the limit."""
    low, high, at_low, at_high = 0.0, math.inf, math.inf, -math.inf
    farthest = min(limit, farthest)
    x = min(start, farthest)
    for _ in range(MAX_STEPS):
        h = _look(
            *(mode, near, lead, lead_place, x, count, items, mass, place, p, ball, rest),
            *(class_probs, class_gain, class_ball, best, rival, stack, nodes, work, order, result),
        )
        if h <= 0.0:
            high, at_high = x, h
            break
        if x >= farthest:
            break
        # The height is nearly straight: aim a little beyond where it would be 0.
        there = 16.0 * max(x, 1e-18)
        if at_low < math.inf and h < at_low:
            there = min(max(x + 1.25 * h * (x - low) / (at_low - h), 1.5 * x), 4096.0 * x)
        low, at_low = x, h
        x = min(there, farthest)
    if high == math.inf:
        if limit >= ENDLESS:
            h = _look(
                *(mode, False, lead, lead_place, ENDLESS, count, items, mass, place, p, ball, rest),
                *(class_probs, class_gain, class_ball, best, rival, stack, nodes, work, order),
                result,
            )
            # Of an open domain only what is lost before its end counts, however near to it.
            flips = h <= 0.0 if limit == ENDLESS else (h < 0.0 and result[1] > 0.0)
            return ENDLESS if flips else math.inf
        return math.inf
    # Find the magnitude first, if nothing is known but where it is too large.
    for _ in range(MAX_STEPS):
        if low > 0.0 or high <= unbacked:
            break
        x = high * 2.0**-10
        if near and at_high > -1e15:
            # What is gone of the lead grows nearly in proportion.
            x = max(x, 0.5 * high / (1.0 - at_high))
        h = _look(
            *(mode, near, lead, lead_place, x, count, items, mass, place, p, ball, rest),
            *(class_probs, class_gain, class_ball, best, rival, stack, nodes, work, order, result),
        )
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
        h = _look(
            *(mode, near, lead, lead_place, x, count, items, mass, place, p, ball, rest),
            *(class_probs, class_gain, class_ball, best, rival, stack, nodes, work, order, result),
        )
        if (h > 0.0) == (f1 > 0.0):
            x3, f3 = x1, f1
        else:
            x3, f3 = x2, f2
            x2, f2 = x1, f1
        x1, f1 = x, h
        share = _interpolate(x1, x2, x3, f1, f2, f3)
    return 0.5 * (x1 + x2)


@kernel(
    types.void(
        *(types.int64, types.float64, types.float64, types.float64, types.float64),
        *(int_vector, byte_vector, code_vector),
        *(float_vector, int_vector, code_vector, float_matrix, byte_vector, int_vector),
        *(float_matrix, float_vector, float_cube, int_vector, int_vector, int_vector),
        *(float_matrix, float_matrix, float_vector_out, int_vector_out),
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
    exponent,
    slot,
    ball,
    rest,
    class_row,
    class_probs,
    class_gain,
    class_ball,
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
    starts … slot : of the evidence
    ball : (nodes, 5), what the ball gives to each node: gain, and its form
    rest : for each sum, whether it has children that are not reached
    class_row : for each class leaf, its row in the next three; −1 for indicators
    class_probs, class_gain, class_ball : the class leaves that are reached
    prediction, runner_up : (rows,)
    close : for each row, its row in the next two; −1 if no class is close
    leads, lead_places : what p(ĉ, f) is ahead of each class, as v · 2^place; 0 if it is far ahead
    found, tipping : (rows,), written
    """
    classes = leads.shape[1]
    longest, widest = 1, 3
    for row in range(len(starts) - 1):
        longest = max(longest, starts[row + 1] - starts[row])
    for node in range(len(op)):
        widest = max(widest, np.int64(arity[node]) + 1)
    items, place = np.zeros((longest, 4), np.int64), np.zeros(longest, np.int64)
    mass, siblings = np.zeros(longest), np.zeros(longest, np.int64)
    stack, nodes = np.zeros((3, longest)), np.zeros(longest, np.int64)
    work, order, result = np.zeros((7, widest)), np.zeros(widest, np.int64), np.zeros(4)
    for row in range(len(starts) - 1):
        first, last, best = starts[row], starts[row + 1], prediction[row]
        found[row], tipping[row] = math.inf, -1
        _count_siblings(first, last, op, arity, nodes, siblings)
        for turn in range(classes + 1):
            # The runner-up is the first: who comes after mostly needs one look.
            rival = runner_up[row] if turn == 0 else np.int64(turn - 1)
            if rival < 0 or rival == best or (turn > 0 and rival == runner_up[row]):
                continue
            count = _write_program(
                *(first, last, op, arity, p, exponent, slot, ball, class_row, siblings),
                *(best, rival, items, mass, place),
            )
            near, lead, lead_place = False, 0.0, 0.0
            if close[row] >= 0:
                lead, lead_place = leads[close[row], rival], lead_places[close[row], rival]
                if lead > 0.0:
                    h = _look(
                        *(mode, False, lead, lead_place, 0.0, count, items, mass, place, p),
                        *(ball, rest, class_probs, class_gain, class_ball, best, rival, stack),
                        *(nodes, work, order, result),
                    )
                    near = h < NEAR
            if found[row] < math.inf:
                by_change = near and found[row] < ENDLESS
                h = _look(
                    *(mode, by_change, lead, lead_place, found[row], count),
                    *(items, mass, place, p, ball, rest, class_probs, class_gain, class_ball),
                    *(best, rival, stack, nodes, work, order, result),
                )
                if h > 0.0:
                    continue
            x = _find_root(
                *(mode, near, lead, lead_place, min(limit, found[row]), farthest, unbacked, start),
                *(count, items),
                *(mass, place, p, ball, rest, class_probs, class_gain, class_ball, best, rival),
                *(stack, nodes, work, order, result),
            )
            if x <= unbacked:
                x = 0.0
            if x < found[row]:
                found[row], tipping[row] = x, rival
            if x == 0.0:
                break


@kernel(
    types.void(
        *(types.int64, float_vector, int_vector, byte_vector, code_vector),
        *(float_vector, int_vector, code_vector, float_matrix, byte_vector, int_vector),
        *(float_matrix, float_vector, float_cube, types.Array(types.int64, 2, "C", readonly=True)),
        *(int_vector, float_matrix, float_matrix, types.Array(types.boolean, 2, "C")),
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
    exponent,
    slot,
    ball,
    rest,
    class_row,
    class_probs,
    class_gain,
    class_ball,
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
    longest, widest = 1, 3
    for row in range(len(starts) - 1):
        longest = max(longest, starts[row + 1] - starts[row])
    for node in range(len(op)):
        widest = max(widest, np.int64(arity[node]) + 1)
    items, place = np.zeros((longest, 4), np.int64), np.zeros(longest, np.int64)
    mass, siblings = np.zeros(longest), np.zeros(longest, np.int64)
    stack, nodes = np.zeros((3, longest)), np.zeros(longest, np.int64)
    work, order, result = np.zeros((7, widest)), np.zeros(widest, np.int64), np.zeros(4)
    for row in range(len(starts) - 1):
        first, last, x = starts[row], starts[row + 1], sizes[row]
        _count_siblings(first, last, op, arity, nodes, siblings)
        for second in range(classes):
            behind = ranking[row, second]
            maximal[row, behind] = True
            # Only who leads without any perturbation can win for certain.
            for before in range(second):
                ahead = ranking[row, before]
                count = _write_program(
                    *(first, last, op, arity, p, exponent, slot, ball, class_row, siblings),
                    *(ahead, behind, items, mass, place),
                )
                near, lead, lead_place = False, 0.0, 0.0
                if close[row] >= 0 and before == 0:
                    lead, lead_place = leads[close[row], behind], lead_places[close[row], behind]
                    if lead > 0.0 and x < ENDLESS:
                        h = _look(
                            *(mode, False, lead, lead_place, 0.0, count, items, mass, place, p),
                            *(ball, rest, class_probs, class_gain, class_ball, ahead, behind),
                            *(stack, nodes, work, order, result),
                        )
                        near = h < NEAR
                h = _look(
                    *(mode, near, lead, lead_place, x, count, items, mass, place, p, ball, rest),
                    *(class_probs, class_gain, class_ball, ahead, behind, stack, nodes, work),
                    *(order, result),
                )
                if h > 0.0:
                    maximal[row, behind] = False
                    break
