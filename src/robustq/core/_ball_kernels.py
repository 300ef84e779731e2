"""Balls, compiled: bounds on one outcome, and lower expectations over a few.

x is what a form is a function of, and `gain` what it is multiplied by for one local mass function: 1
for equal sizes, less where many rows stand behind it, 0 where it is not perturbed. Changes, bound
minus probability, are computed as such: they keep their digits where a difference would lose them.
"""

import math

from robustq.kernels import inner

from .modes import CHI2, ENDLESS, EPSILON, KL, ODDS_RATIO, PARI_MUTUEL, TV

__all__ = [
    "change_lower",
    "change_upper",
    "contrast",
    "lower_bound",
    "shift_weights",
    "upper_bound",
]

MOST = 60  # Newton steps
SMALL = 0.02


# Bounds on one outcome


@inner
def _surprise(y):
    """Return (1+y) log(1+y) − y, which is y²/2 near 0."""
    if abs(y) < SMALL:
        total, power = 0.0, y * y
        total += power * (1.0 / 2.0)
        power *= -y
        total += power * (1.0 / 6.0)
        power *= -y
        total += power * (1.0 / 12.0)
        power *= -y
        total += power * (1.0 / 20.0)
        power *= -y
        total += power * (1.0 / 30.0)
        power *= -y
        total += power * (1.0 / 42.0)
        power *= -y
        total += power * (1.0 / 56.0)
        power *= -y
        total += power * (1.0 / 72.0)
        return total
    if y <= -1.0:
        return 1.0
    return (1.0 + y) * math.log1p(y) - y


@inner
def _move_kl(p, rest, limit, delta):
    """Return how much mass goes from the rest to p so that the divergence is δ, all from a limit on."""
    if delta >= limit:
        return rest
    # The divergence is convex: from above the root, Newton's steps go down to it.
    moved = min(delta + math.sqrt(delta * delta + 2.0 * p * delta), rest * (1.0 - 1e-15))
    low, high = 0.0, rest
    for _ in range(MOST):
        error = p * _surprise(moved / p) + rest * _surprise(-moved / rest) - delta
        if error > 0.0:
            high = moved
        else:
            low = moved
        step = error / (math.log1p(moved / p) - math.log1p(-moved / rest))
        there = moved - step
        # Convergence is quadratic.
        if abs(step) <= 1e-9 * moved:
            return min(max(there, 0.0), rest)
        if not low < there < high:
            there = 0.5 * (low + high)
        moved = there
        if high - low <= 1e-16 * high:
            break
    return moved


@inner
def _kl_rise(p, delta):
    """Return how far p rises under Kullback–Leibler."""
    if p <= 0.0 or p >= 1.0 or delta <= 0.0:
        return 0.0
    return _move_kl(p, 1.0 - p, -math.log(p), delta)


@inner
def _kl_fall(p, delta):
    """Return how far p falls under Kullback–Leibler."""
    if p <= 0.0 or p >= 1.0 or delta <= 0.0:
        return 0.0
    return _move_kl(1.0 - p, p, -math.log1p(-p), delta)


@inner
def lower_bound(mode, x, p, gain, fall, fall_scale):
    """Return the lower bound of a probability."""
    if mode == KL:
        return max(p - _kl_fall(p, x * gain), 0.0) if gain > 0.0 else p
    if x >= ENDLESS:
        return 0.0 if fall > 0.0 or fall_scale > 0.0 else p
    top = p - x * fall
    return top / (1.0 + x * fall_scale) if top > 0.0 else 0.0


@inner
def upper_bound(mode, x, p, gain, rise, rise_scale):
    """Return the upper bound of a probability."""
    if mode == KL:
        return min(p + _kl_rise(p, x * gain), 1.0) if gain > 0.0 else p
    if x >= ENDLESS:
        if rise_scale > 0.0:
            return min(rise / rise_scale, 1.0)
        return 1.0 if rise > 0.0 else p
    return min((p + x * rise) / (1.0 + x * rise_scale), 1.0)


@inner
def change_lower(mode, x, p, gain, fall, fall_scale):
    """Return the lower bound minus the probability."""
    if mode == KL:
        return -min(_kl_fall(p, x * gain), p) if gain > 0.0 else 0.0
    return -min(x * (fall + p * fall_scale) / (1.0 + x * fall_scale), p)


