"""The local mass functions of a network: the rows of its tables."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from robustq.core.evidence import NONE, About

if TYPE_CHECKING:
    from robustq.arrays import Bools, Floats, Indices
    from robustq.core.evidence import Condition

    from .model import Network

__all__ = ["FEATURES", "PARTS", "PRIOR", "NetworkLocals"]

PARTS = ("prior", "features")
PRIOR, FEATURES = range(2)


class NetworkLocals:
    """The rows of the class's table, then those of the features' tables, classes side by side."""

    parts = PARTS
    on_classes = ()

    def __init__(self, model: Network) -> None:
        self._model, self._structure = model, model.structure
        self._first = len(model.class_probs)

    @property
    def wide(self) -> tuple[int, ...]:
        """The parts that weigh more than two children: a missing feature has all its values."""
        own = (PRIOR,) if self._structure.classes > 2 else ()
        return (*own, FEATURES) if max(self._structure.sizes, default=0) > 2 else own

    @property
    def counted(self) -> Bools:
        """For each part, whether rows were counted there."""
        return ~np.array(
            [np.isnan(self._model.class_rows).all(), np.isnan(self._model.feature_rows).all()]
        )

    @property
    def class_table(self) -> Floats:
        """No leaf holds a mass function on the classes."""
        return np.ones((0, self._structure.classes))

    def position(self, local: Indices, slot: Indices) -> Indices:  # noqa: ARG002 (all have all values)
        """Return where values stand among the outcomes: at their codes."""
        return slot

    def owner(self, local: Indices) -> Indices:
        """Return the feature each belongs to, −1 for the class."""
        offsets = self._structure.wiring.row_offsets
        found = np.searchsorted(offsets, local - self._first, side="right") - 1
        return np.where(local < self._first, -1, found)

    def outcomes(self, local: Indices) -> Indices:
        """Return how many outcomes each has."""
        sizes = np.array([*self._structure.sizes, self._structure.classes], dtype=np.int64)
        return sizes[self.owner(local)]

    def expand(self, local: Indices) -> Floats:
        """Return whole mass functions, all with the same number of outcomes."""
        outcomes = int(self.outcomes(local[:1])[0]) if len(local) else 0
        found, owner, wiring = np.empty((len(local), outcomes)), self.owner(local), None
        for feature in np.unique(owner).tolist():
            some = np.flatnonzero(owner == feature)
            if feature < 0:
                found[some] = self._model.class_probs[local[some]]
                continue
            wiring = self._structure.wiring
            width = wiring.widths[feature]
            line = local[some] - self._first - wiring.row_offsets[feature]
            first = wiring.offsets[feature] + line // width * width * outcomes + line % width
            found[some] = self._model.feature_probs[first[:, None] + np.arange(outcomes) * width]
        return found

    def about(self, local: int) -> About:
        """Return what one is about: the values of the parents, and the class if it is one."""
        structure, feature = self._structure, int(self.owner(np.array([local]))[0])
        if feature < 0:
            given = _list_given(structure.class_parents, structure.sizes, local)
            return About(NONE, given=given, path=("tables", 0, "probs", local))
        width = int(structure.wiring.widths[feature])
        line = local - self._first - int(structure.wiring.row_offsets[feature])
        configuration, c = divmod(line, width)
        parents = structure.parents[feature]
        # A document counts the class first, then the other parents.
        row = c * prod(structure.sizes[parent] for parent in parents) + configuration
        return About(
            feature,
            label=c if structure.from_class[feature] else NONE,
            given=_list_given(parents, structure.sizes, configuration),
            path=("tables", 1 + feature, "probs", row),
        )


def _list_given(
    parents: tuple[int, ...], sizes: tuple[int, ...], configuration: int
) -> tuple[tuple[int, Condition], ...]:
    """Return the values of parents in a row of a table, the last one fastest."""
    given: list[tuple[int, Condition]] = []
    for parent in reversed(parents):
        configuration, code = divmod(configuration, sizes[parent])
        given.append((parent, (code,)))
    return tuple(reversed(given))
