"""Roots of h, several side by side: see `_height_kernels`.

The search for one root is a chain of steps that wait for each other, so `LANES` of them are taken
side by side. No lane knows of its neighbours: one that is done stays where it is until all are.
What is true or false of lanes from step to step is a float, 0 where it is false: compilers keep
conditions in other registers than floats, and move them to and fro.
"""

import math

from robustq.kernels import inlined, inner, joined
from robustq.vectors import LANES, choose, fill, load, some, store

from ._height_kernels import chi2_prior, climb, find_cut, follow, weigh
from ._log_kernels import log_of

__all__ = ["KNOWN", "TINY", "begin", "solve"]

TINY = 1e-180  # a factor that small drowns in what stands for 0
MOST_STEPS = 40  # whoever takes more is left to others
# A step this small, relative, is the last but one: what is left of its cube, times what the slope
# is off by, which is of the order of its square, is below 1e-12.
ENOUGH = 2e-3
EXACTLY = 1e-11  # where h has a kink as near as a step is long
NARROW = 1e-12  # as a bracket, relative: whatever is in it is near enough
HUGE = 1e300
# What is known of each lane's row before its first step, and of what was found.
START, HIGH, GAP, TOP, ROOT, BEFORE, LEVEL = range(0, 7 * LANES, LANES)
KNOWN = 7 * LANES


@inlined
def _grow(t):
    """Return (e^t − 1)/t, roughly: e^(t/4) by its rational function of second order."""
    y = 0.25 * min(max(t, -16.0), 16.0)
    part = 1.0 / (1.0 - 0.5 * y + y * y * (1.0 / 12.0))
    half = y * part
    return 0.25 * part * (2.0 + half) * (2.0 + half * (2.0 + half))


@inner
def _approach(h, slope, bend, way):
    """Return how far below the pole the root is, `way` being how far the pole is away.

    There a lower factor vanishes and h is −log(1 − s/way) + g(s), with g(s) ≈ log(1 + p g′ s)/p
    as in `_aim`: at the root close to the pole, 1 − s/way = e^(h + g(way)).
    """
    steep = 1.0 / way
    left, p = slope - steep, bend - steep * steep
    ratio = -p * way / left
    rest = choose(
        abs(ratio) > 1e-3,
        left * left / -p * log_of(min(max(1.0 + ratio, 1e-3), 1e300)),
        left * way,
    )
    t = min(h + rest, -0.05)
    return way * (1.0 + t * _grow(t))


@joined
def _aim(here, h, slope, bend):
    """Return where the root seems to be, by a step of third order.

    The step of Newton for e^(ph), with p = −h″/h′² such that it has no bend here: it is straight
    where all factors of one side are equal, and nearly so where one of them vanishes, or is about
    to. With t = −ph, that is −h/h′ (e^t − 1)/t.
    """
    inverse = 1.0 / slope
    step = h * inverse
    return here - step * _grow(step * bend * inverse)


@inner
def begin(gap, slope, bend, end):
    """Return where the root seems to be, seen from 0."""
    there = _aim(fill(0.0), -gap, slope, bend)
    far = there > 0.9 * end
    if some(far):
        there = choose(far, end - _approach(-gap, slope, bend, end), there)
    inside = (there > 0.0) & (there < end)
    return choose(inside, there, choose(end < HUGE, 0.85 * end, fill(1.0)))


@inlined
def _move_prior(x, chi2, upper, lower):
    """Return what the prior adds to h and its derivatives under χ², and multiplies Π upper by."""
    gain, loss, slope, bend = chi2_prior(x, chi2, load(lower, 0), load(upper, 0))
    return log_of((1.0 + gain) / max(1.0 - loss, TINY)), slope, bend, 1.0 + gain


@joined
def _climb(x, base, ball, lists):
    """Return h and its derivatives."""
    (cut, chi2, falls), (upper, above, lower, below) = ball, lists
    if falls or cut < math.inf:
        h, slope, bend = follow(x, upper, above, cut)
    else:
        h, slope, bend = climb(x, upper, above)
    h -= base
    if below > 0:
        less, slower, straighter = follow(x, lower, below, cut)
        h, slope, bend = h - less, slope - slower, bend - straighter
    if chi2 > 0.0:
        more, steeper, bent, _ = _move_prior(x, chi2, upper, lower)
        h, slope, bend = h + more, slope + steeper, bend + bent
    return h, slope, bend


