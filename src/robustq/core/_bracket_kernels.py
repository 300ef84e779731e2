"""The root of a height that falls, between two of several points that are looked at together.

Of each x P and N are given, and h = log P − log N falls through 0 somewhere. The two
points next to the root are kept; the next points stand around where x, as a smooth function of h,
says that it is. When bends of h next to the root leave no room for a kink that would show, what
such a curve says is the root; or else when the two points are near enough.
"""

import math

import numpy as np

from robustq.kernels import inner
from robustq.vectors import LANES

__all__ = [
    "FACTS",
    "FARTHEST",
    "KNOTS",
    "SIZE",
    "SUMS",
    "TINY",
    "UNDECIDED",
    "N",
    "P",
    "advance",
    "has_vanished",
    "look_first",
]

# The rows of what is summed over trees: what is positive, what is negative, and the sizes.
SUMS = P, N, SIZE = (0, 1, 2)
# What is known next to the root: two points below and two above; of each x, h, and R.
KNOTS = BELOW, LOW, HIGH, ABOVE = (0, 1, 2, 3)
X, HEIGHT, LEAD = range(3)
# What is known of a search: where it ends, how steep R is next to the root, how far the ends of the
# bracket were from each other, and whether there is an upper one.
FACTS = TOP, STEEP, WIDE, BOUNDED = (0, 1, 2, 3)
UNDECIDED = -1.0
TINY = 1e-250  # sums below this are left to the recursion, which has more range
ENOUGH = 1e-10  # how near, relative, is near enough
SMOOTH = 1e-10  # how much, relative, a kink may move the root that a smooth curve has
LOCAL = 1e-7  # slopes are taken from points that are farther from each other
FARTHEST = 1e12  # roots beyond are left to the recursion
# Where to look first, relative to where the root would be if logarithms were straight.
FIRST = np.array([0.7, 1.05, 1.2, 1.32, 1.45, 1.6, 1.9, 3.0])
# And then: how far from where the root seems to be, relative to how wrong that might be, but never
# farther than these shares of the way to the ends.
ERRORS = np.array([0.2, 1.0, 4.0, 16.0])
WAYS = np.array([0.2, 0.4, 0.6, 0.8])
AROUND = 6  # points that a curve goes through


@inner
def look_first(limit, first, xs, knots, facts):
    """Set the first points; what is known at 0 stands below them."""
    top = min(limit, FARTHEST)
    facts[TOP], facts[STEEP], facts[WIDE], facts[BOUNDED] = top, 0.0, math.inf, 0.0
    for knot in range(len(KNOTS)):
        knots[knot, HEIGHT] = math.nan
    positive, fall, negative, rise = first[0], first[1], first[2], first[3]
    height = math.log(positive / negative)
    knots[LOW, X], knots[LOW, HEIGHT], knots[LOW, LEAD] = 0.0, height, positive - negative
    guess = height / (fall / positive + rise / negative)
    if not guess < FARTHEST:
        guess = 1.0
    for lane in range(LANES):
        xs[lane] = min(FIRST[lane] * guess, top)


@inner
def _height(positive, negative):
    if positive > 0.0 and negative > 0.0:
        return math.log(positive / negative)
    return math.inf if positive > 0.0 else -math.inf


@inner
def _set_knot(knots, knot, xs, sums, lane):
    positive, negative = sums[P, lane], sums[N, lane]
    knots[knot, X], knots[knot, LEAD] = xs[lane], positive - negative
    knots[knot, HEIGHT] = _height(positive, negative)


@inner
def _move_knot(knots, knot, to):
    for column in range(3):
        knots[to, column] = knots[knot, column]


@inner
def _narrow(xs, sums, knots):
    """Keep the points next to the root; return the first lane that has flipped, or how many."""
    flipped = 0
    while flipped < LANES and sums[P, flipped] > sums[N, flipped]:
        flipped += 1
    if flipped > 0:
        if flipped > 1:
            _set_knot(knots, BELOW, xs, sums, flipped - 2)
        else:
            _move_knot(knots, LOW, BELOW)
        _set_knot(knots, LOW, xs, sums, flipped - 1)
    if flipped < LANES:
        if flipped < LANES - 1:
            _set_knot(knots, ABOVE, xs, sums, flipped + 1)
        else:
            _move_knot(knots, HIGH, ABOVE)
        _set_knot(knots, HIGH, xs, sums, flipped)
    return flipped


@inner
def _between(knots, first, last, left, right):
    """Return the next guess of Neville's scheme for x at h = 0."""
    one, two = knots[first, HEIGHT], knots[last, HEIGHT]
    return (one * right - two * left) / (one - two)


@inner
def _guess(knots):
    """Return where the root seems to be, and how wrong that might be, from the knots."""
    low, high = knots[LOW, X], knots[HIGH, X]
    line = _between(knots, LOW, HIGH, low, high)
    before = _between(knots, BELOW, LOW, knots[BELOW, X], low)
    after = _between(knots, HIGH, ABOVE, high, knots[ABOVE, X])
    left = _between(knots, BELOW, HIGH, before, line)
    right = _between(knots, LOW, ABOVE, line, after)
    guess, other = _between(knots, BELOW, ABOVE, left, right), left
    if not low < guess < high:
        # What is infinite, or not there, is left out.
        guess, other = left, line
        if not low < guess < high:
            guess = right
    if low < guess < high and low < other < high:
        return guess, abs(guess - other)
    if low < line < high:
        return line, 0.25 * (high - low)
    middle = math.sqrt(low) * math.sqrt(high) if 0.0 < 4.0 * low < high else 0.5 * (low + high)
    return middle, high - low


