"""The fast path for naive Bayes, for balls with linear factors: several rows side by side.

A prediction ĉ is robust against a rival c as long as Π lower_k(x) > Π upper_k(x) over the
prior and the features, where for the built-in balls both factors are linear in some x:

    lower_k = a_k − x l_k        upper_k = b_k + x u_k, at most 1

with a_k = p_k(ĉ) and b_k = p_k(c). With h(x) = log Π upper − log Π lower, which never
decreases, the robustness against c is the root of h; −h(0) = Δ is the log of p(ĉ,f)/p(c,f).

    ball                 x           l          u
    ε-contamination      δ/(1−δ)     0          1         (not cut off at 1)
    total variation      δ           1          1
    χ²                   √δ          √(a(1−a))  √(b(1−b)) (the prior is special: `_add_chi2_prior`)
    pari-mutuel          δ           1−a        b
    constant odds ratio  δ/(1−δ)     −ab        b(1−a)    (not cut off; n times 1+x besides;
                                                           of the prior, l = u = 0)

The search for one root is a long chain of steps that wait for each other, so `LANES` rows are
searched side by side, and a lane that is done takes the next row. Arrays of the lanes have the
factors on the first axis and the lanes on the second; the prior is factor 0, feature i factor
i + 1, and a feature that is missing or has a single category is the constant factor 1.

(One file, though it is long: what numba keeps on disk is made anew when the file of the compiled
function changes, and not when one it calls does.)
"""

import math

import numba
import numpy as np
from numba import types

from robustq.kernel_types import (
    bool_vector,
    code_matrix,
    float_matrix_out,
    float_vector,
    float_vector_out,
    int_matrix_out,
    int_vector,
    int_vector_out,
)

__all__ = ["CHI2", "EPSILON", "ODDS_RATIO", "PARI_MUTUEL", "TOTAL_VARIATION", "quantify"]

EPSILON, TOTAL_VARIATION, CHI2, PARI_MUTUEL, ODDS_RATIO = 0, 1, 2, 3, 4

LANES = 16
READ = 8  # rows read at a time
SMALL = 1e-150  # products are kept above this by taking their logarithm in time
SAFE = 1e-250  # a product above this has not underflowed on the way
FLOOR = 1e-300  # stands for 0 in a lower factor
PATIENCE, MAX_STEPS = 8, 300  # after that many steps every other one bisects
CLEARLY = 1.0 - 1e-9  # smaller than this factor tells: more than rounding
# A step this small, relative, is the last: what is left of a cubic or a square is below 1e-12.
HALLEY_ENOUGH, NEWTON_ENOUGH = 1e-4, 1e-7
LARGEST_BELOW_ONE = 1.0 - 2.0**-53
ROUNDING = 2.0**-53

# Division by zero gives infinity, as in numpy; a check for it would keep loops from
# running on several lanes at once.
_inner = numba.njit(nogil=True, error_model="numpy")
_inlined = numba.njit(nogil=True, error_model="numpy", inline="always")


@_inner
def _first_equal(codes, row, slots):
    key = np.uint64(1469598103934665603)
    for feature in range(codes.shape[1]):
        key = (key ^ np.uint64(codes[row, feature] + 2)) * np.uint64(1099511628211)
    key ^= key >> np.uint64(32)
    mask = np.uint64(len(slots) - 1)
    slot = key & mask
    while slots[slot] >= 0:
        other = slots[slot]
        same = True
        for feature in range(codes.shape[1]):
            if codes[row, feature] != codes[other, feature]:
                same = False
                break
        if same:
            return other
        slot = (slot + np.uint64(1)) & mask
    slots[slot] = row
    return row


