"""The values of programs.

For any x,

    class leaf    V = the lower expectation of 1_ĉ − 1_c
    factor        V times the lower bound if V > 0, or else the upper one
    sum           the lower expectation of its children
    product       of values on one side of the contest, all ≥ 0 or all ≤ 0

Beside each value stands how much it has changed, with all its digits: near a tie the change is
compared with the lead, which comes from exact arithmetic.
"""

import math

import numpy as np

from robustq.kernels import inner

from ._ball_kernels import (
    change_lower,
    change_upper,
    contrast,
    lower_bound,
    shift_weights,
    upper_bound,
)
from ._program_kernels import (
    CHILDREN,
    COPY,
    DONE,
    FALL,
    FALL_SCALE,
    FIRST,
    GAIN,
    JOIN,
    LAST,
    NODE,
    PUSH,
    RISE,
    RISE_SCALE,
    WHAT,
    P,
    add,
    keep_in_range,
    multiply,
    set_form,
)
from ._scale_kernels import shrink
from .modes import CHI2, ENDLESS, EPSILON, KL, PARI_MUTUEL, TV, USER
from .scale import LOG_STEP, LOWEST, NOTHING, UPMOST

__all__ = ["EVERY", "EXPONENT", "VALUE_AT", "evaluate", "log_ratio"]

# The rows of what is known of the children on the stack.
VALUE_AT, CHANGE, EXPONENT, WEIGHT, CHILD_GAIN = range(5)

EVERY = -2  # as a rival: each class but the best
RARE = 1e-6
SAFE = 1e-280  # a product above this has not underflowed on the way
FAR = 1e100  # beyond, a factor might underflow
TOLD = 1e-140  # beside 1, what is smaller may lose its digits where it is squared
GIVEN_UP = 1e100  # stands for what is larger than all others, however much, and has no weight left


@inner
def _push(mode, near, x, row, gain, class_probs, class_forms, best, rival, work, order):
    """Return the value of a class leaf, and how much it has changed (if that is asked for)."""
    a, b = class_probs[row, best], class_probs[row, rival]
    if gain == 0.0:
        return a - b, 0.0
    size, d = x * gain, 0.0
    if x >= ENDLESS and mode == EPSILON:
        # Everything is possible.
        return -1.0, 0.0
    if mode == EPSILON:
        d = -size * (1.0 + a - b) / (1.0 + size)
    elif mode == TV:
        d = -min(size, a) - min(size, 1.0 - b)
    elif mode == PARI_MUTUEL:
        d = -min(size * (1.0 - a), a) - min(size * b, 1.0 - b)
    elif mode == USER:
        falls, rises = class_forms[row, best], class_forms[row, rival]
        d = change_lower(mode, x, a, gain, falls[0], falls[1]) - change_upper(
            mode, x, b, gain, rises[2], rises[3]
        )
    else:
        d = contrast(mode, size, a, b, class_probs.shape[1], order, work)
        if not near:
            # From the weights as they become: differences would lose what little is left.
            return work[3, 0] - work[3, 1], 0.0
    return (a - b, d) if near else (a - b + d, 0.0)


@inner
def _fall(mode, x, first, last, factors, v, e):
    """Multiply a value by the lower bounds of its factors."""
    if mode != KL and x < ENDLESS:
        top, bottom = 1.0, 1.0
        if mode == TV or mode == CHI2 or mode == PARI_MUTUEL:
            for k in range(first, last):
                left = factors[P, k] - x * factors[FALL, k]
                if left <= 0.0:
                    return 0.0, e
                top *= left
        else:
            for k in range(first, last):
                left = factors[P, k] - x * factors[FALL, k]
                top *= left if left > 0.0 else 0.0
                bottom *= 1.0 + x * factors[FALL_SCALE, k]
        if top > SAFE and bottom < math.inf and top / bottom > SAFE:
            v, _, e = multiply(v, 0.0, e, top / bottom, 0.0)
            return v, e
    for k in range(first, last):
        q = factors[P, k]
        if factors[FALL_SCALE, k] > 0.0 and x < ENDLESS:
            # In two steps: a small probability may be divided by a large number.
            v, _, e = multiply(v, 0.0, e, 1.0 / (1.0 + x * factors[FALL_SCALE, k]), 0.0)
            q = max(q - x * factors[FALL, k], 0.0)
        else:
            q = lower_bound(mode, x, q, factors[GAIN, k], factors[FALL, k], factors[FALL_SCALE, k])
        v, _, e = multiply(v, 0.0, e, q, 0.0)
    return v, e


