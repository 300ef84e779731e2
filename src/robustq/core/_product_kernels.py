"""Products of factors, one for each class, compared by a kernel: several rows side by side.

A prediction ĉ is robust against a rival c as long as Π lower_k(x) > Π upper_k(x) over the
prior and the features, with bounds that a ball's form gives:

    lower_k = (a_k − x l_k) / (1 + x s_k)
    upper_k = (b_k + x u_k) / (1 + x t_k), at most `cut`

with a_k = p_k(ĉ) and b_k = p_k(c). With h(x) = log Π upper − log Π lower, which never
decreases, the robustness against c is the root of h; −h(0) = Δ is the log of p(ĉ,f)/p(c,f).
Under χ² the prior is special: see `_chi2_prior`. Denominators are factors of the other side, which
stand after those of the numerators; most balls have none.

The search for one root is a long chain of steps that wait for each other, so `LANES` rows are
searched side by side, and a lane that is done takes the next row. Arrays of the lanes have the
factors on the first axis and the lanes on the second; the prior is factor 0, feature i factor
i + 1, and a feature that is missing or has a single category is the constant factor 1.

(One file, though it is long: what numba keeps on disk is made anew when the file of the compiled
function changes, and not when one it calls does.)
"""

import math

import numpy as np
from numba import types

from robustq.kernels import (
    bool_vector,
    code_matrix,
    code_matrix_out,
    float_matrix,
    float_matrix_out,
    float_vector,
    float_vector_out,
    inlined,
    inner,
    int_vector,
    int_vector_out,
    kernel,
)

__all__ = ["COLUMNS", "locate", "log_joint", "rank", "search"]

# What the tables of a ball hold for each probability p of the model.
COLUMNS = ("p", "l", "l / p", "u", "u / p", "s", "t")
P, L, L_RATE, U, U_RATE, S, T = range(7)

LANES = 32
READ = 8  # rows read at a time
SMALL = 1e-150  # products are kept above this by taking their logarithm in time
SAFE = 1e-250  # a product above this has not underflowed on the way
FLOOR = 1e-300  # stands for 0 in a lower factor
TINY = 1e-280
ALL_BUT_ONE = 1.0 - 1e-5
PATIENCE, MAX_STEPS = 8, 300  # after that many steps every other one bisects
CLEARLY = 1.0 - 1e-9  # smaller than this factor tells: more than rounding
# A step this small, relative, is the last: what is left of a cubic or a square is below 1e-12.
HALLEY_ENOUGH, NEWTON_ENOUGH = 1e-4, 1e-7
ROUNDING = 2.0**-53


# Reading rows


@inlined
def _times(product, total, factor):
    """Multiply; before the product could underflow, move its logarithm to the total."""
    if product < SMALL or factor < SMALL:
        return factor, total + _log(product)
    return product * factor, total


@inlined
def _log(x):
    return math.log(x) if x > 0.0 else -math.inf


@inner
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


@inlined
def _share(joint, best):
    """Return p(ĉ | f); all classes are equally likely where p(f) = 0."""
    if joint[best] == -math.inf:
        return 1.0 / len(joint)
    total = 0.0
    for c in range(len(joint)):
        total += math.exp(joint[c] - joint[best])
    return 1.0 / total


@kernel(types.void(code_matrix, int_vector, bool_vector, types.int64, code_matrix_out))
def locate(codes, offsets, alone, classes, cells):
    """Write where the codes of rows stand in a table of probabilities.

    Parameters
    ----------
    codes : (rows, features); negative where missing
    offsets : where each feature begins in the table, see `learning.counts.Layout`
    alone : which features have a single category; no ball moves it
    classes : how many classes there are
    cells : (rows, features), written; −1 where the factor is constant
    """
    for row in range(codes.shape[0]):
        for feature in range(codes.shape[1]):
            code = codes[row, feature]
            free = code >= 0 and not alone[feature]
            cells[row, feature] = offsets[feature] + code * classes if free else -1


