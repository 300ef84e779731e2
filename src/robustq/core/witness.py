"""The nearest model that disagrees: the recursion walked downward, with minimisers for minima.

At a size where a rival has caught up, R_c(δ) ≤ 0, some model in the ball attains that value. Walked
from the root down, every node is wanted as low as possible (the signed value V, or L) or as high as
possible (U):

    sum            weights that minimise V or L, or maximise U; the children are wanted likewise
    product        with the class in child k: that child low; the others low if V_k > 0, high if
                   V_k < 0, and as they are if V_k = 0; without the class: all likewise
    leaf           the mass function that minimises, or maximises, what was observed
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .evidence import CLASS, FEATURE, NONE, PRODUCT, SUM
from .reached import Reached
from .recursion import Gamble, expect_sized, oppose, spread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robustq.arrays import Bools, Floats, Indices
    from robustq.tables import Rows

    from .evidence import Model
    from .neighbourhoods import Perturbed
    from .recursion import Sized

__all__ = ["Move", "find_moves"]

# What has no rows goes to the end of its ball at once, and nothing else moves by as little.
AT_ONCE = 1e-140
ROUNDING, EMPTY, GONE = 1e-15, 1e-14, 1e-7


class Move(NamedTuple):
    """A local mass function of one row's witness, before and after.

    Attributes
    ----------
    local : int
        Its number among the model's.
    part, feature : int
        As in `Evidence`.
    rows : float
        The weight of the training rows behind it; NaN where nothing was counted.
    outcome : int
        The position of the outcome that was observed; −1 where there are several, or none.
    before, after : ndarray
        Probabilities of its outcomes.
    distance : float
        How far it moves, in total variation.
    ratio : float
        By what factor what was observed, or else what moves most, becomes more probable or less:
        the magnitude of its logarithm.
    """

    local: int
    part: int
    feature: int
    rows: float
    outcome: int
    before: Floats
    after: Floats
    distance: float
    ratio: float


def find_moves(
    model: Model, rows: Rows, perturbed: Perturbed, ahead: Indices, behind: Indices, delta: Floats
) -> list[list[Move]]:
    """Return for each row what changes in a model that prefers `behind`, the largest move first.

    Parameters
    ----------
    model : Model
    rows : Rows
    perturbed : Perturbed
    ahead, behind : ndarray of shape (rows,)
        The prediction, and who has caught up with it.
    delta : ndarray of shape (rows,)
        At which size: the robustness.

    Raises
    ------
    UnsupportedError
        If the ball gives no minimiser.
    """
    found: list[list[Move]] = [[] for _ in range(len(rows))]
    still = not perturbed.features and not perturbed.touches(model.leaf_parts)
    for block, evidence in model.reach(rows, fold=still):
        payoff = oppose(ahead[block], behind[block], len(model.by_frequency))
        descent = Descent(Reached(evidence, model.locals, perturbed), payoff)
        for row, move in descent.walk(delta[block]):
            found[block.start + row].append(move)
    return [_arrange(moves) for moves in found]


def _arrange(moves: list[Move]) -> list[Move]:
    """Return each local mass function once, the largest move first.

    One may stand in several places; there it is moved the same way.
    """
    once = {move.local: move for move in reversed(moves)}.values()
    # In some balls all move as far: then what matters most comes first.
    return sorted(once, key=lambda move: (-round(move.distance, 12), -move.ratio))


@dataclass(frozen=True)
class Descent(Gamble):
    """The walk from the roots of rows down to their leaves."""

    def walk(self, delta: Floats) -> Iterator[tuple[int, Move]]:
        """Yield rows, and what moves there."""
        reached, op = self.reached, self.evidence.op
        if reached.perturbed.sizes == "rows":
            unmoved = (delta == 0.0) & (self.margins(delta) > 0.0)
            delta = np.where(unmoved, AT_ONCE, delta)
        lower, upper = self.evaluate_both(delta)
        wanted, size = self._find_wanted(lower), self.local_sizes(delta)
        wanted[self._find_idle(lower)] = 0
        moving = (wanted != 0) & (delta[reached.row] > 0.0)
        leaves = np.flatnonzero(moving & reached.free & (op == FEATURE))
        yield from self._move_features(leaves, wanted, size)
        classes = np.flatnonzero(moving & reached.free & (op == CLASS) & (self.evidence.local >= 0))
        yield from self._move_classes(classes, size)
        sums = np.flatnonzero(moving & (op == SUM))
        sums = sums[reached.free[sums - 1]]
        for way, numbers in ((1, lower), (-1, upper)):
            yield from self._move_sums(sums[wanted[sums] == way], way, numbers, size)

    def _find_wanted(self, lower: Sized) -> Indices:
        """Return for each node 1 if it is wanted low, −1 if high, 0 if it does not matter."""
        parent, op, speaks = self.reached.family[0], self.evidence.op, self.reached.speaks
        above = np.maximum(parent, 0)
        # Of products with the class in one child, what that child is worth.
        spoken = np.zeros(len(op))
        own = np.flatnonzero(speaks & (parent >= 0))
        spoken[parent[own]] = lower.mantissa[own]
        beside = (op[above] == PRODUCT) & speaks[above] & ~speaks
        worth = np.where(beside, np.sign(spoken[above]), 1.0).astype(np.int64)
        wanted = np.ones(len(op), dtype=np.int64)
        for nodes in reversed(self.reached.heights):
            inner = nodes[parent[nodes] >= 0]
            # Beside the class what counts is its sign; below anything else, what is wanted above.
            from_above = wanted[above[inner]]
            wanted[inner] = np.where(beside[inner], np.abs(from_above), from_above) * worth[inner]
        return wanted

    def _find_idle(self, lower: Sized) -> Bools:
        """Return what the class's part, which is 0 but for rounding, is multiplied with."""
        parent, op, speaks = self.reached.family[0], self.evidence.op, self.reached.speaks
        first = self.evaluate(np.zeros(len(self.payoff)))
        shift = np.clip(lower.exponent - first.exponent, -1000, 1000)
        gone = np.abs(np.ldexp(lower.mantissa, shift)) <= GONE * np.abs(first.mantissa)
        own = np.flatnonzero(speaks & (parent >= 0))
        # But a product may be 0 for the sake of the others.
        gone[own] &= (lower.mantissa[parent[own]] != 0.0) | (lower.mantissa[own] == 0.0)
        over, idle = np.zeros((2, len(op)), dtype=bool)
        over[parent[own]] = gone[own]
        single = np.ones(len(op), dtype=bool)  # nothing but products stand above
        for nodes in reversed(self.reached.heights):
            inner = nodes[parent[nodes] >= 0]
            up = parent[inner]
            single[inner] = single[up] & (op[up] == PRODUCT)
            idle[inner] = idle[up] | (single[inner] & over[up] & ~speaks[inner])
        return idle

    def _move_features(
        self, nodes: Indices, wanted: Indices, size: Floats
    ) -> Iterator[tuple[int, Move]]:
        for some, q in self.reached.expand(nodes):
            at = nodes[some]
            position = self.position(at)
            f = np.eye(q.shape[1])[position] * wanted[at][:, None]
            yield from self._move(at, at, q, f, size, position)

    def _move_classes(self, nodes: Indices, size: Floats) -> Iterator[tuple[int, Move]]:
        if not len(nodes):
            return
        q = self.reached.locals.expand(self.evidence.local[nodes])
        f = self.payoff[self.reached.row[nodes]]
        yield from self._move(nodes, nodes, q, f, size, np.full(len(nodes), NONE))

    def _move_sums(
        self, nodes: Indices, way: int, numbers: Sized, size: Floats
    ) -> Iterator[tuple[int, Move]]:
        for mean in self.reached.list_means(nodes):
            at, q = mean.nodes - 1, mean.weights
            asked: list[Floats] = []

            def expect(
                f: Floats, at: Indices = at, q: Floats = q, asked: list[Floats] = asked
            ) -> Floats:
                asked.append(f)
                return way * self.expect(at, q, way * f, size)

            expect_sized(expect, spread(mean, numbers))
            f = asked[-1]  # values of such a magnitude that they count
            single = self.evidence.arity[mean.nodes] == 1
            outcome = np.where(single, self.evidence.slot[at], NONE)
            yield from self._move(mean.nodes, at, q, way * f, size, outcome)

    def _move(
        self, nodes: Indices, at: Indices, q: Floats, f: Floats, size: Floats, outcome: Indices
    ) -> Iterator[tuple[int, Move]]:
        """Yield minimising mass functions, where anything is gained by them.

        Parameters
        ----------
        nodes, at : ndarray
            The nodes, and those that tell of their local mass functions.
        q, f : ndarray of shape (nodes, outcomes)
        size, outcome : ndarray
        """
        moved = np.clip(self.reached.perturbed.ball.minimising(q, f, size[at]), 0.0, 1.0)
        # What is emptied leaves nothing behind: a rival of probability 0 waits for that.
        moved[(moved < EMPTY) & (moved < 1e-9 * q)] = 0.0
        gap = np.abs(q - moved)
        gains = np.flatnonzero((((q - moved) * f).sum(axis=1) > 0.0) & (gap.max(axis=1) > ROUNDING))
        distance = gap.sum(axis=1) / 2
        seen = np.where(outcome < 0, gap.argmax(axis=1), outcome)
        every = np.arange(len(q))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.nan_to_num(np.abs(np.log(moved[every, seen]) - np.log(q[every, seen])))
        e = self.evidence
        columns = [column[at] for column in (e.local, e.part, e.feature, e.rows)]
        told = zip(*(column[gains].tolist() for column in (*columns, outcome)), strict=True)
        row = self.reached.row[nodes]
        for i, about in zip(gains.tolist(), told, strict=True):
            measured = float(distance[i]), float(ratio[i])
            yield int(row[i]), Move._make((*about, q[i], moved[i], *measured))
