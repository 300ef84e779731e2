"""Means of products, one for each class, compared by a kernel.

A prediction ĉ is robust against a rival c as long as lower(x) Σ_j Π_k lower_jk(x) is larger than
upper(x) Σ_j Π_k upper_jk(x), the first factors those of the prior; see `_height_kernels` for the
bounds of factors. With h(x) the logarithm of the right side minus that of the left one, which never
decreases, the robustness against c is the root of h.

The terms j of one row are laid out side by side, several to a vector; those beyond the last are 0.
Sums and their first two derivatives come from the derivatives of products, without a division for
each factor. A list has lines of values, of slopes, and of the scales of denominators.
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
from robustq.vectors import (
    LANES,
    WIDE,
    WIDTH,
    choose,
    fill,
    fill_wide,
    load,
    look_up,
    multiply_add,
    store,
    total,
)

from ._height_kernels import CUT, L_RATE, U_RATE, L, P, S, T, U, chi2_prior
from ._place_kernels import ITEM, OWN, PLACES, RIVAL, ROW, locate
from ._root_kernels import aim, approach
from .room import make_floats, make_indices

__all__ = ["make_room", "search"]

if TYPE_CHECKING:
    from robustq.arrays import Floats, Indices

SAFE, TINY = 1e-200, 1e-300  # a product above this has not underflowed on the way
ROUNDING = 2.0**-53
ENOUGH = 1e-12  # how near, relative, is near enough
LEFT = 1e-13  # what may be left of a step of third order, relative
MAX_STEPS = 200
PATIENCE = 8  # steps until the bracket is halved, whatever its ends say
ALL_BUT_ONE = 1.0 - 1e-5
VANISHED = 1e300
HUGE = 1e290


def make_room(terms: int, features: int) -> "tuple[Indices, Floats, Floats, Floats]":
    """Return arrays to work in: where factors stand, those of both sides, and where they end."""
    width, lines = terms + WIDE, max(features, 1)
    whole = make_indices((width // WIDE + 1) * (PLACES + 2 * WIDE * features))
    size = 3 * lines * width
    return whole, make_floats(size), make_floats(size), make_floats(width)


@inner
def _locate_terms(cells, start, terms, width, nothing, whole):
    """Write where the factors of all terms stand, terms side by side; see `locate`.

    Those beyond the last do what the last does.
    """
    features = cells.shape[1]
    size = PLACES + 2 * WIDE * features
    for first in range(0, width, WIDE):
        part = whole[first // WIDE * size :]
        for lane in range(WIDE):
            term = start + min(first + lane, terms - 1)
            part[ITEM + lane], part[ROW + lane] = term, term * features
            part[OWN + lane], part[RIVAL + lane] = L, P
        locate(cells, nothing, part)


@inner
def _lay_out(table, whole, c, terms, features, width, at, fractional, factors, ends):
    """Write the factors of a class, terms side by side; return where their kinks are.

    These are the first of all, and the last two of those that are the first of a term. `at` is L
    or P: lower factors have their kink where they end, upper ones where they are cut off. Slopes of
    lower ones are negative, and scales those of S or T.
    """
    lines, shift = features * width, c * WIDTH
    size, side = PLACES + 2 * WIDE * features, 0 if at == L else 1
    for first in range(0, width, WIDE):
        fastest, end = fill_wide(0.0), fill_wide(math.inf)
        for i in range(features):
            place = i * width + first
            from_place = first // WIDE * size + PLACES + (2 * i + side) * WIDE
            if at == L:
                fall, rate, value, _ = look_up(table, whole, from_place, shift)
                slope, fastest = -fall, max(fastest, rate)
            else:
                value, slope, _, cut = look_up(table, whole, from_place, shift)
                end = min(end, cut)
            store(factors, place, value)
            store(factors, lines + place, slope)
            if fractional:
                _, _, s, t = look_up(table, whole, from_place, shift + U_RATE - at)
                store(factors, 2 * lines + place, s if at == L else t)
        store(ends, first, 1.0 / fastest if at == L else end)
    for j in range(terms, width):
        factors[j] = factors[lines + j] = 0.0
    soonest, second, last = math.inf, 0.0, 0.0
    for j in range(terms):
        kink = ends[j]
        soonest, second, last = min(soonest, kink), max(second, min(kink, last)), max(last, kink)
    return soonest, second, last


@joined
def _sum_up(x, factors, terms, features, width, falls, cut, fractional):
    """Return Σ_j Π_k of factors, and its first two derivatives.

    Those that fall end at 0; others are cut off. What is said of it is known when this is compiled.
    """
    value, slope, bend = fill(0.0), fill(0.0), fill(0.0)
    for first in range(0, terms, LANES):
        product, rise, half_bend = fill(1.0), fill(0.0), fill(0.0)
        for i in range(features):
            w = load(factors, (features + i) * width + first)
            factor = load(factors, i * width + first) + x * w
            if falls:
                w, factor = choose(factor > 0.0, w, 0.0), max(factor, 0.0)
            else:
                w, factor = choose(factor < cut, w, 0.0), min(factor, cut)
            half_bend = multiply_add(half_bend, factor, rise * w)
            rise = multiply_add(rise, factor, product * w)
            product *= factor
        if fractional:
            under, up, half_up = fill(1.0), fill(0.0), fill(0.0)
            for i in range(features):
                w = load(factors, (2 * features + i) * width + first)
                factor = 1.0 + x * w
                half_up = multiply_add(half_up, factor, up * w)
                up = multiply_add(up, factor, under * w)
                under *= factor
            inverse = 1.0 / under
            product *= inverse
            rise = (rise - product * up) * inverse
            half_bend = (half_bend - product * half_up - rise * up) * inverse
        value, slope, bend = value + product, slope + rise, bend + half_bend
    return total(value), total(slope), 2.0 * total(bend)


@inner
def _weigh_prior(x, cut, chi2, best, rival):
    """Return what the prior is a factor of, and adds to derivatives; 0 where ĉ has nothing left."""
    a, b = best[P], rival[P]
    if chi2 > 0.0:
        gain, loss, slope, bend = chi2_prior(x, chi2, a, b)
        if loss >= 1.0:
            return 0.0, 0.0, 0.0
        return b / a * (1.0 + gain) / (1.0 - loss), slope, bend
    low, high = a - x * best[L], b + x * rival[U]
    under, over = 1.0 + x * best[S], 1.0 + x * rival[T]
    if low <= 0.0:
        return 0.0, 0.0, 0.0
    fall, rise, s, t = best[L] / low, rival[U] / high, best[S] / under, rival[T] / over
    if high >= max(cut, 1.0):
        high, rise = max(cut, 1.0), 0.0
    return high / over * under / low, fall + rise + s - t, fall * fall - rise * rise - s * s + t * t


@inner
def _height(x, form, shape, own, other, base, best, rival):
    """Return h(x) and its derivatives.

    h is `VANISHED` where nothing is left of ĉ, and NaN where something underflows. Where ĉ does not
    fall, its logarithm is the base.
    """
    cut, chi2, fractional, falls = form
    terms, features, width = shape
    ratio, slope, bend = _weigh_prior(x, cut, chi2, best, rival)
    high, rise, bent = _sum_up(x, other, terms, features, width, False, cut, fractional)
    if not high > SAFE:
        return math.nan, 0.0, 0.0
    rise /= high
    slope, bend = slope + rise, bend + (bent / high - rise * rise)
    if falls:
        low, fall, bent = _sum_up(x, own, terms, features, width, True, cut, fractional)
        if low <= 0.0 or ratio == 0.0:
            return VANISHED, 0.0, 0.0
        if not low > SAFE:
            return math.nan, 0.0, 0.0
        fall /= low
        high, slope, bend = high / low, slope - fall, bend - (bent / low - fall * fall)
    # One logarithm for all of it.
    if not TINY < ratio * high < 1.0 / TINY:
        return math.nan, 0.0, 0.0
    return math.log(ratio * high) - (0.0 if falls else base), slope, bend


@inner
def _is_near(x, there, kinks, falls):
    """Tell whether a step that leads there is the last.

    Before the first kink, and while the last term of ĉ is left, h is smooth, and what is left of a
    step is less than its cube.
    """
    first, second, last, cut = kinks
    size, least, most = abs(there - x), min(x, there), max(x, there)
    way = 0.0
    if most < first:
        way = min(there, first - there)
    elif falls and second < least and most < min(last, cut):
        way = min(there - second, last - there)
    # Next to the last all steps are small: there they tell nothing of what is left.
    if size <= ENOUGH * min(there, last - there):
        return True
    return size < 0.1 * way and size * size * size <= LEFT * there * way * way


@inner
def _look_ahead(x, h, slope, bend, last):
    """Return where the root seems to be, −1 if nothing tells; nothing is left of ĉ at the last."""
    if not (h < VANISHED and 0.0 < slope < HUGE and abs(bend) < HUGE):
        return -1.0
    there = aim(x, h, slope, bend)
    if h < 0.0 and there > 0.1 * x + 0.9 * last:
        return last - approach(h, slope, bend, last - x)
    return there


@inner
def _move(there, low, high, at_high, steps):
    """Return where to look next: where the root seems to be, if that is inside a bracket."""
    if low < there < high and steps % PATIENCE != PATIENCE - 1:
        return there
    if low == 0.0:
        return 0.0625 * high
    middle = 0.5 * low + 0.5 * high
    return middle if at_high < math.inf else min(middle, 64.0 * low)


@inner
def _find_root(x, limit, kinks, form, shape, own, other, base, best, rival):
    """Return the root of h, infinity if it is beyond the limit, NaN where digits are missing.

    x is where it is looked for first.
    """
    low, high, at_high, last = 0.0, min(limit, kinks[2]), math.inf, kinks[2]
    for steps in range(MAX_STEPS):
        h, slope, bend = _height(x, form, shape, own, other, base, best, rival)
        if math.isnan(h):
            return math.nan
        if h < 0.0 and x >= limit:
            return math.inf
        if h < 0.0:
            low = x
        else:
            high, at_high = x, h
        close = high - low <= ENOUGH * high
        if close and at_high == math.inf and high == limit:
            # It never was above 0, and nobody has looked at the end yet.
            x = limit
            continue
        if h == 0.0 or close:
            return x
        there = _look_ahead(x, h, slope, bend, last)
        if low <= there <= high and _is_near(x, there, kinks, form[3]):
            return there
        x = _move(there, low, high, at_high, steps)
    return math.nan


@inner
def _begin(gap, slope, bend, last, limit):
    """Return where the root seems to be, seen from 0."""
    there, most = _look_ahead(0.0, -gap, slope, bend, last), min(0.5 * limit, last)
    return there if 0.0 < there < most else min(1.0, 0.85 * most)


@kernel(
    types.void(
        *(code_matrix, int_vector, float_matrix, float_matrix, float_matrix, types.float64),
        *(types.float64, types.float64, types.boolean, types.boolean, int_vector, int_vector),
        *(int_vector_out, float_vector_out, float_vector_out, float_vector_out),
        *(float_vector_out, int_vector_out),
    )
)
def search(
    cells,
    terms,
    joint,
    class_table,
    feature_table,
    cut,
    limit,
    chi2,
    fractional,
    falls,
    prediction,
    runner_up,
    whole,
    own,
    other,
    kinks_of,
    found,
    tipping,
):
    """Write the x where each prediction flips, and the class it flips to; NaN where unsure.

    Parameters
    ----------
    cells, terms, joint : see `means.Means`; all terms of a row, and then the next
    class_table, feature_table : the columns of `products.COLUMNS`
    cut, limit, chi2, fractional, falls : see `products.BallTables`
    prediction, runner_up : (rows,)
    whole, own, other, kinks_of : to work in, see `make_room`
    found, tipping : (rows,), written
    """
    features, classes = cells.shape[1], joint.shape[1]
    most = len(cells) // max(len(joint), 1)
    form = cut, chi2, fractional, falls
    for row in range(len(joint)):
        best, count = prediction[row], terms[row]
        width = (count + WIDE - 1) // WIDE * WIDE
        shape = count, features, width
        nothing = len(feature_table) - classes
        _locate_terms(cells, row * most, count, width, nothing, whole)
        found[row], tipping[row] = math.inf, -1
        score, ends, base = joint[row, best], (math.inf, math.inf, math.inf), 0.0
        if chi2 > 0.0 and class_table[best, P] > ALL_BUT_ONE:
            found[row] = math.nan
            continue
        if falls:
            end = 1.0 / class_table[best, L_RATE]
            if chi2 > 0.0:
                end = math.sqrt(class_table[best, P] / (1.0 - class_table[best, P])) / chi2
            first, second, last = _lay_out(
                feature_table, whole, best, *shape, L, fractional, own, kinks_of
            )
            ends = min(first, end), min(second, end), min(last, end)
        for turn in range(classes + 1):
            rival = runner_up[row] if turn == 0 else np.int64(turn - 1)
            if rival < 0 or rival == best or (turn > 0 and rival == runner_up[row]):
                continue
            gap = score - joint[row, rival]
            if not gap < math.inf or gap < 1e10 * ROUNDING * (features + abs(score)):
                # Nothing to compare with, or rounding would show in h.
                found[row] = math.nan
                break
            kink, _, _ = _lay_out(
                feature_table, whole, rival, *shape, P, fractional, other, kinks_of
            )
            kink = min(kink, class_table[rival, CUT])
            kinks = min(ends[0], kink), ends[1], ends[2], kink
            start = min(found[row], limit) if turn > 0 else 0.0
            pair = class_table[best], class_table[rival]
            h, slope, bend = _height(start, form, shape, own, other, base, *pair)
            if turn == 0:
                base = h + gap
                start = _begin(gap, slope, bend, ends[2], limit)
            elif found[row] < math.inf and h < -1e-9:
                continue
            x = _find_root(start, limit, kinks, form, shape, own, other, base, *pair)
            if math.isnan(x):
                found[row] = x
                break
            if x < found[row]:
                found[row], tipping[row] = x, rival
        if found[row] == math.inf or found[row] >= limit:
            # At the end of its range, and where nothing flips, the recursion makes sure.
            found[row] = math.nan