@inner
def change_upper(mode, x, p, gain, rise, rise_scale):
    """Return the upper bound minus the probability."""
    if mode == KL:
        return min(_kl_rise(p, x * gain), 1.0 - p) if gain > 0.0 else 0.0
    # Written so that nothing cancels near p = 1.
    if mode == ODDS_RATIO:
        speed = p * (1.0 - p) * gain
    elif mode == EPSILON:
        speed = (1.0 - p) * gain
    else:
        speed = rise - p * rise_scale
    return min(x * speed / (1.0 + x * rise_scale), 1.0 - p)


# Lower expectations


@inner
def _sort(f, count, order):
    """Write the order of the values, upward."""
    for i in range(count):
        at = i
        while at > 0 and f[order[at - 1]] > f[i]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = i


@inner
def _shift_epsilon(size, w, f, count, shift):
    share = 1.0 if size >= ENDLESS else size / (1.0 + size)
    lowest = 0
    for i in range(count):
        if f[i] < f[lowest]:
            lowest = i
        shift[i] = -share * w[i]
    shift[lowest] += share
    return f[lowest]


@inner
def _shift_tv(size, w, f, count, order, shift):
    _sort(f, count, order)
    left, moved = size, 0.0
    for k in range(count - 1, 0, -1):
        i = order[k]
        taken = min(w[i], left)
        shift[i] = -taken
        left -= taken
        moved += taken
    shift[order[0]] = moved
    return f[order[0]]


@inner
def _shift_pari_mutuel(size, w, f, count, order, shift):
    _sort(f, count, order)
    above = 0.0
    for k in range(count):
        above += w[order[k]]
    given, pivot, full = 0.0, f[order[count - 1]], False
    for k in range(count):
        i = order[k]
        above -= w[i]
        if full:
            shift[i] = -w[i]
            continue
        more = size * w[i]
        if given + more >= above and w[i] > 0.0:
            # Here the mass of those above is used up.
            full, pivot = True, f[i]
            shift[i] = max(above, 0.0) - given
        else:
            shift[i] = more
            given += more
    return pivot


@inner
def _shift_odds_ratio(size, w, f, count, order, shift):
    _sort(f, count, order)
    keep = 1.0 / (1.0 + size)
    mass, total = 0.0, 0.0
    for i in range(count):
        mass += w[i]
        total += w[i] * f[i]
    low, low_total, level = 0.0, 0.0, -1
    best = total / mass if mass > 0.0 else 0.0
    for k in range(count):
        i = order[k]
        low += w[i]
        low_total += w[i] * f[i]
        high, high_total = mass - low, total - low_total
        weight = low + keep * high
        if weight > 0.0:
            mean = (low_total + keep * high_total) / weight
            if mean < best:
                best, level = mean, k
    if level < 0:
        for i in range(count):
            shift[i] = 0.0
        return best
    low, high = 0.0, 0.0
    for k in range(count):
        if k <= level:
            low += w[order[k]]
        else:
            high += w[order[k]]
    lost = size / (1.0 + size)
    weight = low + keep * high
    for k in range(count):
        i = order[k]
        shift[i] = w[i] * (high if k <= level else -low) * lost / weight
    return best


@inner
def _shift_chi2(size, w, f, count, order, shift):
    """Shift under χ², size being √δ: see `perturbations.ChiSquared`."""
    _sort(f, count, order)
    delta = size * size
    for level in range(count - 1, -1, -1):
        mass, mean, above = 0.0, 0.0, 0.0
        for k in range(count):
            i = order[k]
            if k <= level:
                mass += w[i]
                mean += w[i] * f[i]
            else:
                above += w[i]
        if mass <= 0.0 or f[order[level]] == f[order[0]]:
            break
        mean /= mass
        variance = 0.0
        for k in range(level + 1):
            i = order[k]
            variance += w[i] * (f[i] - mean) * (f[i] - mean)
        variance /= mass
        excess = max(delta * mass - above, 0.0)
        reach = f[order[level]] - mean
        if w[order[level]] > 0.0 and excess * reach * reach < variance:
            tilt = math.sqrt(excess / variance)
            for k in range(count):
                i = order[k]
                if k > level:
                    shift[i] = -w[i]
                elif level == count - 1:
                    shift[i] = -w[i] * tilt * (f[i] - mean)
                else:
                    shift[i] = w[i] * (1.0 - tilt * (f[i] - mean)) / mass - w[i]
            return mean
    return _gather_lowest(w, f, count, order, shift)


@inner
def _gather_lowest(w, f, count, order, shift):
    """Give all mass to the smallest value that has any."""
    lowest, mass = math.inf, 0.0
    for k in range(count):
        i = order[k]
        if w[i] > 0.0 and f[i] < lowest:
            lowest = f[i]
    for i in range(count):
        if f[i] == lowest:
            mass += w[i]
    for i in range(count):
        shift[i] = w[i] / mass - w[i] if f[i] == lowest else -w[i]
    return lowest


