"""Roots of h, several side by side: see `_height_kernels`.

The search for one root is a chain of steps that wait for each other, so `WIDE` of them are taken
side by side. No lane knows of its neighbours: one that is done stays where it is until all are.
What is true or false of lanes from step to step is a float, 0 where it is false: compilers keep
conditions in other registers than floats, and move them to and fro.
"""

import math

from robustq.kernels import inlined, inner, joined
from robustq.vectors import WIDE, choose, how_many, some, store
from robustq.vectors import fill_wide as fill
from robustq.vectors import load_wide as load

from ._height_kernels import climb, is_smooth
from ._inverse_kernels import about_inverse
from ._log_kernels import about_log, log_of

__all__ = ["KNOWN", "aim", "approach", "begin", "sharpen", "solve"]

# After the first steps who is not done waits, so that others need not, unless they are many; who
# takes more than the most is left to others. With whom a row goes changes nothing in its steps.
FIRST_STEPS, MOST_STEPS, FEW = 2, 40, 3
# What may be left of a step, relative. Steps are of third order, and what is left is less than the
# cube of a step relative to the distance of the nearest pole of h, if that is farther away.
LEFT = 1e-10
EXACTLY = 1e-11  # as a step, where h may have kinks
NARROW = 1e-12  # as a bracket, relative: whatever is in it is near enough
HUGE, TINY = 1e300, 1e-300
STEEPEST = 16.0  # exponents beyond this are looked at no further
NEAREST = 1.0 - 0.5 * NARROW  # of where a factor vanishes: nobody looks nearer
# What is known of each lane's row: where it starts, the bracket, how many steps it took; and what
# was found. What is below the root, and above it, is written too.
START, LOW, HIGH, TAKEN, GAP, TOP, ROOT, ABOVE, LEVEL, GOING = range(0, 10 * WIDE, WIDE)
KNOWN = 10 * WIDE


@inlined
def _grow(t):
    """Return (e^t − 1)/t, roughly: e^(t/4) by its rational function of second order."""
    y = 0.25 * min(max(t, -STEEPEST), STEEPEST)
    part = about_inverse(1.0 - 0.5 * y + y * y * (1.0 / 12.0))
    half = y * part
    return 0.25 * part * (2.0 + half) * (2.0 + half * (2.0 + half))


@inner
def approach(h, slope, bend, way):
    """Return how far below the pole the root is, `way` being how far the pole is away.

    There k lower factors vanish, or nearly k, and h is −k log(1 − s/way) + g(s), with g(s) ≈
    log(1 + p g′ s)/p as in `aim`: at the root close to the pole, 1 − s/way = e^((h + g(way))/k).
    Very close to it g is nothing, and what slopes tell of it is their rounding. The step is never
    so short that it could be taken for the last.
    """
    steep = 1.0 / way
    count = max(bend * way * way, 1.0)
    left, p = slope - count * steep, bend - count * steep * steep
    ratio = -p * way / left
    rest = choose(
        abs(ratio) > 1e-3,
        left * left / -p * log_of(min(max(1.0 + ratio, 1e-3), 1e300)),
        left * way,
    )
    t = (h + choose(left * way > 1e-6, rest, 0.0)) / count
    t = min(max(t, -STEEPEST), -0.2)
    return way * (1.0 + t * _grow(t))


@joined
def aim(here, h, slope, bend):
    """Return where the root seems to be, by a step of third order.

    The step of Newton for e^(ph), with p = −h″/h′² such that it has no bend here: it is straight
    where all factors of one side are equal, and nearly so where one of them vanishes, or is about
    to. With t = −ph, that is −h/h′ (e^t − 1)/t.
    """
    inverse = about_inverse(slope)
    step = h * inverse
    return here - step * _grow(step * bend * inverse)


@inner
def begin(gap, slope, bend, end):
    """Return where the root seems to be, seen from 0; never next to the end."""
    there = aim(fill(0.0), -gap, slope, bend)
    inside = (there > 0.0) & (there < 0.9 * end)
    return choose(inside, there, choose(end < HUGE, 0.9 * end, fill(1.0)))


@inlined
def _stand_in(rates):
    """Return the rate of equal factors that stand for all but the fastest, and how many."""
    total, squares, fastest = rates
    total = max(total - fastest, 1e-6 * fastest + TINY)
    rate = max(squares - fastest * fastest, 1e-6 * total * total) * about_inverse(total)
    return rate, total * about_inverse(rate)


