"""Means of products, one for each class, compared by a kernel: several rows side by side.

See `_mean_height_kernels` for h, which never decreases: the robustness against a rival is its root.
As in `_root_kernels`, no lane knows of its neighbours, and what is true or false of lanes from step
to step is a float.
"""

import math
from typing import TYPE_CHECKING

import numpy as np
from numba import types

from robustq.kernels import (
    code_matrix,
    float_matrix,
    float_vector_out,
    inner,
    int_vector,
    int_vector_out,
    joined,
    kernel,
)
from robustq.vectors import WIDE, WIDTH, choose, some, store
from robustq.vectors import fill_wide as fill
from robustq.vectors import load_wide as load

from ._height_kernels import L, P
from ._mean_height_kernels import (
    ABOUT,
    LINE,
    VANISHED,
    climb,
    foresee,
    lay_out,
    lay_out_prior,
)
from ._place_kernels import CLASS, OWN, PLACES, RIVAL
from ._root_kernels import aim, approach
from .room import make_floats, make_indices

__all__ = ["make_room", "search"]

if TYPE_CHECKING:
    from robustq.arrays import Floats, Indices

singles = types.Array(types.float32, 2, "C", readonly=True)
# Logarithms that are closer, for each factor, need more digits: rounding would show in h.
CLOSE = 1e10 * 2.0**-53
BEHIND = -1e-9  # a rival whose h is below this, where another one flips, comes later
FLOOR = 1.0 - 1e-3  # who reaches less than this of what it does, as a few digits have it, too
ENOUGH = 1e-12  # how near, relative, is near enough
LEFT = 1e-13  # what may be left of a step of third order, relative
MAX_STEPS = 200
SHORTER = 0.8  # a step is, than the one before the last one; else they go to and fro
ALL_BUT_ONE = 1.0 - 1e-5
HUGE = 1e290
# What is known of each lane: by how much its runner-up is behind, what h has beside the factors,
# and what was found.
GAP, BASE, FOUND, ROOT = range(0, 4 * WIDE, WIDE)


def make_room(
    classes: int, terms: int, features: int, *, fractional: bool
) -> "tuple[Indices, Floats, Floats, Floats, Floats, Floats]":
    """Return arrays to work in.

    These are where factors stand; what is known of lanes, of their rivals, and of terms; and the
    factors of both sides.
    """
    size = terms * features * (LINE + WIDE * fractional)
    return (
        *(make_indices(PLACES + 2 * WIDE * features), make_floats(4 * WIDE)),
        *(make_floats(classes * WIDE), make_floats(terms * ABOUT)),
        *(make_floats(size), make_floats(size)),
    )


# Rows come


@inner
def _choose_rows(first, terms, joint, factors, prediction, runner_up, whole, known):
    """Let lanes have rows, each with its runner-up; return how many terms they have at most.

    Those beyond the last do what it does. Where rounding would show, or there is nothing to compare
    with, the gap is NaN.
    """
    count = np.int64(0)
    for lane in range(WIDE):
        i = min(first + lane, len(joint) - 1)
        best, c = prediction[i], max(runner_up[i], 0)
        score, gap = joint[i, best], joint[i, best] - joint[i, c]
        sound = runner_up[i] >= 0 and CLOSE * (factors + abs(score)) <= gap < math.inf
        known[GAP + lane] = gap if sound else math.nan
        whole[CLASS + lane] = c
        whole[OWN + lane], whole[RIVAL + lane] = best * WIDTH + L, c * WIDTH + P
        count = max(count, terms[i])
    return count


@joined
def _is_near(x, there, since, until, last):
    """Tell whether a step that leads there is the last.

    As long as h is smooth, what is left of a step is less than its cube. Next to the last end all
    steps are small: there they tell nothing of what is left.
    """
    size, way = abs(there - x), min(there, until - there)
    smooth = (min(x, there) >= since) & (max(x, there) < until) & (size < 0.1 * way)
    enough = size <= ENOUGH * min(there, last - there)
    return enough | (smooth & (size * size * size <= LEFT * there * way * way))