@joined
def _weigh(x, base, ball, lists):
    """Return h alone, and Π upper."""
    (cut, chi2, _), (upper, above, lower, below) = ball, lists
    h, up = weigh(x, upper, above, cut)
    h -= base
    if below > 0:
        less, _ = weigh(x, lower, below, cut)
        h -= less
    if chi2 > 0.0:
        more, _, _, factor = _move_prior(x, chi2, upper, lower)
        h, up = h + more, up * factor
    return h, up


@inner
def _find(x, low, high, end, fine, going, base, ball, lists):
    """Step until no lane that is going is far from its root.

    Return where they are, their brackets, how long the last step was, the slope that is expected
    there, and which lanes were lost: they took too many steps, or something underflowed.
    """
    steep, size, steps = fill(1.0), fill(0.0), 0
    lost = fill(0.0)
    while some(going > 0.0) and steps < MOST_STEPS:
        h, slope, bend = _climb(x, base, ball, lists)
        there = _aim(x, h, slope, bend)
        # Close to a pole.
        far = choose(h < 0.0, going, 0.0) * (there - (0.1 * x + 0.9 * end))
        if some(far > 0.0):
            there = choose(far > 0.0, end - _approach(h, slope, bend, end - x), there)
        least, most = choose(h < 0.0, x, low), choose(h < 0.0, high, x)
        # Beyond the bracket the root is likely close to its end.
        past = 0.15 * x + 0.85 * most
        short = choose(least > 0.0, 0.5 * least + 0.5 * x, 0.0625 * x)
        # At the pole itself derivatives overflow, and tell nothing.
        inside = (there >= least) & (there <= most) & (abs(bend) < HUGE)
        there = choose(inside, there, choose(h < 0.0, past, short))
        step = there - x
        expected = slope + bend * step
        step = abs(step)
        # It is neither where a derivative overflows.
        enough = choose(inside & (expected > 0.0) & (expected < HUGE), fine, 0.0)
        still = choose(step <= enough * min(there, end - there), 0.0, going)
        still = choose(most - least <= NARROW * x, 0.0, still)
        moves = going > 0.0
        lost = choose(h == h, lost, max(lost, going))  # noqa: PLR0124 (NaN)
        x, low, high = choose(moves, there, x), choose(moves, least, low), choose(moves, most, high)
        steep, size = choose(moves, expected, steep), choose(moves, step, size)
        going = choose(h == h, still, 0.0)  # noqa: PLR0124 (NaN)
        steps += 1
    return x, low, high, size, steep, max(lost, going)


@inner
def solve(guess, end, vague, keeps_zero, ball, lists, known):
    """Write the roots of all lanes, NaN where one was not found, and what is below them."""
    x, high, gap = load(known, START), min(load(known, HIGH), end), load(known, GAP)
    base = load(known, TOP)
    x = choose(x > 0.0, x, guess)
    # Nothing flips before ĉ itself has no probability left.
    settled = choose(gap == math.inf, keeps_zero, fill(0.0))
    x = choose(settled > 0.0, end, x)
    going = choose(max(vague, settled) > 0.0, 0.0, fill(1.0))
    x, low, high, size, steep, lost = _find(
        x, fill(0.0), high, end, fill(ENOUGH), going, base, ball, lists
    )
    if ball[0] < math.inf:
        # Where a cut is as near as the step was long, the slope may be another: go on.
        near = find_cut(x, lists[0], lists[1], ball[0])
        rough = choose(near * x <= 1.1 * size, going * (1.0 - lost), 0.0)
        if some(rough > 0.0):
            x, low, high, _, again, also = _find(
                x, low, high, end, fill(EXACTLY), rough, base, ball, lists
            )
            steep, lost = choose(rough > 0.0, again, steep), max(lost, also)
    h, up = _weigh(x, base, ball, lists)
    there = x - h / steep
    x = choose((there >= low) & (there <= high) & (going > 0.0), there, x)
    store(known, ROOT, choose(max(lost, vague) > 0.0, math.nan, x))
    store(known, BEFORE, low)
    store(known, LEVEL, up)
