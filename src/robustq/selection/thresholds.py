"""The loosest threshold whose error is bounded, found by a sequence of exact tests.

Thresholds are order statistics of the calibration scores: their *ranks* are fixed before any
label is seen. Given the score t at such a rank, the calibration predictions with a higher score
are an independent sample of all predictions with a score above t, so the number of wrong ones
among them is binomial, with the error that a user of the threshold t would meet.

From the strictest threshold to the loosest, each is tested at the full risk 1 − confidence, and
the first that fails ends the walk: a fixed sequence needs no correction for how many tests it
holds. (To break a promise, the walk must pass the first threshold whose error is too large, and
that is one test.) That is exact where scores do not tie and where the error above a threshold,
once too large, stays so for all looser ones; the tests simulate what happens where it does not.

Which ranks: below k with (1 − max_error)^k > 1 − confidence nothing can be promised, even
if no prediction is wrong. From there on, a rank is worth testing where one wrong prediction more
is allowed. Among very few predictions a single wrong one ends the walk, so that it begins at a
fifth of the rows, or at the first rank that can pass at all if that is larger.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import bdtr, betaincinv
from scipy.stats import nbinom

from robustq.tables.display import as_html, as_text, show_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from robustq.arrays import Bools, Floats, Indices

__all__ = ["Calibration", "Promises", "bound_error", "calibrate", "list_promises", "list_ranks"]

BEGINNING = 0.2  # of the rows: simulated, between 0.1 and 0.25 it hardly matters
LONGEST = 500  # tests in a sequence
ERRORS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4)


class _Shown:
    """Something with columns and a title that shows itself as a table."""

    _title: str

    def to_dict(self) -> Mapping[str, np.ndarray[Any, Any]]:
        raise NotImplementedError

    def _cells(self) -> dict[str, list[str]]:
        return {name: list(map(show_value, cells)) for name, cells in self.to_dict().items()}

    def __repr__(self) -> str:
        return f"{self._title}\n{as_text(self._cells())}"

    def _repr_html_(self) -> str:
        return as_html(self._title, self._cells())


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(_Shown):
    """What was found at each threshold, the strictest first.

    Attributes
    ----------
    rows : int
        How many calibration predictions there are.
    thresholds : ndarray of shape (thresholds,)
        A prediction is accepted if its score is *above*; −∞ accepts all.
    accepted, wrong : ndarray of shape (thresholds,)
        How many calibration predictions are accepted, and how many of them are wrong.
    bounds : ndarray of shape (thresholds,)
        What the error is at most, each one alone with the confidence stated.
    passed : ndarray of bool, of shape (thresholds,)
        Whether the promise could be made there: up to the first that fails.
    """

    rows: int
    thresholds: Floats
    accepted: Indices
    wrong: Indices
    bounds: Floats
    passed: Bools

    def pick(self) -> int | None:
        """Return the loosest threshold that may be used, None if there is none."""
        good = np.flatnonzero(self.passed)
        return int(good[-1]) if len(good) else None

    def to_dict(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the columns by name."""
        return {
            "above": self.thresholds,
            "accepted": self.accepted,
            "wrong": self.wrong,
            "error at most": self.bounds,
            "passed": self.passed,
        }

    @property
    def _title(self) -> str:  # type: ignore[override]
        return f"Calibration on {self.rows:,} predictions"


@dataclass(frozen=True, eq=False, repr=False)
class Promises(_Shown):
    """What could be promised, and how many predictions would then be accepted.

    Each line is a promise of its own, with the confidence stated: decide which one to make before
    looking at them, or on other rows.

    Attributes
    ----------
    confidence : float
    errors : ndarray of shape (promises,)
        The largest share of wrong predictions among those accepted.
    accepted : ndarray of shape (promises,)
        The share of the calibration predictions that would be accepted; 0 where nothing can be
        promised.
    """

    confidence: float
    errors: Floats
    accepted: Floats

    def to_dict(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the columns by name."""
        return {"error at most": self.errors, "share accepted": self.accepted}

    @property
    def _title(self) -> str:  # type: ignore[override]
        return f"What could be promised with confidence {self.confidence:g}, each for itself"


def list_ranks(rows: int, max_error: float, risk: float) -> Indices:
    """Return how many predictions the thresholds accept, the strictest first.

    Parameters
    ----------
    rows : int
    max_error : float
    risk : float
        One minus the confidence.
    """
    wrong = np.arange(int(max_error * rows) + 1)
    if len(wrong) > LONGEST:
        wrong = np.unique(np.linspace(0, wrong[-1], LONGEST).astype(np.intp))
    # The smallest number of which so many wrong ones pass: Bin(k, e) ≤ w where the (w + 1)-th
    # wrong one comes after the k-th.
    ranks = (wrong + 1 + nbinom.ppf(1.0 - risk, wrong + 1, max_error)).astype(np.intp)
    ranks = ranks[ranks < rows]
    begun = ranks[ranks >= BEGINNING * rows]
    first = rows if not len(ranks) else begun[0] if len(begun) else ranks[-1]
    return np.append(ranks[ranks >= first], rows)


def calibrate(correct: Bools, score: Floats, max_error: float, confidence: float) -> Calibration:
    """Test nested thresholds, from the strictest to the loosest.

    Parameters
    ----------
    correct : ndarray of bool, of shape (rows,)
    score : ndarray of shape (rows,)
    max_error : float
    confidence : float
    """
    rows, risk = len(score), 1.0 - confidence
    order = np.argsort(-score, kind="stable")
    falling = score[order]
    wrongs = np.concatenate([[0], np.cumsum(~correct[order])])
    ranks = list_ranks(rows, max_error, risk)
    # The last one accepts all, scores of −∞ too.
    thresholds = np.append(falling[ranks[:-1]], -np.inf)
    accepted = np.append(np.searchsorted(-falling, -thresholds[:-1], side="left"), rows)
    # Where scores tie, fewer are accepted, perhaps too few for any promise: those are left out,
    # and so is what comes twice.
    used = ((1.0 - max_error) ** accepted <= risk) & np.append(np.diff(accepted) > 0, True)
    used[-1] = True
    thresholds, accepted = thresholds[used], accepted[used]
    wrong = wrongs[accepted]
    passed = np.logical_and.accumulate(bdtr(wrong, accepted, max_error) <= risk)
    return Calibration(
        rows, thresholds, accepted, wrong, bound_error(wrong, accepted, risk), passed
    )


def list_promises(
    correct: Bools, score: Floats, confidence: float, errors: Sequence[float] = ERRORS
) -> Promises:
    """Return at which coverage which error could be promised.

    Parameters
    ----------
    correct : ndarray of bool, of shape (rows,)
    score : ndarray of shape (rows,)
    confidence : float
    errors : sequence of float
    """
    shares = []
    for error in errors:
        found = calibrate(correct, score, error, confidence)
        picked = found.pick()
        shares.append(0.0 if picked is None else found.accepted[picked] / found.rows)
    return Promises(confidence, np.array(errors), np.array(shares))


def bound_error(wrong: Indices, of: Indices, risk: float) -> Floats:
    """Return the Clopper–Pearson bound, which an error exceeds with probability `risk` at most."""
    wrong, of = np.asarray(wrong, dtype=np.float64), np.asarray(of, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        bound = betaincinv(wrong + 1.0, of - wrong, 1.0 - risk)
    # Where all are wrong, or there are none, nothing is excluded.
    return np.where(wrong >= of, 1.0, bound)