@kernel(
    types.void(
        *(float_matrix, int_vector_out, int_vector_out, float_vector_out),
        *(float_vector_out, float_vector_out),
    )
)
def rank(joint, prediction, runner_up, probability, top, lead):
    """Write the best two classes of each row, the probability of the best and its logarithm.

    And by how much that is ahead; infinity if there is only one class.
    """
    for row in range(joint.shape[0]):
        best, second = _best_two(joint[row])
        prediction[row], runner_up[row] = best, second
        probability[row] = _share(joint[row], best)
        top[row] = joint[row, best]
        lead[row] = joint[row, best] - joint[row, second] if second >= 0 else math.inf


@kernel(
    types.void(code_matrix, float_vector, float_vector, int_vector, float_matrix_out),
    allocates=True,
)
def log_joint(codes, class_probs, feature_probs, offsets, out):
    """Write log p(c, f) for each row and class.

    The logarithm of a product, not a sum of logarithms: faster, and closer.
    """
    classes = len(class_probs)
    product = np.zeros((READ, classes))
    for start in range(0, codes.shape[0], READ):
        # A few rows at a time: their products do not wait for each other.
        some = min(READ, codes.shape[0] - start)
        for i in range(some):
            for c in range(classes):
                product[i, c] = class_probs[c]
        for feature in range(codes.shape[1]):
            for i in range(some):
                code = codes[start + i, feature]
                if code >= 0:
                    cell = offsets[feature] + code * classes
                    for c in range(classes):
                        product[i, c] *= feature_probs[cell + c]
        for i in range(some):
            for c in range(classes):
                # Products of probabilities only fall: one that is not tiny has never been.
                if product[i, c] > SAFE:
                    out[start + i, c] = math.log(product[i, c])
                    continue
                part, total = class_probs[c], 0.0
                for feature in range(codes.shape[1]):
                    code = codes[start + i, feature]
                    if code >= 0:
                        factor = feature_probs[offsets[feature] + code * classes + c]
                        if part < SMALL or factor < SMALL:
                            total += math.log(part) if part > 0.0 else -math.inf
                            part = factor
                        else:
                            part *= factor
                out[start + i, c] = total + (math.log(part) if part > 0.0 else -math.inf)


# Heights


@inner
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


@inlined
def _log_ratio(x, cut, a, b, lower, upper, lane):
    """Return log Π upper − log Π lower of a lane whose products may underflow."""
    up, low, log_up, log_low = 1.0, 1.0, 0.0, 0.0
    for k in range(a.shape[0]):
        up, log_up = _times(up, log_up, min(b[k, lane] + x * upper[k, lane], cut))
        low, log_low = _times(low, log_low, max(a[k, lane] - x * lower[k, lane], FLOOR))
    return (log_up + _log(up)) - (log_low + _log(low))


@inlined
def _chi2_prior(x, scale, a, b):
    """Return what the prior does under χ²: it adds log(1+g) − log(1−f) to h.

    Given are g, f and what is added to the derivatives, beyond the constant log(b/a). The size is
    δ = (x · scale)².

    With κ = δ/(1+δ), the lower expectation of α1_ĉ − β1_c is positive if and only if
    α (a − κ) > β (b + √(κ (a+b−κ) b/a)): that is μ > σ√δ, solved for α/β.
    """
    s = x * scale
    w = 1.0 / (1.0 + s * s)
    kappa, d_kappa, dd_kappa = s * s * w, 2.0 * s * w * w, 2.0 * w * w * (1.0 - 4.0 * s * s * w)
    left = max(a - kappa, FLOOR)
    rest = left + b
    inverse = 1.0 / (a * b)
    root, sqrt_w = math.sqrt(rest * inverse), math.sqrt(w)
    g = s * sqrt_w * root
    steep = inverse / root * w * sqrt_w
    d_g = (rest - kappa) * steep
    dd_g = d_g * (0.5 * d_kappa / rest - 3.0 * s * w) - 2.0 * d_kappa * steep
    part = 1.0 / (1.0 + g)
    gain, loss = d_g * part, d_kappa / left
    bend = dd_g * part - gain * gain + dd_kappa / left + loss * loss
    return g, min(kappa / a, 1.0), scale * (gain + loss), scale * scale * bend