@_inner
def _find_twins(codes):
    """Return for each row the first one equal to it, and the rows that are their own."""
    size = 1
    while size < 2 * codes.shape[0]:
        size *= 2
    slots = np.full(size, -1, np.int64)
    twins = np.empty(codes.shape[0], np.int64)
    unique = np.empty(codes.shape[0], np.int64)
    count = 0
    for row in range(codes.shape[0]):
        twins[row] = _first_equal(codes, row, slots)
        if twins[row] == row:
            unique[count] = row
            count += 1
    return twins, unique[:count]


@_inlined
def _times(product, total, factor):
    """Multiply; before the product could underflow, move its logarithm to the total."""
    if product < SMALL or factor < SMALL:
        return factor, total + _log(product)
    return product * factor, total


@_inlined
def _log(x):
    return math.log(x) if x > 0.0 else -math.inf


@_inner
def _find_cells(codes, unique, classes, offsets, alone):
    """Return where the unique rows stand in the table of the features, −1 for constant factors."""
    cells = np.empty((len(unique), codes.shape[1]), np.int32)
    for i in range(len(unique)):
        for feature in range(codes.shape[1]):
            code = codes[unique[i], feature]
            free = code >= 0 and not alone[feature]
            cells[i, feature] = offsets[feature] + code * classes if free else -1
    return cells


@_inner
def _read_rows(cells, class_probs, feature_probs, joint):
    """Write log p(c, f) for each row and class."""
    classes = len(class_probs)
    product = np.empty((READ, classes))
    for start in range(0, len(cells), READ):
        # A few rows at a time: their products do not wait for each other.
        count = min(READ, len(cells) - start)
        for i in range(count):
            for c in range(classes):
                product[i, c] = class_probs[c]
        for feature in range(cells.shape[1]):
            for i in range(count):
                cell = cells[start + i, feature]
                if cell >= 0:
                    for c in range(classes):
                        product[i, c] *= feature_probs[cell + c]
        for i in range(count):
            for c in range(classes):
                # Products of probabilities only fall: one that is not tiny has never been.
                if product[i, c] > SAFE:
                    joint[start + i, c] = math.log(product[i, c])
                else:
                    joint[start + i, c] = _log_product(
                        cells[start + i], class_probs[c], feature_probs, c
                    )


@_inner
def _log_product(cells, prior, feature_probs, c):
    product, total = prior, 0.0
    for feature in range(len(cells)):
        if cells[feature] >= 0:
            product, total = _times(product, total, feature_probs[cells[feature] + c])
    return total + _log(product)


@_inner
def _best_two(joint):
    best = 0
    for c in range(1, len(joint)):
        if joint[c] > joint[best]:
            best = c
    second = -1
    for c in range(len(joint)):
        if c != best and (second < 0 or joint[c] > joint[second]):
            second = c
    return best, second


@_inner
def _share(joint, best):
    """Return p(ĉ | f); all classes are equally likely where p(f) = 0."""
    if joint[best] == -math.inf:
        return 1.0 / len(joint)
    total = 0.0
    for c in range(len(joint)):
        total += math.exp(joint[c] - joint[best])
    return 1.0 / total


@_inlined
def _load_row(ball, cells, i, c, probs, inverses, roots, prior, lane, a, lower, upper):
    """Write a_k and what of l_k and u_k does not depend on the rival.

    Returns
    -------
    end : where a lower factor reaches 0, or something that surely lies beyond the root
    factors : how many a ball can move
    slope, bend : what the lower factors give to the derivatives of h at x = 0
    """
    a[0, lane] = prior
    lower[0, lane], upper[0, lane] = 0.0, 0.0
    least, factors, slope, bend = prior, 1, 0.0, 0.0
    if ball == EPSILON:
        upper[0, lane] = 1.0
    elif ball in (TOTAL_VARIATION, PARI_MUTUEL):
        lower[0, lane] = 1.0 if ball == TOTAL_VARIATION else 1.0 - prior
        upper[0, lane] = 1.0
        slope = lower[0, lane] / prior
        bend = slope * slope
    for feature in range(cells.shape[1]):
        cell = cells[i, feature]
        k = feature + 1
        a[k, lane], lower[k, lane], upper[k, lane] = 1.0, 0.0, 0.0
        if cell >= 0:
            factors += 1
            value, inverse = probs[cell + c], inverses[cell + c]
            least = min(least, value)
            a[k, lane] = value
            if ball == EPSILON:
                upper[k, lane] = 1.0
            elif ball == TOTAL_VARIATION:
                lower[k, lane], upper[k, lane] = 1.0, 1.0
                slope += inverse
                bend += inverse * inverse
            elif ball == CHI2:
                fall = roots[cell + c]
                lower[k, lane] = value * fall
                slope += fall
                bend += fall * fall
            elif ball == PARI_MUTUEL:
                lower[k, lane] = 1.0 - value
                slope += inverse - 1.0
                bend += (inverse - 1.0) * (inverse - 1.0)
    return _end(ball, least), factors, slope, bend


