"""What can be said of a prediction of which only the posterior is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.core.evidence import NONE, About
from robustq.core.witness import Move
from robustq.exceptions import UnsupportedError

from .explanation import Explanation
from .words import Told, clean

if TYPE_CHECKING:
    from robustq.arrays import Bools, Floats, Indices
    from robustq.core.neighbourhoods import Neighbourhood
    from robustq.core.quantified import Quantified

__all__ = ["PosteriorFindings"]

PART = "posterior"
OTHERS = "its trees are perturbed, and which of their leaves change is not told"


@dataclass(frozen=True, eq=False)
class PosteriorFindings:
    """What was found for rows of a classifier that is not known from inside.

    Nothing is known of features, so that there are none; the nearest posterior that disagrees is.

    Attributes
    ----------
    classes : ndarray of shape (classes,)
    proba : ndarray of shape (rows, classes)
    neighbourhood : Neighbourhood
    base : Quantified
    whole : bool
        Whether the posterior is what is perturbed.
    """

    classes: np.ndarray[Any, Any]
    proba: Floats
    neighbourhood: Neighbourhood
    base: Quantified
    whole: bool
    names: tuple[str, ...] = ()
    target: str = "class"

    @property
    def name(self) -> str:
        """What the neighbourhood is called."""
        return self.neighbourhood.name

    @property
    def prediction(self) -> Indices:
        """The predicted classes."""
        return self.base.prediction

    @cached_property
    def hangs_on(self) -> Indices:
        """No feature, −1, for each row."""
        return np.full(len(self.proba), -1)

    @property
    def support(self) -> Floats:
        """Of no feature."""
        return np.empty((0, len(self.proba)))

    alone = without_prediction = support

    @property
    def possible(self) -> Bools:
        """Of no feature."""
        return np.empty((0, len(self.proba)), dtype=bool)

    def explain(self, row: int) -> Explanation:
        """Return what can be said of a row."""
        tipping = int(self.base.tipping[0, row])
        return Explanation(
            prediction=self.classes[self.base.prediction[row]],
            probability=float(self.base.probability[row]),
            tipping_class=None if tipping < 0 else self.classes[tipping],
            robustness=float(self.base.robustness[0, row]),
            perturbation=self.name,
            features=(),
            _findings=self,
            _row=row,
        )

    def count_records(self, row: int) -> None:
        """Return None: nobody knows the training records."""

    def part_of(self, move: Move) -> str:  # noqa: ARG002
        """Return the part of the model that moves."""
        return PART

    def tell(self, move: Move) -> Told:  # noqa: ARG002
        """Return in words what moves."""
        outcomes = tuple(f"{self.target} = {clean(label)}" for label in self.classes.tolist())
        return Told(About(NONE), outcomes, "")

    def moves(self, row: int) -> tuple[list[Move], str]:
        """Return how the posterior changes, or why that is not told."""
        best, rival = int(self.base.prediction[row]), int(self.base.tipping[0, row])
        size, before = self.base.robustness[0, row], self.proba[row]
        if not self.whole:
            return [], OTHERS
        if rival < 0 or size == 0.0:
            return [], ""
        payoff = np.zeros(len(before))
        payoff[best], payoff[rival] = 1.0, -1.0
        try:
            after = np.clip(self.neighbourhood.ball.minimising(before, payoff, size), 0.0, 1.0)
        except UnsupportedError as error:
            return [], str(error)
        distance = float(np.abs(after - before).sum() / 2.0)
        return [Move(0, 0, NONE, math.nan, best, before, after, distance, 0.0)], ""
