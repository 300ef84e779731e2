"""Balls, compiled: bounds on one outcome, and lower expectations over a few.

x is what a form is a function of, and `gain` what it is multiplied by for one local model: 1
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
    "shift_chi2",
    "shift_tv",
    "shift_weights",
    "sort",
    "upper_bound",
]

MOST = 60  # Newton steps
COMMON = 1e-4  # weights above this are not rare
NARROW = 1e-6  # a variance below this, relative to the square of values, is of nearly equal ones
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
    """Return how much mass goes from the rest to p so that the divergence is δ, and what is left.

    From a limit on, everything goes.
    """
    if p <= 0.0 or rest <= 0.0 or delta <= 0.0:
        return 0.0, rest
    if delta >= limit:
        return rest, 0.0
    if p * _surprise(0.9 * rest / p) + rest * _surprise(-0.9) < delta:
        return _exhaust_kl(p, rest, delta)
    # The divergence is convex: from above the root, Newton's steps go down to it.
    moved = min(delta + math.sqrt(delta * delta + 2.0 * p * delta), 0.9 * rest)
    low, high = 0.0, 0.9 * rest
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
            moved = min(max(there, 0.0), rest)
            break
        if not low < there < high:
            there = 0.5 * (low + high)
        moved = there
        if high - low <= 1e-16 * high:
            break
    return moved, rest - moved


@inner
def _exhaust_kl(p, rest, delta):
    """Return the same where hardly anything is left: the logarithm of that is searched for."""
    low, high = -745.0, math.log(0.1)
    s = math.log(0.05)
    for _ in range(200):
        left = rest * math.exp(s)
        moved = rest - left
        error = left * s + moved + p * _surprise(moved / p) - delta
        if error > 0.0:
            low = s
        else:
            high = s
        there = s - error / (left * (s - math.log1p(moved / p)))
        if not low < there < high:
            there = 0.5 * (low + high)
        gone = abs(there - s)
        s = there
        if gone <= 1e-13 or high - low <= 1e-13 * abs(low):
            break
    left = rest * math.exp(s)
    return rest - left, left


@inner
def _kl_rise(p, delta):
    """Return how far p rises under Kullback–Leibler, and how far it stays from 1."""
    if p <= 0.0:
        return 0.0, 1.0
    return _move_kl(p, 1.0 - p, -math.log(p), delta)


@inner
def _kl_fall(p, delta):
    """Return how far p falls under Kullback–Leibler, and what it is then."""
    if p >= 1.0:
        return 0.0, p
    return _move_kl(1.0 - p, p, -math.log1p(-p), delta)


@inner
def lower_bound(mode, x, p, gain, fall, fall_scale):
    """Return the lower bound of a probability."""
    if mode == KL:
        return _kl_fall(p, x * gain)[1] if gain > 0.0 else p
    if x >= ENDLESS:
        return 0.0 if fall > 0.0 or fall_scale > 0.0 else p
    top = p - x * fall
    return top / (1.0 + x * fall_scale) if top > 0.0 else 0.0


@inner
def upper_bound(mode, x, p, gain, rise, rise_scale):
    """Return the upper bound of a probability."""
    if mode == KL:
        return min(p + _kl_rise(p, x * gain)[0], 1.0) if gain > 0.0 else p
    if x >= ENDLESS:
        if rise_scale > 0.0:
            return min(rise / rise_scale, 1.0)
        return 1.0 if rise > 0.0 else p
    return min((p + x * rise) / (1.0 + x * rise_scale), 1.0)


@inner
def change_lower(mode, x, p, gain, fall, fall_scale):
    """Return the lower bound minus the probability."""
    if mode == KL:
        return -_kl_fall(p, x * gain)[0] if gain > 0.0 else 0.0
    return -min(x * (fall + p * fall_scale) / (1.0 + x * fall_scale), p)


@inner
def change_upper(mode, x, p, gain, rise, rise_scale):
    """Return the upper bound minus the probability."""
    if mode == KL:
        return _kl_rise(p, x * gain)[0] if gain > 0.0 else 0.0
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
def sort(f, count, order):
    """Sort the values upward: the order found last time is mostly nearly right.

    `order` holds some order already; what stands at its end is how many values it is of.
    """
    if order[-1] != count:
        order[-1] = count
        for i in range(count):
            order[i] = i
    for i in range(1, count):
        one, at = order[i], i
        while at > 0 and (
            f[order[at - 1]] > f[one] or (f[order[at - 1]] == f[one] and order[at - 1] > one)
        ):
            order[at] = order[at - 1]
            at -= 1
        order[at] = one


# Each writes by how much weights move (`shift`), and what they become (`moved`), both with all
# their digits; and gives back a value that those who gain lie below and those who lose above.


@inner
def _shift_epsilon(size, w, f, count, shift, moved):
    share = 1.0 if size >= ENDLESS else size / (1.0 + size)
    keep = 0.0 if size >= ENDLESS else 1.0 / (1.0 + size)
    lowest = 0
    for i in range(count):
        if f[i] < f[lowest]:
            lowest = i
        shift[i], moved[i] = -share * w[i], keep * w[i]
    shift[lowest] += share
    moved[lowest] += share
    return f[lowest]


@inner
def shift_tv(size, w, f, count, order, shift, moved):
    high, low = 0, 0
    for i in range(count):
        high, low = (i if f[i] > f[high] else high), (i if f[i] < f[low] else low)
        shift[i], moved[i] = 0.0, w[i]
    if size <= w[high] and f[high] > f[low]:
        # The highest alone has enough.
        shift[high], moved[high] = -size, w[high] - size
        shift[low], moved[low] = size, w[low] + size
        return f[low]
    sort(f, count, order)
    left, taken = size, 0.0
    for k in range(count - 1, 0, -1):
        i = order[k]
        part = min(w[i], left)
        shift[i], moved[i] = -part, w[i] - part
        left -= part
        taken += part
    shift[order[0]], moved[order[0]] = taken, w[order[0]] + taken
    return f[order[0]]


@inner
def _shift_pari_mutuel(size, w, f, count, order, shift, moved):
    sort(f, count, order)
    given, pivot, full = 0.0, f[order[count - 1]], False
    for k in range(count):
        i = order[k]
        if full:
            shift[i], moved[i] = -w[i], 0.0
            continue
        above = 0.0
        for j in range(k + 1, count):
            above += w[order[j]]
        more = size * w[i]
        if given + more >= above and w[i] > 0.0:
            # Here the mass of those above is used up.
            full, pivot = True, f[i]
            shift[i] = above - given
            moved[i] = max(w[i] + above - given, 0.0)
        else:
            shift[i], moved[i] = more, w[i] + more
            given += more
    return pivot


@inner
def _shift_odds_ratio(size, w, f, count, order, shift, moved):
    sort(f, count, order)
    keep = 1.0 / (1.0 + size)
    low, high, best, level = 0.0, 0.0, 0.0, count - 1
    for k in range(count):
        # What lies above the level is shrunk; the level is right if the mean lies below the next.
        low, high, low_total, high_total = 0.0, 0.0, 0.0, 0.0
        for j in range(count):
            i = order[j]
            if j <= k:
                low += w[i]
                low_total += w[i] * f[i]
            else:
                high += w[i]
                high_total += w[i] * f[i]
        weight = low + keep * high
        if weight > 0.0:
            best, level = (low_total + keep * high_total) / weight, k
            if k == count - 1 or best <= f[order[k + 1]]:
                break
    lost, weight = size / (1.0 + size), low + keep * high
    for k in range(count):
        i = order[k]
        if k <= level:
            shift[i], moved[i] = w[i] * high * lost / weight, w[i] / weight
        else:
            shift[i], moved[i] = -w[i] * low * lost / weight, w[i] * keep / weight
    return best


@inner
def shift_chi2(size, w, f, count, order, shift, moved, mass, reach, variance):
    """Shift under χ², size being √δ: see `perturbations.ChiSquared`.

    Of every level set its mass, how far its top lies above its mean, and its variance: sums of
    positive terms only, for differences would lose what little a large mass leaves to others.
    """
    delta = min(size, 1e75) * min(size, 1e75)
    mean, top, spread, least, largest = 0.0, f[0], 0.0, w[0], 0.0
    for i in range(count):
        mean += w[i] * f[i]
        top, least, largest = max(top, f[i]), min(least, w[i]), max(largest, abs(f[i]))
    for i in range(count):
        spread += w[i] * (f[i] - mean) * (f[i] - mean)
    apart = spread > NARROW * largest * largest
    if least > COMMON and apart and delta * (top - mean) * (top - mean) < 0.999 * spread:
        # Nothing is emptied, and no weight, and no difference of values, is so small that rounding
        # of the mean would show.
        tilt = math.sqrt(delta / spread)
        for i in range(count):
            shift[i] = -w[i] * tilt * (f[i] - mean)
            moved[i] = w[i] * (1.0 - tilt * (f[i] - mean))
        return mean
    sort(f, count, order)
    total, drop, behind = 0.0, 0.0, 0.0
    spread = 0.0
    for k in range(count):
        i = order[k]
        gap = f[i] - f[order[k - 1]] if k > 0 else 0.0
        step = gap + (reach[k - 1] if k > 0 else 0.0)
        drop += total * gap
        share = total / (total + w[i]) if total + w[i] > 0.0 else 0.0
        spread += w[i] * step * step * share
        total += w[i]
        mass[k] = total
        reach[k] = drop / total if total > 0.0 else 0.0
        variance[k] = spread / total if total > 0.0 else 0.0
    for level in range(count - 1, -1, -1):
        top = order[level]
        if mass[level] <= 0.0 or f[top] == f[order[0]]:
            break
        excess = max(delta * mass[level] - behind, 0.0)
        if w[top] > 0.0 and excess * reach[level] * reach[level] < variance[level]:
            tilt = math.sqrt(excess / variance[level])
            for k in range(count):
                i = order[k]
                if k > level:
                    shift[i], moved[i] = -w[i], 0.0
                    continue
                change = -tilt * (reach[level] - (f[top] - f[i]))
                moved[i] = w[i] * max(1.0 + change, 0.0) / mass[level]
                shift[i] = w[i] * change if level == count - 1 else moved[i] - w[i]
            return f[top] - reach[level]
        behind += w[top]
    return _gather_lowest(w, f, count, shift, moved)


@inner
def _gather_lowest(w, f, count, shift, moved):
    """Give all mass to the smallest value that has any."""
    lowest, mass = math.inf, 0.0
    for i in range(count):
        if w[i] > 0.0 and f[i] < lowest:
            lowest = f[i]
    for i in range(count):
        if f[i] == lowest:
            mass += w[i]
    for i in range(count):
        moved[i] = w[i] / mass if f[i] == lowest else 0.0
        shift[i] = moved[i] - w[i]
    return lowest


@inner
def _find_heaviest(t, w, f, count, span):
    """Return the outcome that has most mass when tilted."""
    best = -1
    for i in range(count):
        if w[i] > 0.0 and (
            best < 0 or math.log(w[i]) - t * f[i] / span > math.log(w[best]) - t * f[best] / span
        ):
            best = i
    return best


@inner
def _log_tilted(t, w, f, count, at, span):
    """Return the logarithm of the mean of e^(−tu), u counted from one outcome's."""
    total, change = 0.0, 0.0
    for i in range(count):
        if w[i] > 0.0:
            u = (f[i] - f[at]) / span
            total += w[i] * math.exp(-t * u)
            change += w[i] * math.expm1(-t * u)
    # The plain logarithm would lose a small t, log1p a small total.
    return math.log(total) if total < 0.5 else math.log1p(change)


