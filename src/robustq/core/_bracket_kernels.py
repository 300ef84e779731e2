"""The root of a lead that falls, looked for step by step.

R(x) falls through 0 somewhere. In the first steps one point is looked at, with the slope of R
there; then two points are, on either side of where the root seems to be. It is found when it is
between two points as near to each other as digits are asked for: no kink of R can hide there.
"""

import math

from robustq.kernels import inner

__all__ = [
    "FACTS",
    "FARTHEST",
    "KNOTS",
    "TINY",
    "UNDECIDED",
    "add_pair",
    "add_point",
    "advance",
    "find_end",
    "has_vanished",
    "looks_at_two",
    "start",
]

# What is known of points: the highest that is below the root, the lowest above it, and the two that
# are next to it, on whichever side: x, R, and its slope if that is known.
KNOTS = LOW, HIGH, NEXT, OTHER = (0, 1, 2, 3)
KNOWN = X, LEAD, SLOPE = (0, 1, 2)
# What is known of a search: where it ends, how steep R is next to the root, how far the ends of
# the bracket were from each other, and how often in a row that was hardly less.
FACTS = TOP, STEEP, WIDE, MISSES = (0, 1, 2, 3)
UNDECIDED = -1.0
TINY = 1e-250  # leads below this are left to the recursion, which has more range
ENOUGH = 2e-10  # how near, relative, is near enough
# Slopes are taken from points that are nearer to each other, and to compare them with rounding,
# from points that are farther from each other than this, relative.
CLOSE, LOCAL = 1e-2, 1e-7
FARTHEST = 1e12  # roots beyond are left to the recursion
FIRST = 1.4  # where to look first, relative to a guess
MOST_MISSES = 2.0  # and then what is between the ends is divided
SINGLE = 4  # steps that look at one point


@inner
def looks_at_two(step):
    """Tell whether a step looks at two points; all rows take the same steps."""
    return step >= SINGLE


@inner
def _set_knot(knots, knot, x, lead, slope):
    knots[knot, X], knots[knot, LEAD], knots[knot, SLOPE] = x, lead, slope


@inner
def add_point(knots, x, lead, slope):
    """Keep a point where it is next to the root."""
    if lead > 0.0:
        if not x <= knots[LOW, X]:
            _set_knot(knots, LOW, x, lead, slope)
    elif not x >= knots[HIGH, X]:
        _set_knot(knots, HIGH, x, lead, slope)
    if not abs(lead) > abs(knots[NEXT, LEAD]):
        for column in range(len(KNOWN)):
            knots[OTHER, column] = knots[NEXT, column]
        _set_knot(knots, NEXT, x, lead, slope)
    elif not abs(lead) > abs(knots[OTHER, LEAD]):
        _set_knot(knots, OTHER, x, lead, slope)


@inner
def add_pair(knots, one, two, lead, other):
    """Keep two points where they are next to the root; what is between them tells the slope."""
    slope = (other - lead) / (two - one) if two - one < CLOSE * two else math.nan
    add_point(knots, one, lead, slope if lead != 0.0 else math.nan)
    add_point(knots, two, other, slope if other != 0.0 else math.nan)


@inner
def start(guess, top, lead, knots, facts):
    """Return the first point, given a guess; what is known at 0 is kept."""
    facts[TOP], facts[STEEP] = min(top, FARTHEST), 0.0
    facts[WIDE], facts[MISSES] = math.inf, 0.0
    for knot in range(len(KNOTS)):
        _set_knot(knots, knot, math.nan, math.nan, math.nan)
    add_point(knots, 0.0, lead, math.nan)
    return min(FIRST * guess, facts[TOP]) if guess < FARTHEST else min(1.0, facts[TOP])


