"""Where rounding would decide: Theorem 3 in exact arithmetic, one row at a time.

Of a ball that is linear on two outcomes (`forest.SplitBall`), R at a given x is a sum of products
of floats, which `dyadic` holds exactly. Densities are taken as the floats they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from robustq.models.forest import CHILD, LEAF, Forest
from robustq.models.scale import STEP
from robustq.perturbations import Domain

from .dyadic import ONE, ZERO, Dyadic, of_float
from .roots import smallest_roots

if TYPE_CHECKING:
    from collections.abc import Callable

    from robustq.arrays import Floats, Indices
    from robustq.tables import Rows

__all__ = ["exact_lead", "solve"]

W, FALL, RISE = range(3)  # the columns of edges
TINY, ENOUGH, STEPS = 2.0**-60, 1e-10, 8

_Edges: TypeAlias = "list[list[Dyadic]]"


def solve(model: Forest, row: Rows, best: int, edges: Floats, limit: float) -> tuple[float, int]:
    """Return where a prediction flips, and to which class; 0 if it is tied.

    Parameters
    ----------
    model : Forest
    row : Rows
        One row, with any evidence.
    best : int
        The class predicted.
    edges : ndarray of shape (nodes, 4)
        The weight of the edge to each node, and its slopes; see the kernels.
    limit : float
        The largest x.
    """
    reached = _Reached.by(model, row)
    own = reached.read_edges(edges)
    found, tipping = math.inf, -1
    for rival in range(model.class_probs.shape[1]):
        if rival != best:
            x = _solve_rival(reached, model, (best, rival), own, min(limit, found))
            if x < found:
                found, tipping = x, rival
    return found, tipping


def _solve_rival(
    reached: _Reached, model: Forest, pair: tuple[int, int], edges: _Edges, limit: float
) -> float:
    values = reached.leaf_values(model, *pair)
    unit = max((value.scale for value in values if value.digits), default=0)

    def margin(x: float) -> Dyadic:
        return reached.evaluate(values, edges, of_float(x))

    start = margin(0.0)
    if start.digits <= 0:
        return 0.0
    near = _follow_slope(margin, start, limit)
    if near is not None:
        return near

    def margins(_: Indices, sizes: Floats) -> Floats:
        return np.array([margin(x).to_float(unit) for x in sizes.tolist()])

    domain = Domain() if math.isinf(limit) else Domain(end=limit, closed=True)
    return float(smallest_roots(margins, domain, 1)[0])


def _follow_slope(margin: Callable[[float], Dyadic], start: Dyadic, limit: float) -> float | None:
    """Return a root near 0, where the margin is nearly straight; None if there is none."""
    unit, before, x = start.scale, start, TINY
    last = 0.0
    for _ in range(STEPS):
        if not 0.0 < x * (1.0 + ENOUGH) < limit:
            return None
        here = margin(x)
        slope = before.minus(here).to_float(unit) / (x - last)
        if not slope > 0.0:
            return None
        step = here.to_float(unit) / slope
        before, last, x = here, x, x + step
        if abs(step) <= ENOUGH * x:
            # The sign must change where the root is.
            below, above = margin(x * (1.0 - ENOUGH)), margin(x * (1.0 + ENOUGH))
            return x if below.digits > 0 >= above.digits else None
    return None


def exact_lead(model: Forest, row: Rows, ahead: int, behind: int) -> int:
    """Return a number with the sign of p(ahead, f) − p(behind, f) of one row."""
    reached = _Reached.by(model, row)
    edges = reached.read_edges(np.stack([model.shares] * 3, axis=1))
    return reached.evaluate(reached.leaf_values(model, ahead, behind), edges, ZERO).digits


@dataclass(frozen=True)
class _Reached:
    """The nodes that a row reaches, the roots first, parents before children.

    Attributes
    ----------
    nodes : list of int
    children : list of tuple of int
        Where the left and the right child stand in this list, the last place (which holds no
        node) where it is not reached; None for a leaf.
    masses : list of Dyadic
        Π p(f_i) at a leaf.
    roots : int
        How many roots there are.
    """

    nodes: list[int]
    children: list[tuple[int, int] | None]
    masses: list[Dyadic]
    roots: int

    @classmethod
    def by(cls, model: Forest, row: Rows) -> _Reached:
        """Find what a row reaches."""
        nodes: list[int] = model.roots[:-1].tolist()
        children: list[tuple[int, int] | None] = []
        masses: list[Dyadic] = []
        # The list grows while it is walked: every level comes after the one above.
        for node in nodes:
            feature, child = (int(x) for x in model.nodes[node, :2])
            if feature == LEAF:
                children.append(None)
                masses.append(_exact_mass(model, child, row))
                continue
            below = {}
            for side in _sides(model, node, feature, row):
                below[side] = len(nodes)
                nodes.append(child + side)
            children.append((below.get(0, -1), below.get(1, -1)))
            masses.append(ZERO)
        return cls(nodes, children, masses, model.trees)

    def leaf_values(self, model: Forest, best: int, rival: int) -> list[Dyadic]:
        """Return V of the leaves, 0 elsewhere."""
        values = []
        for node, mass, below in zip(self.nodes, self.masses, self.children, strict=True):
            if below is None and mass.digits:
                probs = model.class_probs[model.nodes[node, CHILD]]
                gap = of_float(probs[best]).minus(of_float(probs[rival]))
                values.append(mass.times(gap))
            else:
                values.append(ZERO)
        return [*values, ZERO]

    def read_edges(self, edges: Floats) -> _Edges:
        """Return weight and slopes of the edge to each node."""
        return [[of_float(part) for part in edges[node, :3].tolist()] for node in self.nodes]

    def evaluate(self, leaf_values: list[Dyadic], edges: _Edges, x: Dyadic) -> Dyadic:
        """Return the sum of V over the roots: V(inner) is the lower expectation of its children's.

        Who has the larger value gets its lower weight w − x l, the other one its upper weight
        w + x u.
        """
        values = leaf_values.copy()
        for at in range(len(self.nodes) - 1, -1, -1):
            pair = self.children[at]
            if pair is None:
                continue
            left, right = values[pair[0]], values[pair[1]]
            if not left.digits:
                # One child only, or none: its sign tells who loses weight.
                values[at] = _shrink(right, edges[pair[1]], x) if right.digits else ZERO
            elif not right.digits:
                values[at] = _shrink(left, edges[pair[0]], x)
            else:
                larger = left.minus(right).digits > 0
                sides = (_lower, _upper) if larger else (_upper, _lower)
                parts = [
                    value.times(weigh(edges[place], x))
                    for value, weigh, place in zip((left, right), sides, pair, strict=True)
                ]
                values[at] = parts[0].plus(parts[1])
        total = ZERO
        for value in values[: self.roots]:
            total = total.plus(value)
        return total


def _shrink(value: Dyadic, edge: list[Dyadic], x: Dyadic) -> Dyadic:
    """Return a value times its lower weight if it is positive, or else its upper one."""
    return value.times(_lower(edge, x) if value.digits > 0 else _upper(edge, x))


def _lower(edge: list[Dyadic], x: Dyadic) -> Dyadic:
    weight = edge[W].minus(x.times(edge[FALL]))
    return weight if weight.digits > 0 else ZERO


def _upper(edge: list[Dyadic], x: Dyadic) -> Dyadic:
    weight = edge[W].plus(x.times(edge[RISE]))
    return weight if weight.minus(ONE).digits < 0 else ONE


def _sides(model: Forest, node: int, feature: int, row: Rows) -> tuple[int, ...]:
    """Return which children of a node a row reaches."""
    code = int(row.codes[0, feature])
    if code < 0:
        return (0, 1)
    number = float(row.numbers[0, model.slots[feature]]) if feature in model.numeric else 0.0
    return (model.goes_right(node, code, number),)


def _exact_mass(model: Forest, leaf: int, row: Rows) -> Dyadic:
    """Return Π p(f_i) of one row at a leaf; of densities, what a float holds of them."""
    mass = ONE
    for feature, code in enumerate(row.codes[0].tolist()):
        if code < 0:
            continue
        if feature in model.numeric:
            number = float(row.numbers[0, model.slots[feature]])
            mantissa, steps = model.density(leaf, feature, number)
            mass = mass.times(of_float(mantissa, STEP * steps))
        else:
            mass = mass.times(of_float(model.probability(leaf, feature, code)))
    return mass
