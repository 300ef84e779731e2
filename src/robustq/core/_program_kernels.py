"""Programs: what a row reaches, read once into the steps that give its value for any x.

Numbers that no ball moves are multiplied at once, a sum with one child is a factor, and so is a
leaf. Values are v · 2^(STEP · e).
"""

import math

import numpy as np

from robustq.kernels import inner

from ._scale_kernels import shrink
from .evidence import CLASS, FEATURE, PRODUCT, SAME, SUM, VALUE
from .modes import CHI2, EPSILON, ODDS_RATIO, PARI_MUTUEL, TV, USER
from .scale import LOWEST, STEP, UPMOST

__all__ = [
    "add",
    "count_siblings",
    "find_gain",
    "keep_in_range",
    "multiply",
    "set_form",
    "write_program",
]

# What a step of a program does, and the columns that describe it: what; which node, or row of the
# class table; how many children (of a copy, the step); its factors, from one to another; the node
# that it finishes.
PUSH, MIX, JOIN, COPY = range(4)
WHAT, NODE, CHILDREN, FIRST, LAST, DONE = range(6)
# The rows of what is known of factors.
P, GAIN, FALL, FALL_SCALE, RISE, RISE_SCALE = range(6)

NO_ROWS = 1e-150  # stands for no rows
UNBACKED = 0.1 / NO_ROWS  # gains above this belong to no rows


# Scaled values


@inner
def keep_in_range(v, d, e):
    """Keep a value and its change where neither underflows nor overflows."""
    size = max(abs(v), abs(d))
    if size < LOWEST and size > 0.0:
        return v * UPMOST, d * UPMOST, e - 1
    if size > UPMOST:
        return v * LOWEST, d * LOWEST, e + 1
    return v, d, e


@inner
def multiply(v, d, e, p, change):
    """Multiply a value by p, and what it is now by p + change."""
    if p < LOWEST and abs(change) < LOWEST:
        p, change, e = p * UPMOST, change * UPMOST, e - 1
    return keep_in_range(v * p, d * (p + change) + v * change, e)


@inner
def add(v, e, more, place):
    """Return the sum of two scaled values."""
    if more == 0.0:
        return v, e
    if v == 0.0:
        return more, place
    if place > e:
        return v * shrink(place - e) + more, place
    return v + more * shrink(e - place), e


@inner
def raise_to(v, exponent):
    """Return v · 2^exponent as a scaled value."""
    steps = exponent // STEP
    value, _, e = keep_in_range(v * 2.0 ** (exponent - steps * STEP), 0.0, steps)
    return value, e


# Programs


@inner
def find_gain(mode, part, feature, rows, parts, features, by_rows):
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
def set_form(mode, p, gain, node, forms, factors, at):
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
        # What no rows stand behind is gone at once, not merely small.
        fall = gain * p if gain >= UNBACKED else 0.0
    elif mode == TV:
        fall, rise = gain, gain
    elif mode == PARI_MUTUEL:
        fall, rise = gain * (1.0 - p), gain * p
    elif mode == CHI2:
        fall = gain * math.sqrt(p * (1.0 - p))
        rise = fall
    elif mode == ODDS_RATIO:
        fall_scale, rise, rise_scale = gain * (1.0 - p), gain * p, gain * p
        fall = gain * p * (1.0 - p) if gain >= UNBACKED else 0.0
    factors[FALL, at], factors[FALL_SCALE, at] = fall, fall_scale
    factors[RISE, at], factors[RISE_SCALE, at] = rise, rise_scale


@inner
def count_siblings(first, last, op, arity, waiting, siblings):
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
def write_program(
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
        gain = find_gain(mode, part[node], feature[node], rows[node], parts, features, by_rows)
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
            # Not every step finishes the child of a sum; what an earlier row left must not be read.
            steps[count, DONE] = node
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
            set_form(mode, p[node], gain, node, forms, factors, used)
            used += 1
            steps[count - 1, LAST] = used
        else:
            v, _, e = multiply(mass[count - 1], 0.0, place[count - 1], p[node], 0.0)
            shift = np.int64(0)
            if kind == VALUE and extra[node] != 0:
                v, shift = raise_to(v, extra[node])
            mass[count - 1], place[count - 1] = v, e + shift
        steps[count - 1, DONE] = node
    return count