@inner
def _search(x, known, begins, last, kink, form, shape, prior, about, upper, lower):
    """Return the roots of h, infinity if they are beyond the limit, NaN where digits are missing.

    x is where they are looked for first, 0 when a search begins: then the base is found too. Else a
    rival that is behind there has no root. Who is not asked for has no gap.
    """
    limit, falls = form[1], form[3]
    low, high, seen = fill(0.0), min(last, limit), fill(0.0)
    gap, base, root = load(known, GAP), load(known, BASE), fill(math.nan)
    going = choose((gap == gap) & (last == last), fill(1.0), 0.0)  # noqa: PLR0124 (NaN)
    longest, size, steps = fill(math.inf), fill(math.inf), 0
    while steps < MAX_STEPS and some(going > 0.0):
        level, slope, bend, since, until = climb(x, form, shape, prior, about, upper, lower)
        if begins and steps == 0:
            base = fill(0.0)
            if not falls:
                base = level + gap
            store(known, BASE, base)
        h = level - base
        below = h < 0.0
        low, high, seen = choose(below, x, low), choose(below, high, x), choose(below, seen, 1.0)
        never, close = below & (x >= limit), high - low <= ENOUGH * high
        if steps == 0 and not begins:
            never = h < BEHIND
        # It never was above 0, and nobody has looked at the end yet.
        unseen = close & (seen == 0.0) & (high == limit)
        # Of a search that begins, the end of the first term is what matters; then, of the last.
        until, there = min(until, last), aim(x, h, slope, bend)
        pole = until if begins and steps == 0 else last
        far = below & (there > 0.1 * x + 0.9 * pole)
        if some(far):
            there = choose(far, pole - approach(h, slope, bend, pole - x), there)
        inside = (h < VANISHED) & (slope > 0.0) & (slope < HUGE) & (abs(bend) < HUGE)
        inside = inside & (there >= low) & (there <= high)
        near = inside & _is_near(x, there, since, min(until, kink), last)
        still = choose(near | ((h == 0.0) | (close & ~unseen)), 0.0, going)
        still = choose((h == h) & ~never, still, 0.0)  # noqa: PLR0124 (NaN)
        told = choose(near, there, x)
        told = choose(never, math.inf, choose(h == h, told, math.nan))  # noqa: PLR0124 (NaN)
        root, going = choose((going > 0.0) & (still <= 0.0), told, root), still
        # Where to look next.
        middle = 0.5 * low + 0.5 * high
        other = choose(seen > 0.0, middle, min(middle, 64.0 * low))
        other = choose(low > 0.0, other, 0.0625 * high)
        inside = inside & (there > low) & (there < high) & (abs(there - x) < SHORTER * longest)
        if begins and steps == 0:
            most = min(last, 0.5 * limit)
            inside, other = inside & (there < most), min(0.85 * most, 1.0)
        there = choose(unseen, limit, choose(inside, there, other))
        longest, size, x = size, abs(there - x), there
        steps += 1
    return root


# Other rivals


@inner
def _list_rivals(first, limit, joint, prediction, runner_up, known, reached):
    """Let only those reach anything that may be ahead of the runner-up where it flips a row.

    Nobody does where it never does: the recursion makes sure.
    """
    for lane in range(WIDE):
        i = min(first + lane, len(joint) - 1)
        least = reached[runner_up[i] * WIDE + lane] * FLOOR
        for c in range(joint.shape[1]):
            mine = c in (prediction[i], runner_up[i])
            behind = mine or not known[FOUND + lane] < limit or reached[c * WIDE + lane] < least
            reached[c * WIDE + lane] = 0.0 if behind else 1.0