@inner
def _rise(mode, x, first, last, factors, v, e):
    """Multiply a value by the upper bounds of its factors."""
    if mode != KL and x < ENDLESS:
        top, bottom = 1.0, 1.0
        if mode == TV or mode == CHI2 or mode == PARI_MUTUEL:
            for k in range(first, last):
                top *= min(factors[P, k] + x * factors[RISE, k], 1.0)
            last_scaled = first
        else:
            last_scaled = last
        for k in range(first, last_scaled):
            under = 1.0 + x * factors[RISE_SCALE, k]
            over = factors[P, k] + x * factors[RISE, k]
            top *= over if over < under else under
            bottom *= under
        if top > SAFE and bottom < math.inf and top / bottom > SAFE:
            v, _, e = multiply(v, 0.0, e, top / bottom, 0.0)
            return v, e
    for k in range(first, last):
        q = upper_bound(
            mode, x, factors[P, k], factors[GAIN, k], factors[RISE, k], factors[RISE_SCALE, k]
        )
        v, _, e = multiply(v, 0.0, e, q, 0.0)
    return v, e


@inner
def _change(mode, x, first, last, factors, v, d, e):
    """Multiply a value, and how much it has changed, by the bounds of its factors."""
    for k in range(first, last):
        q, gain, change = factors[P, k], factors[GAIN, k], 0.0
        if v + d > 0.0:
            change = change_lower(mode, x, q, gain, factors[FALL, k], factors[FALL_SCALE, k])
        elif v + d < 0.0:
            change = change_upper(mode, x, q, gain, factors[RISE, k], factors[RISE_SCALE, k])
        v, d, e = multiply(v, d, e, q, change)
    return v, d, e


@inner
def _move_two(mode, x, low, high, forms, nodes, stack, at, work, room):
    """Move the weights of two children: the higher one loses what it can."""
    shift, moved = work[2], work[3]
    one, other = at + low, at + high
    gain, p, q = stack[CHILD_GAIN, other], stack[WEIGHT, other], stack[WEIGHT, one]
    set_form(mode, p, gain, nodes[other], forms, room, 0)
    set_form(mode, q, gain, nodes[one], forms, room, 1)
    moved[high] = lower_bound(mode, x, p, gain, room[FALL, 0], room[FALL_SCALE, 0])
    moved[low] = upper_bound(mode, x, q, gain, room[RISE, 1], room[RISE_SCALE, 1])
    if x >= ENDLESS:
        shift[high], shift[low] = -p, p
    elif p <= q:
        # Of two complements the smaller one has more digits.
        shift[high] = change_lower(mode, x, p, gain, room[FALL, 0], room[FALL_SCALE, 0])
        shift[low] = -shift[high]
    else:
        shift[low] = change_upper(mode, x, q, gain, room[RISE, 1], room[RISE_SCALE, 1])
        shift[high] = -shift[low]


@inner
def _join(mode, x, at, stack, result):
    """Return the lower expectation of two children of the same exponent, for known balls."""
    one, two = at, at + 1
    if stack[VALUE_AT, one] > stack[VALUE_AT, two]:
        one, two = two, one
    low, high = stack[VALUE_AT, one], stack[VALUE_AT, two]
    p, q, gain = stack[WEIGHT, two], stack[WEIGHT, one], stack[CHILD_GAIN, two]
    size = x * gain
    if mode == TV:
        falls, rises = max(p - size, 0.0), min(q + size, 1.0)
    elif mode == CHI2:
        falls = max(p - size * math.sqrt(p * (1.0 - p)), 0.0)
        rises = min(q + size * math.sqrt(q * (1.0 - q)), 1.0)
    elif mode == PARI_MUTUEL:
        falls, rises = max(p - size * (1.0 - p), 0.0), min(q + size * q, 1.0)
    elif mode == EPSILON:
        falls, rises = p / (1.0 + size), (q + size) / (1.0 + size)
    else:
        falls, rises = p / (1.0 + size * (1.0 - p)), (q + size * q) / (1.0 + size * q)
    low, high = low * rises, high * falls
    result[0], result[1] = max(low, 0.0) + max(high, 0.0), max(-low, 0.0) + max(-high, 0.0)
    result[2], result[3] = stack[EXPONENT, at], stack[EXPONENT, at]
    return low + high


