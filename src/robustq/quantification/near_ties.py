"""Two classes so near that rounding would decide: exact arithmetic, one row at a time."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq

from robustq.models.forest import CHILD, LEAF, Forest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robustq.arrays import Codes, Floats
    from robustq.tables import Rows

__all__ = ["exact_gap", "solve"]


def solve(
    model: Forest, row: Rows, ends: Codes, best: int, edges: Floats, limit: float
) -> tuple[float, int]:
    """Return where a prediction flips, and to which class; 0 if it is tied.

    Parameters
    ----------
    model : Forest
    row : Rows
        One row, complete.
    ends : ndarray of shape (trees,)
        The nodes where it ends.
    best : int
        The class predicted.
    edges : ndarray of shape (nodes, 3)
        The weight of the edge to each node, and its slopes; see `forest.SplitBall`.
    limit : float
        The largest x.
    """
    leaves = [int(model.nodes[node, CHILD]) for node in ends]
    masses = [_exact_mass(model, leaf, row) for leaf in leaves]
    paths = [_path(model, int(node)) for node in ends]
    found, tipping = math.inf, -1
    for rival in range(model.class_probs.shape[1]):
        if rival == best:
            continue
        terms = [
            mass * (Fraction(probs[best]) - Fraction(probs[rival]))
            for mass, probs in zip(masses, model.class_probs[leaves], strict=True)
        ]
        x = _solve_rival(terms, paths, edges, min(limit, found))
        if x < found:
            found, tipping = x, rival
    return found, tipping


def _solve_rival(
    terms: list[Fraction], paths: list[list[int]], edges: Floats, limit: float
) -> float:
    """Return the root of R = R(0) − F, where F, how far R has fallen, is a sum of positive terms.

    R(0) is exact, and no term of F is a difference: so the root is exact, however small it is.
    """
    shares = [math.prod(Fraction(edges[node, 0]) for node in path) for path in paths]
    start = sum((t * w for t, w in zip(terms, shares, strict=True)), Fraction(0))
    if start <= 0:
        return 0.0
    unit = max(abs(t) for t in terms)
    height = float(start / unit)
    parts = [
        (float(term / unit), edges[path])
        for term, path in zip(terms, paths, strict=True)
        if term != 0
    ]

    def margin(x: float) -> float:
        return height - math.fsum(_fall(term, path, x) for term, path in parts)

    end = _end(parts, limit)
    if margin(end) > 0.0:
        # At the end of all change rounding may hide what is left of the lead.
        return math.inf if end < limit or not math.isinf(limit) else end
    low, high = 0.0, end
    guess = min(height, end)
    while guess > 0.0 and margin(guess) <= 0.0:
        high, guess = guess, guess / 16.0
    low = guess
    if low >= high:
        return high
    return float(brentq(margin, low, high, xtol=5e-324, rtol=8.9e-16, maxiter=500))


def _fall(term: float, path: Floats, x: float) -> float:
    """Return how far one tree's part of R has fallen at x."""
    weight, slope = path[:, 0], path[:, 1] if term > 0.0 else path[:, 2]
    share = float(np.prod(weight))
    if term > 0.0:
        if np.any(weight - x * slope <= 0.0):
            return term * share
        return -term * share * math.expm1(float(np.log1p(-x * slope / weight).sum()))
    if share == 0.0:
        return -term * float(np.prod(np.minimum(weight + x * slope, 1.0)))
    step = np.minimum(x * slope, 1.0 - weight)
    return -term * share * math.expm1(float(np.log1p(step / weight).sum()))


def _end(parts: list[tuple[float, Floats]], limit: float) -> float:
    """Return an x beyond which nothing changes, or the limit."""
    ends = [1.0]
    for _, path in parts:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.concatenate([path[:, 0] / path[:, 1], (1.0 - path[:, 0]) / path[:, 2]])
        ends += ratios[np.isfinite(ratios)].tolist()
    return min(limit, max(ends))


def exact_gap(model: Forest, row: Rows, ahead: int, behind: int) -> Fraction:
    """Return T · (p(ahead, f) − p(behind, f)) of one row, exactly."""
    gap = Fraction(0)
    for node in _reached(model, row):
        leaf = int(model.nodes[node, CHILD])
        probs = model.class_probs[leaf]
        if probs[ahead] != probs[behind]:
            share = math.prod(Fraction(model.shares[edge]) for edge in _path(model, node))
            difference = Fraction(probs[ahead]) - Fraction(probs[behind])
            gap += share * difference * _exact_mass(model, leaf, row)
    return gap


def _reached(model: Forest, row: Rows) -> Iterator[int]:
    """Yield the nodes of the leaves that evidence reaches."""
    waiting = model.roots[:-1].tolist()
    while waiting:
        node = waiting.pop()
        feature, child = (int(x) for x in model.nodes[node, :2])
        if feature == LEAF:
            yield node
        elif row.codes[0, feature] < 0:
            waiting += [child, child + 1]
        else:
            number = row.numbers[0, model.slots[feature]] if feature in model.numeric else 0.0
            waiting.append(child + model.goes_right(node, int(row.codes[0, feature]), number))


def _path(model: Forest, node: int) -> list[int]:
    """Return the nodes from one up to below its root."""
    path = []
    while model.parents[node] >= 0:
        path.append(node)
        node = int(model.parents[node])
    return path


def _exact_mass(model: Forest, leaf: int, row: Rows) -> Fraction:
    """Return Π p(f_i) of one row at a leaf, exactly; of densities, what a float holds of them."""
    mass = Fraction(1)
    for feature, code in enumerate(row.codes[0].tolist()):
        if code < 0:
            continue
        if feature in model.numeric:
            number = float(row.numbers[0, model.slots[feature]])
            mass *= model.density(leaf, feature, number)
        else:
            mass *= Fraction(model.probability(leaf, feature, code))
    return mass
