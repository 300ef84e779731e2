"""What the mass functions of a circuit are about: sums may split classes, or values, or neither.

Nodes are numbered as in the circuit's document.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from robustq.core.evidence import BRANCH, CLASS, FEATURE, NONE, PRODUCT, SUM, VALUE, About

if TYPE_CHECKING:
    from robustq.core.evidence import Condition

    from .model import Circuit

__all__ = ["Meanings"]

# Of each feature below a node, the values it can have there; of a number, between what it lies.
Reach: TypeAlias = "dict[int, frozenset[int] | tuple[float, float]]"


# The class that a node is given, and the values of features.
Context: TypeAlias = "tuple[int, dict[int, Condition]]"


class Meanings:
    """Tells what the nodes of a circuit are about, one by one.

    Parameters
    ----------
    circuit : Circuit
    """

    def __init__(self, circuit: Circuit) -> None:
        self._circuit = circuit
        self._parents: list[list[int]] = [[] for _ in circuit.kind]
        for node in range(len(circuit.kind)):
            for child in circuit.children_of(node):
                self._parents[child].append(node)
        self._known: dict[int, Reach] = {}
        self._contexts: dict[int, Context] = {}

    def tell(self, node: int) -> About:
        """Return what the mass function of a node is about, and where it stands."""
        circuit, kind = self._circuit, self._circuit.kind[node]
        label, given = self._find_context(node)
        about = About(NONE, label=label, given=tuple(sorted(given.items())), node=node)
        if kind == CLASS:
            return about._replace(path=("nodes", node, "class_probs"))
        if kind == SUM:
            variable, outcomes = self._find_split(node)
            return about._replace(
                variable=variable, outcomes=outcomes, path=("nodes", node, "weights")
            )
        codes = tuple(circuit.lives_on(node).tolist())
        return about._replace(
            variable=int(circuit.feature[node]),
            outcomes=tuple((code,) for code in codes),
            path=("nodes", node, "probs"),
            codes=codes,
        )

    def _find_context(self, node: int) -> Context:
        """Return the class and the values that a node is given, whichever way it is reached."""
        if node not in self._contexts:
            ways = [self._descend(parent, node) for parent in self._parents[node]]
            label, given = ways[0] if ways else (NONE, {})
            for other, conditions in ways[1:]:
                label = label if label == other else NONE
                given = dict(given.items() & conditions.items())
            self._contexts[node] = label, given
        return self._contexts[node]

    def _descend(self, parent: int, child: int) -> Context:
        """Return what a child is given, by way of one of its parents."""
        label, given = self._find_context(parent)
        if self._circuit.kind[parent] == PRODUCT:
            own = self._find_label(parent)
            return (label if own == NONE else own), given
        variable, outcomes = self._find_split(parent)
        if outcomes is None:
            return label, given
        outcome = outcomes[self._circuit.children_of(parent).index(child)]
        if variable == NONE:
            return int(outcome[0]), given
        return label, {**given, variable: outcome}

    def _find_split(self, node: int) -> tuple[int, tuple[Condition, ...] | None]:
        """Return what tells the children of a sum apart: the class, a feature, or nothing."""
        children = self._circuit.children_of(node)
        labels = [self._find_label(child) for child in children]
        if NONE not in labels and len(set(labels)) == len(labels):
            return NONE, tuple((label,) for label in labels)
        below = [self._find_reach(child) for child in children]
        own = int(self._circuit.feature[node])
        shared = sorted(set.intersection(*map(set, below)), key=lambda feature: feature != own)
        for feature in shared:
            reached = [reach[feature] for reach in below]
            if len(reached) > 1 and _are_apart(reached):
                return feature, tuple(map(_as_condition, reached))
        return BRANCH, None

    def _find_label(self, node: int) -> int:
        """Return the class whose indicator a node is, or is multiplied with."""
        if self._circuit.kind[node] == CLASS:
            return int(self._circuit.indicated[node])
        if self._circuit.kind[node] != PRODUCT:
            return NONE
        found = (self._find_label(child) for child in self._circuit.children_of(node))
        return next((label for label in found if label != NONE), NONE)

    def _find_reach(self, node: int) -> Reach:
        if node not in self._known:
            self._known[node] = self._gather_reach(node)
        return self._known[node]

    def _gather_reach(self, node: int) -> Reach:
        circuit, feature = self._circuit, int(self._circuit.feature[node])
        if circuit.kind[node] == FEATURE:
            return {feature: frozenset(circuit.lives_on(node).tolist())}
        if circuit.kind[node] == VALUE:
            low, high = circuit.mass(node)[2:4].tolist()
            return {feature: (low, high)}
        found: Reach = {}
        for child in circuit.children_of(node):
            for own, reached in self._find_reach(child).items():
                found[own] = _join(found[own], reached) if own in found else reached
        return found


def _join(
    one: frozenset[int] | tuple[float, float], other: frozenset[int] | tuple[float, float]
) -> frozenset[int] | tuple[float, float]:
    if isinstance(one, frozenset) and isinstance(other, frozenset):
        return one | other
    ends = np.array([tuple(one), tuple(other)])
    return float(ends[:, 0].min()), float(ends[:, 1].max())


def _are_apart(reached: list[frozenset[int] | tuple[float, float]]) -> bool:
    """Tell whether no two have a value in common."""
    if isinstance(reached[0], frozenset):
        return sum(map(len, reached)) == len(frozenset().union(*reached))
    ends = sorted(tuple(one) for one in reached)
    return all(one[1] <= other[0] for one, other in pairwise(ends))


def _as_condition(reached: frozenset[int] | tuple[float, float]) -> Condition:
    return tuple(sorted(reached)) if isinstance(reached, frozenset) else reached