@inner
def _climb(x, cut, chi2, a, b, lower, upper, h, slope, bend, up, down):
    """Write h(x) and its derivatives for all lanes."""
    _multiply(x, cut, a, b, lower, upper, up, down, slope, bend)
    if chi2 > 0.0:
        for lane in range(LANES):
            gain, loss, more_slope, more_bend = _chi2_prior(x[lane], chi2, a[0, lane], b[0, lane])
            up[lane] *= 1.0 + gain
            down[lane] *= 1.0 - loss
            slope[lane] += more_slope
            bend[lane] += more_bend
    for lane in range(LANES):
        if min(up[lane], down[lane]) > SAFE and max(up[lane], down[lane]) < 1.0 / SAFE:
            h[lane] = math.log(up[lane] / down[lane])
        else:
            h[lane] = _log_ratio(x[lane], cut, a, b, lower, upper, lane)
            if chi2 > 0.0:
                gain, loss, _, _ = _chi2_prior(x[lane], chi2, a[0, lane], b[0, lane])
                h[lane] += math.log1p(gain) - math.log1p(-loss)


# Steps


@inner
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


@inlined
def _middle(low, high):
    if high == math.inf:
        return 2.0 * low + 1.0
    if low == 0.0:
        # Nothing is known of the magnitude.
        return high * 2.0**-16
    # On a logarithmic scale while the ends are of different magnitude.
    if high > 4.0 * low:
        return math.sqrt(low) * math.sqrt(high)
    return 0.5 * (low + high)


@inlined
def _first_guess(gap, slope, bend, high, found):
    """Return where to begin, given Δ and the derivatives of h at 0."""
    if found < math.inf:
        return found
    if gap == math.inf:
        return 0.5 * high
    guess, _ = _next(-gap, slope, bend, 0.0, 0.0, high, True)
    return guess


# Rivals


@inlined
def _other(index, best, second):
    """Return the class at a position among those that are neither best nor second."""
    first, last = min(best, second), max(best, second)
    if index >= first:
        index += 1
    if index >= last:
        index += 1
    return index


@inlined
def _load_row(cells, i, c, table, prior, lane, a, lower, upper):
    """Write a_k and l_k; return where one reaches 0, and their part of h′ and h″ at 0.

    Of a lower factor's denominator, 1 + x s_k is a factor of the other side.
    """
    a[0, lane], lower[0, lane] = prior[P], prior[L]
    steepest, smallest = prior[L_RATE], prior[P]
    slope, bend = steepest, steepest * steepest
    denominators = cells.shape[1] + 1
    if a.shape[0] > denominators:
        slope, bend = slope + prior[S], bend - prior[S] * prior[S]
        upper[denominators, lane] = prior[S]
        for feature in range(cells.shape[1]):
            cell = cells[i, feature]
            rate = table[cell + c, S] if cell >= 0 else 0.0
            upper[denominators + feature + 1, lane] = rate
            slope, bend = slope + rate, bend - rate * rate
    for feature in range(cells.shape[1]):
        cell = cells[i, feature]
        value, fall = 1.0, 0.0
        if cell >= 0:
            value, fall, rate = table[cell + c, P], table[cell + c, L], table[cell + c, L_RATE]
            smallest = min(smallest, value)
            steepest = max(steepest, rate)
            slope += rate
            bend += rate * rate
        a[feature + 1, lane], lower[feature + 1, lane] = value, fall
    return 1.0 / steepest, slope, bend, smallest


@inlined
def _load_rival(cells, i, c, table, prior, lane, b, upper, lower):
    """Write b_k and u_k; return their part of h′ and h″ at 0."""
    b[0, lane], upper[0, lane] = prior[P], prior[U]
    slope, bend = prior[U_RATE], -prior[U_RATE] * prior[U_RATE]
    denominators = cells.shape[1] + 1
    if b.shape[0] > denominators:
        slope, bend = slope - prior[T], bend + prior[T] * prior[T]
        lower[denominators, lane] = -prior[T]
        for feature in range(cells.shape[1]):
            cell = cells[i, feature]
            rate = table[cell + c, T] if cell >= 0 else 0.0
            lower[denominators + feature + 1, lane] = -rate
            slope, bend = slope - rate, bend + rate * rate
    for feature in range(cells.shape[1]):
        cell = cells[i, feature]
        value, rise = 1.0, 0.0
        if cell >= 0:
            value, rise, rate = table[cell + c, P], table[cell + c, U], table[cell + c, U_RATE]
            slope += rate
            bend -= rate * rate
        b[feature + 1, lane], upper[feature + 1, lane] = value, rise
    return slope, bend