@_inlined
def _load_rival(ball, cells, i, c, probs, inverses, roots, prior, lane, a, b, lower, upper):
    """Write b_k and what of l_k and u_k depends on the rival.

    Returns what the upper factors give to the first two derivatives of h at x = 0.
    """
    b[0, lane] = prior
    rise = upper[0, lane] / prior
    if ball == PARI_MUTUEL:
        upper[0, lane], rise = prior, 1.0
    slope, bend = rise, -rise * rise
    for feature in range(cells.shape[1]):
        cell = cells[i, feature]
        k = feature + 1
        b[k, lane] = 1.0
        if cell >= 0:
            value, inverse = probs[cell + c], inverses[cell + c]
            b[k, lane] = value
            if ball == CHI2:
                rise = roots[cell + c]
                upper[k, lane] = value * rise
                slope += rise
                bend -= rise * rise
            elif ball == PARI_MUTUEL:
                upper[k, lane] = value
                slope += 1.0
                bend -= 1.0
            elif ball == ODDS_RATIO:
                lower[k, lane] = -a[k, lane] * value
                upper[k, lane] = value * (1.0 - a[k, lane])
                slope += 2.0 - a[k, lane] - value
                bend += value * value - (1.0 - a[k, lane]) * (1.0 - a[k, lane]) - 1.0
            else:
                slope += inverse
                bend -= inverse * inverse
    if ball == CHI2:
        _, _, rise, curve = _chi2_prior(0.0, a[0, lane], prior)
        slope += rise
        bend += curve
    elif ball == ODDS_RATIO:
        slope += 1.0
        bend -= 1.0
    return slope, bend


@_inlined
def _end(ball, least):
    if ball == EPSILON:
        return 1.0
    if ball == TOTAL_VARIATION:
        return least
    if ball == ODDS_RATIO or least >= 1.0:
        return math.inf
    odds = least / (1.0 - least)
    return math.sqrt(odds) if ball == CHI2 else odds


@_inlined
def _size(ball, x):
    """Return the δ that belongs to x."""
    if x == math.inf:
        return math.inf
    if ball == EPSILON:
        return x / (1.0 + x)
    if ball == ODDS_RATIO:
        return min(x / (1.0 + x), LARGEST_BELOW_ONE)
    return x * x if ball == CHI2 else x


@_inner
def _multiply(x, cut, a, b, lower, upper, up, low, slope, bend):
    """Write Π upper, Π lower and what they give to the derivatives of h, for all lanes."""
    for lane in range(LANES):
        up[lane], low[lane], slope[lane], bend[lane] = 1.0, 1.0, 0.0, 0.0
    for k in range(a.shape[0]):
        for lane in range(LANES):
            above = b[k, lane] + x[lane] * upper[k, lane]
            rise = upper[k, lane] if above < cut else 0.0
            above = above if above < cut else cut
            below = a[k, lane] - x[lane] * lower[k, lane]
            below = below if below > FLOOR else FLOOR
            up[lane] *= above
            low[lane] *= below
            # One division for both. (Should it overflow, the search bisects.)
            inverse = 1.0 / (above * below)
            rise *= below * inverse
            fall = lower[k, lane] * above * inverse
            slope[lane] += fall + rise
            bend[lane] += (fall - rise) * (fall + rise)


