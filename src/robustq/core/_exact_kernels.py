"""The recursion without a ball, in exact arithmetic: by how much one class is ahead of another.

A float is a whole number times a power of two, so sums and products of floats are too. Such a
number is held here as digits of `BITS` bits, each in a machine word with room for a few sums before
carries must be passed on; the numbers of a row stand on a stack.

Products of thousands of factors have thousands of digits, and take millions of steps. So of many
digits only the first ones are kept at first; it is counted how many of these cancel in sums. If
enough are left, all the others would not have changed the float that is told; if not, as in a tie,
all of them are computed.
"""

import math

import numpy as np
from numba import types

from robustq.kernels import (
    code_vector,
    float_matrix,
    float_matrix_out,
    float_vector,
    inner,
    int_vector,
    kernel,
)

from .evidence import CLASS, PRODUCT, SAME, SIDE, SUM, VALUE

__all__ = ["find_leads"]

BITS = 28
BASE = 1 << BITS
MASK = BASE - 1
PLACES = 3  # digits that one float needs at the most, wherever its point is
# What is known of a number: the place of its first digit, how many there are; and how many of those
# that are kept mean nothing, 0 where none was left out.
ABOUT = LOWEST, LENGTH, LOST = (0, 1, 2)
KEPT = 16  # digits, where there are many
MANY = 64
ENOUGH = 6  # digits that must be left: five are told, and products of many factors blur one more
ALL_LOST = 1 << 40

byte_vector = types.Array(types.int8, 1, "C", readonly=True)


@inner
def _split(x, exponent, digits):
    """Write the digits of |x| · 2^exponent, the lowest first; return the place of the first."""
    mantissa, power = math.frexp(abs(x))
    whole = np.int64(mantissa * 9007199254740992.0)
    power += exponent - 53
    first = power // BITS
    shift = power - first * BITS
    # 53 bits, moved up by less than 28, in digits of 28.
    low = (whole & MASK) << shift
    high = (whole >> BITS) << shift
    digits[0] = low & MASK
    high += low >> BITS
    digits[1] = high & MASK
    digits[2] = high >> BITS
    return first


@inner
def _carry(numbers, at, length):
    """Pass carries on, so that all digits but the last lie between 0 and the base."""
    carry = np.int64(0)
    for i in range(length):
        total = numbers[at, i] + carry
        if i < length - 1:
            numbers[at, i] = total & MASK
            carry = total >> BITS
        else:
            numbers[at, i] = total


@inner
def _top(about, at):
    """Return the place behind the last digit of a number."""
    return about[at, LOWEST] + about[at, LENGTH]


@inner
def _drop_below(numbers, about, at, place):
    """Leave out the digits of a number below a place."""
    length = about[at, LENGTH]
    gone = min(place - about[at, LOWEST], length)
    if gone <= 0:
        return
    for i in range(length - gone):
        numbers[at, i] = numbers[at, i + gone]
    about[at, LOWEST] += gone
    about[at, LENGTH], about[at, LOST] = length - gone, max(about[at, LOST], 1)


@inner
def _limit(numbers, about, at, most):
    """Keep no more than the first digits of a number; all, if `most` is 0."""
    if most > 0:
        _drop_below(numbers, about, at, _top(about, at) - most)


@inner
def _multiply(numbers, about, at, spare, x, exponent, digits, most):
    """Multiply a number by a float."""
    if x == 0.0:
        about[at, LENGTH] = about[at, LOST] = 0
    length = about[at, LENGTH]
    if length == 0:
        return
    first = _split(x, exponent, digits)
    for i in range(length + PLACES):
        numbers[spare, i] = 0
    negative = x < 0.0
    for i in range(length):
        own = -numbers[at, i] if negative else numbers[at, i]
        for k in range(PLACES):
            # Halves: sums of whole products would not fit.
            product = own * digits[k]
            numbers[spare, i + k] += product & MASK
            numbers[spare, i + k + 1] += product >> BITS
    for i in range(length + PLACES):
        numbers[at, i] = numbers[spare, i]
    about[at, LOWEST] += first
    about[at, LENGTH] = length + PLACES
    _carry(numbers, at, length + PLACES)
    _trim(numbers, about, at)
    _limit(numbers, about, at, most)


