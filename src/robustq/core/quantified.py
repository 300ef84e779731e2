"""Predictions and their robustness, as positions of classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from robustq.arrays import Bools, Floats, Indices

__all__ = ["Quantified", "Ranking", "Sizes"]


@dataclass(frozen=True)
class Quantified:
    """What is found for a block of rows.

    Attributes
    ----------
    prediction, runner_up : ndarray of shape (rows,)
        Positions of classes; the runner-up is −1 if there is one class only.
    probability : ndarray of shape (rows,)
        p(ĉ | f).
    robustness, tipping : ndarray of shape (balls, rows)
        The tipping class is −1 where the robustness is infinite.
    """

    prediction: Indices
    runner_up: Indices
    probability: Floats
    robustness: Floats
    tipping: Indices

    @classmethod
    def empty(cls, balls: int, rows: int) -> Quantified:
        """Return room for so many balls and rows."""
        return cls(
            np.empty(rows, dtype=np.int64),
            np.empty(rows, dtype=np.int64),
            np.empty(rows),
            np.empty((balls, rows)),
            np.empty((balls, rows), dtype=np.int64),
        )

    def widen(self, balls: int) -> Quantified:
        """Return the same predictions, with room for so many balls."""
        rows = len(self.prediction)
        return Quantified(
            self.prediction,
            self.runner_up,
            self.probability,
            np.empty((balls, rows)),
            np.empty((balls, rows), dtype=np.int64),
        )

    def put(self, rows: Indices | slice, part: Quantified) -> None:
        """Write what was found for some rows."""
        self.prediction[rows] = part.prediction
        self.runner_up[rows] = part.runner_up
        self.probability[rows] = part.probability
        self.robustness[:, rows] = part.robustness
        self.tipping[:, rows] = part.tipping

    def take(self, rows: Indices | slice) -> Quantified:
        """Return what was found for some rows, in any order."""
        return Quantified(
            self.prediction[rows],
            self.runner_up[rows],
            self.probability[rows],
            self.robustness[:, rows],
            self.tipping[:, rows],
        )

    def settle(self, impossible: Bools, by_frequency: Indices) -> None:
        """Let the most frequent classes lead, in a tie, where f has probability 0."""
        if impossible.any():
            rival = by_frequency[1] if len(by_frequency) > 1 else -1
            self.prediction[impossible] = by_frequency[0]
            self.runner_up[impossible] = rival
            self.robustness[:, impossible] = 0.0 if rival >= 0 else np.inf
            self.tipping[:, impossible] = rival


class Sizes(NamedTuple):
    """Of what is found, the robustness alone: (balls, rows), for who asks for no more."""

    robustness: Floats

    @classmethod
    def empty(cls, balls: int, rows: int) -> Sizes:
        """Return room for so many balls and rows."""
        return cls(np.empty((balls, rows)))

    def put(self, rows: Indices | slice, part: Quantified) -> None:
        """Write what was found for some rows."""
        self.robustness[:, rows] = part.robustness

    def take(self, rows: Indices) -> Sizes:
        """Return what was found for some rows, in any order."""
        return Sizes(self.robustness[:, rows])


class Ranking(NamedTuple):
    """Who seems to lead, by logarithms that are rounded.

    Attributes
    ----------
    found : Quantified
        The best two classes of each row and the probability of the best; no more yet.
    top, lead : ndarray of shape (rows,)
        log p(ĉ, f), and by how much it is ahead.
    """

    found: Quantified
    top: Floats
    lead: Floats

    @classmethod
    def empty(cls, rows: int) -> Ranking:
        """Return room for so many rows."""
        return cls(Quantified.empty(0, rows), np.empty(rows), np.empty(rows))

    @classmethod
    def of(cls, joint: Floats) -> Ranking:
        """Return who leads, given log p(c, f)."""
        from . import _joint_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        ranking = cls.empty(len(joint))
        _joint_kernels.rank(joint, *ranking.arrays)
        return ranking

    @property
    def arrays(self) -> tuple[Indices, Indices, Floats, Floats, Floats]:
        """What kernels write."""
        found = self.found
        return found.prediction, found.runner_up, found.probability, self.top, self.lead