@_inner
def _multiply_upper(x, b, upper, up, slope, bend):
    """Write Π upper and what it gives to the derivatives of h, where nothing is cut off."""
    for lane in range(LANES):
        up[lane], slope[lane], bend[lane] = 1.0, 0.0, 0.0
    for k in range(b.shape[0]):
        for lane in range(LANES):
            factor = b[k, lane] + x[lane] * upper[k, lane]
            rise = upper[k, lane] / factor
            up[lane] *= factor
            slope[lane] += rise
            bend[lane] -= rise * rise


@_inner
def _log_ratio(x, cut, a, b, lower, upper, lane):
    """Return log Π upper − log Π lower of a lane whose products may underflow."""
    up, low, log_up, log_low = 1.0, 1.0, 0.0, 0.0
    for k in range(a.shape[0]):
        up, log_up = _times(up, log_up, min(b[k, lane] + x * upper[k, lane], cut))
        low, log_low = _times(low, log_low, max(a[k, lane] - x * lower[k, lane], FLOOR))
    return (log_up + _log(up)) - (log_low + _log(low))


@_inlined
def _chi2_prior(s, a, b):
    """Return what the prior does under χ²: it adds log(1+g) − log(1−f) to h.

    Given are g, f and what is added to the derivatives, beyond the constant log(b/a).

    With κ = δ/(1+δ), the lower expectation of α1_ĉ − β1_c is positive if and only if
    α (a − κ) > β (b + √(κ (a+b−κ) b/a)): that is μ > σ√δ, solved for α/β.
    """
    w = 1.0 / (1.0 + s * s)
    kappa, d_kappa, dd_kappa = s * s * w, 2.0 * s * w * w, 2.0 * w * w * (1.0 - 4.0 * s * s * w)
    left = max(a - kappa, FLOOR)
    rest = left + b
    inverse = 1.0 / (a * b)
    root, sqrt_w = math.sqrt(rest * inverse), math.sqrt(w)
    g = s * sqrt_w * root
    scale = inverse / root * w * sqrt_w
    d_g = (rest - kappa) * scale
    dd_g = d_g * (0.5 * d_kappa / rest - 3.0 * s * w) - 2.0 * d_kappa * scale
    part = 1.0 / (1.0 + g)
    gain, loss = d_g * part, d_kappa / left
    bend = dd_g * part - gain * gain + dd_kappa / left + loss * loss
    return g, min(kappa / a, 1.0), gain + loss, bend


@_inlined
def _next(h, slope, bend, x, low, high, patient):
    """Return where to look next, and how small a step there (relative) is as good as the root.

    Halley's step, of third order, or Newton's where the bend is too large for it, if they stay
    inside the bracket. Else, and far above the root, Newton's step for e^(−h), which is nearly
    straight close to a pole of h, or for a function of log x. Else, or where patience is at its
    end, some point between.
    """
    step, enough = -h / slope, NEWTON_ENOUGH
    correction = 0.5 * step * bend / slope
    if abs(correction) < 0.5:
        step, enough = step / (1.0 + correction), HALLEY_ENOUGH
    if low < x + step < high and h < 1.0 and patient:
        return x + step, enough if h > -0.1 else 0.0
    there = x - math.expm1(min(h, 100.0)) / slope
    if low < there < high and h > -3.0 and patient:
        return there, 0.0
    # Newton's step against log x, for roots many orders of magnitude away.
    there = x * math.exp(max(-h / (slope * x), -700.0))
    if h > 0.0 and low < there < high and patient:
        return there, 0.0
    # A step that ends beyond the bracket: the root is likely close to its end.
    if h < 0.0 and high < math.inf and patient:
        return 0.15 * x + 0.85 * high, 0.0
    return _middle(low, high), 0.0


