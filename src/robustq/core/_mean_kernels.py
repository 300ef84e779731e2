"""Means of products, one for each class, compared by a kernel.

A prediction ĉ is robust against a rival c as long as lower(x) Σ_j Π_k lower_jk(x) is larger than
upper(x) Σ_j Π_k upper_jk(x), the first factors those of the prior; see `_height_kernels` for the
bounds of factors. With h(x) the logarithm of the right side minus that of the left one, which never
decreases, the robustness against c is the root of h.

The factors of one row are laid out side by side over the terms j: a few multiplications at once
are cheaper than the divisions that derivatives would need, so none but the first is taken.
"""

import math

import numpy as np
from numba import types

from robustq.kernels import (
    float_matrix,
    float_vector_out,
    inner,
    int_vector,
    int_vector_out,
    kernel,
)

from ._height_kernels import L_RATE, U_RATE, L, P, S, T, U, chi2_prior

__all__ = ["search"]

SAFE = 1e-200  # a product above this has not underflowed on the way
ROUNDING = 2.0**-53
ENOUGH = 1e-12  # how near, relative, is near enough
MAX_STEPS = 200
ALL_BUT_ONE = 1.0 - 1e-5
VANISHED = 1e300

code_cube = types.Array(types.int32, 3, "C", readonly=True)


@inner
def _load(cells, row, terms, c, table, at, value, slope, scale, fractional):
    """Write the factors of a class, terms side by side; return the relative slope of the mean at 0.

    `at` is L or U: what stands in the next column is the slope relative to the value, and S or T
    the scale of the denominator.
    """
    features = cells.shape[2]
    mean, total = 0.0, 0.0
    under = S if at == L else T
    for j in range(terms):
        product, rate = 1.0, 0.0
        for i in range(features):
            cell = cells[row, j, i]
            if cell < 0:
                value[i, j], slope[i, j], scale[i, j] = 1.0, 0.0, 0.0
                continue
            value[i, j], slope[i, j] = table[cell + c, P], table[cell + c, at]
            product *= value[i, j]
            rate += table[cell + c, at + 1]
            if fractional:
                scale[i, j] = table[cell + c, under]
                rate += scale[i, j] if at == L else -scale[i, j]
        mean += product * rate if product > 0.0 else 0.0
        total += product
    return mean / total if total > 0.0 else 0.0


@inner
def _lower(x, terms, value, slope, scale, fractional, product, under):
    """Return Σ_j Π_k lower_jk."""
    for j in range(terms):
        product[j], under[j] = 1.0, 1.0
    for i in range(value.shape[0]):
        for j in range(terms):
            left = value[i, j] - x * slope[i, j]
            product[j] *= left if left > 0.0 else 0.0
        if fractional:
            for j in range(terms):
                under[j] *= 1.0 + x * scale[i, j]
    total = 0.0
    for j in range(terms):
        total += product[j] / under[j]
    return total


@inner
def _upper(x, cut, terms, value, slope, scale, fractional, product, under):
    """Return Σ_j Π_k upper_jk."""
    for j in range(terms):
        product[j], under[j] = 1.0, 1.0
    for i in range(value.shape[0]):
        for j in range(terms):
            above = value[i, j] + x * slope[i, j]
            product[j] *= above if above < cut else cut
        if fractional:
            for j in range(terms):
                under[j] *= 1.0 + x * scale[i, j]
    total = 0.0
    for j in range(terms):
        total += product[j] / under[j]
    return total


@inner
def _height(x, cut, chi2, terms, own, other, fractional, best, rival, room):
    """Return h(x); infinite where nothing is left of ĉ, and NaN where something underflows."""
    product, under = room[0], room[1]
    low = _lower(x, terms, own[0], own[1], own[2], fractional, product, under)
    high = _upper(x, cut, terms, other[0], other[1], other[2], fractional, product, under)
    if low <= 0.0:
        return VANISHED
    if not (low > SAFE and high > SAFE):
        return math.nan
    a, b, more = best[P], rival[P], 0.0
    if chi2 > 0.0:
        gain, loss, _, _ = chi2_prior(x, chi2, a, b)
        if loss >= 1.0:
            return VANISHED
        more = math.log1p(gain) - math.log1p(-loss)
    else:
        a = (a - x * best[L]) / (1.0 + x * best[S])
        b = min(b + x * rival[U], max(cut, 1.0)) / (1.0 + x * rival[T])
        if a <= 0.0:
            return VANISHED
    return math.log(b * high / (a * low)) + more