@inner
def _follow(knots):
    """Return where x, as a smooth function of R, is when R is 0; and how wrong that might be.

    The function has the values and, where they are known, the slopes of two points next to it.
    """
    x, lead, slope = knots[NEXT, X], knots[NEXT, LEAD], knots[NEXT, SLOPE]
    other, steep = knots[OTHER, X], knots[OTHER, SLOPE]
    way = knots[OTHER, LEAD] - lead
    if math.isnan(slope):
        line = x - lead * (other - x) / way
        return line, 0.2 * abs(line - x)
    tangent = x - lead / slope
    bend = (other - x - way / slope) / (way * way)
    curve = tangent + bend * lead * lead
    if not abs(curve) < math.inf:
        return tangent, 0.1 * abs(tangent - x)
    twist = (1.0 / steep - 1.0 / slope - 2.0 * bend * way) / (way * way)
    best = curve - twist * lead * lead * (lead + way)
    if not abs(best) < math.inf:
        return curve, 0.1 * abs(curve - tangent)
    return best, 0.1 * abs(best - curve)


@inner
def find_end(knots, facts):
    """Return an x that is not below the root, and what rounding must be below: R, or its fall."""
    if math.isnan(knots[HIGH, X]):
        return facts[TOP], knots[LOW, LEAD]
    return knots[HIGH, X], facts[STEEP] * knots[HIGH, X]


@inner
def has_vanished(knots):
    """Return an x above the root where R is 0, and may have been before; or else infinity."""
    still = knots[HIGH, LEAD] == 0.0 and not knots[HIGH, SLOPE] < 0.0
    return knots[HIGH, X] if still else math.inf


@inner
def _divide(low, high, two):
    """Return points, or twice a point, that divide what lies between two ends."""
    parts = 3.0 if two else 2.0
    if 0.0 < 4.0 * low < high:
        ratio = math.exp(math.log(high / low) / parts)
        return low * ratio, high / ratio
    part = (high - low) / parts
    return low + part, high - part


@inner
def _look_around(guess, error, low, high, two):
    """Return a guess twice, or points on either side of it, within the ends."""
    far = max(error, ENOUGH * guess) if two else 0.0
    one, other = guess - far, guess + far
    return (
        one if one > low else low + 0.5 * (guess - low),
        other if other < high else high - 0.5 * (high - guess),
    )


@inner
def _look_farther(knots, top, two):
    """Return where the root seems to be, twice, or points on either side of it, seen from below."""
    low = knots[LOW, X]
    guess, _ = _follow(knots)
    way = min(max(guess - low, 0.1 * low), 3.0 * low) if guess > low else 1.5 * low
    far = 0.4 * way if two else 0.0
    return min(low + way - far, top), min(low + way + far, top)


@inner
def advance(step, beyond, facts, knots):
    """Return the root of R, if the knots show it, or else `UNDECIDED`; and where to look next.

    Infinity if it lies beyond the end, and NaN if `beyond` tells that the end is none. Whether
    rounding shows remains to be seen (`find_end`); and where R is 0, whether nothing is left that
    could lead, or only something too small for a float (`has_vanished`).
    """
    low, high, top, two = knots[LOW, X], knots[HIGH, X], facts[TOP], looks_at_two(step)
    if math.isnan(high):
        if low >= top:
            return math.nan if beyond else math.inf, 0.0, 0.0
        return UNDECIDED, *_look_farther(knots, top, two)
    if high - low > LOCAL * high:
        facts[STEEP] = (knots[LOW, LEAD] - knots[HIGH, LEAD]) / (high - low)
    guess, error = _follow(knots)
    # What was looked at may be the root itself, to the last digits.
    inside = low - ENOUGH * high < guess < high + ENOUGH * high
    guess = min(max(guess, low), high) if inside else 0.5 * (low + high)
    if high - low <= 4.0 * ENOUGH * high:
        return guess, 0.0, 0.0
    # A single point leaves one of the ends where it is.
    missed = (not inside or two) and high - low > 0.5 * facts[WIDE]
    facts[MISSES] = facts[MISSES] + 1.0 if missed else 0.0
    facts[WIDE] = high - low
    if not inside or facts[MISSES] > MOST_MISSES:
        facts[MISSES] = 0.0
        return UNDECIDED, *_divide(low, high, two)
    return UNDECIDED, *_look_around(guess, error, low, high, two)
