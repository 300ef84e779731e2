"""The local mass functions of naive Bayes: the prior, and one for each feature and class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from robustq.core.evidence import NONE, About

if TYPE_CHECKING:
    from robustq.arrays import Bools, Floats, Indices

    from .model import NaiveBayes

__all__ = ["FEATURES", "PARTS", "PRIOR", "NaiveBayesLocals"]

PARTS = PRIOR, FEATURES = ("prior", "features")


class NaiveBayesLocals:
    """The prior, number 0, and then for each feature one mass function a class."""

    parts = PARTS
    on_classes = ()

    def __init__(self, model: NaiveBayes) -> None:
        self._model, self._classes = model, model.layout.classes

    @property
    def wide(self) -> tuple[int, ...]:
        """The parts that weigh more than two children."""
        return (0,) if self._classes > 2 else ()

    @property
    def counted(self) -> Bools:
        """For each part, whether rows were counted there."""
        rows = self._model.feature_rows
        return np.array([not np.isnan(self._model.prior_rows), not np.isnan(rows).all()])

    @property
    def class_table(self) -> Floats:
        """No leaf holds a mass function on the classes."""
        return np.ones((0, self._classes))

    def position(self, local: Indices, slot: Indices) -> Indices:  # noqa: ARG002 (all have all values)
        """Return where values stand among the outcomes: at their codes."""
        return slot

    def outcomes(self, local: Indices) -> Indices:
        """Return how many outcomes each has."""
        sizes = np.array([*self._model.layout.sizes, self._classes], dtype=np.int64)
        return sizes[np.where(local > 0, (local - 1) // self._classes, -1)]

    def expand(self, local: Indices) -> Floats:
        """Return whole mass functions, all with the same number of outcomes."""
        outcomes = int(self.outcomes(local[:1])[0]) if len(local) else 0
        found = np.empty((len(local), outcomes))
        for one in np.unique(local).tolist():
            feature, c = divmod(one - 1, self._classes)
            q = self._model.local_model(feature)[:, c] if one > 0 else self._model.class_probs
            found[local == one] = q
        return found

    def about(self, local: int) -> About:
        """Return what one is about."""
        if local == 0:
            return About(NONE, path=("class_probs",))
        feature, c = divmod(local - 1, self._classes)
        return About(feature, label=c, path=("feature_probs", feature, c))
