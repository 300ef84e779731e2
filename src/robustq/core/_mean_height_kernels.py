"""How far rivals are ahead of a prediction where the bounds of means of products move.

With h(x) the logarithm of upper(x) Σ_j Π_k upper_jk(x) minus that of lower(x) Σ_j Π_k lower_jk(x),
the first factors those of the prior; see `_height_kernels` for the bounds of factors. A term j of
the best is over where the first of its factors is. Between these ends, and before the first factor
of a rival is cut off, h is smooth. Sums and their first two derivatives come from the derivatives
of products, without a division for each factor.

Rows stand side by side. Of each of their terms, a list has lines of factors, v of all lanes and
then w, a factor being v + x w; after all of them come the scales of denominators, if there are any.
"""

import math

from robustq.kernels import inner, joined
from robustq.vectors import LANES, WIDE, choose, get, look_up, multiply_add, some, store
from robustq.vectors import fill as fill_classes
from robustq.vectors import fill_wide as fill
from robustq.vectors import load_wide as load

from ._contender_kernels import find_factors
from ._height_kernels import U_RATE, L, P, T, U, chi2_prior
from ._inverse_kernels import about_inverse
from ._log_kernels import log_of
from ._place_kernels import ITEM, OWN, PLACES, RIVAL, ROW, locate

__all__ = ["ABOUT", "LINE", "VANISHED", "climb", "foresee", "lay_out", "lay_out_prior"]

SAFE, TINY = 1e-200, 1e-300  # a sum above this has not underflowed on the way
VANISHED = 1e300
LINE = 2 * WIDE
# What is known of a term of each lane: whether it is there, where it ends, and where a factor of it
# is first cut off.
HERE, END, CUT, ABOUT = range(0, 4 * WIDE, WIDE)


# Rows come


@inner
def _locate_term(j, first, cells, terms, nothing, whole, about):
    """Write where the factors of a term stand, and which lanes have it; others do what they did."""
    features, most = cells.shape[1], len(cells) // len(terms)
    for lane in range(WIDE):
        i = min(first + lane, len(terms) - 1)
        term = i * most + min(j, terms[i] - 1)
        whole[ITEM + lane], whole[ROW + lane] = term, term * features
        about[j * ABOUT + HERE + lane] = 1.0 if j < terms[i] else 0.0
    locate(cells, nothing, whole)


@inner
def _lay_out_upper(j, shape, table, whole, about, upper):
    """Write the factors of a term of rivals; return where the first of them is cut off."""
    count, features, fractional = shape
    cut = fill(math.inf)
    for k in range(features):
        place, factor = PLACES + (2 * k + 1) * WIDE, j * features + k
        value, slope, _, end = look_up(table, whole, place, 0)
        store(upper, factor * LINE, value)
        store(upper, factor * LINE + WIDE, slope)
        cut = min(cut, end)
        if fractional:
            _, _, _, t = look_up(table, whole, place, U_RATE - P)
            store(upper, count * features * LINE + factor * WIDE, t)
    store(about, j * ABOUT + CUT, cut)
    return cut


@inner
def _lay_out_lower(j, shape, table, whole, about, lower):
    """Write the factors of a term of the best; return where it ends, NaN if that is vague."""
    count, features, fractional = shape
    fastest, total = fill(0.0), fill(0.0)
    for k in range(features):
        place, factor = PLACES + 2 * k * WIDE, j * features + k
        fall, rate, value, _ = look_up(table, whole, place, 0)
        store(lower, factor * LINE, value)
        store(lower, factor * LINE + WIDE, -fall)
        fastest, total = max(fastest, rate), total + rate
        if fractional:
            _, _, s, _ = look_up(table, whole, place, U_RATE - L)
            store(lower, count * features * LINE + factor * WIDE, s)
    here = load(about, j * ABOUT + HERE) > 0.0
    store(about, j * ABOUT + END, choose(here, 1.0 / fastest, 0.0))
    return choose(total == total, 1.0 / fastest, math.nan)  # noqa: PLR0124 (NaN)


