"""How many records, added to the data, let a rival catch up; see `coupled` for the mathematics.

Of a contest, `facts` are: D where no record was added (without the terms of b that are 0 there),
the records of both classes (NaN if the prior does not move) and of all; `counts` has N_i of the one
ahead, n_i and N_i of the one behind in its rows, as many as move.
"""

import math

from numba import types

from robustq.kernels import (
    code_matrix,
    float_matrix,
    float_matrix_out,
    float_vector,
    float_vector_out,
    inner,
    int_vector,
    int_vector_out,
    kernel,
)

__all__ = ["find_maximal", "solve"]

ENOUGH = 1e-11  # relative width of what encloses a root; a step so small is the last
NEARLY = 1e-10  # the same of a minimum: its value is then off by the square of that
ROUNDING = 4e-16
MOST_STEPS = 500
SMALLEST, LARGEST = 1e-290, 1e290
CONTEST, AT_ONCE, NEVER = range(3)

int_matrix = types.Array(types.int64, 2, "C", readonly=True)
bool_matrix_out = types.Array(types.boolean, 2, "C")
records = (code_matrix, float_vector, float_vector, int_vector, types.float64, float_matrix)


@inner
def _gather(codes, class_probs, feature_probs, offsets, prior_rows, totals, a, b, counts):
    """Write the counts of two classes; return their number, what kind of contest it is, and facts.

    The first fact is log p(b, f) without the terms whose count is 0, NaN if there are none.
    """
    number, kind, zeros, log_b = 0, CONTEST, False, 0.0
    moves = not math.isnan(prior_rows)
    if moves and class_probs[a] * prior_rows <= 0.0:
        kind = AT_ONCE
    if class_probs[b] > 0.0:
        log_b += math.log(class_probs[b])
    elif moves:
        zeros = True
    else:
        kind = NEVER
    classes = len(class_probs)
    for i in range(len(codes)):
        if codes[i] < 0:
            continue
        cell = offsets[i] + codes[i] * classes
        p, total = feature_probs[cell + b], totals[i, b]
        # Each class has its own rows, and of one they may be known.
        counts[0, number] = totals[i, a] if not math.isnan(totals[i, a]) else math.inf
        if totals[i, a] <= 0.0:
            kind = AT_ONCE
        if math.isnan(total):
            counts[1, number] = counts[2, number] = math.inf
            if p > 0.0:
                log_b += math.log(p)
            elif kind == CONTEST:
                kind = NEVER
        else:
            counts[1, number], counts[2, number] = p * total, total
            if p * total > 0.0:
                log_b += math.log(p)
            else:
                zeros = True
        number += 1
    return number, kind, log_b if zeros else math.nan


@inner
def _value(counts, number, base, prior_a, prior_b, prior_rows, u, t):
    """Return D(u, t)."""
    value = base
    if not math.isnan(prior_rows):
        value += math.log1p(u / prior_a)
        value -= math.log1p(t / prior_b) if prior_b > 0.0 else _log(t) - math.log(prior_rows)
    for i in range(number):
        value -= math.log1p(u / counts[0, i])
        n, total = counts[1, i], counts[2, i]
        if n > 0.0:
            value -= math.log1p(t / n) - math.log1p(t / total)
        elif total > 0.0:
            value -= _log(t) - math.log(t + total)
    return value


@inner
def _log(x):
    return math.log(x) if x > 0.0 else -math.inf


@inner
def _slopes_a(counts, number, prior_a, prior_rows, u):
    """Return A′(u) and A″(u)."""
    first = second = 0.0
    if not math.isnan(prior_rows):
        x = 1.0 / (prior_a + u)
        first, second = x, -x * x
    for i in range(number):
        x = 1.0 / (counts[0, i] + u)
        first -= x
        second += x * x
    return first, second


@inner
def _slopes_b(counts, number, prior_b, prior_rows, t):
    """Return B′(t) and B″(t)."""
    first = second = 0.0
    if not math.isnan(prior_rows):
        x = 1.0 / (prior_b + t)
        first, second = -x, x * x
    for i in range(number):
        if counts[2, i] > 0.0:
            x, y = 1.0 / (counts[1, i] + t), 1.0 / (counts[2, i] + t)
            # A value all records have: 1 / x − 1 / y cancels, and both may be infinite.
            if x > y:
                first -= x - y
                second += (x - y) * (x + y)
    return first, second


