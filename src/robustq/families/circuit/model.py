"""Any circuit: sums, products, leaves of the class and of features, as flat arrays.

General, and slower than the families that it can stand for: rows are looked at one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from robustq.core.engine import Reading
from robustq.core.evidence import CLASS, FEATURE, NONE, PRODUCT, SUM, VALUE, About, Evidence
from robustq.core.frequency import by_frequency
from robustq.exceptions import UnsupportedError
from robustq.tables import Rows

from .meanings import Meanings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from robustq.arrays import Bools, Codes, Floats, Indices

__all__ = ["DEAD", "Circuit"]

# What a row makes of a node: nothing reaches it, something does, or all its cells are missing.
DEAD, ALIVE, ABSENT = range(3)
MOST_STATES = 1 << 22
MOST_NODES = 1 << 20  # of a single row


@dataclass(frozen=True, eq=False)
class Circuit:
    """The nodes of a circuit, children before their parents; the last one is the root.

    Attributes
    ----------
    sizes : tuple of int
        How many categories each feature has.
    numeric : tuple of int
        Which features are numbers.
    classes : int
    kind : ndarray of int8
        `SUM`, `PRODUCT`, `CLASS`, `FEATURE`, or `VALUE` for a density.
    child_starts, children : ndarray
        Where the children of each node begin in `children`.
    prob_starts, probs : ndarray
        Where its mass function begins in `probs`; of a density: mean, sd, low, high, height.
    values : ndarray of int32
        Beside `probs`: which category of a feature each is of.
    feature : ndarray of int32
        The feature that a leaf speaks of, or that a sum splits; `NONE`.
    part : ndarray of int8
        A position in `parts`; `NONE` is never perturbed.
    rows : ndarray
        NaN where nothing was counted.
    parts, default_parts : tuple of str
    """

    sizes: tuple[int, ...]
    numeric: tuple[int, ...]
    classes: int
    kind: NDArray[np.int8]
    child_starts: Indices
    children: Indices
    prob_starts: Indices
    probs: Floats
    values: Codes
    feature: Codes
    part: NDArray[np.int8]
    rows: Floats
    parts: tuple[str, ...]
    default_parts: tuple[str, ...]

    leaf_parts: ClassVar[tuple[int, ...]] = ()
    merges_rows: ClassVar[bool] = True

    def children_of(self, node: int) -> list[int]:
        """Return the children of a node."""
        found: list[int] = self.children[self._children(node)].tolist()
        return found

    def mass(self, node: int) -> Floats:
        """Return the mass function of a node."""
        return self.probs[self.prob_starts[node] : self.prob_starts[node + 1]]

    def lives_on(self, node: int) -> Codes:
        """Return the categories that the mass function of a feature's leaf lives on, sorted."""
        return self.values[self.prob_starts[node] : self.prob_starts[node + 1]]

    def _children(self, node: int) -> slice:
        return slice(int(self.child_starts[node]), int(self.child_starts[node + 1]))

    @cached_property
    def speaks(self) -> Bools:
        """Which nodes speak of the class."""
        speaks = self.kind == CLASS
        for node in np.flatnonzero(np.diff(self.child_starts) > 0).tolist():
            speaks[node] = speaks[self.children[self._children(node)]].any()
        return speaks

    @cached_property
    def indicated(self) -> Indices:
        """The class that a leaf stands for if it is an indicator; −1 elsewhere."""
        found = np.full(len(self.kind), -1, dtype=np.int64)
        for node in np.flatnonzero((self.kind == CLASS) & (self.part == NONE)).tolist():
            q = self.mass(node)
            if q.max() == 1.0:
                found[node] = int(q.argmax())
        return found

    @cached_property
    def depth(self) -> int:
        """The length of the longest path."""
        height = np.zeros(len(self.kind), dtype=np.int64)
        for node in np.flatnonzero(np.diff(self.child_starts) > 0).tolist():
            height[node] = 1 + height[self.children[self._children(node)]].max()
        return int(height[-1])

    @cached_property
    def locals(self) -> CircuitLocals:
        """The local mass functions."""
        return CircuitLocals(self)

    @property
    def has_numbers(self) -> bool:
        """Whether a feature has a density."""
        return bool(self.numeric)

    @cached_property
    def by_frequency(self) -> Indices:
        """The positions of the classes, the most frequent one first."""
        codes = np.full((1, len(self.sizes)), -1, dtype=np.int32)
        joint = self.log_joint(Rows(codes, np.full((1, len(self.numeric)), np.nan)))
        return by_frequency(np.exp(joint[0]))

    # Probabilities

    def log_joint(self, rows: Rows) -> Floats:
        """Return log p(c, f), (rows, classes); missing features are summed out."""
        waiting = np.bincount(self.children, minlength=len(self.kind))
        found: dict[int, Floats] = {}
        with np.errstate(divide="ignore"):
            for node in range(len(self.kind)):
                found[node] = self._log_value(node, rows, found)
                for child in self.children_of(node):
                    waiting[child] -= 1
                    if not waiting[child]:
                        del found[child]
        return np.ascontiguousarray(np.broadcast_to(found[node], (len(rows), self.classes)))

    def _log_value(self, node: int, rows: Rows, found: dict[int, Floats]) -> Floats:
        """Return the logarithms of a node's values, (rows, 1), or (rows, classes)."""
        kind = self.kind[node]
        if kind == CLASS:
            return np.broadcast_to(np.log(self.mass(node)), (len(rows), self.classes))
        if kind == PRODUCT:
            total = np.zeros((len(rows), 1))
            for child in self.children_of(node):
                total = total + found[child]
            return total
        if kind == SUM:
            weighted = [
                np.log(weight) + found[child]
                for weight, child in zip(self.mass(node), self.children_of(node), strict=True)
            ]
            return np.logaddexp.reduce(np.stack(weighted), axis=0)
        return self._log_leaf(node, rows)[:, None]

    def _log_leaf(self, node: int, rows: Rows) -> Floats:
        codes, feature = rows.codes[:, self.feature[node]], int(self.feature[node])
        if self.kind[node] == VALUE:
            x = rows.numbers[:, self.numeric.index(feature)]
            mean, sd, low, high, height = self.mass(node).tolist()
            logs = np.where(
                (low < x) & (x <= high), np.log(height) - 0.5 * ((x - mean) / sd) ** 2, -np.inf
            )
        else:
            spread = np.zeros(self.sizes[feature])
            spread[self.lives_on(node)] = self.mass(node)
            logs = np.log(spread)[np.maximum(codes, 0)] if len(spread) else np.zeros(len(codes))
        return np.where(codes < 0, 0.0, logs)

    def read(self, rows: Rows) -> Reading:
        """Return log p(c, f); no kernel of its own takes circuits."""
        return Reading(self.log_joint(rows), [])

    # What rows reach

    def reach(
        self,
        rows: Rows,
        *,
        fold: bool = False,  # noqa: ARG002 (nothing is folded)
    ) -> Iterator[tuple[slice, Evidence]]:
        """Yield what rows reach.

        A sum over features alone takes the class, and all that it is multiplied with, into each of
        its branches: what it is multiplied with has one sign, and so every local mass function is
        pushed the same way in all of them.
        """
        size = max(1, MOST_STATES // len(self.kind))
        for first in range(0, len(rows), size):
            block = slice(first, min(first + size, len(rows)))
            states = self._find_states(rows[block])
            yield (
                block,
                _gather([_Walk(self, rows[block], states, at) for at in range(states.shape[1])]),
            )

    def _find_states(self, rows: Rows) -> NDArray[np.int8]:
        """Return what rows make of nodes, (nodes, rows)."""
        states = np.full((len(self.kind), len(rows)), ALIVE, dtype=np.int8)
        for node, kind in enumerate(self.kind.tolist()):
            if kind in (FEATURE, VALUE):
                codes = rows.codes[:, self.feature[node]]
                if kind == VALUE:
                    inside = np.isfinite(self._log_leaf(node, rows))
                else:
                    inside = np.isin(codes, self.lives_on(node))
                states[node] = np.where(codes < 0, ABSENT, np.where(inside, ALIVE, DEAD))
            elif kind in (PRODUCT, SUM):
                below = states[self.children[self._children(node)]]
                dead = (
                    (below == DEAD).any(axis=0) if kind == PRODUCT else (below == DEAD).all(axis=0)
                )
                states[node] = np.where(
                    dead, DEAD, np.where((below == ABSENT).any(axis=0), ABSENT, ALIVE)
                )
                if kind == PRODUCT:
                    alive = (below == ALIVE).any(axis=0) & ~dead
                    states[node][alive] = ALIVE
        return states

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


class _Walk:
    """One row's walk through a circuit: the columns of its evidence."""

    def __init__(self, circuit: Circuit, rows: Rows, states: NDArray[np.int8], at: int) -> None:
        self.circuit, self.states = circuit, states[:, at].tolist()
        self.codes = rows.codes[at].tolist()
        self.numbers = rows.numbers[at].tolist()
        # op, arity, p, extra, local, slot, part, feature, rows: see `Evidence`.
        self.nodes: list[list[Any]] = []
        root = len(circuit.kind) - 1
        if self.states[root] == DEAD:
            self._put(CLASS, extra=-1)
            self._put(VALUE, p=0.0)
            self._put(PRODUCT, arity=2)
        else:
            self._multiply([root])

    def _put(self, op: int, arity: int = 0, p: float = 1.0, extra: int = 0, slot: int = 0) -> None:
        self.nodes.append([op, arity, p, extra, NONE, slot, NONE, NONE, np.nan])
        if len(self.nodes) > MOST_NODES:
            msg = (
                "so many cells of a row are missing that its sums over them have more than "
                f"{MOST_NODES:,} terms: fill some"
            )
            raise UnsupportedError(msg)

    def _own(self, node: int) -> None:
        """Let the last node that was put have the local mass function of a node."""
        c = self.circuit
        moves = c.prob_starts[node + 1] - c.prob_starts[node] > 1
        self.nodes[-1][4] = node
        self.nodes[-1][6] = int(c.part[node]) if moves else NONE
        self.nodes[-1][7:] = int(c.feature[node]), float(c.rows[node])

    def _multiply(self, factors: list[int]) -> None:
        """Put the product of some nodes."""
        c = self.circuit
        leaves: list[int] = []
        sums: list[int] = []
        spoken, waiting = NONE, list(factors)
        while waiting:
            node = waiting.pop()
            if self.states[node] == ABSENT:
                continue
            if c.kind[node] == PRODUCT:
                waiting += c.children_of(node)
            elif c.speaks[node]:
                spoken = node
            else:
                (sums if c.kind[node] == SUM else leaves).append(node)
        if sums:
            self._mix(sums[0], [spoken, *sums[1:], *leaves])
            return
        if c.kind[spoken] == CLASS:
            self._put_class(spoken)
        else:
            self._mix(spoken, [])
            if not leaves:
                return
        for leaf in sorted(leaves):
            self._put_leaf(leaf)
        self._put(PRODUCT, arity=1 + len(leaves))

    def _mix(self, node: int, others: list[int]) -> None:
        """Put the sum of a node's branches, each multiplied with others."""
        c, reached = self.circuit, 0
        children = c.children_of(node)
        for place, (child, weight) in enumerate(zip(children, c.mass(node).tolist(), strict=True)):
            if self.states[child] != DEAD:
                self._multiply([child, *others])
                self._own(node)
                self.nodes[-1][2], self.nodes[-1][5] = weight, place
                reached += 1
        self._put(SUM, arity=reached, extra=len(children) - reached)

    def _put_class(self, node: int) -> None:
        c = self.circuit
        if (label := int(c.indicated[node])) >= 0:
            self._put(CLASS, extra=-1, slot=label)
        else:
            self._put(CLASS, extra=int(c.locals.class_rows[node]), slot=-1)
            self._own(node)

    def _put_leaf(self, node: int) -> None:
        c = self.circuit
        feature = int(c.feature[node])
        if c.kind[node] == VALUE:
            mean, sd, _, _, height = c.mass(node).tolist()
            x = self.numbers[c.numeric.index(feature)]
            power = -0.5 * ((x - mean) / sd) ** 2 / np.log(2.0)
            whole = int(np.floor(power))
            self._put(VALUE, p=height * 2.0 ** (power - whole), extra=whole)
            return
        place = int(np.searchsorted(c.lives_on(node), self.codes[feature]))
        self._put(FEATURE, p=float(c.mass(node)[place]), slot=self.codes[feature])
        self._own(node)


def _gather(walks: list[_Walk]) -> Evidence:
    """Return the evidence of several rows."""
    starts = np.concatenate([[0], np.cumsum([len(walk.nodes) for walk in walks], dtype=np.int64)])
    evidence = Evidence.empty(starts)
    columns = zip(*(node for walk in walks for node in walk.nodes), strict=True)
    filled: tuple[Any, ...] = evidence[1:]
    for column, values in zip(filled, columns, strict=False):
        column[:] = values
    return evidence


class CircuitLocals:
    """A view on the mass functions of a circuit, each numbered as its node."""

    def __init__(self, circuit: Circuit) -> None:
        self._circuit = circuit
        self.parts = circuit.parts
        leaves = np.flatnonzero(circuit.kind == CLASS)
        self.class_rows = np.full(len(circuit.kind), -1, dtype=np.int64)
        self.class_rows[leaves] = np.arange(len(leaves))
        self.class_table = np.array([circuit.mass(leaf) for leaf in leaves.tolist()])

    @cached_property
    def wide(self) -> tuple[int, ...]:
        """The parts that weigh more than two children."""
        c = self._circuit
        return self._list((c.kind == SUM) & (np.diff(c.child_starts) > 2))

    @cached_property
    def on_classes(self) -> tuple[int, ...]:
        """The parts that are mass functions on the classes in a leaf."""
        return self._list(self._circuit.kind == CLASS)

    @cached_property
    def counted(self) -> Bools:
        """For each part, whether rows were counted there."""
        c = self._circuit
        return np.isin(np.arange(len(self.parts)), c.part[~np.isnan(c.rows)])

    def _list(self, nodes: Bools) -> tuple[int, ...]:
        found = np.unique(self._circuit.part[nodes])
        return tuple(found[found != NONE].tolist())

    def outcomes(self, local: Indices) -> Indices:
        """Return how many outcomes each has."""
        return np.diff(self._circuit.prob_starts)[local]

    def expand(self, local: Indices) -> Floats:
        """Return whole mass functions, all with the same number of outcomes."""
        outcomes = int(self.outcomes(local[:1])[0]) if len(local) else 0
        return self._circuit.probs[self._circuit.prob_starts[local][:, None] + np.arange(outcomes)]

    def position(self, local: Indices, slot: Indices) -> Indices:
        """Return where values of features stand among the outcomes of their leaves."""
        pairs = zip(local.tolist(), slot.tolist(), strict=True)
        found = [np.searchsorted(self._circuit.lives_on(one), code) for one, code in pairs]
        return np.array(found, dtype=np.intp)

    def about(self, local: int) -> About:
        """Return what one is about, and where it stands."""
        return self._meanings.tell(local)

    @cached_property
    def _meanings(self) -> Meanings:
        return Meanings(self._circuit)