@inner
def lay_out(first, both, cells, terms, shape, table, nothing, whole, about, upper, lower):
    """Write the factors of rivals, and of the best if both are asked for.

    Return where the first factor of rivals is cut off, and where the last term of the best ends.
    """
    cut, last = fill(math.inf), fill(math.inf)
    if both:
        last = fill(0.0)
    for j in range(shape[0]):
        _locate_term(j, first, cells, terms, nothing, whole, about)
        cut = min(cut, _lay_out_upper(j, shape, table, whole, about, upper))
        if both:
            end = _lay_out_lower(j, shape, table, whole, about, lower)
            # Of what is vague the sum is; the larger one need not be.
            last = choose(end == end, max(last, end), math.nan)  # noqa: PLR0124 (NaN)
    return cut, last


@inner
def lay_out_prior(class_table, whole, fractional):
    """Return the prior of the best and of rivals, as values, slopes and scales.

    And the rate at which the first falls, and where the second is cut off.
    """
    fall, rate, a, _ = look_up(class_table, whole, OWN, 0)
    b, rise, _, cut = look_up(class_table, whole, RIVAL, 0)
    s, t = fill(0.0), fill(0.0)
    if fractional:
        _, _, s, _ = look_up(class_table, whole, OWN, U_RATE - L)
        _, _, _, t = look_up(class_table, whole, RIVAL, U_RATE - P)
    return (a, -fall, s), (b, rise, t), rate, cut


# Where they are at x


@joined
def _multiply(x, product, start, stop, factors, clips, beyond, cut):
    """Return the product of factors, its slope, and half its bend; beyond, they may be cut off.

    Whether some are is known when this is compiled.
    """
    rise, half_bend = fill(0.0), fill(0.0)
    for line in range(start * LINE, stop * LINE, LINE):
        w = load(factors, line + WIDE)
        factor = load(factors, line) + x * w
        if clips:
            w = choose(beyond & (factor >= cut), 0.0, w)
            factor = choose(beyond, min(factor, cut), factor)
        half_bend = multiply_add(half_bend, factor, rise * w)
        rise = multiply_add(rise, factor, product * w)
        product *= factor
    return product, rise, half_bend


@joined
def _divide(x, start, stop, scales, factors, term):
    """Return the same of a product divided by 1 + x s for each of its factors."""
    product, rise, half_bend = term
    under, up, half_up = fill(1.0), fill(0.0), fill(0.0)
    for place in range(scales + start * WIDE, scales + stop * WIDE, WIDE):
        w = load(factors, place)
        factor = 1.0 + x * w
        half_up = multiply_add(half_up, factor, up * w)
        up = multiply_add(up, factor, under * w)
        under *= factor
    inverse = 1.0 / under
    product *= inverse
    rise = (rise - product * up) * inverse
    return product, rise, (half_bend - product * half_up - rise * up) * inverse


@inner
def _add_up_upper(x, cut, shape, about, upper):
    """Return Σ_j Π_k of rivals, its slope, and half its bend."""
    count, features, fractional = shape
    value, slope, half_bend = fill(0.0), fill(0.0), fill(0.0)
    for j in range(count):
        here, beyond = load(about, j * ABOUT + HERE), x >= load(about, j * ABOUT + CUT)
        start, stop = j * features, (j + 1) * features
        if some(beyond):
            term = _multiply(x, here, start, stop, upper, True, beyond, cut)
        else:
            term = _multiply(x, here, start, stop, upper, False, beyond, cut)
        if fractional:
            term = _divide(x, start, stop, count * features * LINE, upper, term)
        value, slope, half_bend = value + term[0], slope + term[1], half_bend + term[2]
    return value, slope, half_bend


@inner
def _add_up_lower(x, shape, about, lower):
    """Return the same of the best; and the last term's end before x, and the next one after it."""
    count, features, fractional = shape
    value, slope, half_bend = fill(0.0), fill(0.0), fill(0.0)
    since, until = fill(0.0), fill(math.inf)
    for j in range(count):
        end = load(about, j * ABOUT + END)
        there = end > x
        since = max(since, choose(there, 0.0, end))
        until = min(until, choose(there, end, math.inf))
        start, stop = j * features, (j + 1) * features
        term = _multiply(x, choose(there, fill(1.0), 0.0), start, stop, lower, False, there, 0.0)
        if fractional:
            term = _divide(x, start, stop, count * features * LINE, lower, term)
        value, slope, half_bend = value + term[0], slope + term[1], half_bend + term[2]
    return value, slope, half_bend, since, until