@_inlined
def _middle(low, high):
    if high == math.inf:
        return 2.0 * low + 1.0
    # On a logarithmic scale while the ends are of different magnitude.
    if low > 0.0 and high > 4.0 * low:
        return math.sqrt(low) * math.sqrt(high)
    return 0.5 * (low + high)


@_inner
def _climb(ball, x, scores, a, b, lower, upper, factors, h, slope, bend, scratch):
    """Write h(x) and its derivatives for all lanes."""
    up, down = scratch[8], scratch[9]
    cut = math.inf if ball in (EPSILON, ODDS_RATIO) else 1.0
    if ball == EPSILON:
        _multiply_upper(x, b, upper, up, slope, bend)
        for lane in range(LANES):
            if up[lane] > SAFE:
                h[lane] = math.log(up[lane]) - scores[lane]
            else:
                h[lane] = _log_ratio(x[lane], cut, a, b, lower, upper, lane)
    else:
        _multiply(x, cut, a, b, lower, upper, up, down, slope, bend)
        if ball == CHI2:
            for lane in range(LANES):
                gain, loss, more_slope, more_bend = _chi2_prior(x[lane], a[0, lane], b[0, lane])
                up[lane] *= 1.0 + gain
                down[lane] *= 1.0 - loss
                slope[lane] += more_slope
                bend[lane] += more_bend
        for lane in range(LANES):
            if min(up[lane], down[lane]) > SAFE and max(up[lane], down[lane]) < 1.0 / SAFE:
                h[lane] = math.log(up[lane] / down[lane])
            else:
                h[lane] = _log_ratio(x[lane], cut, a, b, lower, upper, lane)
                if ball == CHI2:
                    gain, loss, _, _ = _chi2_prior(x[lane], a[0, lane], b[0, lane])
                    h[lane] += math.log1p(gain) - math.log1p(-loss)
    if ball == ODDS_RATIO:
        for lane in range(LANES):
            h[lane] += factors[lane] * math.log1p(x[lane])
            slope[lane] += factors[lane] / (1.0 + x[lane])
            bend[lane] -= factors[lane] / ((1.0 + x[lane]) * (1.0 + x[lane]))


@_inner
def _solve_near_tie(ball, gap, a, b, lower, upper, factors, end, lane):
    """Return the root of h where Δ is tiny: with the digits that products would lose."""
    low, high, x = 0.0, end, 0.0
    for turn in range(MAX_STEPS):
        h, slope, bend = _height_near_tie(ball, x, gap, a, b, lower, upper, factors, lane)
        if h < 0.0:
            low = x
        else:
            high = x
        patient = turn < PATIENCE or turn % 2 == 0
        there, enough = _next(h, slope, bend, x, low, high, patient)
        move, x = abs(there - x), there
        if move <= enough * min(x, end - x) or (
            high < math.inf and high - low <= 4.0 * ROUNDING * high
        ):
            break
    return x


@_inner
def _height_near_tie(ball, x, gap, a, b, lower, upper, factors, lane):
    cut = math.inf if ball in (EPSILON, ODDS_RATIO) else 1.0
    h, slope, bend = -gap, 0.0, 0.0
    for k in range(a.shape[0]):
        ak, bk, fall, rise = a[k, lane], b[k, lane], lower[k, lane], upper[k, lane]
        if bk + x * rise > cut:
            h -= math.log(bk)
        else:
            h += math.log1p(x * rise / bk)
            slope += rise / (bk + x * rise)
            bend -= (rise / (bk + x * rise)) ** 2
        if ak - x * fall <= 0.0:
            return math.inf, math.inf, 0.0
        h -= math.log1p(-x * fall / ak)
        slope += fall / (ak - x * fall)
        bend += (fall / (ak - x * fall)) ** 2
    if ball == CHI2:
        gain, loss, more_slope, more_bend = _chi2_prior(x, a[0, lane], b[0, lane])
        h += math.log1p(gain) - math.log1p(-loss)
        slope, bend = slope + more_slope, bend + more_bend
    elif ball == ODDS_RATIO:
        h += factors * math.log1p(x)
        slope += factors / (1.0 + x)
    return h, slope, bend