@inner
def _follow_curve(xs, sums, first, guesses, heights):
    """Return where a curve through some points is 0, and how far curves through fewer differ."""
    for k in range(AROUND):
        guesses[k] = xs[first + k]
        heights[k] = _height(sums[P, first + k], sums[N, first + k])
    error = 0.0
    for far in range(1, AROUND):
        if far == AROUND - 2:
            error = 0.3 * max(abs(guesses[1] - guesses[0]), abs(guesses[2] - guesses[1]))
        if far == AROUND - 1:
            error = max(error, abs(guesses[1] - guesses[0]))
        for k in range(AROUND - far):
            one, two = heights[k], heights[k + far]
            guesses[k] = (one * guesses[k + 1] - two * guesses[k]) / (one - two)
    return guesses[0], error


@inner
def _find_kink(xs, sums, first, flipped, leads):
    """Return how far a kink next to the root might move it, at most.

    A slope that changes by d between the two points next to the root changes one of the two second
    differences that know of it by d / 2, divided by the distance of three points; and so third
    differences differ by that, divided by the distance of four, whatever smooth bends there are.
    """
    for k in range(AROUND):
        positive, negative = sums[P, first + k], sums[N, first + k]
        leads[k] = (positive - negative) / (positive + negative)
    steep = 0.0
    for far in range(1, 4):
        for k in range(AROUND - far):
            leads[k] = (leads[k + 1] - leads[k]) / (xs[first + k + far] - xs[first + k])
        if far == 1:
            steep = leads[flipped - 1 - first]
    most, least = leads[0], leads[0]
    for k in range(1, AROUND - 3):
        most, least = max(most, leads[k]), min(least, leads[k])
    three = max(xs[flipped] - xs[flipped - 2], xs[flipped + 1] - xs[flipped - 1])
    four = 0.0
    for k in range(max(first, flipped - 3), min(first + AROUND - 3, flipped)):
        four = max(four, xs[k + 3] - xs[k])
    return 4.0 * (most - least) * three * four * (xs[flipped] - xs[flipped - 1]) / -steep


@inner
def _surround(guess, error, low, high, xs):
    """Set points around a guess, on both sides, ever farther away."""
    for k in range(LANES // 2):
        far = max(ERRORS[k] * error, (1 << k) * ENOUGH * guess)
        xs[LANES // 2 - 1 - k] = guess - min(far, WAYS[k] * (guess - low))
        xs[LANES // 2 + k] = guess + min(far, WAYS[k] * (high - guess))


@inner
def _divide(low, high, xs):
    """Set points that divide what lies between two ends."""
    ratio = high / low if 0.0 < 4.0 * low < high else 1.0
    for k in range(LANES):
        share = (k + 1.0) / (LANES + 1.0)
        xs[k] = low * ratio**share if ratio > 1.0 else low + share * (high - low)


@inner
def _go_on(near, beyond, facts, xs, sums, knots):
    """Look farther away; return infinity if the root is beyond the end."""
    low, top = knots[LOW, X], facts[TOP]
    if low >= top:
        clear = knots[LOW, LEAD] > near * sums[SIZE, LANES - 1] and not beyond
        return math.inf if clear else math.nan
    for lane in range(LANES):
        xs[lane] = min(low * 2.0 ** (lane + 1), top)
    return UNDECIDED


@inner
def has_vanished(knots):
    """Return an x above the root where P and N are 0; or infinity if that is not what it is."""
    nothing = knots[HIGH, HEIGHT] == -math.inf and knots[HIGH, LEAD] == 0.0
    return knots[HIGH, X] if nothing else math.inf


@inner
def advance(near, beyond, facts, xs, sums, knots, room):
    """Return the root of h, if what was looked at shows it; or else look elsewhere: `UNDECIDED`.

    Infinity if it lies beyond the end; NaN where rounding would show, or numbers leave their range,
    or `beyond` tells that the end is none. Where P and N are 0, nothing is left that could lead:
    whether they are, or only too small for a float, remains to be seen (`has_vanished`).
    """
    for lane in range(LANES):
        if 0.0 < max(sums[P, lane], sums[N, lane]) < TINY:
            return math.nan
    flipped = _narrow(xs, sums, knots)
    low, high = knots[LOW, X], knots[HIGH, X]
    if flipped < LANES:
        facts[BOUNDED] = 1.0
    if facts[BOUNDED] == 0.0:
        return _go_on(near, beyond, facts, xs, sums, knots)
    if high - low > LOCAL * high:
        facts[STEEP] = (knots[LOW, LEAD] - knots[HIGH, LEAD]) / (high - low)
    clear = facts[STEEP] * high > near * sums[SIZE, min(flipped, LANES - 1)]
    if high - low <= 3.0 * ENOUGH * high:
        return 0.5 * (low + high) if clear else math.nan
    guess, error = math.nan, math.inf
    if 2 <= flipped <= LANES - 2:
        first = min(max(flipped - AROUND // 2, 0), LANES - AROUND)
        guess, error = _follow_curve(xs, sums, first, room[0], room[1])
        kink = _find_kink(xs, sums, first, flipped, room[0])
        if low < guess < high and kink <= SMOOTH * high:
            return guess if clear else math.nan
    if not (low < guess < high and error < high - low):
        guess, error = _guess(knots)
    if high - low > 0.125 * facts[WIDE]:
        _divide(low, high, xs)
    else:
        _surround(guess, error, low, high, xs)
    facts[WIDE] = high - low
    return UNDECIDED