@inner
def _shift_kl(delta, w, f, count, order, shift):
    """Shift under Kullback–Leibler: weights tilted by e^(−tu), u from 0 to 1."""
    low, high, at_low = math.inf, -math.inf, 0.0
    for i in range(count):
        order[i] = i
        if w[i] > 0.0:
            low, high = min(low, f[i]), max(high, f[i])
    span = high - low
    for i in range(count):
        if f[i] == low:
            at_low += w[i]
        shift[i] = 0.0
    if not span > 0.0 or delta <= 0.0:
        return low
    if delta >= -math.log(at_low):
        return _gather_lowest(w, f, count, order, shift)
    # A variance on [0, 1] is at most 1/4, so the divergence is at most t²/8.
    left, right = math.sqrt(8.0 * delta), math.inf
    mean, spread = 0.0, 0.0
    for i in range(count):
        mean += w[i] * (f[i] - low) / span
    for i in range(count):
        u = (f[i] - low) / span - mean
        spread += w[i] * u * u
    t, log_mean = max(math.sqrt(2.0 * delta / spread), left), 0.0
    for _ in range(200):
        change, excess = 0.0, 0.0
        for i in range(count):
            if w[i] > 0.0:
                change += w[i] * math.expm1(-t * (f[i] - low) / span)
        log_mean = math.log1p(change)
        mean = 0.0
        for i in range(count):
            if w[i] > 0.0:
                u = (f[i] - low) / span
                y = math.expm1(-t * u - log_mean)
                excess += w[i] * _surprise(y)
                mean += w[i] * (1.0 + y) * u
        spread = 0.0
        for i in range(count):
            if w[i] > 0.0:
                u = (f[i] - low) / span
                spread += w[i] * math.exp(-t * u - log_mean) * (u - mean) * (u - mean)
        if excess > delta:
            right = t
        else:
            left = t
        # In the logarithm of t, the logarithm of the divergence is nearly straight.
        step = math.log(excess / delta) * excess / (t * t * spread) if spread > 0.0 else math.inf
        there = t * math.exp(-min(max(step, -3.0), 3.0)) if step == step else math.nan
        if not left < there < right:
            there = 0.5 * (left + right) if right < math.inf else 2.0 * t
        moved = abs(there - t)
        t = there
        if moved <= 1e-13 * t or (right < math.inf and right - left <= 1e-15 * right):
            break
    change = 0.0
    for i in range(count):
        if w[i] > 0.0:
            change += w[i] * math.expm1(-t * (f[i] - low) / span)
    log_mean = math.log1p(change)
    for i in range(count):
        if w[i] > 0.0:
            shift[i] = w[i] * math.expm1(-t * (f[i] - low) / span - log_mean)
    return low - span * log_mean / t


@inner
def shift_weights(mode, size, w, f, count, order, shift):
    """Write by how much the weights move to make the expectation of f smallest.

    Gives back a value that those who gain lie below and those who lose above: seen from it, every
    move makes the expectation smaller.
    """
    if mode == EPSILON:
        return _shift_epsilon(size, w, f, count, shift)
    if mode == TV:
        return _shift_tv(size, w, f, count, order, shift)
    if mode == PARI_MUTUEL:
        return _shift_pari_mutuel(size, w, f, count, order, shift)
    if mode == CHI2:
        return _shift_chi2(size, w, f, count, order, shift)
    if mode == ODDS_RATIO:
        return _shift_odds_ratio(size, w, f, count, order, shift)
    return _shift_kl(size, w, f, count, order, shift)


@inner
def contrast(mode, x, a, b, gain, classes, low, up, w, f, order, shift):
    """Return the change of the lower expectation of 1_ĉ − 1_c under a mass function on the classes.

    `low` and `up` are the changes of the bounds of a = q(ĉ) and b = q(c): for most balls both are
    attained at once.
    """
    if mode == CHI2 or mode == ODDS_RATIO or mode == KL:
        w[0], w[1], f[0], f[1] = a, b, 1.0, -1.0
        w[2], f[2] = max(1.0 - a - b, 0.0), 0.0
        count = 3 if classes > 2 else 2
        pivot = shift_weights(mode, x * gain, w, f, count, order, shift)
        total = 0.0
        for i in range(count):
            total += shift[i] * (f[i] - pivot)
        return total
    return low - up