@_inner
def _exact_gap(a, b, lane):
    """Return log(Π a / Π b) for nearly equal products, in twice the working precision.

    Differences that even this cannot tell from 0 are 0: a tie.
    """
    high_a, low_a, power_a = _long_product(a, lane)
    high_b, low_b, power_b = _long_product(b, lane)
    shift = 2.0 ** (power_a - power_b)
    high_a, low_a = high_a * shift, low_a * shift
    excess = ((high_a - high_b) + (low_a - low_b)) / high_b
    if abs(excess) <= 4.0 * a.shape[0] * ROUNDING * ROUNDING:
        return 0.0
    return math.log1p(excess)


@_inner
def _long_product(x, lane):
    """Return the product as high + low, times a power of two."""
    high, low, power = 1.0, 0.0, 0
    for k in range(x.shape[0]):
        mantissa, exponent = math.frexp(x[k, lane])
        product = high * mantissa
        low = low * mantissa + _product_error(high, mantissa, product)
        high = product
        power += exponent
        if high < 2.0**-400:
            high, low, power = high * 2.0**400, low * 2.0**400, power - 400
    total = high + low
    return total, low - (total - high), power


@_inner
def _product_error(x, y, product):
    """Return x·y − product exactly (Dekker)."""
    split = 134217729.0
    t = split * x
    x_high = t - (t - x)
    x_low = x - x_high
    t = split * y
    y_high = t - (t - y)
    y_low = y - y_high
    return ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low


@_inlined
def _other(index, best, second):
    """Return the class at a position among those that are neither best nor second."""
    first, last = min(best, second), max(best, second)
    if index >= first:
        index += 1
    if index >= last:
        index += 1
    return index


@_inlined
def _product_below(ball, x, a, lower, lane):
    """Return Π lower of a lane."""
    product = 1.0
    for k in range(a.shape[0]):
        product *= max(a[k, lane] - x * lower[k, lane], 0.0)
    if ball == CHI2:
        kappa = x * x / (1.0 + x * x)
        product *= max(1.0 - kappa / a[0, lane], 0.0)
    return product


@_inlined
def _product_above(ball, x, cells, i, c, probs, roots, prior, leading_prior):
    """Return Π upper of a row and class."""
    if ball == CHI2:
        kappa = x * x / (1.0 + x * x)
        rest = max(leading_prior + prior - kappa, 0.0)
        product = prior + math.sqrt(kappa * rest * prior / leading_prior)
    elif ball == PARI_MUTUEL:
        product = prior + x * prior
    else:
        product = prior + x
    for feature in range(cells.shape[1]):
        cell = cells[i, feature]
        if cell >= 0:
            value = probs[cell + c]
            if ball == EPSILON:
                product *= value + x
            elif ball == TOTAL_VARIATION:
                product *= min(value + x, 1.0)
            elif ball == CHI2:
                product *= min(value + x * value * roots[cell + c], 1.0)
            else:
                product *= min(value + x * value, 1.0)
    return product


