"""Products of factors under Kullback–Leibler, whose bounds have no formula.

With δ = s² the logarithms of all bounds are nearly straight in s, and so is the lead at which the
prior's ball just ends. The derivatives are known, so a few of Newton's steps will do, and the
bounds of one step are close to those of the step before.
"""

import math

import numpy as np
from numba import types

from robustq.kernels import (
    code_matrix,
    float_matrix,
    float_vector,
    float_vector_out,
    inner,
    int_vector,
    int_vector_out,
    kernel,
)

from ._ball_kernels import move_kl, surprise

__all__ = ["search"]

# What is known of a factor: its probability, its gain, how far it has moved, at which size, how
# steeply the divergence grows there, and how that bends.
P, GAIN, MOVED, SIZE, SLOPE, BEND = range(6)
MAX_STEPS = 60
ENOUGH = 5e-7  # a step that is smaller, relative, is the last
TINY = 1e-9  # factors below this are for the recursion
NEAR = 2e-6  # leads that are smaller, for each factor, are for exact arithmetic
INNER = 6
LARGE = 1e100  # products beyond are taken the logarithm of in time


@inner
def _guess(factor, k, size, up, rest):
    """Return about how far a factor moves, from how far it has moved, or from nothing."""
    if factor[MOVED, k] > 0.0:
        more = (size - factor[SIZE, k]) / factor[SLOPE, k]
        return factor[MOVED, k] + more * (1.0 - 0.5 * more * factor[BEND, k] / factor[SLOPE, k])
    # Nearly normal, and a little skewed.
    moved = math.sqrt(2.0 * size * up * rest)
    return moved + moved * moved * (rest - up) / (6.0 * up * rest)


@inner
def _move(rising, factor, k, delta):
    """Move a factor up or down to the edge of its ball; return it, and the slope of its logarithm.

    The divergence of the size moved is searched for by Halley's steps, of third order.
    """
    p, size = factor[P, k], delta * factor[GAIN, k]
    up, rest = (p, 1.0 - p) if rising else (1.0 - p, p)
    if size <= 0.0 or rest <= 0.0 or up <= 0.0:
        return p, 0.0
    moved, slope, bend, found = _guess(factor, k, size, up, rest), 0.0, 0.0, False
    for _ in range(INNER):
        if not 0.0 < moved < 0.9 * rest:
            break
        y, z = moved / up, -moved / rest
        log_y, log_z = math.log1p(y), math.log1p(z)
        slope, bend = log_y - log_z, 1.0 / (up + moved) + 1.0 / (rest - moved)
        if y < 0.02 and z > -0.02:
            step = (up * surprise(y) + rest * surprise(z) - size) / slope
        else:
            step = (up * ((1.0 + y) * log_y - y) + rest * ((1.0 + z) * log_z - z) - size) / slope
        moved -= step / (1.0 - 0.5 * step * bend / slope)
        slope -= step * bend
        if abs(step) <= 1e-5 * moved:
            found = 0.0 < moved < 0.9 * rest
            break
    left = rest - moved
    if not found:
        limit = -math.log(p) if rising else -math.log1p(-p)
        moved, left = move_kl(up, rest, limit, size)
        slope = math.log1p(moved / up) - math.log(max(left, 1e-300) / rest)
        bend = 1.0 / (up + moved) + 1.0 / max(left, 1e-300)
    if left <= 0.0 and not rising:
        return 0.0, 0.0
    factor[MOVED, k], factor[SIZE, k] = moved, size
    factor[SLOPE, k], factor[BEND, k] = slope, bend
    value = p + moved if rising else left
    speed = factor[GAIN, k] / (slope * value)
    return value, speed if rising else -speed


@inner
def _find_lead(root, prior_a, prior_b):
    """Return how far log p(ĉ, f) must be ahead for the prior's ball to end there, and the slope.

    `root` is √δ. With L the lead, and α′ and β′ the shares of α and β, the nearest prior that lets
    the rival catch up has the divergence K = −log Z, Z = p(ĉ) e^(−Lα′) + p(c) e^(Lβ′) + the rest.
    √K is nearly straight in L.
    """
    odds = math.log(prior_a / prior_b)
    if root * root >= -math.log1p(-prior_a):
        # Even all features together cannot make up for a prior that gives ĉ nothing.
        return math.inf, 0.0
    low, high = 0.0, math.inf
    lead = root * math.sqrt(2.0 * (prior_a + prior_b) / (prior_a * prior_b))
    slope = math.nan
    for _ in range(MAX_STEPS):
        share, other = 1.0 / (1.0 + math.exp(odds - lead)), 1.0 / (1.0 + math.exp(lead - odds))
        left = math.exp(-lead * share)
        gone = -prior_a * math.expm1(-lead * share) - prior_b * math.expm1(lead * other)
        distance = math.sqrt(-math.log1p(-gone)) if gone > 0.0 else 0.0
        if distance < root:
            low = lead
        else:
            high = lead
        slope = 0.5 * lead * prior_a * share * left / ((1.0 - gone) * max(distance, 1e-300))
        step = (distance - root) / slope
        there = lead - step
        if abs(step) <= 1e-9 * lead:
            return there, 1.0 / slope
        if not low < there < high:
            there = 0.5 * (low + high) if high < math.inf else 2.0 * lead
        lead = there
    return math.nan, math.nan


