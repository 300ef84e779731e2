"""The nodes that evidence reaches, level by level, and Theorem 3's recursion over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from robustq.models.forest import CHILD, Forest, Level
from robustq.models.scale import STEP

from .expectations import lower_expectations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robustq.arrays import Floats, Indices
    from robustq.perturbations import Perturbation
    from robustq.tables import Rows

__all__ = ["Block", "Contest", "Evidence", "split_rows"]

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

    def contest(self, ahead: Indices, behind: Indices) -> Contest:
        """Return what two classes of each row, (rows,), have to gain and to lose in each leaf."""
        parts = []
        largest = np.full(len(ahead), NOTHING)
        for level in self.levels:
            at = np.flatnonzero(level.leaves >= 0)
            row = level.rows[at]
            probs = self.model.class_probs[level.leaves[at]]
            every = np.arange(len(at))
            gap = probs[every, ahead[row]] - probs[every, behind[row]]
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
        return Contest(self, values, len(ahead))


@dataclass(frozen=True)
class Contest:
    """Two classes of each row: Theorem 3's recursion, for any ball and size.

    Attributes
    ----------
    evidence : Evidence
    values : list of ndarray
        V of the leaves of each level (0 elsewhere), scaled: the largest of a row is about 1.
    count : int
        How many rows there are.
    """

    evidence: Evidence
    values: list[Floats]
    count: int

    def margins(self, rows: Indices, ball: Perturbation, delta: Floats, sign: int = 0) -> Floats:
        """Return R(δ) for some rows, each divided by a positive number.

        Parameters
        ----------
        rows : ndarray of shape (some,)
            Which rows, each once.
        ball : Perturbation
        delta : ndarray of shape (some,)
        sign : {0, 1, −1}
            1 leaves out the leaves that prefer the rival, −1 the others.
        """
        model, levels = self.evidence.model, self.evidence.levels
        sizes, wanted = np.empty(self.count), np.zeros(self.count, dtype=bool)
        sizes[rows], wanted[rows] = delta, True
        values = np.zeros(0)
        for level, leaf_values in zip(reversed(levels), reversed(self.values), strict=True):
            below, values = values, np.where(leaf_values * sign < 0.0, 0.0, leaf_values)
            inner = np.flatnonzero((level.leaves < 0) & wanted[level.rows])
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
                pairs = inner[busy]
                left = model.nodes[level.nodes[pairs], CHILD]
                shares = np.stack([model.shares[left], model.shares[left + 1]], axis=1)
                size = sizes[level.rows[pairs]]
                values[pairs] = lower_expectations(ball, shares, sides[busy], size)
        total = np.bincount(levels[0].rows, values, minlength=self.count)
        return np.asarray(total[rows])

    def noise(self, rows: Indices, ball: Perturbation, delta: Floats) -> Floats:
        """Return how much of `margins` may be rounding: a share of what they are differences of."""
        gain, loss = (self.margins(rows, ball, delta, sign=sign) for sign in (1, -1))
        return ROUNDING * (np.abs(gain) + np.abs(loss))


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
