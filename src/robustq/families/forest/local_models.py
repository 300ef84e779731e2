"""The local mass functions of a forest: its uniform root, the weights of its nodes, and leaves.

They are numbered: 0 is the root, 1 + node the weights below a node, then come the class leaves, and
for each leaf its features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from robustq.core.evidence import NONE, TREE, About, Condition

if TYPE_CHECKING:
    from robustq.arrays import Bools, Floats, Indices

    from .cells import Cell
    from .model import Forest

__all__ = ["CLASSES", "FEATURES", "PARTS", "ROOT", "WEIGHTS", "ForestLocals"]

PARTS = ("root", "weights", "leaf_classes", "leaf_features")
ROOT, WEIGHTS, CLASSES, FEATURES = range(4)
CHILD = 1  # the column of the left child


class ForestLocals:
    """A view on the probabilities of a forest; leaves stay compressed."""

    parts = PARTS
    on_classes = (CLASSES,)

    def __init__(self, forest: Forest) -> None:
        self._forest = forest
        # Where the numbers of each part begin.
        nodes, leaves = len(forest.nodes), forest.leaves
        self._starts = np.array([0, 1, 1 + nodes, 1 + nodes + leaves])
        self._width = len(forest.sizes)

    @property
    def wide(self) -> tuple[int, ...]:
        """The parts that weigh more than two children."""
        return (ROOT,) if self._forest.trees > 2 else ()

    @property
    def counted(self) -> Bools:
        """For each part, whether rows were counted there."""
        known = not np.isnan(self._forest.rows).any()
        return np.array([False, known, known, known])

    def outcomes(self, local: Indices) -> Indices:
        """Return how many outcomes each has: of a leaf's feature, what its path allows."""
        forest = self._forest
        part, at = self._locate(local)
        outcomes = np.full(len(local), 2, dtype=np.int64)
        outcomes[part == ROOT] = forest.trees
        outcomes[part == CLASSES] = forest.class_probs.shape[1]
        leaf = part == FEATURES
        where, feature = np.divmod(at[leaf], self._width)
        outcomes[leaf] = forest.allowed[where, forest.slots[feature]]
        return outcomes

    @property
    def class_table(self) -> Floats:
        """The class probabilities of all leaves."""
        return self._forest.class_probs

    def expand(self, local: Indices) -> Floats:
        """Return whole mass functions, all with the same number of outcomes."""
        forest = self._forest
        part, at = self._locate(local)
        if len(local) and np.all(part == CLASSES):
            return forest.class_probs[at]
        if len(local) and np.all(part == WEIGHTS):
            left = forest.nodes[at, CHILD]
            return np.stack([forest.weights[left], forest.weights[left + 1]], axis=1)
        if len(local) and np.all(part == ROOT):
            return np.full((len(local), forest.trees), 1.0 / forest.trees)
        return self._expand_each(local, part)

    def _expand_each(self, local: Indices, part: Indices) -> Floats:
        outcomes = self.outcomes(local)
        found = np.empty((len(local), int(outcomes[0]) if len(local) else 0))
        for kind in (ROOT, WEIGHTS, CLASSES):
            if (part == kind).any():
                found[part == kind] = self.expand(local[part == kind])
        distinct, where = np.unique(local[part == FEATURES], return_inverse=True)
        if len(distinct):
            found[part == FEATURES] = np.stack([self._expand_leaf(one) for one in distinct])[where]
        return found

    def _expand_leaf(self, local: int) -> Floats:
        leaf, feature = divmod(int(local - self._starts[FEATURES]), self._width)
        allowed = self._allowed(leaf, feature)
        return np.array([self._forest.probability(leaf, feature, int(code)) for code in allowed])

    def _allowed(self, leaf: int, feature: int) -> Indices:
        from .cells import allowed_values  # noqa: PLC0415 (it knows forests)

        return allowed_values(self._forest, leaf, feature).astype(np.intp)

    def position(self, local: Indices, slot: Indices) -> Indices:
        """Return where values of features stand among the outcomes of their leaves."""
        found = np.empty(len(local), dtype=np.intp)
        for i, (one, code) in enumerate(zip(local.tolist(), slot.tolist(), strict=True)):
            leaf, feature = divmod(one - int(self._starts[FEATURES]), self._width)
            found[i] = np.searchsorted(self._allowed(leaf, feature), code)
        return found

    def about(self, local: int) -> About:
        """Return what one is about: where its path leads, and what is told apart there."""
        from .cells import cell_of, cut, read_split  # noqa: PLC0415 (it knows forests)

        forest = self._forest
        part, at = (int(found[0]) for found in self._locate(np.array([local])))
        if part == ROOT:
            # The trees of a forest count equally: a document has no place for anything else.
            return About(TREE)
        leaf, feature = divmod(at, self._width) if part == FEATURES else (at, NONE)
        node = at if part == WEIGHTS else int(forest.leaf_nodes[leaf])
        tree = int(np.searchsorted(forest.roots, node, side="right")) - 1
        cell, split = cell_of(forest, node)
        path: tuple[str | int, ...] = ("trees", tree, "nodes", node - int(forest.roots[tree]))
        whole = About(NONE, given=_list_given(cell, split), tree=tree)
        if part == CLASSES:
            return whole._replace(path=(*path, "class_probs"))
        if part == FEATURES:
            codes = tuple(np.flatnonzero(cell[feature]).tolist())
            own = whole._replace(variable=feature, path=(*path, "feature_probs", feature))
            return own._replace(outcomes=tuple((code,) for code in codes), codes=codes)
        feature = int(forest.nodes[node, 0])
        sides = [cut(cell, feature, read_split(forest, node), side)[feature] for side in (0, 1)]
        outcomes = tuple(_as_condition(side) for side in sides)
        return whole._replace(variable=feature, outcomes=outcomes, path=(*path, "weights"))

    def _locate(self, local: Indices) -> tuple[Indices, Indices]:
        """Return the part of each, and its position there."""
        part = np.searchsorted(self._starts, local, side="right") - 1
        return part, local - self._starts[part]


def _list_given(cell: Cell, split: set[int]) -> tuple[tuple[int, Condition], ...]:
    return tuple((feature, _as_condition(cell[feature])) for feature in sorted(split))


def _as_condition(allowed: Bools | tuple[float, float]) -> Condition:
    return allowed if isinstance(allowed, tuple) else tuple(np.flatnonzero(allowed).tolist())