@inner
def _find_root(limit, start, gap, cut, chi2, terms, own, other, fractional, best, rival, room):
    """Return the root of h, infinity if it is beyond the limit, NaN where digits are missing."""
    low, at_low, high, at_high = 0.0, -gap, limit, math.inf
    x = min(start, 0.5 * limit)
    for _ in range(MAX_STEPS):
        # Outward until there is a bracket; h is mostly convex, so a line falls short.
        h = _height(x, cut, chi2, terms, own, other, fractional, best, rival, room)
        if math.isnan(h):
            return math.nan
        if h >= 0.0:
            high, at_high = x, h
            break
        if x >= limit:
            return math.inf
        there = 2.0 * x
        if h > at_low:
            there = min(max(x - 1.1 * h * (x - low) / (h - at_low), 1.01 * x), 64.0 * x)
        low, at_low = x, h
        x = min(there, limit)
    x1, x2, f1, f2 = high, low, at_high, at_low
    x3, f3 = x1, f1
    share = 0.5 if f1 >= VANISHED else f1 / (f1 - f2)
    for _ in range(MAX_STEPS):
        nearest = 0.5 * ENOUGH * max(x1, x2) / abs(x2 - x1)
        if nearest >= 0.5:
            break
        x = x1 + min(max(share, nearest), 1.0 - nearest) * (x2 - x1)
        if low == 0.0 and share == 0.5 and min(x1, x2) == 0.0:
            x = high * 2.0**-10
        h = _height(x, cut, chi2, terms, own, other, fractional, best, rival, room)
        if math.isnan(h):
            return math.nan
        if h == 0.0:
            return x
        if (h > 0.0) == (f1 > 0.0):
            x3, f3 = x1, f1
        else:
            x3, f3, x2, f2 = x2, f2, x1, f1
        x1, f1 = x, h
        share = 0.5
        if max(f1, f2, f3) < VANISHED and f3 != f2 and f2 != f1 and f3 != f1:
            xi, phi = (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
            if phi * phi < xi and (1.0 - phi) * (1.0 - phi) < 1.0 - xi:
                share = f1 / (f2 - f1) * f3 / (f2 - f3)
                share += (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f3 - f2)
    return 0.5 * (x1 + x2)


@kernel(
    types.void(
        *(code_cube, int_vector, float_matrix, float_matrix, float_matrix, types.float64),
        *(types.float64, types.float64, types.boolean, int_vector, int_vector),
        *(float_vector_out, int_vector_out),
    ),
    allocates=True,
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
    prediction,
    runner_up,
    found,
    tipping,
):
    """Write the x where each prediction flips, and the class it flips to; NaN where unsure.

    Parameters
    ----------
    cells, terms, joint : see `means.Means`
    class_table, feature_table : the columns of `products.COLUMNS`
    cut, limit, chi2, fractional : see `products.BallTables`
    prediction, runner_up : (rows,)
    found, tipping : (rows,), written
    """
    most, features, classes = cells.shape[1], cells.shape[2], joint.shape[1]
    own, other = np.zeros((3, features, most)), np.zeros((3, features, most))
    room = np.zeros((2, most))
    for row in range(cells.shape[0]):
        best, count = prediction[row], terms[row]
        found[row], tipping[row] = math.inf, -1
        score = joint[row, best]
        if chi2 > 0.0 and class_table[best, P] > ALL_BUT_ONE:
            found[row] = math.nan
            continue
        falls = _load(
            *(cells, row, count, best, feature_table, L),
            *(own[0], own[1], own[2], fractional),
        )
        falls += class_table[best, L_RATE] + class_table[best, S]
        for turn in range(classes + 1):
            rival = runner_up[row] if turn == 0 else np.int64(turn - 1)
            if rival < 0 or rival == best or (turn > 0 and rival == runner_up[row]):
                continue
            gap = score - joint[row, rival]
            if not gap < math.inf or gap < 1e10 * ROUNDING * (features + abs(score)):
                # Nothing to compare with, or rounding would show in h.
                found[row] = math.nan
                break
            rises = _load(
                *(cells, row, count, rival, feature_table, U),
                *(other[0], other[1], other[2], fractional),
            )
            if found[row] < math.inf:
                h = _height(
                    *(found[row], cut, chi2, count, own, other, fractional),
                    *(class_table[best], class_table[rival], room),
                )
                if h < -1e-9:
                    continue
            slope = falls + rises + class_table[rival, U_RATE] - class_table[rival, T]
            if chi2 > 0.0:
                _, _, more, _ = chi2_prior(0.0, chi2, class_table[best, P], class_table[rival, P])
                slope += more
            start = gap / slope if slope > 0.0 else limit
            x = _find_root(
                *(limit, start, gap, cut, chi2, count, own, other),
                *(fractional, class_table[best], class_table[rival], room),
            )
            if math.isnan(x):
                found[row] = x
                break
            if x < found[row]:
                found[row], tipping[row] = x, rival
        if found[row] == math.inf or found[row] >= limit:
            # At the end of its range, and where nothing flips, the recursion makes sure.
            found[row] = math.nan