@inner
def sharpen(x, gap, rises, falls, falling, end):
    """Return where the root seems to be, seen from a guess, as if there were few factors.

    Of the upper ones, and the lower ones if they fall, two stand for all: the fastest, and equal
    ones that have the same first two derivatives at 0 as the others. Rates are given by their sum,
    that of their squares, and the largest.
    """
    rate, count = _stand_in(rises)
    some_up, fast_up = 1.0 + x * rate, 1.0 + x * rises[2]
    steep, fast = rate * about_inverse(some_up), rises[2] * about_inverse(fast_up)
    h, slope = count * about_log(some_up) - gap, count * steep + fast
    bend, ratio = -(count * steep * steep + fast * fast), fast_up
    if falling:
        rate, count = _stand_in(falls)
        some_low, per_low = 1.0 - x * rate, about_inverse(1.0 - x * falls[2])
        steep, fast = rate * about_inverse(some_low), falls[2] * per_low
        h, slope = h - count * about_log(some_low), slope + count * steep + fast
        bend, ratio = bend + (count * steep * steep + fast * fast), ratio * per_low
    h += about_log(ratio)
    there = aim(x, h, slope, bend)
    far = (h < 0.0) & (there > 0.1 * x + 0.9 * end)
    if some(far):
        there = choose(far, end - approach(h, slope, bend, end - x), there)
    return choose((there > 0.0) & (there < end), there, x)


@inner
def solve(guess, end, kink, vague, keeps_zero, cut, chi2, lists, few, known):
    """Write the roots of all lanes, NaN where there is none, what is around them, and who goes on.

    Lanes that are done stay where they are until all are, or only a few go on.
    """
    nearest, base, taken = NEAREST * end, load(known, TOP), load(known, TAKEN)
    x, low, high, whole = min(guess, nearest), load(known, LOW), load(known, HIGH), fill(0.0)
    high = min(high, end)
    # Nothing flips before ĉ itself has no probability left.
    settled = choose(load(known, GAP) == math.inf, keeps_zero, fill(0.0))
    x = choose(settled > 0.0, end, x)
    going, lost, steps = choose(max(vague, settled) > 0.0, 0.0, fill(1.0)), vague, 0
    while how_many(going > 0.0) > (few if steps >= FIRST_STEPS else 0):
        h, slope, bend, up = climb(x, base, cut, chi2, lists)
        there = aim(x, h, slope, bend)
        # Close to a pole.
        far = choose(h < 0.0, going, 0.0) * (there - (0.1 * x + 0.9 * end))
        if some(far > 0.0):
            there = choose(far > 0.0, end - approach(h, slope, bend, end - x), there)
        least, most = choose(h < 0.0, x, low), choose(h < 0.0, high, x)
        # Beyond the bracket the root is likely close to its end.
        past = 0.15 * x + 0.85 * most
        short = choose(least > 0.0, 0.5 * least + 0.5 * x, 0.0625 * x)
        # At the pole itself derivatives overflow, and tell nothing.
        inside = (there >= least) & (there <= most) & (abs(bend) < HUGE) & (slope < HUGE)
        there = min(choose(inside, there, choose(h < 0.0, past, short)), nearest)
        size, way = abs(there - x), min(there, end - there)
        smooth = max(there, x) < kink
        small = inside & (size < 0.1 * way) & (size * size * size < LEFT * there * way * way)
        if some(small & ~smooth & (going > 0.0)):
            smooth = smooth | is_smooth(min(there, x), max(there, x), cut, lists)
        enough = (small & smooth) | (inside & (size <= EXACTLY * way))
        still = choose(enough, 0.0, going)
        still = choose(most - least <= NARROW * x, 0.0, still)
        moves = going > 0.0
        lost = choose(h == h, lost, max(lost, going))  # noqa: PLR0124 (NaN)
        x, low, high = choose(moves, there, x), choose(moves, least, low), choose(moves, most, high)
        whole, taken = choose(moves, up, whole), choose(moves, taken + 1.0, taken)
        lost = choose(taken >= MOST_STEPS, max(lost, still), lost)
        going = choose(lost > 0.0, 0.0, still)
        steps += 1
    store(known, ROOT, choose(lost > 0.0, math.nan, x))
    store(known, GOING, going)
    store(known, TAKEN, taken)
    store(known, LOW, low)
    store(known, ABOVE, high)
    store(known, LEVEL, whole)
