"""Classes that are nearly equally probable: who leads, and by how much, in exact arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .quantified import Quantified, Ranking

if TYPE_CHECKING:
    from robustq.arrays import Bools, Floats, Indices
    from robustq.tables import Rows

    from .evidence import Evidence, Model

__all__ = ["Leads", "rank_exactly"]

# Log probabilities whose difference is below this, for each factor in them, are looked at again:
# their rounding would show in a robustness.
NEAR = 2e-6
# And if it is below this, rounding may have put the wrong one first.
ROUNDING = 1e-14


@dataclass(frozen=True)
class Leads:
    """By how much the predicted classes are ahead of others that are close.

    Attributes
    ----------
    close : ndarray of shape (rows,)
        For each row, its row in the next two; −1 if no class is close.
    lead, place : ndarray of shape (some, classes)
        The lead is lead · 2^place; 0 with a place of 0 where it was not asked for.
    wanted : ndarray of bool, of shape (some, classes)
        Which classes are close.
    """

    close: Indices
    lead: Floats
    place: Floats
    wanted: Bools

    @classmethod
    def none(cls, rows: int, classes: int) -> Leads:
        """Return that no class is close to any other."""
        empty = np.zeros((0, classes))
        return cls(np.full(rows, -1, dtype=np.int64), empty, empty, empty.astype(bool))

    def take(self, rows: Indices) -> Leads:
        """Return those of some rows."""
        return Leads(self.close[rows], self.lead, self.place, self.wanted)

    def tied(self) -> tuple[Indices, Indices]:
        """Return the rows that are tied, and the first class each is tied with."""
        if not len(self.lead):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        ties = self.wanted & (self.lead == 0.0)
        rows = np.flatnonzero(self.close >= 0)
        rows = rows[ties[self.close[rows]].any(axis=1)]
        return rows, ties[self.close[rows]].argmax(axis=1)

    def log_leads(self, rows: Indices, rival: Indices) -> Floats:
        """Return the logarithm of the lead over a class; NaN where it is not close."""
        found = np.full(len(rows), np.nan)
        at = np.flatnonzero(self.close[rows] >= 0)
        close, other = self.close[rows[at]], rival[at]
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(self.lead[close, other]) + self.place[close, other] * np.log(2.0)
        found[at] = np.where(self.wanted[close, other], logs, np.nan)
        return found


def rank_exactly(
    model: Model,
    rows: Rows,
    joint: Floats,
    ranking: Ranking | None = None,
    *,
    all_close: bool = True,
) -> tuple[Quantified, Leads, Bools]:
    """Return the class that really is the most probable, the first one if several are.

    Also by how much it is ahead of others that are close, and which rows are impossible.

    Parameters
    ----------
    model : Model
    rows : Rows
    joint : ndarray of shape (rows, classes)
        log p(c, f)
    ranking : Ranking, optional
        Who seems to lead, where the model has found out already.
    all_close : bool
        Whether leads are wanted wherever rounding would show in a robustness; else who is first.
    """
    found, best, ahead = Ranking.of(joint) if ranking is None else ranking
    classes, impossible = joint.shape[1], best == -np.inf
    size = rows.codes.shape[1] + model.depth + 1.0
    most = NEAR * size if all_close else ROUNDING * (size + np.abs(best))
    # Rows of probability 0 are none of ours: there everything ties.
    near = np.flatnonzero(ahead <= most)
    near = near[~impossible[near]]
    if not len(near):
        return found, Leads.none(len(rows), classes), impossible
    most = np.broadcast_to(most, len(rows))
    wanted = best[near, None] - joint[near] <= most[near, None]
    prediction = found.prediction[near]
    wanted[np.arange(len(near)), prediction] = False
    lead, place = np.zeros((len(near), classes)), np.zeros((len(near), classes))
    for block, evidence in model.reach(rows[near]):
        part = _Block(model, evidence, wanted[block], prediction[block])
        lead[block], place[block] = part.rank()
        wanted[block], prediction[block] = part.wanted, part.prediction
    moved = np.flatnonzero(prediction != found.prediction[near])
    found.runner_up[near[moved]] = found.prediction[near[moved]]
    found.prediction[near] = prediction
    close = np.full(len(rows), -1, dtype=np.int64)
    close[near] = np.arange(len(near))
    return found, Leads(close, lead, place, wanted), impossible


@dataclass
class _Block:
    """Rows some of whose classes are close."""

    model: Model
    evidence: Evidence
    wanted: Bools
    prediction: Indices

    def rank(self) -> tuple[Floats, Floats]:
        """Let the right class lead, and return by how much."""
        while True:
            lead, place = self._find_leads()
            other = self._find_better(lead, place)
            moved = np.flatnonzero(other != self.prediction)
            if not len(moved):
                return lead, place
            self.wanted[moved, self.prediction[moved]] = True
            self.wanted[moved, other[moved]] = False
            self.prediction[moved] = other[moved]

    def _find_leads(self) -> tuple[Floats, Floats]:
        from . import _exact_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        e = self.evidence
        probs = self.model.locals.class_table
        lead, place = np.zeros(self.wanted.shape), np.zeros(self.wanted.shape)
        _exact_kernels.find_leads(
            *(e.starts, e.op, e.arity, e.p, e.extra, e.slot, probs),
            *(self.prediction, self.wanted.astype(np.float64), lead, place),
        )
        return lead, place

    def _find_better(self, lead: Floats, place: Floats) -> Indices:
        """Return for each row a class that is ahead of its prediction, or tied and before it."""
        better = self.prediction.copy()
        behind = self.wanted & (lead < 0.0)
        for row in np.flatnonzero(behind.any(axis=1)):
            where = np.flatnonzero(behind[row])
            size = np.log(-lead[row, where]) + place[row, where] * np.log(2.0)
            better[row] = where[size.argmax()]
        beaten = np.asarray(behind.any(axis=1))
        tied = self.wanted & (lead == 0.0) & ~beaten[:, None]
        first = np.where(tied.any(axis=1), tied.argmax(axis=1), len(lead[0]))
        return np.minimum(better, np.where(beaten, len(lead[0]), first))