@inner
def _shift_kl(delta, w, f, count, shift, moved):
    """Shift under Kullback–Leibler: weights tilted by e^(−tu), u from 0 to 1."""
    low, high, at_low, rest = math.inf, -math.inf, 0.0, 0.0
    for i in range(count):
        if w[i] > 0.0:
            low, high = min(low, f[i]), max(high, f[i])
    span = high - low
    for i in range(count):
        if f[i] == low:
            at_low += w[i]
        elif w[i] > 0.0:
            rest += w[i]
        shift[i], moved[i] = 0.0, w[i]
    if not span > 0.0 or delta <= 0.0:
        return low
    if delta >= (-math.log(at_low) if at_low < 0.5 else -math.log1p(-rest)):
        return _gather_lowest(w, f, count, shift, moved)
    # A variance on [0, 1] is at most 1/4, so the divergence is at most t²/8.
    left, right = math.sqrt(8.0 * delta), math.inf
    mean, spread = 0.0, 0.0
    for i in range(count):
        mean += w[i] * (f[i] - low) / span
    for i in range(count):
        u = (f[i] - low) / span - mean
        spread += w[i] * u * u
    t, log_mean = left, 0.0
    if spread > 0.0:
        t = max(math.sqrt(2.0 * delta / spread), left)
    for _ in range(300):
        # Seen from the heaviest outcome nothing cancels.
        at = _find_heaviest(t, w, f, count, span)
        log_mean = _log_tilted(t, w, f, count, at, span)
        excess, mean, spread = 0.0, 0.0, 0.0
        for i in range(count):
            if w[i] > 0.0:
                u = (f[i] - f[at]) / span
                y = math.expm1(-t * u - log_mean)
                excess += w[i] * _surprise(y)
                mean += w[i] * (1.0 + y) * u
        for i in range(count):
            if w[i] > 0.0:
                u = (f[i] - f[at]) / span
                spread += w[i] * math.exp(-t * u - log_mean) * (u - mean) * (u - mean)
        if excess > delta:
            right = t
        else:
            left = t
        # In the logarithm of t, the logarithm of the divergence is nearly straight.
        step = math.nan
        if spread > 0.0 and excess > 0.0:
            step = math.log(excess / delta) * excess / (t * t * spread)
        there = t * math.exp(-min(max(step, -3.0), 3.0))
        if not left < there < right:
            there = 0.5 * (left + right) if right < math.inf else 2.0 * t
        gone = abs(there - t)
        t = there
        if gone <= 1e-14 * t or (right < math.inf and right - left <= 1e-15 * right):
            break
    at = _find_heaviest(t, w, f, count, span)
    log_mean = _log_tilted(t, w, f, count, at, span)
    for i in range(count):
        if w[i] > 0.0:
            u = (f[i] - f[at]) / span
            shift[i] = w[i] * math.expm1(-t * u - log_mean)
            moved[i] = w[i] * math.exp(-t * u - log_mean)
    return f[at] - span * log_mean / t


