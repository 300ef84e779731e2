"""From finished pieces to curves, tables and areas."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from robustq.indicators.finding import find_indicator
from robustq.rejection import Comparison, Curve, accuracy_rejection_curve, compare

from .outcomes import Interval, Outcome, interval, pool
from .plan import Piece

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from .plan import Plan

__all__ = ["Results", "collect"]


@dataclass(frozen=True, eq=False)
class Results:
    """What a plan found for one model.

    Attributes
    ----------
    curves : dict of data set to dict of indicator to list of Curve
        One curve for each run.
    accuracy : dict of data set to list of float
        Of all predictions, in each run.
    possible : dict of data set to float
        The share of the rows tested that the model gives a probability above zero.
    rates : tuple of float
    """

    curves: dict[str, dict[str, list[Curve]]]
    accuracy: dict[str, list[float]]
    possible: dict[str, float]
    rates: tuple[float, ...]

    @cached_property
    def comparison(self) -> Comparison:
        """The paper's table."""
        return compare(self.curves, self.rates)

    @cached_property
    def outcome(self) -> Outcome:
        """What the findings are judged by: every run on its own."""
        names = self.comparison.names
        values = [
            [[[*curve.at(self.rates), curve.auc] for curve in curves[name]] for name in names]
            for curves in self.curves.values()
        ]
        # From (data sets, names, runs, rows).
        return Outcome(names, self.rates, np.array(values).transpose(0, 2, 3, 1))

    def without(self, data_sets: Sequence[str]) -> Results:
        """Return the results on the other data sets."""
        names = [name for name in self.curves if name not in data_sets]
        return Results(
            {name: self.curves[name] for name in names},
            {name: self.accuracy[name] for name in names},
            {name: self.possible[name] for name in names},
            self.rates,
        )

    def areas(self, data_set: str) -> dict[str, Interval]:
        """Return the AU-ARC of each indicator on a data set."""
        return {
            name: interval([curve.auc for curve in curves])
            for name, curves in self.curves[data_set].items()
        }

    def mean_areas(self) -> dict[str, Interval]:
        """Return the AU-ARC of each indicator, the mean over the data sets."""
        first = next(iter(self.curves.values()))
        return {
            name: pool([[c.auc for c in curves[name]] for curves in self.curves.values()])
            for name in first
        }


def collect(plan: Plan, model: str, pieces: Mapping[Piece, pa.Table]) -> Results:
    """Return the results of one model."""
    curves: dict[str, dict[str, list[Curve]]] = {}
    accuracy: dict[str, list[float]] = {}
    possible: dict[str, float] = {}
    for data_set in plan.data_sets:
        tables = [pieces[Piece(data_set, model, run)] for run in range(plan.runs)]
        right = [table["correct"].to_numpy() for table in tables]
        accuracy[data_set] = [float(part.mean()) for part in right]
        possible[data_set] = float(np.mean([t["possible"].to_numpy().mean() for t in tables]))
        curves[data_set] = {}
        for indicator in map(find_indicator, plan.indicators):
            scores = [indicator.as_trust(table[indicator.name].to_numpy()) for table in tables]
            curves[data_set][indicator.name] = [
                accuracy_rejection_curve(correct, score)
                for correct, score in zip(right, scores, strict=True)
            ]
    return Results(curves, accuracy, possible, plan.rates)
