"""The recursion over what a row reaches, compiled, for balls whose bounds have a form.

Evidence is read once for each row, into a short program: numbers that no ball moves
are multiplied at once, a sum with one child is a factor, and so is a leaf. Then, for any x,

    class leaf    V = the lower expectation of 1_ĉ − 1_c
    factor        V times the lower bound if V > 0, or else the upper one
    sum           the lower expectation of its children
    product       of values on one side of the contest, all ≥ 0 or all ≤ 0

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
from .evidence import CLASS, FEATURE, PRODUCT, SAME, SUM, VALUE
from .modes import CHI2, ENDLESS, EPSILON, KL, ODDS_RATIO, PARI_MUTUEL, TV, USER
from .scale import LOG_STEP, LOWEST, STEP, UPMOST

__all__ = ["find_maximal", "solve"]

# What a step of a program does, and the columns that describe it: what; which node, or row of the
# class table; how many children (of a copy, the step); its factors, from one to another; the node
# that it finishes.
PUSH, MIX, JOIN, COPY = range(4)
WHAT, NODE, CHILDREN, FIRST, LAST, DONE = range(6)
# The rows of what is known of factors; and of the children on the stack.
P, GAIN, FALL, FALL_SCALE, RISE, RISE_SCALE = range(6)
VALUE_AT, CHANGE, EXPONENT, WEIGHT, CHILD_GAIN = range(5)

RARE = 1e-6
ENOUGH = 1e-11  # how near, relative, is near enough
MAX_STEPS = 300
NEAR = 1e-2  # a lead that is smaller, relative, is compared with changes
ROUNDING = 1e-14  # what is left of a lead below this, relative, is rounding
SAFE = 1e-280  # a product above this has not underflowed on the way
LOG_TWO = math.log(2.0)
NO_ROWS = 1e-150  # stands for no rows
FAR = 1e100  # beyond, a factor might underflow

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
def _find_gain(mode, part, feature, rows, parts, features, by_rows):
    """Return what x is multiplied by for a local mass function; 0 if it is not perturbed."""
    if part < 0 or not (parts[part] or (feature >= 0 and features[feature])):
        return 0.0
    if not by_rows:
        return 1.0
    if math.isnan(rows):
        return 0.0
    count = max(rows, NO_ROWS)
    return 1.0 / math.sqrt(count) if mode == CHI2 else 1.0 / count


@inner
def _set_form(mode, p, gain, node, forms, factors, at):
    """Write a factor: its probability, and the form of its bounds."""
    factors[P, at], factors[GAIN, at] = p, gain
    fall, fall_scale, rise, rise_scale = 0.0, 0.0, 0.0, 0.0
    if mode == USER:
        fall, fall_scale, rise, rise_scale = (
            forms[node, 0],
            forms[node, 1],
            forms[node, 2],
            forms[node, 3],
        )
    elif mode == EPSILON:
        fall_scale, rise, rise_scale = gain, gain, gain
    elif mode == TV:
        fall, rise = gain, gain
    elif mode == PARI_MUTUEL:
        fall, rise = gain * (1.0 - p), gain * p
    elif mode == CHI2:
        fall = gain * math.sqrt(p * (1.0 - p))
        rise = fall
    elif mode == ODDS_RATIO:
        fall_scale, rise, rise_scale = gain * (1.0 - p), gain * p, gain * p
    factors[FALL, at], factors[FALL_SCALE, at] = fall, fall_scale
    factors[RISE, at], factors[RISE_SCALE, at] = rise, rise_scale


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
    mode,
    first,
    last,
    op,
    arity,
    p,
    extra,
    part,
    feature,
    rows,
    parts,
    features,
    by_rows,
    forms,
    siblings,
    steps,
    mass,
    place,
    factors,
    gains,
):
    """Write the steps of a row, whichever classes are compared; return how many there are.

    The mass of a step is what its value is multiplied by, beside its factors: for an indicator, its
    sign depends on the classes. `gains` are those of the children of sums, and of class leaves.
    """
    count, used = 0, 0
    for node in range(first, last):
        kind = op[node]
        gain = _find_gain(mode, part[node], feature[node], rows[node], parts, features, by_rows)
        joins = kind == PRODUCT and extra[node] > 0
        if kind == CLASS or kind == SAME or joins or (kind == SUM and arity[node] > 1):
            steps[count, WHAT] = PUSH if kind == CLASS else (MIX if kind == SUM else JOIN)
            steps[count, NODE], steps[count, CHILDREN] = node, arity[node]
            if joins:
                steps[count, CHILDREN] = extra[node] + 1
            elif kind == SAME:
                steps[count, WHAT] = COPY
                steps[count, CHILDREN] = siblings[node - extra[node] - first]
            steps[count, FIRST], steps[count, LAST] = used, used
            mass[count], place[count] = 1.0, 0
            count += 1
        gains[node - first] = gain
        if kind != CLASS and kind != VALUE and kind != FEATURE and siblings[node - first] != 1:
            # A child of a sum with others, or a root: its weight is the sum's affair.
            steps[count - 1, DONE] = node
            # Who its siblings are is no longer asked: from now on, which step finishes it.
            siblings[node - first] = count - 1
            continue
        if kind == CLASS:
            continue
        if kind != VALUE and gain > 0.0:
            _set_form(mode, p[node], gain, node, forms, factors, used)
            used += 1
            steps[count - 1, LAST] = used
        else:
            v, _, e = _multiply(mass[count - 1], 0.0, place[count - 1], p[node], 0.0)
            shift = np.int64(0)
            if kind == VALUE and extra[node] != 0:
                v, shift = _raise(v, extra[node])
            mass[count - 1], place[count - 1] = v, e + shift
        steps[count - 1, DONE] = node
    return count


# Values


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
            v, _, e = _multiply(v, 0.0, e, top / bottom, 0.0)
            return v, e
    for k in range(first, last):
        q = factors[P, k]
        if factors[FALL_SCALE, k] > 0.0 and x < ENDLESS:
            # In two steps: a small probability may be divided by a large number.
            v, _, e = _multiply(v, 0.0, e, 1.0 / (1.0 + x * factors[FALL_SCALE, k]), 0.0)
            q = max(q - x * factors[FALL, k], 0.0)
        else:
            q = lower_bound(mode, x, q, factors[GAIN, k], factors[FALL, k], factors[FALL_SCALE, k])
        v, _, e = _multiply(v, 0.0, e, q, 0.0)
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
            v, _, e = _multiply(v, 0.0, e, top / bottom, 0.0)
            return v, e
    for k in range(first, last):
        q = upper_bound(
            mode, x, factors[P, k], factors[GAIN, k], factors[RISE, k], factors[RISE_SCALE, k]
        )
        v, _, e = _multiply(v, 0.0, e, q, 0.0)
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
        v, d, e = _multiply(v, d, e, q, change)
    return v, d, e


@inner
def _move_two(mode, x, low, high, forms, nodes, stack, at, work, room):
    """Move the weights of two children: the higher one loses what it can."""
    shift, moved = work[2], work[3]
    one, other = at + low, at + high
    gain, p, q = stack[CHILD_GAIN, other], stack[WEIGHT, other], stack[WEIGHT, one]
    _set_form(mode, p, gain, nodes[other], forms, room, 0)
    _set_form(mode, q, gain, nodes[one], forms, room, 1)
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
def _mix(mode, near, x, first, count, rest, forms, stack, nodes, work, order, room, result):
    """Return the lower expectation of the children of a sum; write what is gained and lost."""
    scale = np.int64(-(2**40))
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
        pivot = shift_weights(mode, size, total, order, work)
    if near:
        v, d = 0.0, 0.0
        for k in range(count):
            part = shrink(scale - np.int64(stack[EXPONENT, first + k]))
            v += w[k] * stack[VALUE_AT, first + k] * part
            d += w[k] * stack[CHANGE, first + k] * part + shift[k] * (f[k] - pivot)
        if rest:
            d -= shift[count] * pivot
        return _keep_in_range(v, d, scale)
    gained, lost, top, bottom = 0.0, 0.0, scale, scale
    for k in range(count):
        # A large value of weight 0 must not hide a small one: each has its own exponent.
        part, place = moved[k], np.int64(stack[EXPONENT, first + k])
        if part < LOWEST:
            part, place = part * UPMOST, place - 1
        part *= stack[VALUE_AT, first + k]
        if part > 0.0:
            gained, top = _add(gained, top, part, place)
        else:
            lost, bottom = _add(lost, bottom, -part, place)
    result[0], result[1], result[2], result[3] = gained, lost, top, bottom
    v, e = _add(gained, top, -lost, bottom)
    return _keep_in_range(v, 0.0, e)


@inner
def _evaluate(mode, near, x, best, rival, machine):
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
                v = 1.0 if label == best else (-1.0 if label == rival else 0.0)
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
                v, d, e = _multiply(v, d, e, p_k, d_k)
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
                v, d, e = _keep_in_range(_join(mode, x, top, stack, result), 0.0, e)
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
            v, d, e = _keep_in_range(v * mass[i], d * mass[i], e + place[i])
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
def _look(mode, near, lead, lead_place, x, best, rival, machine):
    """Return a number that falls as x grows, and is positive as long as ĉ is ahead.

    That is log P − log N, or near a tie the share of the lead that is left.
    """
    v, d, e = _evaluate(mode, near, x, best, rival, machine)
    result = machine[-1]
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
    kept = np.zeros((3, longest))
    work, result = np.zeros((7, widest)), np.zeros(4)
    order, small = np.zeros(widest + 1, np.int64), np.zeros(4, np.int64)
    for row in range(len(starts) - 1):
        base, last, best = starts[row], starts[row + 1], prediction[row]
        found[row], tipping[row] = math.inf, -1
        _count_siblings(base, last, op, arity, nodes, siblings)
        count = _write_program(
            *(mode, base, last, op, arity, p, extra, part, feature, rows, parts, features),
            *(by_rows, forms, siblings, steps, mass, place, factors, gains),
        )
        machine = (
            *(base, count, steps, mass, place, factors, gains, p, extra, slot, kept),
            *(forms, class_probs, class_forms, stack, nodes, work, order, small, room, result),
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
    kept = np.zeros((3, longest))
    work, result = np.zeros((7, widest)), np.zeros(4)
    order, small = np.zeros(widest + 1, np.int64), np.zeros(4, np.int64)
    for row in range(len(starts) - 1):
        base, last, x = starts[row], starts[row + 1], sizes[row]
        _count_siblings(base, last, op, arity, nodes, siblings)
        count = _write_program(
            *(mode, base, last, op, arity, p, extra, part, feature, rows, parts, features),
            *(by_rows, forms, siblings, steps, mass, place, factors, gains),
        )
        machine = (
            *(base, count, steps, mass, place, factors, gains, p, extra, slot, kept),
            *(forms, class_probs, class_forms, stack, nodes, work, order, small, room, result),
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
