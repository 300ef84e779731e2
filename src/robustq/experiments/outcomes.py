"""What indicators reached in every run on every data set, and how sure their differences are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robustq.arrays import Floats

__all__ = ["CONFIDENCE", "TIE", "Interval", "Outcome", "interval", "paired_band", "pool"]

CONFIDENCE = 0.95
TIE = 1e-9


@dataclass(frozen=True)
class Interval:
    """A mean, and between what it lies with 95 % confidence."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """Accuracies and areas of one model, all indicators on the same rows.

    Attributes
    ----------
    names : tuple of str
        The indicators.
    rates : tuple of float
        The rejection rates.
    values : ndarray of shape (data sets, runs, rates + 1, names)
        The accuracy at each rate, and the area under the curve.
    """

    names: tuple[str, ...]
    rates: tuple[float, ...]
    values: Floats

    @property
    def data_sets(self) -> int:
        """How many data sets there are."""
        return len(self.values)

    def columns(self, names: Sequence[str], rows: Sequence[int] = (-1,)) -> Floats:
        """Return the mean of some indicators at some rows, by default AU-ARC: (sets, runs)."""
        places = [self.names.index(name) for name in names]
        return np.asarray(self.values[:, :, list(rows)][..., places].mean(axis=(2, 3)))

    def mean(self, name: str, rows: Sequence[int] = (-1,)) -> float:
        """Return the mean over runs and data sets."""
        return float(self.columns([name], rows).mean())

    def lead(
        self,
        name: str,
        others: Sequence[str],
        rows: Sequence[int] = (-1,),
        comparisons: int = 1,
    ) -> Interval:
        """Return how far an indicator is ahead of the mean of others, with its paired band."""
        ahead = self.columns([name], rows) - self.columns(others, rows)
        return paired_band(ahead, comparisons)

    def wins(self, margin: float = TIE) -> Floats:
        """Return at how many rates each is best or at most a margin below: (data sets, names)."""
        means = self.values[:, :, :-1].mean(axis=1)
        best = means.max(axis=2, keepdims=True)
        return np.asarray((means >= best - margin).sum(axis=1), dtype=np.float64)

    @cached_property
    def ranks(self) -> dict[str, float]:
        """The mean rank of each by AU-ARC, 1 being the best; those that tie share theirs."""
        areas = np.round(self.values[:, :, -1].mean(axis=1) / TIE) * TIE
        ranks = stats.rankdata(-areas, axis=1).mean(axis=0)
        return dict(zip(self.names, ranks.tolist(), strict=True))

    @cached_property
    def critical_difference(self) -> float:
        """By how much mean ranks must differ to tell, by Friedman's and Nemenyi's tests."""
        many, sets = len(self.names), self.data_sets
        if many < 2:
            return 0.0
        quantile = float(stats.studentized_range.ppf(CONFIDENCE, many, np.inf)) / np.sqrt(2.0)
        return float(quantile * np.sqrt(many * (many + 1) / (6.0 * sets)))


def paired_band(differences: Floats, comparisons: int = 1) -> Interval:
    """Return the mean of differences over runs and data sets, with Student's band.

    It speaks of data sets like these: data sets are what is drawn, each measured by its runs.

    Parameters
    ----------
    differences : ndarray of shape (data sets, runs)
    comparisons : int
        Of how many bands all are to be right at once (Bonferroni).
    """
    sets, runs = differences.shape
    mean = float(differences.mean())
    if sets < 2:
        return Interval(mean, -np.inf, np.inf)
    between = differences.mean(axis=1).var(ddof=1)
    # Few data sets may be alike by chance: they are never surer than their runs are.
    within = differences.var(axis=1, ddof=1).mean() / runs if runs > 1 else 0.0
    error = np.sqrt(max(between, within) / sets)
    tail = (1.0 - CONFIDENCE) / (2.0 * comparisons)
    reach = float(error * stats.t.ppf(1.0 - tail, sets - 1))
    return Interval(mean, mean - reach, mean + reach)


def interval(values: Sequence[float]) -> Interval:
    """Return a mean with Student's interval; runs share rows, so it speaks of the splits only."""
    return pool([values])


def pool(groups: Sequence[Sequence[float]]) -> Interval:
    """Return the mean of the means of groups of runs, with an interval over the runs alone."""
    runs = len(groups[0])
    mean = float(np.mean([np.mean(values) for values in groups]))
    if runs < 2:
        return Interval(mean, mean, mean)
    # The groups are independent: their variances add up.
    error = float(np.sqrt(sum(np.var(v, ddof=1) / runs for v in groups))) / len(groups)
    reach = error * float(stats.t.ppf((1 + CONFIDENCE) / 2, len(groups) * (runs - 1)))
    return Interval(mean, mean - reach, mean + reach)