@inner
def _multiply_both(numbers, about, at, other, spare, most):
    """Multiply a number by another one."""
    length, more = about[at, LENGTH], about[other, LENGTH]
    if length == 0 or more == 0:
        # Nothing is nothing, if it is so to the last digit.
        sure = (length == 0 and about[at, LOST] == 0) or (more == 0 and about[other, LOST] == 0)
        about[at, LENGTH], about[at, LOST] = 0, 0 if sure else ALL_LOST
        return
    about[at, LOST] = max(about[at, LOST], about[other, LOST])
    for i in range(length + more + 1):
        numbers[spare, i] = 0
    for i in range(length):
        for k in range(more):
            product = numbers[at, i] * numbers[other, k]
            numbers[spare, i + k] += product & MASK
            numbers[spare, i + k + 1] += product >> BITS
    for i in range(length + more + 1):
        numbers[at, i] = numbers[spare, i]
    about[at, LOWEST] += about[other, LOWEST]
    about[at, LENGTH] = length + more + 1
    _carry(numbers, at, length + more + 1)
    _trim(numbers, about, at)
    _limit(numbers, about, at, most)


@inner
def _copy(numbers, about, at, other):
    """Make a number what another one is."""
    for i in range(about[other, LENGTH]):
        numbers[at, i] = numbers[other, i]
    for what in range(len(ABOUT)):
        about[at, what] = about[other, what]


@inner
def _trim(numbers, about, at):
    """Leave out zeros at both ends, and what a negative number borrows from beyond its size."""
    length = about[at, LENGTH]
    while length > 0 and numbers[at, length - 1] == 0:
        length -= 1
    while length > 1 and numbers[at, length - 1] == -1 and numbers[at, length - 2] > 0:
        numbers[at, length - 2] -= BASE
        length -= 1
    zeros = 0
    while zeros < length and numbers[at, zeros] == 0:
        zeros += 1
    if zeros > 0:
        for i in range(length - zeros):
            numbers[at, i] = numbers[at, i + zeros]
        about[at, LOWEST] += zeros
    about[at, LENGTH] = length - zeros


@inner
def _add(numbers, about, at, other, most):
    """Add another number to one."""
    if most > 0 and about[at, LENGTH] > 0 and about[other, LENGTH] > 0:
        # What lies far below the larger one is below its last digit.
        place = max(_top(about, at), _top(about, other)) - most - 1
        _drop_below(numbers, about, at, place)
        _drop_below(numbers, about, other, place)
    lost = max(about[at, LOST], about[other, LOST])
    empty = about[at, LENGTH] == 0
    if empty:
        _copy(numbers, about, at, other)
    about[at, LOST] = lost
    if empty or about[other, LENGTH] == 0:
        return
    low = min(about[at, LOWEST], about[other, LOWEST])
    high = max(_top(about, at), _top(about, other))
    length, shift = high - low + 1, about[at, LOWEST] - low
    old = about[at, LENGTH]
    for i in range(length - 1, -1, -1):
        numbers[at, i] = numbers[at, i - shift] if 0 <= i - shift < old else 0
    # The last digit of a number has a sign, and is no larger than the others.
    shift = about[other, LOWEST] - low
    for i in range(about[other, LENGTH]):
        numbers[at, i + shift] += numbers[other, i]
    about[at, LOWEST], about[at, LENGTH] = low, length
    _carry(numbers, at, length)
    _trim(numbers, about, at)
    _limit(numbers, about, at, most)