@inner
def _read_children(first, count, rest, stack, work, scale):
    """Write weights and values of the children of a sum, divided by 2^(STEP · scale).

    `rest` tells that there are children that nothing reaches: together they are one more, of value
    0. Gives back how many there are.
    """
    w, f = work[0], work[1]
    left = 1.0
    for k in range(count):
        at = first + k
        w[k] = stack[WEIGHT, at]
        left -= w[k]
        f[k] = (stack[VALUE_AT, at] + stack[CHANGE, at]) * shrink(
            scale - np.int64(stack[EXPONENT, at])
        )
    if rest:
        w[count], f[count] = max(left, 0.0), 0.0
        return count + 1
    return count


@inner
def _find_next_scale(first, count, stack, work):
    """Return the scale of the largest child that others are too large to be seen beside.

    That of nobody if one of these still has a weight: then nothing hangs on smaller ones.
    """
    f, moved, scale = work[1], work[3], np.int64(NOTHING)
    for k in range(count):
        if abs(f[k]) < TOLD:
            if stack[VALUE_AT, first + k] != 0.0:
                scale = max(scale, np.int64(stack[EXPONENT, first + k]))
        elif moved[k] > 0.0:
            return np.int64(NOTHING)
    return scale


@inner
def _read_smaller(first, count, stack, work, scale):
    """Write the values of children as they are beside the largest of those up to a scale."""
    f, largest = work[1], 0.0
    for k in range(count):
        steps = scale - np.int64(stack[EXPONENT, first + k])
        f[k] = stack[VALUE_AT, first + k] * shrink(steps)
        largest = max(largest, abs(f[k]) if steps >= 0 else 0.0)
    for k in range(count):
        below = stack[EXPONENT, first + k] <= scale
        f[k] = f[k] / largest if below or f[k] == 0.0 else GIVEN_UP


@inner
def _mix(mode, near, x, first, count, rest, forms, stack, nodes, work, order, room, result):
    """Return the lower expectation of the children of a sum; write what is gained and lost."""
    scale = np.int64(NOTHING)
    for k in range(count):
        if stack[VALUE_AT, first + k] != 0.0 or stack[CHANGE, first + k] != 0.0:
            scale = max(scale, np.int64(stack[EXPONENT, first + k]))
    total = _read_children(first, count, rest, stack, work, scale)
    w, f, shift, moved = work[0], work[1], work[2], work[3]
    gain, pivot = stack[CHILD_GAIN, first], 0.0
    if gain == 0.0:
        for k in range(total):
            shift[k], moved[k] = 0.0, w[k]
    elif total == 2 and not rest and (mode == USER or min(w[0], w[1]) > RARE):
        # Bounds will do, unless one weight is so small that the other does not tell it.
        high = 1 if f[1] >= f[0] else 0
        pivot = f[1 - high]
        _move_two(mode, x, 1 - high, high, forms, nodes, stack, first, work, room)
    else:
        size = ENDLESS if x >= ENDLESS else x * gain
        smaller = np.int64(NOTHING)
        while True:
            pivot = shift_weights(mode, size, total, order, work)
            last, smaller = smaller, np.int64(NOTHING)
            if not near:
                smaller = _find_next_scale(first, count, stack, work)
            if smaller == NOTHING or smaller == last:
                break
            _read_smaller(first, count, stack, work, smaller)
    if near:
        v, d = 0.0, 0.0
        for k in range(count):
            part = shrink(scale - np.int64(stack[EXPONENT, first + k]))
            v += w[k] * stack[VALUE_AT, first + k] * part
            d += w[k] * stack[CHANGE, first + k] * part + shift[k] * (f[k] - pivot)
        if rest:
            d -= shift[count] * pivot
        return keep_in_range(v, d, scale)
    gained, lost, top, bottom = 0.0, 0.0, scale, scale
    for k in range(count):
        # A large value of weight 0 must not hide a small one: each has its own exponent.
        part, place = moved[k], np.int64(stack[EXPONENT, first + k])
        if part < LOWEST:
            part, place = part * UPMOST, place - 1
        part *= stack[VALUE_AT, first + k]
        if part > 0.0:
            gained, top = add(gained, top, part, place)
        else:
            lost, bottom = add(lost, bottom, -part, place)
    result[0], result[1], result[2], result[3] = gained, lost, top, bottom
    v, e = add(gained, top, -lost, bottom)
    return keep_in_range(v, 0.0, e)


