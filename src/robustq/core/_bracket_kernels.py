"""The root of a lead that falls, looked for step by step.

R(x) falls through 0 somewhere. Each step looks at one point, where the root seems to be, or a
little beyond: so it is soon between two points, and these come nearer. It is found when both are as
near as digits are asked for; or when the last one is, on the other side of the root than those that
had told where to look, and R was there what they had told. No kink of R between the two can move
the root by more: R would be higher there, or lower, unless the kink is just before. (Two of them,
that near, would have to make up for each other, to the last digit asked for.)
"""

import math

from robustq.kernels import inner

__all__ = [
    "ENOUGH",
    "FACTS",
    "FARTHEST",
    "HIGH",
    "KNOTS",
    "KNOWN",
    "LOW",
    "TINY",
    "UNDECIDED",
    "X",
    "add_point",
    "advance",
    "find_end",
    "has_vanished",
    "start",
]

# What is known of points, x and R: of the highest that is below the root, the lowest above it, and
# the three that are next to it, on whichever side.
KNOTS = LOW, HIGH, NEXT, OTHER, THIRD = (0, 1, 2, 3, 4)
KNOWN = X, LEAD = (0, 1)
# What is known of a search: where it ends, how steep R is next to the root, how far the ends of
# the bracket were from each other, and how often in a row that was hardly less; the geometric mean,
# twice, of what is for and against the prediction at 0, and where the root seemed to be before.
FACTS = TOP, STEEP, WIDE, MISSES, MEAN, BEFORE = (0, 1, 2, 3, 4, 5)
UNDECIDED = -1.0
TINY = 1e-250  # leads below this are left to the recursion, which has more range
ENOUGH = 1e-10  # how near, relative, is near enough: a size may be the square of x
LOCAL = 1e-7  # to compare slopes with rounding, points are farther from each other, relative
FARTHEST = 1e12  # roots beyond are left to the recursion
FIRST = 1.5  # where to look first, relative to a guess
MOST_MISSES = 2.0  # and then what is between the ends is divided
# From which error on, relative, to look beyond the root, and how far, relative to the error.
SURE, BEYOND = 1e-2, 0.3
NEAREST, LONGEST = 1.05, 4.0  # how far to look next, relative to a point below the root


@inner
def _set_knot(knots, knot, x, lead):
    knots[knot, X], knots[knot, LEAD] = x, lead


@inner
def add_point(knots, x, lead):
    """Keep a point where it is next to the root."""
    if lead > 0.0:
        if not x <= knots[LOW, X]:
            _set_knot(knots, LOW, x, lead)
    elif not x >= knots[HIGH, X]:
        _set_knot(knots, HIGH, x, lead)
    if lead == 0.0:
        # Nothing is left here, which does not tell where that began.
        return
    # The nearest come first; those that are not known yet are NaN.
    for knot in range(NEXT, THIRD + 1):
        if not abs(lead) >= abs(knots[knot, LEAD]):
            other, its_lead = knots[knot, X], knots[knot, LEAD]
            _set_knot(knots, knot, x, lead)
            x, lead = other, its_lead


@inner
def start(guess, top, positive, negative, knots, facts):
    """Return the first point, given a guess, and what is for and against a prediction at 0."""
    facts[TOP], facts[STEEP] = min(top, FARTHEST), 0.0
    facts[WIDE], facts[MISSES] = math.inf, 0.0
    facts[MEAN], facts[BEFORE] = 2.0 * math.sqrt(positive * negative), math.nan
    for knot in range(len(KNOTS)):
        _set_knot(knots, knot, math.nan, math.nan)
    add_point(knots, 0.0, positive - negative)
    return min(FIRST * guess, facts[TOP]) if guess < FARTHEST else min(1.0, facts[TOP])