@inner
def _sum(numbers, about, at, count, most):
    """Add up some numbers, and count what they lose: the first digits of the largest cancel."""
    largest, above, below = np.int64(-ALL_LOST), False, False
    for k in range(count):
        if about[at + k, LENGTH] > 0:
            largest = max(largest, _top(about, at + k))
            is_negative = numbers[at + k, about[at + k, LENGTH] - 1] < 0
            above, below = above or not is_negative, below or is_negative
        if k > 0:
            _add(numbers, about, at, at + k, most)
    # Of one sign, nothing cancels.
    if about[at, LOST] > 0 and above and below:
        if about[at, LENGTH] == 0:
            about[at, LOST] = ALL_LOST
        else:
            # The first digit that is left may be smaller than the one it was.
            about[at, LOST] += max(largest - _top(about, at), 0) + 1


@inner
def _set_one(numbers, about, at):
    """Make a number 1."""
    numbers[at, 0] = 1
    about[at, LOWEST], about[at, LENGTH], about[at, LOST] = 0, 1, 0


@inner
def _round(numbers, about, at):
    """Return a number as v and a power of two."""
    length = about[at, LENGTH]
    value = 0.0
    for i in range(length - 1, max(length - 5, 0) - 1, -1):
        value = value * BASE + numbers[at, i]
    if length == 0:
        return 0.0, 0.0
    return value, float((about[at, LOWEST] + max(length - 5, 0)) * BITS)


