"""The imprecise Dirichlet model of naive Bayes, as the literature writes it, and by brute force."""

import itertools
import math

import numpy as np
from scipy.optimize import brentq, minimize_scalar


def zaffalon_dominates(n_first, n_second, values_first, values_second, s):
    """Tell whether c′ dominates c″, by a fine grid of t in (0, s): Zaffalon (2002).

    ((n(c″)+t)/(n(c′)+s−t))^(N−1) Π n(f_i, c′)/(n(f_i, c″)+t) > 1 for all t.
    """
    t = np.linspace(0.0, s, 20_001)
    with np.errstate(divide="ignore", invalid="ignore"):
        log = (len(values_first) - 1) * (np.log(n_second + t) - np.log(n_first + s - t))
        for mine, theirs in zip(values_first, values_second, strict=True):
            log = log + np.log(mine) - np.log(theirs + t)
    log[0] = log[1] if not np.isfinite(log[0]) else log[0]
    return bool(np.all(log > 0.0))


def count(table, labels, c, row):
    """Return n(c), and for each cell of the row that is there n_i(c) and N_i(c)."""
    own = [record for record, label in zip(table, labels, strict=True) if label == c]
    cells = []
    for i, value in enumerate(row):
        if value is not None:
            there = [record[i] for record in own if record[i] is not None]
            cells.append((there.count(value), len(there)))
    return len(own), cells


def joint(table, labels, c, row, sizes, smoothing):
    """Return p(c, f), times the number of records."""
    n, cells = count(table, labels, c, row)
    observed = [size for size, value in zip(sizes, row, strict=True) if value is not None]
    p = float(n)
    for (value, total), size in zip(cells, observed, strict=True):
        above, below = value + smoothing, total + smoothing * size
        p *= above / below if below > 0.0 else 1.0 / size
    return p


def records_to_flip(table, labels, best, rival, row, sizes, smoothing):
    """Return the smallest s = u + t at which the rival catches up, by a search over u."""
    n_best, mine = count(table, labels, best, row)
    n_rival, theirs = count(table, labels, rival, row)
    moving = [
        k
        for k, size in enumerate(s for s, v in zip(sizes, row, strict=True) if v is not None)
        if size > 1
    ]
    observed = [size for size, value in zip(sizes, row, strict=True) if value is not None]

    def best_log(u):
        log = math.log(n_best + u)
        for k in moving:
            above, below = mine[k][0] + smoothing, mine[k][1] + smoothing * observed[k]
            log += math.log(above) - math.log(below + u)
        return log

    def rival_log(t):
        if t == 0.0:
            t = 1e-200
        log = math.log(n_rival + t)
        for k in moving:
            above, below = theirs[k][0] + smoothing, theirs[k][1] + smoothing * observed[k]
            log += math.log(above + t) - math.log(below + t)
        return log

    if any(mine[k][0] + smoothing == 0.0 for k in moving):
        return 0.0

    def total(u):
        if rival_log(0.0) >= best_log(u):
            return u
        end = 1.0
        while rival_log(end) < best_log(u):
            end *= 2.0
        return u + brentq(lambda t: rival_log(t) - best_log(u), 0.0, end, xtol=1e-14, rtol=1e-14)

    grid = np.concatenate([[0.0], np.geomspace(1e-6, max(total(0.0), 1e-5), 300)])
    sums = [total(u) for u in grid]
    at = int(np.argmin(sums))
    low, high = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
    found = minimize_scalar(total, bounds=(low, high), method="bounded", options={"xatol": 1e-12})
    return min(*sums, float(found.fun))


def flips_with(table, labels, best, row, sizes, smoothing, classes, number):
    """Tell whether some way to add so many records lets another class catch up: all are tried."""
    values = itertools.product(*(range(size) for size in sizes))
    records = list(itertools.product(values, range(classes)))
    for added in itertools.combinations_with_replacement(records, number):
        more = [*table, *(list(record) for record, _ in added)]
        names = [*labels, *(label for _, label in added)]
        each = [joint(more, names, c, row, sizes, smoothing) for c in range(classes)]
        rivals = [p for c, p in enumerate(each) if c != best]
        if each[best] <= max(rivals) * (1.0 + 1e-12):
            return True
    return False