@inner
def _look(s, a, b, count, prior_a, prior_b, gain):
    """Return by how much ĉ is ahead of where the rival catches up, and the slope in s."""
    delta = s * s
    height, slope, ratio = 0.0, 0.0, prior_a / prior_b
    for k in range(count):
        low, falls = _move(False, a, k, delta)
        high, rises = _move(True, b, k, delta)
        if low <= 0.0:
            return -math.inf, 0.0
        ratio *= low / high
        if not 1.0 / LARGE < ratio < LARGE:
            height, ratio = height + math.log(ratio), 1.0
        slope += falls - rises
    height += math.log(ratio)
    slope *= 2.0 * s
    if gain == 0.0 or s == 0.0:
        return height, slope
    lead, steep = _find_lead(s * math.sqrt(gain), prior_a, prior_b)
    return height - lead, slope - steep * math.sqrt(gain)


@inner
def _find_root(a, b, count, prior_a, prior_b, gain, gap, below):
    """Return δ where the rival catches up; infinite if beyond a limit, NaN if hard to tell.

    The gap is log p(ĉ, f) − log p(c, f).
    """
    low, high = 0.0, math.sqrt(below)
    if high < math.inf:
        height, _ = _look(high, a, b, count, prior_a, prior_b, gain)
        if height > 0.0:
            return math.inf
        if math.isnan(height):
            return math.nan
    # At 0 bounds move by √(2 δ p (1 − p)).
    slope = 0.0
    for k in range(count):
        slope += math.sqrt(2.0 * a[GAIN, k] * (1.0 - a[P, k]) / a[P, k])
        slope += math.sqrt(2.0 * b[GAIN, k] * (1.0 - b[P, k]) / b[P, k])
        a[MOVED, k], b[MOVED, k] = 0.0, 0.0
    if slope == 0.0 and gain == 0.0:
        return math.nan
    if gain > 0.0:
        slope += math.sqrt(2.0 * gain * (prior_a + prior_b) / (prior_a * prior_b))
    s = min(gap / slope, 0.5 * high)
    for _ in range(MAX_STEPS):
        height, slope = _look(s, a, b, count, prior_a, prior_b, gain)
        if math.isnan(height):
            return math.nan
        if height > 0.0:
            low = s
        else:
            high = s
        there = s - height / slope
        small = abs(there - s) <= ENOUGH * s
        # Where a factor is nearly exhausted the slope is steep, and a small step says nothing.
        flat = abs(height) <= 1e-5
        if small and flat and low <= there <= high:
            return there * there
        if small or not low < there < high:
            there = 0.5 * (low + high) if high < math.inf else 2.0 * s
        s = there
        if high < math.inf and high - low <= 1e-13 * high:
            return s * s
    return math.nan


@kernel(
    types.void(
        *(code_matrix, float_matrix, float_vector, float_vector, float_vector, types.float64),
        *(int_vector, int_vector, float_vector_out, int_vector_out),
    ),
    allocates=True,
)
def search(
    cells,
    joint,
    prior,
    features,
    gains,
    prior_gain,
    prediction,
    runner_up,
    found,
    tipping,
):
    """Write for each row the smallest size at which some rival catches up, and which one.

    Parameters
    ----------
    cells, joint, prior, features : as `products.Products` has them
    gains : like `features`; 0 where a factor is not perturbed
    prior_gain : 0 where the prior is not perturbed
    prediction, runner_up : (rows,)
    found, tipping : (rows,), written; NaN where it is hard to tell
    """
    classes, width = len(prior), cells.shape[1]
    a, b = np.zeros((6, width)), np.zeros((6, width))
    for row in range(len(cells)):
        best = prediction[row]
        found[row], tipping[row] = math.inf, -1
        for turn in range(classes + 1):
            rival = runner_up[row] if turn == 0 else np.int64(turn - 1)
            if rival < 0 or rival == best or (turn > 0 and rival == runner_up[row]):
                continue
            count, smallest = 0, min(prior[best], prior[rival])
            for feature in range(width):
                cell = cells[row, feature]
                if cell >= 0:
                    a[P, count], a[GAIN, count] = features[cell + best], gains[cell + best]
                    b[P, count], b[GAIN, count] = features[cell + rival], gains[cell + rival]
                    a[MOVED, count], b[MOVED, count] = 0.0, 0.0
                    for q in (a[P, count], b[P, count]):
                        smallest = min(smallest, q, 1.0 - q if q < 1.0 else 1.0)
                    count += 1
            gap = joint[row, best] - joint[row, rival]
            near = gap < NEAR * (count + 1.0)
            if near or smallest < TINY or prior[best] > 1.0 - 1e-6 or prior[rival] > 1.0 - 1e-6:
                found[row], tipping[row] = math.nan, rival
                break
            delta = _find_root(a, b, count, prior[best], prior[rival], prior_gain, gap, found[row])
            if delta < found[row] or math.isnan(delta):
                found[row], tipping[row] = delta, rival
            if math.isnan(delta):
                break