@inner
def _measure(first, last, op, arity, p, extra, room):
    """Return how many digits the numbers of a row need at the most.

    A node that has another's value needs as many: those of every node are kept, without its weight.
    """
    low, high, own_low, own_high = room[0], room[1], room[2], room[3]
    top, widest = -1, 8
    for node in range(first, last):
        kind = op[node]
        if kind == PRODUCT or kind == SUM:
            top -= arity[node] - 1
            for k in range(1, arity[node]):
                if kind == PRODUCT:
                    low[top] += low[top + k]
                    high[top] += high[top + k]
                else:
                    low[top] = min(low[top], low[top + k])
                    high[top] = max(high[top], high[top + k])
            if kind == SUM:
                high[top] += 2
        else:
            top += 1
            low[top], high[top] = 0, 1
            if kind == CLASS and extra[node] >= 0:
                # Differences of probabilities: down to the last digit of a float.
                low[top], high[top] = -(1130 // BITS) - 2, 2
            elif kind == SAME:
                node_of = node - extra[node] - first
                low[top], high[top] = own_low[node_of], own_high[node_of]
        own_low[node - first], own_high[node - first] = low[top], high[top]
        if kind != CLASS and p[node] != 0.0:
            _, power = math.frexp(p[node])
            power += extra[node] if kind == VALUE else 0
            low[top] += (power - 53) // BITS
            high[top] += power // BITS + 2
        widest = max(widest, high[top] - low[top] + 2 * PLACES)
    return widest


@inner
def _put_class(evidence, node, class_probs, best, rival, numbers, about, top, spare, digits, most):
    """Put what a leaf of classes is worth on top: 1 for one class, and −1 for the other."""
    _, _, _, extra, slot = evidence
    _set_one(numbers, about, top)
    if extra[node] == SIDE:
        return
    if extra[node] < 0:
        label = slot[node]
        sign = 1.0 if label == best else (-1.0 if label == rival else 0.0)
        _multiply(numbers, about, top, spare, sign, 0, digits, most)
        return
    row, other = extra[node], spare + 1
    _multiply(numbers, about, top, spare, class_probs[row, best], 0, digits, most)
    _set_one(numbers, about, other)
    _multiply(numbers, about, other, spare, -class_probs[row, rival], 0, digits, most)
    _add(numbers, about, top, other, most)


@inner
def _find_lead(
    evidence, first, last, class_probs, best, rival, shelf, numbers, about, spare, digits, most
):
    """Compute the lead, which then stands at the bottom; keep so many digits, or all."""
    op, arity, p, extra, _ = evidence
    other, top = spare + 1, -1
    for node in range(first, last):
        kind = op[node]
        if kind == CLASS:
            top += 1
            _put_class(
                evidence, node, class_probs, best, rival, numbers, about, top, spare, digits, most
            )
        elif kind == PRODUCT or kind == SUM or kind == SAME:
            if kind == SUM:
                top -= arity[node] - 1
                _sum(numbers, about, top, arity[node], most)
            elif kind == PRODUCT:
                top -= extra[node]
                for k in range(1, extra[node] + 1):
                    _multiply_both(numbers, about, top, top + k, spare, most)
            else:
                top += 1
                _copy(numbers, about, top, other + shelf[node - extra[node] - first])
            if shelf[node - first] > 0:
                _copy(numbers, about, other + shelf[node - first], top)
            _multiply(numbers, about, top, spare, p[node], 0, digits, most)
        else:
            # A factor of the product whose class leaf stands on top.
            power = extra[node] if kind == VALUE else 0
            _multiply(numbers, about, top, spare, p[node], power, digits, most)


@inner
def _plan(evidence, first, last, shelf):
    """Return how many numbers stand on the stack at most, and how many nodes others are like.

    Where those stand is written on the shelf: 0 for the others.
    """
    op, arity, _, extra, _ = evidence
    deepest, depth, shared = 0, 0, 0
    for node in range(last - first):
        shelf[node] = 0
    for node in range(first, last):
        # Features go into the number of the class they stand with.
        if op[node] == CLASS or op[node] == SAME:
            depth += 1
        elif op[node] == SUM:
            depth -= arity[node] - 1
        elif op[node] == PRODUCT:
            depth -= extra[node]
        deepest = max(deepest, depth)
        if op[node] == SAME and shelf[node - extra[node] - first] == 0:
            shared += 1
            shelf[node - extra[node] - first] = shared
    return deepest, shared


@kernel(
    types.void(
        *(int_vector, byte_vector, code_vector, float_vector, int_vector, code_vector),
        *(float_matrix, int_vector, float_matrix, float_matrix_out, float_matrix_out),
    ),
    allocates=True,
)
def find_leads(
    starts,
    op,
    arity,
    p,
    extra,
    slot,
    class_probs,
    prediction,
    wanted,
    leads,
    places,
):
    """Write by how much a class of each row is ahead of others, as v · 2^place, exact but for v.

    Parameters
    ----------
    starts … slot : of the evidence
    class_probs : the class table
    prediction : (rows,), the class
    wanted : (rows, classes), not 0 where the lead is wanted
    leads, places : (rows, classes), written where it is wanted
    """
    evidence = op, arity, p, extra, slot
    for row in range(len(starts) - 1):
        first, last, best = starts[row], starts[row + 1], prediction[row]
        room = np.zeros((4, last - first + 1), np.int64)
        width = _measure(first, last, op, arity, p, extra, room)
        shelf = room[0]
        deepest, shared = _plan(evidence, first, last, shelf)
        spare, digits = deepest + 1, np.zeros(PLACES, np.int64)
        about = np.zeros((deepest + 3 + shared, len(ABOUT)), np.int64)
        few = np.zeros((len(about), 2 * (KEPT + PLACES) + 2), np.int64)
        numbers = few[:, :0]
        for rival in range(wanted.shape[1]):
            if wanted[row, rival] == 0.0 or rival == best:
                continue
            pair, sure = (best, rival, shelf), False
            if width > MANY:
                _find_lead(
                    evidence, first, last, class_probs, *pair, few, about, spare, digits, KEPT
                )
                sure = about[0, LOST] <= KEPT - ENOUGH
            if sure:
                leads[row, rival], places[row, rival] = _round(few, about, 0)
                continue
            if numbers.shape[1] == 0:
                numbers = np.zeros((len(about), width + 2 * PLACES + 2), np.int64)
            _find_lead(evidence, first, last, class_probs, *pair, numbers, about, spare, digits, 0)
            leads[row, rival], places[row, rival] = _round(numbers, about, 0)
