"""Means of products as polynomials in x, several rows side by side; see `_mean_kernels` for h.

Without denominators, Σ_j Π_k upper_jk(x) is a polynomial from where one factor is cut off to where
the next one is, and Σ_j Π_k lower_jk(x) from where one term ends to where the next one does. Once
they are multiplied out, a step of a search takes a fraction of the time that the factors take.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from robustq.kernels import inner, joined
from robustq.vectors import WIDE, WIDTH, choose, look_up, some, store
from robustq.vectors import fill_wide as fill
from robustq.vectors import load_wide as load

from ._height_kernels import L, P, chi2_prior
from ._inverse_kernels import about_inverse
from ._log_kernels import log_of
from ._place_kernels import ITEM, OWN, PLACES, RIVAL, ROW, locate
from ._root_kernels import aim, approach, begin
from .room import make_floats, make_indices

__all__ = ["FOUND", "MOST_FACTORS", "find_roots", "make_room"]

if TYPE_CHECKING:
    from robustq.arrays import Floats, Indices

MOST_FACTORS = 24  # of a term that is multiplied out: its coefficients grow with their square
BELOW = 2  # lines of 0 come before the coefficients
SAFE, HUGE, FLOOR = 1e-200, 1e300, 1e-200
CLOSE = 1e10 * 2.0**-53  # as in `_mean_kernels`
FAR = 1e3  # beyond, coefficients matter that may have underflowed
ALL_BUT_ONE = 1.0 - 1e-5
VANISHED = 1e300
# Steps while it is not known which polynomials are those at the root, and then; and how often
# others are made.
FIRST_STEPS, MOST_STEPS, ROUNDS = 3, 30, 8
LEFT, NARROW = 1e-13, 1e-12  # of a step of third order, and of a bracket, relative
# Of a sum whose parts cancel, how much of their rounding may show in a root.
ROUNDING, SHOWN = 2.0**-50, 2e-10
# What is known of each lane, and found.
GAP, FOUND, KNOWN = 0, WIDE, 2 * WIDE


def make_room(
    terms: int, features: int
) -> "tuple[Indices, Floats, Floats, Floats, Floats, Floats]":
    """Return arrays to work in.

    These are where the factors of all terms stand; what is known of lanes; factors; a polynomial
    of a term and one of rivals; one of the best; and of each of its terms, with where they end,
    and which lanes they are of.
    """
    size = (features + 1 + BELOW) * WIDE
    return (
        *(make_indices(terms * (PLACES + 2 * WIDE * features)), make_floats(KNOWN)),
        *(make_floats(2 * max(features, 1) * WIDE), make_floats(2 * size)),
        *(make_floats(size), make_floats(terms * (size + 2 * WIDE))),
    )


@inner
def _choose_rows(first, features, joint, prediction, runner_up, known):
    """Let lanes have rows, each with its runner-up; those beyond the last do what it does."""
    for lane in range(WIDE):
        i = min(first + lane, len(joint) - 1)
        score = joint[i, prediction[i]]
        gap = score - joint[i, max(runner_up[i], 0)]
        sound = gap < math.inf and gap >= CLOSE * (features + abs(score)) and runner_up[i] >= 0
        known[GAP + lane] = gap if sound else math.nan


@inner
def _locate_terms(first, count, most, cells, terms, nothing, prediction, runner_up, whole, here):
    """Write where the factors of each term stand, and which lanes have so many."""
    features = cells.shape[1]
    size = PLACES + 2 * WIDE * features
    for j in range(count):
        part = whole[j * size :]
        for lane in range(WIDE):
            i = min(first + lane, len(terms) - 1)
            term = i * most + min(j, terms[i] - 1)
            part[ITEM + lane], part[ROW + lane] = term, term * features
            part[OWN + lane] = prediction[i] * WIDTH + L
            part[RIVAL + lane] = max(runner_up[i], 0) * WIDTH + P
            here[j * WIDE + lane] = 1.0 if j < terms[i] else 0.0
        locate(cells, nothing, part)


@inner
def _lay_out_upper(x, cut, features, table, whole, factors):
    """Write the factors of rivals as they are at x; return from where to where they are so."""
    since, until = fill(-1.0), fill(math.inf)
    for k in range(features):
        value, rise, _, end = look_up(table, whole, PLACES + (2 * k + 1) * WIDE, 0)
        there = end > x
        store(factors, 2 * k * WIDE, choose(there, value, cut))
        store(factors, (2 * k + 1) * WIDE, choose(there, rise, 0.0))
        since, until = (
            max(since, choose(there, -1.0, end)),
            min(until, choose(there, end, math.inf)),
        )
    return since, until


@inner
def _lay_out_lower(features, table, whole, factors):
    """Write the factors of the best; return where the first of them ends, NaN if that is vague."""
    fastest, total = fill(0.0), fill(0.0)
    for k in range(features):
        fall, rate, value, _ = look_up(table, whole, PLACES + 2 * k * WIDE, 0)
        store(factors, 2 * k * WIDE, value)
        store(factors, (2 * k + 1) * WIDE, -fall)
        fastest, total = max(fastest, rate), total + rate
    return choose(total == total, 1.0 / fastest, math.nan)  # noqa: PLR0124 (NaN)


@inner
def _multiply_out(factors, features, here, at, polynomial):
    """Write the product of factors from a place on, two of them at once; 0 where it is not here."""
    degree = features % 2
    at += BELOW * WIDE
    store(polynomial, at - 2 * WIDE, fill(0.0))
    store(polynomial, at - WIDE, fill(0.0))
    store(polynomial, at, here)
    if degree == 1:
        store(polynomial, at, here * load(factors, 0))
        store(polynomial, at + WIDE, here * load(factors, WIDE))
    while degree < features:
        place = 2 * degree * WIDE
        a, v = load(factors, place), load(factors, place + WIDE)
        b, w = load(factors, place + 2 * WIDE), load(factors, place + 3 * WIDE)
        constant, linear, square = a * b, a * w + b * v, v * w
        degree += 2
        own, below = fill(0.0), fill(0.0)
        for power in range(degree, -1, -1):
            next_to = load(polynomial, at + (power - 2) * WIDE)
            store(polynomial, at + power * WIDE, own * constant + below * linear + next_to * square)
            own, below = below, next_to


@inner
def _add_up(x, cut, count, features, table, whole, factors, here, both):
    """Write the sum of all terms of rivals as it is at x; return from where to where it is so."""
    size = (features + 1 + BELOW) * WIDE
    term, total = both[size:], both
    for place in range(0, size, WIDE):
        store(total, place, fill(0.0))
    since, until = fill(-1.0), fill(math.inf)
    for j in range(count):
        places = whole[j * (PLACES + 2 * WIDE * features) :]
        low, high = _lay_out_upper(x, cut, features, table, places, factors)
        since, until = max(since, low), min(until, high)
        _multiply_out(factors, features, load(here, j * WIDE), 0, term)
        for place in range(BELOW * WIDE, size, WIDE):
            store(total, place, load(total, place) + load(term, place))
    return since, until


@inner
def _multiply_out_all(count, features, table, whole, factors, here, each, ends):
    """Write all terms of the best and where they end; return what is NaN where that is vague."""
    size, vague = (features + 1 + BELOW) * WIDE, fill(0.0)
    for j in range(count):
        places = whole[j * (PLACES + 2 * WIDE * features) :]
        end, there = _lay_out_lower(features, table, places, factors), load(here, j * WIDE)
        _multiply_out(factors, features, there, j * size, each)
        store(ends, j * WIDE, choose(there > 0.0, end, 0.0))
        vague = choose(end == end, vague, math.nan)  # noqa: PLR0124 (NaN)
    return vague


@inner
def _add_up_left(x, count, features, each, ends, total):
    """Write the sum of terms of the best that end after x; return as above; then the last end."""
    size = (features + 1 + BELOW) * WIDE
    for place in range(0, size, WIDE):
        store(total, place, fill(0.0))
    since, until, last = fill(-1.0), fill(math.inf), fill(0.0)
    for j in range(count):
        end = load(ends, j * WIDE)
        there = end > x
        since, until = (
            max(since, choose(there, -1.0, end)),
            min(until, choose(there, end, math.inf)),
        )
        last = max(last, end)
        for place in range(BELOW * WIDE, size, WIDE):
            more = choose(there, load(each, j * size + place), 0.0)
            store(total, place, load(total, place) + more)
    return since, until, last


@joined
def _read(x, polynomial, features):
    """Return a polynomial, its slope, and half its bend."""
    place = (features + BELOW) * WIDE
    value, slope, half_bend = load(polynomial, place), fill(0.0), fill(0.0)
    for _ in range(features):
        place -= WIDE
        half_bend = half_bend * x + slope
        slope = slope * x + value
        value = value * x + load(polynomial, place)
    return value, slope, half_bend


@joined
def _multiply(polynomial, value, slope):
    """Return what a polynomial and its derivatives are times a factor."""
    product, first, half_second = polynomial
    return product * value, first * value + product * slope, half_second * value + first * slope


@inner
def _climb(x, base, unit, form, prior, upper, lower):
    """Return h and its first two derivatives; h is `VANISHED` where nothing is left of ĉ."""
    chi2, falls, features = form
    a, fall, b, rise = prior
    high, first, half_second = _multiply(_read(x, upper, features), b + x * rise, rise)
    inverse = about_inverse(high)
    slope = first * inverse
    bend, ratio = 2.0 * half_second * inverse - slope * slope, high * unit
    sound = ratio < HUGE
    if falls:
        low, first, half_second = _multiply(_read(x, lower, features), a - x * fall, -fall)
        there = low > SAFE * SAFE
        low = choose(there, low, 1.0)
        inverse = about_inverse(low)
        rate = first * inverse
        slope, bend = slope - rate, bend - (2.0 * half_second * inverse - rate * rate)
        if chi2 > 0.0:
            gain, loss, more, bent = chi2_prior(x, chi2, a, b)
            slope, bend, ratio = slope + more, bend + bent, ratio * (1.0 + gain)
            low *= max(1.0 - loss, FLOOR)
        ratio /= low
        sound = there & (ratio < HUGE)
    return choose(sound, log_of(choose(sound, ratio, 1.0)) - base, VANISHED), slope, bend


@inner
def _search(x, going, last, limit, steps, base, unit, form, prior, upper, lower):
    """Return roots, by steps of third order inside a bracket, the slopes there, and who still goes.

    Who does not go stays where it is. Nothing is left of ĉ at the last.
    """
    low, high = fill(0.0), min(last, limit)
    steep = fill(0.0)
    while steps > 0 and some(going > 0.0):
        steps -= 1
        h, slope, bend = _climb(x, base, unit, form, prior, upper, lower)
        below, moves = h < 0.0, going > 0.0
        there = aim(x, h, slope, bend)
        far = below & (there > 0.1 * x + 0.9 * last)
        if some(far):
            there = choose(far, last - approach(h, slope, bend, last - x), there)
        least, most = choose(below, x, low), choose(below, high, x)
        past = min(0.15 * x + 0.85 * most, 64.0 * x)
        short = choose(least > 0.0, 0.5 * least + 0.5 * x, 0.0625 * x)
        inside = (there >= least) & (there <= most) & (abs(bend) < HUGE) & (slope > 0.0)
        inside = inside & (h < VANISHED)
        there = choose(inside, there, choose(below, past, short))
        size, way = abs(there - x), min(there, last - there)
        small = inside & (size < 0.1 * way) & (size * size * size < LEFT * there * way * way)
        still = choose(small | (most - least <= NARROW * x), 0.0, going)
        x, low, high = choose(moves, there, x), choose(moves, least, low), choose(moves, most, high)
        steep, going = choose(moves, slope, steep), choose(moves, still, going)
    return x, steep, going


@inner
def _is_clear(x, steep, features, lower):
    """Tell whether the sum of what falls has all the digits that its root needs."""
    place = (features + BELOW) * WIDE
    left = load(lower, place)
    parts = left
    for _ in range(features):
        place -= WIDE
        coefficient = load(lower, place)
        left, parts = left * x + coefficient, coefficient - parts * x
    # Without its signs, what falls is the sum of its parts.
    return parts * ROUNDING <= left * (steep * x * SHOWN)


@inner
def find_roots(
    first,
    cells,
    terms,
    joint,
    class_table,
    feature_table,
    cut,
    limit,
    chi2,
    falls,
    prediction,
    runner_up,
    whole,
    known,
    factors,
    both,
    lower,
    each,
):
    """Write to `known` the roots of some rows against their runners-up, NaN where not sure.

    The rows are `WIDE` from the first on. Parameters are as in `_mean_kernels.search`; see
    `make_room` for what is to work in.
    """
    features, most = cells.shape[1], len(cells) // len(joint)
    nothing, count = len(feature_table) - len(class_table), np.int64(0)
    ends = each[most * (features + 1 + BELOW) * WIDE :]
    here = ends[most * WIDE :]
    for lane in range(WIDE):
        count = max(count, terms[min(first + lane, len(terms) - 1)])
    _choose_rows(first, features, joint, prediction, runner_up, known)
    _locate_terms(first, count, most, cells, terms, nothing, prediction, runner_up, whole, here)
    gap, nowhere, last, unit = load(known, GAP), fill(0.0), fill(math.inf), fill(1.0)
    fall, rate, a, _ = look_up(class_table, whole, OWN, 0)
    b, rise, _, kink = look_up(class_table, whole, RIVAL, 0)
    since, until = _add_up(nowhere, cut, count, features, feature_table, whole, factors, here, both)
    whence, whither, base, vague = fill(-1.0), fill(math.inf), gap, gap
    start = b * load(both, BELOW * WIDE)
    if falls:
        vague += _multiply_out_all(count, features, feature_table, whole, factors, here, each, ends)
        whence, whither, last = _add_up_left(nowhere, count, features, each, ends, lower)
        start, base = min(start, a * load(lower, BELOW * WIDE)), fill(0.0)
        last = min(last, 1.0 / rate)
        if chi2 > 0.0:
            last = min(last, math.sqrt(a / (1.0 - a)) / chi2)
            vague = choose(a > ALL_BUT_ONE, math.nan, vague)
    else:
        unit = 1.0 / start
    vague = choose(start > SAFE, vague, math.nan)
    prior, form = (a, fall, b, rise), (chi2, falls, features)
    _, slope, bend = _climb(nowhere, base, unit, form, prior, both, lower)
    x, steep = begin(gap, slope, bend, min(last, limit)), slope
    going = choose(vague == vague, fill(1.0), 0.0)  # noqa: PLR0124 (NaN)
    for turn in range(ROUNDS):
        if turn > 0:
            if some((going > 0.0) & ~((x > since) & (x < until))):
                since, until = _add_up(
                    x, cut, count, features, feature_table, whole, factors, here, both
                )
            if falls:
                whence, whither, _ = _add_up_left(x, count, features, each, ends, lower)
        steps = MOST_STEPS if turn > 0 else FIRST_STEPS
        x, slope, still = _search(
            x, going, last, limit, steps, base, unit, form, prior, both, lower
        )
        steep = choose(going > 0.0, slope, steep)
        # Whose polynomials are the same there as where it began is done.
        here_too = (x > max(since, whence)) & (x < min(until, whither))
        going = choose((still <= 0.0) & here_too, 0.0, going)
        if not some(going > 0.0):
            break
    sound = (vague == vague) & (going <= 0.0) & (x < kink)  # noqa: PLR0124 (NaN)
    sound = sound & (x < min(limit, FAR))
    if falls:
        sound = sound & _is_clear(x, steep, features, lower)
    store(known, FOUND, choose(sound, x, math.nan))
