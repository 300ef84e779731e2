"""What can be said of a prediction of which only the posterior is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from robustq.core import atoms
from robustq.core.evidence import NONE, About
from robustq.core.witness import Move
from robustq.exceptions import UnsupportedError
from robustq.tables.display import show_value

from .explanation import Explanation
from .listing import Listing
from .words import Told, clean, say_number, say_share

if TYPE_CHECKING:
    from robustq.arrays import Floats, Indices
    from robustq.core.neighbourhoods import Neighbourhood
    from robustq.core.quantified import Quantified

__all__ = ["Outcome", "PosteriorFindings", "Turns"]

PART = "posterior"
OTHERS = "its trees are perturbed, and which of their leaves change is not told"


class Outcome(NamedTuple):
    """A class in a posterior.

    Attributes
    ----------
    label : Any
    probability : float
    alone : float or None
        The size at which it catches up with the prediction; infinite if it never does. None where
        something else is perturbed, or the ball has no formula for two classes of many.
    nearest : float or None
        Its probability in the nearest posterior that disagrees, where there is one.
    """

    label: Any
    probability: float
    alone: float | None
    nearest: float | None


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

    def list_outcomes(self, row: int) -> tuple[Outcome, ...]:
        """Return the classes, the most probable first."""
        proba, best = self.proba[row], int(self.base.prediction[row])
        known = self.whole and self.neighbourhood.ball.expectation in atoms.FORMULAS
        alone = self._find_alone(row).tolist() if known else [None] * len(proba)
        moves, _ = self.moves(row)
        after = moves[0].after.tolist() if moves else [None] * len(proba)
        others = [k for k in np.argsort(-proba, kind="stable").tolist() if k != best]
        return tuple(
            Outcome(self.classes[k], float(proba[k]), None if k == best else alone[k], after[k])
            for k in [best, *others]
        )

    def _find_alone(self, row: int) -> Floats:
        """Return the size at which each class catches up, as if it were the only rival."""
        proba, best = self.proba[row], int(self.base.prediction[row])
        a = np.full(len(proba), proba[best])
        with np.errstate(divide="ignore"):
            logs = [np.log(p) for p in (a, proba, a - proba, np.maximum(1.0 - a - proba, 0.0))]
        return atoms.solve(self.neighbourhood.ball, *logs)

    def summarise(self, rows: Indices) -> Turns:
        """Return what predictions would turn into, over some rows."""
        pairs = np.stack([self.base.prediction[rows], self.base.tipping[0, rows]], axis=1)
        found, which, counts = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
        labels = np.array([*self.classes.tolist(), None], dtype=object)
        sizes, order = self.base.robustness[0, rows], np.argsort(-counts, kind="stable")
        own = [sizes[which.reshape(-1) == k] for k in order]
        return Turns(
            *(len(rows), self.name, labels[found[order, 0]], labels[found[order, 1]]),
            *(counts[order], np.array([np.min(some) for some in own])),
            # The lower of two medians: between them there may be nothing but infinity.
            np.array([np.sort(some)[(len(some) - 1) // 2] for some in own]),
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


@dataclass(frozen=True, eq=False, repr=False)
class Turns(Listing):
    """What the predictions of a whole table would turn into: a line for each pair of classes.

    Attributes
    ----------
    rows : int
        How many predictions there are.
    perturbation : str
    prediction, tipping_class : ndarray
        Labels; the tipping class is None where nothing flips predictions.
    count : ndarray of int
        How many predictions there are of the kind, the most frequent first.
    least, median : ndarray
        Of their robustness.
    """

    rows: int
    perturbation: str
    prediction: np.ndarray[Any, Any]
    tipping_class: np.ndarray[Any, Any]
    count: Indices
    least: Floats
    median: Floats

    def columns(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the columns by name."""
        names = ("prediction", "tipping_class", "count", "least", "median")
        return {name: getattr(self, name) for name in names}

    def plot(self, ax: Any = None) -> Any:
        """Draw how many predictions would turn into what.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default new ones of pyplot.

        Returns
        -------
        matplotlib Axes
        """
        from .plots import plot_turns  # noqa: PLC0415 (matplotlib is slow to import)

        return plot_turns(self, ax)

    @property
    def title(self) -> str:
        """What the table is about."""
        return f"What {self.rows:,} predictions would turn into ({self.perturbation})"

    def cells(self) -> dict[str, list[str]]:
        """Return the lines as columns of text."""
        rows = max(self.rows, 1)
        return {
            "prediction": [clean(label) for label in self.prediction],
            "flips to": [clean(show_value(label)) for label in self.tipping_class],
            "predictions": [f"{count:,}" for count in self.count],
            "share": [say_share(count / rows, 1) for count in self.count],
            "least robust": [say_number(size) for size in self.least],
            "median": [say_number(size) for size in self.median],
        }