@inner
def _follow(knots, mean):
    """Return where x, as a smooth function of R, is when R is 0; and how wrong that might be.

    The function goes through three points next to it, or two if that leaves the bracket. If no more
    are known, P e^(−ax) − N e^(ax) stands for R, that is 2√(PN) sinh(log √(P/N) − ax).
    """
    x, lead = knots[NEXT, X], knots[NEXT, LEAD]
    other, its_lead = knots[OTHER, X], knots[OTHER, LEAD]
    third, far = knots[THIRD, X], knots[THIRD, LEAD]
    if math.isnan(third):
        lead, its_lead = math.asinh(lead / mean), math.asinh(its_lead / mean)
    line = x - lead * (other - x) / (its_lead - lead)
    steep = (other - x) / (its_lead - lead)
    bend = ((third - other) / (far - its_lead) - steep) / (far - lead)
    curve = line + bend * lead * its_lead
    if knots[LOW, X] < curve and not curve >= knots[HIGH, X]:
        return curve, abs(curve - line)
    return line, BEYOND * abs(line - x)


@inner
def find_end(knots, facts):
    """Return an x that is not below the root, and what rounding must be below: R, or its fall."""
    high = knots[HIGH, X]
    if math.isnan(high):
        return facts[TOP], knots[LOW, LEAD]
    # As steep as from the nearest point that is not too near to tell.
    for knot in range(NEXT, THIRD + 1):
        way = abs(knots[knot, X] - high)
        if way > LOCAL * high:
            return high, abs(knots[knot, LEAD] - knots[HIGH, LEAD]) / way * high
    return high, facts[STEEP] * high


@inner
def has_vanished(knots):
    """Return an x above the root where R is 0, and may have been before; or else infinity."""
    return knots[HIGH, X] if knots[HIGH, LEAD] == 0.0 else math.inf


@inner
def _divide(low, high):
    """Return a point that divides what lies between two ends."""
    return math.sqrt(low * high) if 0.0 < 4.0 * low < high else 0.5 * (low + high)


@inner
def _look_farther(guess, low, top):
    """Return where the root seems to be, seen from below."""
    if not guess > low:
        return min(2.0 * low, top)
    return min(max(guess, NEAREST * low), LONGEST * low, top)


@inner
def _look_beyond(guess, error, low, high):
    """Return a point on the other side of a guess than the nearest end, if the guess is good."""
    if not error < SURE * guess:
        return guess
    far = max(BEYOND * error, ENOUGH * guess)
    point = guess + far if guess - low < high - guess else guess - far
    return point if low < point < high else 0.5 * (low + high)


@inner
def _is_told(x, guess, before, knots):
    """Tell whether R was at the last point, next to a guess, what those across the root told."""
    across = knots[NEXT, X] == x and (knots[NEXT, LEAD] > 0.0) != (knots[OTHER, LEAD] > 0.0)
    return across and max(abs(guess - before), abs(guess - x) / 4.0) <= ENOUGH * guess


@inner
def advance(x, beyond, facts, knots):
    """Return the root of R, if the knots show it, or else `UNDECIDED`; and where to look next.

    The last point was x.

    Infinity if it lies beyond the end, and NaN if `beyond` tells that the end is none. Whether
    rounding shows remains to be seen (`find_end`); and where R is 0, whether nothing is left that
    could lead, or only something too small for a float (`has_vanished`).
    """
    low, high, top = knots[LOW, X], knots[HIGH, X], facts[TOP]
    guess, error = _follow(knots, facts[MEAN])
    if math.isnan(high):
        if low >= top:
            return math.nan if beyond else math.inf, 0.0
        return UNDECIDED, _look_farther(guess, low, top)
    if high - low > LOCAL * high:
        facts[STEEP] = (knots[LOW, LEAD] - knots[HIGH, LEAD]) / (high - low)
    told = low < guess < high and _is_told(x, guess, facts[BEFORE], knots)
    facts[BEFORE] = guess
    if told:
        return guess, 0.0
    if high - low <= 4.0 * ENOUGH * high:
        return min(max(guess, low), high) if abs(guess) < math.inf else 0.5 * (low + high), 0.0
    missed = high - low > 0.5 * facts[WIDE]
    facts[MISSES] = facts[MISSES] + 1.0 if missed else 0.0
    facts[WIDE] = high - low
    if not low < guess < high or facts[MISSES] > MOST_MISSES:
        facts[MISSES] = 0.0
        return UNDECIDED, _divide(low, high)
    return UNDECIDED, _look_beyond(guess, error, low, high)