@inlined
def _product_below(x, chi2, a, lower, upper, factors, lane):
    """Return Π lower of a lane."""
    product = 1.0
    for k in range(factors):
        product *= max(a[k, lane] - x * lower[k, lane], 0.0)
    for k in range(factors, a.shape[0]):
        product /= 1.0 + x * upper[k, lane]
    if chi2 > 0.0:
        s = x * chi2
        product *= max(1.0 - s * s / (1.0 + s * s) / a[0, lane], 0.0)
    return product


@inlined
def _product_above(x, cut, chi2, cells, i, c, table, prior, leading_prior):
    """Return Π upper of a row and class."""
    product = (prior[P] + x * prior[U]) / (1.0 + x * prior[T])
    if chi2 > 0.0:
        kappa = x * chi2 * x * chi2 / (1.0 + x * chi2 * x * chi2)
        rest = max(leading_prior + product - kappa, 0.0)
        product += math.sqrt(kappa * rest * product / leading_prior)
    for feature in range(cells.shape[1]):
        cell = cells[i, feature]
        if cell >= 0:
            above = (table[cell + c, P] + x * table[cell + c, U]) / (1.0 + x * table[cell + c, T])
            product *= min(above, cut)
    return product


@kernel(
    types.void(
        *(code_matrix, float_matrix, float_matrix, float_matrix),
        *(types.float64, types.float64, types.boolean, types.float64, types.boolean),
        *(float_vector_out, int_vector_out),
    ),
    allocates=True,
)
def search(
    cells,
    joint,
    class_table,
    feature_table,
    cut,
    limit,
    keeps_zero,
    chi2,
    fractional,
    found,
    tipping,
):
    """Write for each row the smallest root against any rival, and which rival's it is.

    Each lane has a row, faces its rivals one after the other, the runner-up first, and keeps
    the earliest root. Most rivals after the first are still behind there.

    Parameters
    ----------
    cells : as `find_distinct` writes them
    joint : log p(c, f) for each row and class
    class_table, feature_table : (probabilities, `COLUMNS`)
    cut : what upper factors are cut off at
    limit : where x ends at the latest
    keeps_zero : whether an outcome of probability 0 stays there
    chi2 : not 0 if the prior is special: what x is multiplied by there
    fractional : whether factors have denominators
    found, tipping : (rows,), written; infinite and −1 where there is no root, NaN where the
        classes are so close that rounding would show
    """
    classes = len(class_table)
    factors = cells.shape[1] + 1
    tables = np.zeros((4, 2 * factors if fractional else factors, LANES))
    a, b, lower, upper = tables[0], tables[1], tables[2], tables[3]
    for k in range(tables.shape[1]):
        for lane in range(LANES):
            a[k, lane], b[k, lane] = 1.0, 1.0
    scratch = np.zeros((12, LANES))
    x, scores, h, slope, bend = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
    lows, highs, roots, ends = scratch[5], scratch[6], scratch[7], scratch[8]
    falls, fall_bends, up, down = scratch[9], scratch[10], scratch[11], np.zeros(LANES)
    whole = np.zeros((7, LANES), np.int64)
    item, rival, best, second = whole[0], whole[1], whole[2], whole[3]
    turn, tip, steps = whole[4], whole[5], whole[6]
    for lane in range(LANES):
        item[lane] = -1
    fresh, busy = 0, 0
    starting = True
    while starting or busy > 0:
        if not starting:
            _climb(x, cut, chi2, a, b, lower, upper, h, slope, bend, up, down)
        for lane in range(LANES):
            i, root, end = item[lane], roots[lane], ends[lane]
            if not starting:
                if i < 0:
                    continue
                # Take a step; on with the next lane unless this rival is settled.
                here, height, low, high = x[lane], h[lane], lows[lane], highs[lane]
                if height < 0.0:
                    low = here
                else:
                    high = here
                if here != root or height >= 0.0:
                    step = steps[lane]
                    patient = step < PATIENCE or step % 2 == 0
                    there, enough = _next(height, slope[lane], bend[lane], here, low, high, patient)
                    small = abs(there - here) <= enough * min(there, end - there)
                    narrow = high < math.inf and high - low <= 4.0 * ROUNDING * high
                    if not (small or narrow or step > MAX_STEPS):
                        x[lane], lows[lane], highs[lane], steps[lane] = there, low, high, step + 1
                        continue
                    root, tip[lane] = there, rival[lane]
                turn[lane] += 1
            # Find the next rival that must be searched for, of this row or of the next.
            floor, floor_at = 0.0, 0.0
            while True:
                if i >= 0 and turn[lane] >= classes - 1:
                    found[i], tipping[i] = root, tip[lane]
                    i = -1
                    busy -= 1
                if i < 0:
                    if fresh == len(cells):
                        break
                    i, root, floor_at = fresh, math.inf, 0.0
                    fresh += 1
                    busy += 1
                    turn[lane], tip[lane] = 0, -1
                    c, rival[lane] = _best_two(joint[i])
                    best[lane], second[lane], scores[lane] = c, rival[lane], joint[i, c]
                    end, falls[lane], fall_bends[lane], smallest = _load_row(
                        cells, i, c, feature_table, class_table[c], lane, a, lower, upper
                    )
                    if chi2 > 0.0 and a[0, lane] < 1.0:
                        end = min(end, math.sqrt(a[0, lane] / (1.0 - a[0, lane])) / chi2)
                    end = min(end, limit)
                    if smallest < TINY or (chi2 > 0.0 and a[0, lane] > ALL_BUT_ONE):
                        # A factor that small drowns in what stands for 0, and a prior so near
                        # to 1 leaves no digits to what κ leaves of it.
                        root, turn[lane] = math.nan, classes
                    continue
                c = second[lane]
                if turn[lane] > 0:
                    c = _other(turn[lane] - 1, best[lane], c)
                rival[lane] = c
                score = scores[lane]
                gap = score - joint[i, c]
                if score == -math.inf:
                    root, tip[lane], turn[lane] = 0.0, c, classes
                    continue
                if gap == math.inf and keeps_zero:
                    # Nothing flips before ĉ itself has no probability left.
                    if end < root:
                        root, tip[lane] = end, c
                    turn[lane] += 1
                    continue
                if 0.0 < root < math.inf:
                    # Most rivals are still behind at what was found already: one look will do.
                    if floor_at != root:
                        floor = CLEARLY * _product_below(root, chi2, a, lower, upper, factors, lane)
                        floor_at = root
                    ceiling = _product_above(
                        root, cut, chi2, cells, i, c, feature_table, class_table[c], a[0, lane]
                    )
                    if floor > SAFE and ceiling < floor:
                        turn[lane] += 1
                        continue
                rise, rise_bend = _load_rival(
                    cells, i, c, feature_table, class_table[c], lane, b, upper, lower
                )
                if gap < 1e10 * ROUNDING * (factors + abs(score)):
                    # Rounding would show in h: more digits are needed.
                    root, tip[lane], turn[lane] = math.nan, c, classes
                    continue
                rise, rise_bend = rise + falls[lane], rise_bend + fall_bends[lane]
                if chi2 > 0.0:
                    _, _, more_slope, more_bend = _chi2_prior(0.0, chi2, a[0, lane], b[0, lane])
                    rise, rise_bend = rise + more_slope, rise_bend + more_bend
                lows[lane], highs[lane], steps[lane] = 0.0, min(end, root), 0
                x[lane] = _first_guess(gap, rise, rise_bend, highs[lane], root)
                break
            item[lane], roots[lane], ends[lane] = i, root, end
        starting = False