@inner
def evaluate(mode, near, x, best, rival, machine):
    """Run a program; return the value, its change, and the exponent of both.

    Written beside: what is gained and what is lost in the last sum, and their exponents. Unless
    changes are asked for (`near`), the value is the one at x, and its change 0.
    """
    base, count, steps, mass, place, factors, gains, p, extra, slot, kept = machine[:11]
    forms, class_probs, class_forms, stack, nodes, work, order, small, room, result = machine[11:]
    top = -1
    result[0], result[1], result[2], result[3] = 0.0, 0.0, 0.0, 0.0
    mixed = False
    for i in range(count):
        node = steps[i, NODE]
        if steps[i, WHAT] == PUSH:
            top += 1
            v, d, e = 1.0, 0.0, np.int64(0)
            row = extra[node]
            if row >= 0:
                gain = gains[node - base]
                v, d = _push(
                    *(mode, near, x, row, gain, class_probs, class_forms, best, rival),
                    *(work, small),
                )
            else:
                label = slot[node]
                against = label == rival or rival == EVERY
                v = 1.0 if label == best else (-1.0 if against else 0.0)
        elif steps[i, WHAT] == COPY:
            top += 1
            done = steps[i, CHILDREN]
            v, d, e = kept[VALUE_AT, done], kept[CHANGE, done], np.int64(kept[EXPONENT, done])
        elif steps[i, WHAT] == JOIN:
            top -= steps[i, CHILDREN] - 1
            v, d, e = stack[VALUE_AT, top], stack[CHANGE, top], np.int64(stack[EXPONENT, top])
            side = 1.0 if v > 0.0 else -1.0
            for k in range(1, steps[i, CHILDREN]):
                p_k, d_k = side * stack[VALUE_AT, top + k], side * stack[CHANGE, top + k]
                v, d, e = multiply(v, d, e, p_k, d_k)
                e += np.int64(stack[EXPONENT, top + k])
        else:
            children = steps[i, CHILDREN]
            top -= children - 1
            rest, mixed = extra[node] > 0, True
            plain = (
                children == 2
                and not (near or rest)
                and USER < mode < KL
                and x < FAR
                and stack[EXPONENT, top] == stack[EXPONENT, top + 1]
                and min(stack[WEIGHT, top], stack[WEIGHT, top + 1]) > RARE
            )
            if plain:
                e = np.int64(stack[EXPONENT, top])
                v, d, e = keep_in_range(_join(mode, x, top, stack, result), 0.0, e)
            else:
                v, d, e = _mix(
                    *(mode, near, x, top, children, rest, forms, stack, nodes, work, order),
                    *(room, result),
                )
        first, last = steps[i, FIRST], steps[i, LAST]
        if v != 0.0 or d != 0.0:
            if last > first:
                if near:
                    v, d, e = _change(mode, x, first, last, factors, v, d, e)
                elif v > 0.0:
                    v, e = _fall(mode, x, first, last, factors, v, e)
                else:
                    v, e = _rise(mode, x, first, last, factors, v, e)
            v, d, e = keep_in_range(v * mass[i], d * mass[i], e + place[i])
        done = steps[i, DONE]
        stack[VALUE_AT, top], stack[CHANGE, top], stack[EXPONENT, top] = v, d, e
        kept[VALUE_AT, i], kept[CHANGE, i], kept[EXPONENT, i] = v, d, e
        stack[WEIGHT, top], stack[CHILD_GAIN, top] = p[done], gains[done - base]
        nodes[top] = done
    v, d = stack[VALUE_AT, 0], stack[CHANGE, 0]
    if not mixed or v + d == 0.0:
        # One side only; or, after the last sum, a factor of 0.
        result[0], result[1] = max(v + d, 0.0), max(-(v + d), 0.0)
        result[2], result[3] = 0.0, 0.0
    return v, d, np.int64(stack[EXPONENT, 0])


@inner
def log_ratio(result):
    """Return log P − log N."""
    gained, lost = result[0], result[1]
    if gained <= 0.0:
        return -math.inf
    if lost <= 0.0:
        return math.inf
    return math.log(gained / lost) + (result[2] - result[3]) * LOG_STEP