@_inner
def _search(ball, cells, joint, class_probs, feature_probs, inverses, roots, robustness, tipping):
    """Write robustness and tipping class of rows.

    Each lane has a row, faces its rivals one after the other, the runner-up first, and keeps
    the earliest root `found`, in x. Most rivals after the first are still behind there.
    """
    classes = len(class_probs)
    shape = (cells.shape[1] + 1, LANES)
    a, b, lower, upper = np.ones(shape), np.ones(shape), np.zeros(shape), np.zeros(shape)
    scratch = np.zeros((10, LANES))
    x, low, high, found = scratch[0], scratch[1], scratch[2], scratch[3]
    h, slope, bend = scratch[5], scratch[6], scratch[7]
    ends, scores, factors = np.ones(LANES), np.zeros(LANES), np.ones(LANES, np.int64)
    falls, fall_bends = np.zeros(LANES), np.zeros(LANES)
    floors, floors_at = np.zeros(LANES), np.zeros(LANES)
    item, turn, tip = np.full(LANES, -1), np.zeros(LANES, np.int64), np.zeros(LANES, np.int64)
    rival, steps = np.zeros(LANES, np.int64), np.zeros(LANES, np.int64)
    best, second = np.zeros(LANES, np.int64), np.zeros(LANES, np.int64)
    fresh, busy = 0, 0
    starting = True
    while starting or busy > 0:
        if not starting:
            _climb(ball, x, scores, a, b, lower, upper, factors, h, slope, bend, scratch)
        for lane in range(LANES):
            if not starting:
                if item[lane] < 0:
                    continue
                # Take a step; on with the next lane unless this rival is settled.
                if h[lane] < 0.0:
                    low[lane] = x[lane]
                else:
                    high[lane] = x[lane]
                if x[lane] != found[lane] or h[lane] >= 0.0:
                    patient = steps[lane] < PATIENCE or steps[lane] % 2 == 0
                    there, enough = _next(
                        h[lane], slope[lane], bend[lane], x[lane], low[lane], high[lane], patient
                    )
                    small = abs(there - x[lane]) <= enough * min(there, ends[lane] - there)
                    width = high[lane] - low[lane]
                    narrow = width < math.inf and width <= 4.0 * ROUNDING * high[lane]
                    steps[lane] += 1
                    x[lane] = there
                    if not (small or narrow or steps[lane] > MAX_STEPS):
                        continue
                    found[lane], tip[lane] = there, rival[lane]
                turn[lane] += 1
            # Find the next rival that must be searched for, of this row or of the next.
            while True:
                if item[lane] >= 0 and turn[lane] >= classes - 1:
                    robustness[item[lane]] = _size(ball, found[lane])
                    tipping[item[lane]] = tip[lane]
                    item[lane] = -1
                    busy -= 1
                if item[lane] < 0:
                    if fresh == len(cells):
                        break
                    i = fresh
                    fresh += 1
                    busy += 1
                    item[lane], turn[lane], found[lane], tip[lane] = i, 0, math.inf, -1
                    floors_at[lane] = 0.0
                    best[lane], second[lane] = _best_two(joint[i])
                    scores[lane] = joint[i, best[lane]]
                    ends[lane], factors[lane], falls[lane], fall_bends[lane] = _load_row(
                        ball, cells, i, best[lane], feature_probs, inverses, roots,
                        class_probs[best[lane]], lane, a, lower, upper,
                    )  # fmt: skip
                    continue
                i = item[lane]
                rival[lane] = second[lane]
                if turn[lane] > 0:
                    rival[lane] = _other(turn[lane] - 1, best[lane], second[lane])
                gap = scores[lane] - joint[i, rival[lane]]
                if scores[lane] == -math.inf:
                    found[lane], tip[lane], turn[lane] = 0.0, rival[lane], classes
                    continue
                if gap == math.inf and ball in (CHI2, PARI_MUTUEL, ODDS_RATIO):
                    # What has probability 0 keeps it: nothing flips before ĉ itself has none.
                    if ends[lane] < found[lane]:
                        found[lane], tip[lane] = ends[lane], rival[lane]
                    turn[lane] += 1
                    continue
                if 0.0 < found[lane] < math.inf and ball != ODDS_RATIO:
                    # Most rivals are still behind at what was found already: one look will do.
                    if floors_at[lane] != found[lane]:
                        floors[lane] = _product_below(ball, found[lane], a, lower, lane)
                        floors_at[lane] = found[lane]
                    ceiling = _product_above(
                        ball, found[lane], cells, i, rival[lane], feature_probs, roots,
                        class_probs[rival[lane]], class_probs[best[lane]],
                    )  # fmt: skip
                    clear = floors[lane] * CLEARLY
                    if clear > SAFE and ceiling < clear:
                        turn[lane] += 1
                        continue
                rise, rise_bend = _load_rival(
                    ball, cells, i, rival[lane], feature_probs, inverses, roots,
                    class_probs[rival[lane]], lane, a, b, lower, upper,
                )  # fmt: skip
                if gap < 1e10 * ROUNDING * (factors[lane] + abs(scores[lane])):
                    # Rounding would show in h: more digits are needed.
                    gap = _exact_gap(a, b, lane)
                    root = 0.0
                    if gap > 0.0:
                        root = _solve_near_tie(
                            ball, gap, a, b, lower, upper, factors[lane], ends[lane], lane
                        )
                    if root < found[lane]:
                        found[lane], tip[lane] = root, rival[lane]
                    turn[lane] += 1
                    continue
                low[lane], high[lane], steps[lane] = 0.0, min(ends[lane], found[lane]), 0
                if found[lane] < math.inf:
                    x[lane] = found[lane]
                elif gap < math.inf:
                    slope_at_0, bend_at_0 = falls[lane] + rise, fall_bends[lane] + rise_bend
                    x[lane], _ = _next(-gap, slope_at_0, bend_at_0, 0.0, 0.0, high[lane], True)
                else:
                    x[lane] = 0.5 * high[lane]
                break
        starting = False