@inner
def _take_rivals(classes, whole, known, reached):
    """Let each lane have the first class that is ahead, which then is no more; tell if any has."""
    taken = False
    for lane in range(WIDE):
        known[GAP + lane] = math.nan
        for c in range(classes):
            if reached[c * WIDE + lane] > 0.0 and known[FOUND + lane] == known[FOUND + lane]:
                reached[c * WIDE + lane], known[GAP + lane], taken = 0.0, 0.0, True
                whole[RIVAL + lane] = c * WIDTH + P
                break
    return taken


@inner
def _settle(root, whole, known):
    """Keep what was found, if it comes first; of several at once, the first that was found."""
    store(known, ROOT, root)
    for lane in range(WIDE):
        x = known[ROOT + lane]
        if known[GAP + lane] == known[GAP + lane] and not x >= known[FOUND + lane]:
            known[FOUND + lane], whole[CLASS + lane] = x, whole[RIVAL + lane] // WIDTH


@kernel(
    types.void(
        *(code_matrix, int_vector, float_matrix, float_matrix, float_matrix, singles),
        *(
            types.float64,
            types.float64,
            types.float64,
            types.boolean,
            types.boolean,
            int_vector,
            int_vector,
        ),
        *(int_vector_out, float_vector_out, float_vector_out, float_vector_out),
        *(float_vector_out, float_vector_out, float_vector_out, int_vector_out),
    )
)
def search(
    cells,
    terms,
    joint,
    class_table,
    feature_table,
    feature_sides,
    cut,
    limit,
    chi2,
    fractional,
    falls,
    prediction,
    runner_up,
    whole,
    known,
    reached,
    about,
    upper,
    lower,
    found,
    tipping,
):
    """Write the x where each prediction flips, and the class it flips to; NaN where unsure.

    The runner-up comes first. Most others are still behind at its root; those that are not are
    searched for, each lane having its own.

    Parameters
    ----------
    cells, terms, joint : see `means.Means`; all terms of a row, and then the next
    class_table, feature_table : the columns of `products.COLUMNS`
    feature_sides, cut, limit, chi2, fractional, falls : see `products.BallTables`
    prediction, runner_up : (rows,)
    whole, known, reached, about, upper, lower : to work in, see `make_room`
    found, tipping : (rows,), written
    """
    features, classes = cells.shape[1], joint.shape[1]
    nothing, form = len(feature_table) - classes, (cut, limit, chi2, falls)
    sides = about, upper, lower
    for first in range(0, len(joint), WIDE):
        count = _choose_rows(first, terms, joint, features, prediction, runner_up, whole, known)
        shape = count, features, fractional
        kink, last = lay_out(
            first, falls, cells, terms, shape, feature_table, nothing, whole, *sides
        )
        own, other, rate, end = lay_out_prior(class_table, whole, fractional)
        if falls:
            last = choose(rate == rate, min(last, 1.0 / rate), math.nan)  # noqa: PLR0124 (NaN)
        if chi2 > 0.0:
            a = own[0]
            last = choose(a > ALL_BUT_ONE, math.nan, min(last, math.sqrt(a / (1.0 - a)) / chi2))
        root = _search(
            fill(0.0), known, True, last, min(kink, end), form, shape, (own, other), *sides
        )
        store(known, FOUND, root)
        if classes > 2:
            foresee(
                *(known[FOUND:], first, cells, terms, form, shape, nothing, own),
                *(class_table, feature_sides, reached),
            )
            _list_rivals(first, limit, joint, prediction, runner_up, known, reached)
        while classes > 2 and _take_rivals(classes, whole, known, reached):
            kink, _ = lay_out(
                first, False, cells, terms, shape, feature_table, nothing, whole, *sides
            )
            own, other, _, end = lay_out_prior(class_table, whole, fractional)
            x, kink = load(known, FOUND), min(kink, end)
            root = _search(x, known, False, last, kink, form, shape, (own, other), *sides)
            _settle(root, whole, known)
        for lane in range(min(WIDE, len(joint) - first)):
            # At the end of its range, and where nothing flips, the recursion makes sure.
            x = known[FOUND + lane]
            found[first + lane] = x if x < limit else math.nan
            tipping[first + lane] = whole[CLASS + lane]