@inner
def _slopes(counts, number, prior_a, prior_b, prior_rows, s, u):
    """Return the first two derivatives of D(u, s − u)."""
    a, aa = _slopes_a(counts, number, prior_a, prior_rows, u)
    b, bb = _slopes_b(counts, number, prior_b, prior_rows, s - u)
    return a - b, aa + bb


@inner
def _find_bend(counts, number, prior_a, prior_b, prior_rows, s):
    """Return where D stops being concave."""
    low, high = 0.0, s
    while high - low > NEARLY * s:
        middle = 0.5 * (low + high)
        if _slopes(counts, number, prior_a, prior_b, prior_rows, s, middle)[1] < 0.0:
            low = middle
        else:
            high = middle
    return high


@inner
def _find_bottom(counts, number, prior_a, prior_b, prior_rows, s, low):
    """Return the minimum of the convex piece, from `low`, where D falls: Newton, or bisection."""
    high, u = s, 0.5 * (low + s)
    for _ in range(MOST_STEPS):
        slope, bend = _slopes(counts, number, prior_a, prior_b, prior_rows, s, u)
        if slope < 0.0:
            low = u
        else:
            high = u
        step = slope / bend
        following = u - step
        if not low < following < high:
            following = 0.5 * (low + high)
        if abs(following - u) <= NEARLY * s or high - low <= NEARLY * s:
            return following
        u = following
    return u


@inner
def _minimise(counts, number, base, prior_a, prior_b, prior_rows, s):
    """Return the smallest D where s records are added, and its derivative."""
    value = _value(counts, number, base, prior_a, prior_b, prior_rows, 0.0, s)
    slope = _slopes_b(counts, number, prior_b, prior_rows, s)[0]
    start, bend = _slopes(counts, number, prior_a, prior_b, prior_rows, s, 0.0)
    low = 0.0
    if start >= 0.0:
        if bend >= 0.0:
            return value, slope
        low = _find_bend(counts, number, prior_a, prior_b, prior_rows, s)
        if _slopes(counts, number, prior_a, prior_b, prior_rows, s, low)[0] >= 0.0:
            return value, slope
    u = s
    if _slopes(counts, number, prior_a, prior_b, prior_rows, s, s)[0] > 0.0:
        u = _find_bottom(counts, number, prior_a, prior_b, prior_rows, s, low)
    other = _value(counts, number, base, prior_a, prior_b, prior_rows, u, s - u)
    if other >= value:
        return value, slope
    if u < s:
        return other, _slopes_b(counts, number, prior_b, prior_rows, s - u)[0]
    return other, _slopes_a(counts, number, prior_a, prior_rows, s)[0]


@inner
def _slack(features, joint_a, joint_b):
    """Return how far rounding may put D off 0: with whole counts, ties at whole s are common."""
    return ROUNDING * (
        features + 2.0 + abs(joint_a) + (abs(joint_b) if joint_b > -math.inf else 0.0)
    )


@inner
def _search(counts, number, base, prior_a, prior_b, prior_rows, slack):
    """Return the smallest s at which D is no longer positive."""
    low, high, s, following, slope = 0.0, math.inf, 1.0, 1.0, 0.0
    if math.isinf(base):
        return math.inf
    for _ in range(MOST_STEPS):
        value, slope = _minimise(counts, number, base, prior_a, prior_b, prior_rows, s)
        if value > 0.0:
            low = s
        else:
            high = s
        following = s - value / slope if slope < 0.0 else math.inf
        if not low < following < high or math.isinf(following):
            if math.isinf(high):
                following = 4.0 * s
            else:
                following = 0.5 * (low + high) if low > 0.0 else 1e-3 * high
        if following > LARGEST:
            return math.inf
        if high < SMALLEST:
            return 0.0
        if abs(following - s) <= ENOUGH * s or high - low <= ENOUGH * low:
            break
        s = following
    whole = math.floor(following + 0.5)
    tied = abs(whole - following) * abs(slope) <= slack
    return (
        whole if whole > 0.0 and (tied or abs(whole - following) <= ENOUGH * whole) else following
    )