@inner
def shift_weights(mode, size, count, order, work):
    """Move the weights work[0] so that the expectation of work[1] is smallest.

    Writes by how much they move, work[2], and what they become, work[3].
    """
    w, f, shift, moved = work[0], work[1], work[2], work[3]
    if mode == EPSILON:
        return _shift_epsilon(size, w, f, count, shift, moved)
    if mode == TV:
        return shift_tv(size, w, f, count, order, shift, moved)
    if mode == PARI_MUTUEL:
        return _shift_pari_mutuel(size, w, f, count, order, shift, moved)
    if mode == CHI2:
        return shift_chi2(size, w, f, count, order, shift, moved, work[4], work[5], work[6])
    if mode == ODDS_RATIO:
        return _shift_odds_ratio(size, w, f, count, order, shift, moved)
    return _shift_kl(size, w, f, count, shift, moved)


@inner
def contrast(mode, size, a, b, classes, order, work):
    """Return the change of the lower expectation of 1_ĉ − 1_c under a mass function on the classes.

    For balls that do not attain both bounds at once; a is q(ĉ), and b is q(c).
    """
    w, f, shift, moved = work[0], work[1], work[2], work[3]
    w[0], w[1], f[0], f[1] = a, b, 1.0, -1.0
    w[2], f[2] = max(1.0 - a - b, 0.0), 0.0
    count = 3 if classes > 2 else 2
    if mode == CHI2 and min(a, b) > COMMON:
        # μ − σ√δ, unless ĉ is emptied.
        deviation = math.sqrt((a + b) * w[2] + 4.0 * a * b)
        if size * (1.0 - a + b) < 0.999 * deviation:
            moved[0] = a * (1.0 - size / deviation * (1.0 - a + b))
            moved[1] = b * (1.0 + size / deviation * (1.0 + a - b))
            return -size * deviation
    pivot = shift_weights(mode, size, count, order, work)
    total = 0.0
    for i in range(count):
        total += shift[i] * (f[i] - pivot)
    return total