@joined
def _weigh_prior(x, cut, chi2, own, other):
    """Return the prior's upper and lower factor, and what it adds to derivatives."""
    (a, w, s), (b, u, t) = own, other
    if chi2 > 0.0:
        gain, loss, slope, bend = chi2_prior(x, chi2, a, b)
        return b * (1.0 + gain), a * (1.0 - loss), slope, bend
    low, high, under, over = a + x * w, b + x * u, 1.0 + x * s, 1.0 + x * t
    # Where nothing is left nobody asks for derivatives.
    fall, rise = w / choose(low > 0.0, low, 1.0), choose(high < cut, u / high, 0.0)
    per_under, per_over = s / under, t / over
    slope = rise - fall + per_under - per_over
    bend = fall * fall - rise * rise - per_under * per_under + per_over * per_over
    return min(high, cut) * under, low * over, slope, bend


@inner
def climb(x, form, shape, prior, about, upper, lower):
    """Return h but for its base, its derivatives, and between which ends of terms it is smooth.

    It is `VANISHED` where nothing is left of ĉ, and NaN where something underflows.
    """
    cut, _, chi2, falls = form
    above, below, slope, bend = _weigh_prior(x, cut, chi2, *prior)
    high, rise, half_bend = _add_up_upper(x, cut, shape, about, upper)
    sound, left = high > SAFE, below > 0.0
    inverse = about_inverse(choose(sound, high, 1.0))
    rise *= inverse
    slope, bend = slope + rise, bend + (2.0 * half_bend * inverse - rise * rise)
    since, until = fill(0.0), fill(math.inf)
    if falls:
        low, fall, half_bend, since, until = _add_up_lower(x, shape, about, lower)
        left, sound = left & (low > 0.0), sound & (low > SAFE)
        low = choose(low > SAFE, low, 1.0)
        inverse = about_inverse(low)
        fall *= inverse
        slope, bend = slope - fall, bend - (2.0 * half_bend * inverse - fall * fall)
        high /= low
    # One logarithm for all of it.
    ratio = above / choose(left, below, 1.0) * high
    sound = sound & (ratio > TINY) & (ratio < 1.0 / TINY)
    level = choose(sound, log_of(choose(sound, ratio, 1.0)), math.nan)
    return choose(left, level, VANISHED), slope, bend, since, until


# What all classes reach


@inner
def foresee(roots, first, cells, terms, form, shape, nothing, own, class_table, sides, reached):
    """Write for each class what of h it makes as a rival: that of ĉ is the same for all of them.

    A few digits of it, as classes stand side by side: see `_contender_kernels`.
    """
    cut, limit, chi2, _ = form
    _, features, fractional = shape
    classes, most = len(class_table), len(cells) // len(terms)
    for lane in range(WIDE):
        x, i = roots[lane], min(first + lane, len(terms) - 1)
        for group in range(0, classes if x < limit else 0, LANES):
            total = fill_classes(0.0)
            for term in range(i * most, i * most + terms[i]):
                product = fill_classes(1.0)
                for k in range(features):
                    cell = cells[term, k] if cells[term, k] >= 0 else nothing
                    product *= find_factors(x, cell + group, cut, fractional, sides)
                total += product
            for c in range(group, min(group + LANES, classes)):
                reached[c * WIDE + lane] = get(total, c - group)
    x = load(roots, 0)
    for c in range(classes):
        other = fill(class_table[c, P]), fill(class_table[c, U]), fill(class_table[c, T])
        above, below, _, _ = _weigh_prior(x, cut, chi2, own, other)
        # Where nothing is left of ĉ, the rest may be less than 0, by rounding.
        store(reached, c * WIDE, load(reached, c * WIDE) * above / abs(below))