@inner
def _base(joint_a, gap, log_b):
    """Return D where no record was added, without the terms of b that are 0 there."""
    return gap if math.isnan(log_b) else joint_a - log_b


@kernel(
    types.void(
        *(*records, float_matrix, float_matrix, int_vector, int_vector),
        *(float_matrix_out, float_vector_out, int_vector_out),
    )
)
def solve(
    codes,
    class_probs,
    feature_probs,
    offsets,
    prior_rows,
    totals,
    joint,
    gaps,
    best,
    rivals,
    counts,
    found,
    tipping,
):
    """Write for each row how many records flip its prediction, and who tips.

    Parameters
    ----------
    codes : (rows, features); negative where missing
    class_probs, feature_probs, offsets, prior_rows, totals : see `coupled.Records`
    joint : (rows, classes), log p(c, f)
    gaps : (rows, classes), by how much the predicted class is ahead there
    best, rivals : (rows,), the predicted class, and the rival to begin with
    counts : room
    found, tipping : (rows,), written; −1 where nobody catches up
    """
    classes = len(class_probs)
    for row in range(len(codes)):
        a, least, first = best[row], math.inf, -1
        prior_a = class_probs[a] * prior_rows
        for k in range(classes):
            # The runner-up comes first: then most others need a look only.
            b = rivals[row] if k == 0 else (k - 1 if k <= rivals[row] else k)
            if b == a:
                continue
            number, kind, log_b = _gather(
                codes[row],
                class_probs,
                feature_probs,
                offsets,
                prior_rows,
                totals,
                a,
                b,
                counts,
            )
            if kind == NEVER:
                continue
            slack = _slack(len(totals), joint[row, a], joint[row, b])
            if kind == AT_ONCE or gaps[row, b] <= slack:
                if least > 0.0:
                    least, first = 0.0, b
                continue
            base = _base(joint[row, a], gaps[row, b], log_b)
            prior_b = class_probs[b] * prior_rows
            if first >= 0 and (
                least <= 0.0
                or _minimise(counts, number, base, prior_a, prior_b, prior_rows, least)[0] > 0.0
            ):
                continue
            size = _search(counts, number, base, prior_a, prior_b, prior_rows, slack)
            if size < least:
                least, first = size, b
        found[row], tipping[row] = least, first


@kernel(
    types.void(
        *(*records, float_matrix, float_matrix, int_matrix, float_vector),
        *(float_matrix_out, bool_matrix_out),
    )
)
def find_maximal(
    codes,
    class_probs,
    feature_probs,
    offsets,
    prior_rows,
    totals,
    joint,
    gaps,
    order,
    sizes,
    counts,
    maximal,
):
    """Write False for classes that another dominates; the rest as in `solve`.

    Parameters
    ----------
    order : (rows, classes), the classes, the most probable one first
    sizes : (rows,), how many records are added
    maximal : (rows, classes), True at first
    """
    classes = len(class_probs)
    for row in range(len(codes)):
        for i in range(classes):
            a = order[row, i]
            if not maximal[row, a]:
                continue  # who dominates it dominates whom it does
            for j in range(i + 1, classes):
                b = order[row, j]
                if not maximal[row, b]:
                    continue
                gap = gaps[row, b] if i == 0 else joint[row, a] - joint[row, b]
                slack = _slack(len(totals), joint[row, a], joint[row, b])
                if not gap > slack:
                    continue
                if sizes[row] <= 0.0:
                    maximal[row, b] = False
                    continue
                number, kind, log_b = _gather(
                    codes[row],
                    class_probs,
                    feature_probs,
                    offsets,
                    prior_rows,
                    totals,
                    a,
                    b,
                    counts,
                )
                if kind == AT_ONCE:
                    continue
                value = math.inf
                if kind == CONTEST:
                    value = _minimise(
                        counts,
                        number,
                        _base(joint[row, a], gap, log_b),
                        class_probs[a] * prior_rows,
                        class_probs[b] * prior_rows,
                        prior_rows,
                        sizes[row],
                    )[0]
                maximal[row, b] = value <= slack