# Compiled when this module is imported, so after everything it calls.
@numba.njit(
    types.void(
        *(code_matrix, float_vector, float_vector, float_vector, float_vector, int_vector),
        *(bool_vector, int_vector, int_vector_out, int_vector_out, float_vector_out),
        *(float_matrix_out, int_matrix_out),
    ),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def quantify(
    codes,
    class_probs,
    feature_probs,
    inverses,
    roots,
    offsets,
    alone,
    balls,
    prediction,
    runner_up,
    probability,
    robustness,
    tipping,
):
    """Write the prediction, its probability and its robustness for each row.

    Parameters
    ----------
    codes : (rows, features); negative where missing
    class_probs, feature_probs, offsets : the model, see `models.naive_bayes`
    inverses, roots : 1/p and √((1−p)/p) for each of `feature_probs`
    alone : which features have a single category; no ball moves it
    balls : which balls
    prediction, runner_up, probability : (rows,), written
    robustness, tipping : (balls, rows), written; the tipping class is −1 if there is none
    """
    # Equal rows are computed once.
    twins, unique = _find_twins(codes)
    cells = _find_cells(codes, unique, len(class_probs), offsets, alone)
    joint = np.empty((len(unique), len(class_probs)))
    _read_rows(cells, class_probs, feature_probs, joint)
    for i in range(len(unique)):
        row = unique[i]
        prediction[row], runner_up[row] = _best_two(joint[i])
        probability[row] = _share(joint[i], prediction[row])
    found, tips = np.empty(len(unique)), np.empty(len(unique), np.int64)
    for index in range(len(balls)):
        _search(
            balls[index], cells, joint, class_probs, feature_probs, inverses, roots, found, tips
        )
        for i in range(len(unique)):
            robustness[index, unique[i]], tipping[index, unique[i]] = found[i], tips[i]
    for row in range(codes.shape[0]):
        twin = twins[row]
        if twin < row:
            prediction[row], runner_up[row] = prediction[twin], runner_up[twin]
            probability[row] = probability[twin]
            for index in range(len(balls)):
                robustness[index, row] = robustness[index, twin]
                tipping[index, row] = tipping[index, twin]
