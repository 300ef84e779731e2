"""The nodes that evidence reaches, level by level, and Theorem 3's recursion over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from robustq.exceptions import UnsupportedError
from robustq.models.forest import CHILD, Forest, Level
from robustq.models.scale import STEP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robustq.arrays import Floats, Indices
    from robustq.perturbations import Perturbation
    from robustq.tables import Rows

__all__ = ["Block", "Evidence", "split_rows"]

# A row that lacks many features reaches many nodes: so many pairs (row, node) are held at once.
MOST_PAIRS = 1 << 20
ROUNDING = 1e-13
NOTHING, UNDERFLOW = -(1 << 40), -2000  # exponents of 0, and of what is 0 beside 1


@dataclass(frozen=True)
class Evidence:
    """What rows reach in a forest.

    Attributes
    ----------
    model : Forest
    levels : list of Level
        The pairs (row, node), the roots first.
    """

    model: Forest
    levels: list[Level]

    def margins(
        self,
        rows: Indices,
        ahead: Indices,
        behind: Indices,
        ball: Perturbation,
        delta: Floats,
        sign: int = 0,
    ) -> Floats:
        """Return R(δ) for some rows, each divided by a positive number.

        Parameters
        ----------
        rows : ndarray of shape (count,)
            Which rows, each once.
        ahead, behind, delta : ndarray of shape (count,)
        sign : {0, 1, −1}
            1 leaves out the leaves that prefer the rival, −1 the others.
        """
        count = self.levels[0].rows.max(initial=-1) + 1
        place = np.full(count, -1)
        place[rows] = np.arange(len(rows))
        masses = self._leaf_values(place, ahead, behind)
        values = np.zeros(0)
        for level, mass in zip(reversed(self.levels), reversed(masses), strict=True):
            below, values = values, np.where(mass * sign < 0.0, 0.0, mass)
            inner = np.flatnonzero((level.leaves < 0) & (place[level.rows] >= 0))
            if not len(inner):
                continue
            sides = np.zeros((len(inner), 2))
            for side in (0, 1):
                child = level.children[inner, side]
                reached = child >= 0
                sides[reached, side] = below[child[reached]]
            # Where both children give nothing, so does the node, in any ball.
            busy = np.flatnonzero(sides.any(axis=1))
            if len(busy):
                node = level.nodes[inner[busy]]
                left = self.model.nodes[node, CHILD]
                shares = np.stack([self.model.shares[left], self.model.shares[left + 1]], axis=1)
                size = delta[place[level.rows[inner[busy]]]]
                values[inner[busy]] = _lower_expectation(ball, shares, sides[busy], size)
        roots = self.levels[0]
        total = np.bincount(roots.rows, values, minlength=count)
        return np.asarray(total[rows])

    def noise(
        self, rows: Indices, ahead: Indices, behind: Indices, ball: Perturbation, delta: Floats
    ) -> Floats:
        """Return how much of `margins` may be rounding: a share of what they are differences of."""
        parts = [
            np.abs(self.margins(rows, ahead, behind, ball, delta, sign=sign)) for sign in (1, -1)
        ]
        return ROUNDING * (parts[0] + parts[1])

    def _leaf_values(self, place: Indices, ahead: Indices, behind: Indices) -> list[Floats]:
        """Return V of the leaves of each level (0 elsewhere), scaled: the largest is about 1."""
        parts = []
        largest = np.full(len(place), NOTHING)
        for level in self.levels:
            at = np.flatnonzero((level.leaves >= 0) & (place[level.rows] >= 0))
            row = level.rows[at]
            probs = self.model.class_probs[level.leaves[at]]
            every = np.arange(len(at))
            gap = probs[every, ahead[place[row]]] - probs[every, behind[place[row]]]
            mantissa, exponent = np.frexp(gap * level.mass[at])
            exponent = np.where(mantissa == 0.0, NOTHING, exponent + STEP * level.scale[at])
            np.maximum.at(largest, row, exponent)
            parts.append((at, mantissa, exponent))
        values = []
        for level, (at, mantissa, exponent) in zip(self.levels, parts, strict=True):
            value = np.zeros(len(level.rows))
            shift = np.maximum(exponent - largest[level.rows[at]], UNDERFLOW)
            value[at] = np.ldexp(mantissa, shift)
            values.append(value)
        return values


def _lower_expectation(ball: Perturbation, q: Floats, f: Floats, delta: Floats) -> Floats:
    value = np.asarray(ball.lower_expectation(q, f, delta))
    if value.shape != delta.shape:
        msg = (
            f"{type(ball).__name__}.lower_expectation gave the shape {value.shape} for "
            f"{len(delta)} mass functions: it must give one number for each"
        )
        raise UnsupportedError(msg)
    return value


@dataclass(frozen=True)
class Block:
    """Some rows, and what they reach."""

    rows: Indices
    evidence: Evidence


def split_rows(model: Forest, rows: Rows) -> Iterator[Block]:
    """Yield blocks of rows that reach so many nodes as can be held at once."""
    waiting = [np.arange(len(rows))]
    while waiting:
        some = waiting.pop()
        levels = model.reach(rows[some], MOST_PAIRS if len(some) > 1 else None)
        if levels is None:
            half = len(some) // 2
            waiting += [some[half:], some[:half]]
        elif len(some):
            yield Block(some, Evidence(model, levels))
