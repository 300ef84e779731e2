"""The loosest threshold whose error is bounded, by the exact binomial bound.

Thresholds are order statistics of the calibration scores: their *ranks* are fixed before
anything is seen. Given the score t at such a rank, the calibration predictions with a higher
score are an independent sample of all predictions with a score above t, so the number of wrong
ones among them is binomial, with the error that a user of the threshold t would meet. Clopper and
Pearson bound that error from above. Each of the J bounds may fail with probability
(1 − confidence)/J, so all hold together with the confidence stated, and any of them may be picked
after looking.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betaincinv

from robustq.tables.display import as_html, as_text, show_value

if TYPE_CHECKING:
    from robustq.arrays import Bools, Floats, Indices

__all__ = ["THRESHOLDS", "Calibration", "bound_error", "calibrate"]

THRESHOLDS = 20


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """What was found at each threshold, the loosest first.

    Attributes
    ----------
    thresholds : ndarray of shape (thresholds,)
        A prediction is accepted if its score is *above*; −∞ accepts all.
    accepted, wrong : ndarray of shape (thresholds,)
        How many calibration predictions are accepted, and how many of them are wrong.
    bounds : ndarray of shape (thresholds,)
        What the error is at most, all of them together with the confidence stated.
    """

    thresholds: Floats
    accepted: Indices
    wrong: Indices
    bounds: Floats

    def pick(self, max_error: float) -> int | None:
        """Return the loosest threshold whose bound is small enough, None if there is none."""
        good = np.flatnonzero(self.bounds <= max_error)
        return int(good[0]) if len(good) else None

    def to_dict(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the columns by name."""
        return {
            "above": self.thresholds,
            "accepted": self.accepted,
            "wrong": self.wrong,
            "error at most": self.bounds,
        }

    @property
    def _title(self) -> str:
        return f"Calibration on {int(self.accepted[0]):,} predictions"

    def _cells(self) -> dict[str, list[str]]:
        return {name: list(map(show_value, cells)) for name, cells in self.to_dict().items()}

    def __repr__(self) -> str:
        return f"{self._title}\n{as_text(self._cells())}"

    def _repr_html_(self) -> str:
        return as_html(self._title, self._cells())


def calibrate(correct: Bools, score: Floats, confidence: float) -> Calibration:
    """Bound the error at nested thresholds.

    Parameters
    ----------
    correct : ndarray of bool, of shape (rows,)
    score : ndarray of shape (rows,)
    confidence : float
    """
    rows = len(score)
    ranked = np.sort(score)
    # The first threshold accepts all, the others reject at least 1/J, 2/J, … of the scores.
    ranks = np.arange(1, THRESHOLDS) * rows // THRESHOLDS
    ranks = np.unique(ranks[ranks > 0])
    thresholds = np.concatenate([[-np.inf], ranked[ranks - 1]])
    above = score > thresholds[:, None]
    # The lowest scores may be −∞ themselves, and are accepted by the first.
    above[0] = True
    accepted, wrong = above.sum(axis=1), (above & ~correct).sum(axis=1)
    bounds = bound_error(wrong, accepted, (1.0 - confidence) / len(thresholds))
    return Calibration(thresholds, accepted, wrong, bounds)


def bound_error(wrong: Indices, of: Indices, risk: float) -> Floats:
    """Return the Clopper–Pearson bound, which an error exceeds with probability `risk` at most."""
    wrong, of = np.asarray(wrong, dtype=np.float64), np.asarray(of, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        bound = betaincinv(wrong + 1.0, of - wrong, 1.0 - risk)
    # Where all are wrong, or there are none, nothing is excluded.
    return np.where(wrong >= of, 1.0, bound)
