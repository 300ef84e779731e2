"""One accuracy-rejection curve, and what it is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from robustq.exceptions import InputError
from robustq.tables.display import as_html

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from robustq.arrays import Bools, Floats

__all__ = [
    "Curve",
    "accuracy_rejection_curve",
    "auc",
    "aurc",
    "best_curve",
    "check_rates",
    "excess_aurc",
    "random_curve",
    "read_results",
]

SHOWN = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True, eq=False, repr=False)
class Curve:
    """The accuracy of the predictions that are kept, against the share that is rejected.

    Attributes
    ----------
    rates : ndarray of shape (rows,)
        0, 1/n, …, (n−1)/n: the shares of the least trusted predictions that are rejected.
    accuracy : ndarray of shape (rows,)
        The accuracy of the others; where scores tie, its mean over all ways to break the tie.
    """

    rates: Floats
    accuracy: Floats

    @property
    def auc(self) -> float:
        """The area under the curve (AU-ARC): the mean accuracy over all numbers kept."""
        return float(self.accuracy.mean())

    @property
    def aurc(self) -> float:
        """The area under the risk-coverage curve, 1 − AU-ARC."""
        return 1.0 - self.auc

    @property
    def excess_aurc(self) -> float:
        """By how much the area under the risk-coverage curve exceeds the best possible (E-AURC)."""
        right = round(float(self.accuracy[0]) * len(self.accuracy))
        return max(0.0, _best_auc(right, len(self.accuracy)) - self.auc)

    def at(self, rates: ArrayLike) -> Floats:
        """Return the accuracy at some rejection rates.

        Parameters
        ----------
        rates : array_like
            In [0, 1): of n predictions the ⌊rate · n⌋ least trusted are rejected.
        """
        # 0.3 of 10 is 3, though 0.3 · 10 may fall short of it by rounding.
        rejected = np.floor(check_rates(rates) * len(self.accuracy) + 1e-9).astype(np.intp)
        return np.asarray(self.accuracy[np.minimum(rejected, len(self.accuracy) - 1)])

    def __repr__(self) -> str:
        return f"Curve of {len(self.rates):,} predictions, AU-ARC {self.auc:.4f}"

    def _repr_html_(self) -> str:
        columns = {
            "rejected": [f"{rate:.0%}" for rate in SHOWN],
            "accuracy of the rest": [f"{share:.4f}" for share in self.at(SHOWN)],
        }
        return as_html(repr(self), columns)


def accuracy_rejection_curve(correct: ArrayLike, score: ArrayLike) -> Curve:
    """Return the accuracy-rejection curve of a score.

    Parameters
    ----------
    correct : array_like of bool, of shape (rows,)
        Whether each prediction is right.
    score : array_like of shape (rows,)
        How much it is trusted, higher for more; may be infinite.

    Returns
    -------
    Curve

    Examples
    --------
    >>> accuracy_rejection_curve([True, False], [0.5, 0.5]).accuracy.tolist()
    [0.5, 0.5]
    """
    right, trust = read_results(correct, score)
    order = np.argsort(-trust, kind="stable")
    ranked, trust = right[order].astype(np.float64), trust[order]
    # Each row of a tied block counts with the block's mean: never the order of the rows.
    starts = np.flatnonzero(np.concatenate([[True], trust[1:] != trust[:-1]]))
    sizes = np.diff(np.append(starts, len(trust)))
    expected = np.repeat(np.add.reduceat(ranked, starts) / sizes, sizes)
    return _make(expected)


def best_curve(correct: ArrayLike) -> Curve:
    """Return the best possible curve: every wrong prediction is trusted less than any right one."""
    right, _ = read_results(correct)
    return accuracy_rejection_curve(right, right.astype(np.float64))


def random_curve(correct: ArrayLike) -> Curve:
    """Return the curve of a score that says nothing: the plain accuracy, whatever is rejected."""
    right, _ = read_results(correct)
    return accuracy_rejection_curve(right, np.zeros(len(right)))


def auc(correct: ArrayLike, score: ArrayLike) -> float:
    """Return the area under the accuracy-rejection curve (AU-ARC)."""
    return accuracy_rejection_curve(correct, score).auc


def aurc(correct: ArrayLike, score: ArrayLike) -> float:
    """Return the area under the risk-coverage curve (AURC), 1 − AU-ARC."""
    return accuracy_rejection_curve(correct, score).aurc


def excess_aurc(correct: ArrayLike, score: ArrayLike) -> float:
    """Return by how much AURC exceeds the best possible (E-AURC)."""
    return accuracy_rejection_curve(correct, score).excess_aurc


def read_results(correct: ArrayLike, score: ArrayLike | None = None) -> tuple[Bools, Floats]:
    """Return which predictions are right, and their scores, checked.

    Raises
    ------
    InputError
        If there are no rows, the lengths differ, a score is NaN, or something is no truth value.
    """
    try:
        given = np.asarray(correct)
    except ValueError as error:
        msg = f"correct must be a list of truth values: {error}"
        raise InputError(msg) from error
    if given.ndim != 1 or not len(given):
        msg = f"correct must have one truth value for each prediction, got shape {given.shape}"
        raise InputError(msg)
    if given.dtype != bool:
        wrong = [value for value in given.tolist() if not _is_truth_value(value)]
        if wrong:
            msg = f"correct must hold truth values, got {wrong[0]!r}"
            raise InputError(msg)
    if score is None:
        return given.astype(bool), np.zeros(len(given))
    trust = read_numbers(score, "score")
    if trust.shape != given.shape:
        msg = f"there are {len(given)} predictions and scores of shape {trust.shape}: give one each"
        raise InputError(msg)
    if np.isnan(trust).any():
        row = int(np.flatnonzero(np.isnan(trust))[0])
        msg = f"score {row} is NaN: a prediction must be trusted more or less, drop it otherwise"
        raise InputError(msg)
    return given.astype(bool), trust


def check_rates(rates: ArrayLike) -> Floats:
    """Return rejection rates, if all lie in [0, 1)."""
    given = read_numbers(rates, "rejection rates")
    outside = ~((given >= 0.0) & (given < 1.0))
    if outside.any():
        msg = f"rejection rates must lie in [0, 1), got {given[outside].ravel()[0]}"
        raise InputError(msg)
    return given


def read_numbers(given: ArrayLike, what: str) -> Floats:
    """Return an array of numbers, or say what should have been one."""
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        msg = f"{what} must be numbers: {error}"
        raise InputError(msg) from error


def _is_truth_value(value: object) -> bool:
    return isinstance(value, (bool, int, float)) and value in (0, 1)


def _make(expected: Floats) -> Curve:
    """Return the curve of predictions sorted by trust, from how often each is right."""
    rows = len(expected)
    # A sum of shares may exceed the number of rows by rounding.
    accuracy = np.minimum(np.cumsum(expected) / np.arange(1, rows + 1), 1.0)
    return Curve(np.arange(rows) / rows, accuracy[::-1])


def _best_auc(right: int, rows: int) -> float:
    """Return (n_c + Σ_{k>n_c} n_c/k)/n, the largest possible AU-ARC."""
    rest = (right / np.arange(right + 1, rows + 1)).sum()
    return float((right + rest) / rows)
