"""How sure it is that one score ranks better than another: a bootstrap of rows, paired."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from robustq.blocks import for_each_block

from .curves import accuracy_rejection_curve, read_results

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from robustq.arrays import Bools, Floats

__all__ = ["Interval", "Resampled", "resample"]

AREA_POINTS = 500
MOST_ROWS = 200_000
RESAMPLES = 1000
FULL_ROWS = 20_000  # up to so many, all resamples; of more rows fewer, which then vary less


@dataclass(frozen=True)
class Interval:
    """A number, and between which two it lies."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Resampled:
    """What became of curves where the rows were drawn again, the same rows for all of them.

    Attributes
    ----------
    values : dict of str to ndarray of shape (2,)
        AU-ARC and the accuracy at a rate of rejection, of the rows as they are.
    draws : dict of str to ndarray of shape (resamples, 2)
        The same, of rows drawn again.
    """

    values: dict[str, Floats]
    draws: dict[str, Floats]

    def area(self, name: str, against: str | None = None, risk: float = 0.05) -> Interval:
        """Return AU-ARC, or by how much it is larger than another's."""
        return self._find(0, name, against, risk)

    def accuracy(self, name: str, against: str | None = None, risk: float = 0.05) -> Interval:
        """Return the accuracy at the rate, or by how much it is larger than another's."""
        return self._find(1, name, against, risk)

    def _find(self, which: int, name: str, against: str | None, risk: float) -> Interval:
        value, drawn = self.values[name][which], self.draws[name][:, which]
        if against is not None:
            value, drawn = (
                value - self.values[against][which],
                drawn - self.draws[against][:, which],
            )
        low, high = np.quantile(drawn, [risk / 2, 1.0 - risk / 2])
        return Interval(float(value), float(low), float(high))


def resample(
    correct: ArrayLike, scores: Mapping[str, ArrayLike], *, rate: float, random_state: int = 0
) -> Resampled:
    """Draw the rows again and again, and tell what becomes of the curves of some scores.

    Parameters
    ----------
    correct : array_like of bool, of shape (rows,)
    scores : mapping of str to array_like of shape (rows,)
    rate : float
        Of rejection.
    random_state : int
    """
    read = {name: read_results(correct, score) for name, score in scores.items()}
    right = read_results(correct)[0]
    values = {}
    for name, (_, trust) in read.items():
        curve = accuracy_rejection_curve(right, trust)
        values[name] = np.array([curve.auc, float(curve.at(rate))])
    rows = np.arange(len(right))
    if len(rows) > MOST_ROWS:
        # Bands of fewer rows are wider than they need be, never narrower.
        rows = np.sort(np.random.default_rng(random_state).permutation(len(rows))[:MOST_ROWS])
    ranked = {name: _rank(right[rows], trust[rows]) for name, (_, trust) in read.items()}
    count = int(np.clip(RESAMPLES * FULL_ROWS // max(len(rows), 1), 200, RESAMPLES))
    # Some rank all rows alike, as uncertainties do where there are two classes.
    keys = {name: order.tobytes() + ends.tobytes() for name, (order, _, ends) in ranked.items()}
    alike = {key: name for name, key in keys.items()}
    draws = {name: np.empty((count, 2)) for name in alike.values()}
    kept = np.append(np.linspace(1, len(rows), min(len(rows), AREA_POINTS)), 0)
    kept[-1] = max(1.0, len(rows) - np.floor(rate * len(rows) + 1e-9))

    def work(block: slice) -> None:
        for index in range(count)[block]:
            rng = np.random.default_rng([random_state, index])
            drawn = np.bincount(rng.integers(0, len(rows), len(rows)), minlength=len(rows))
            for name, found in draws.items():
                order, hits, ends = ranked[name]
                accuracy = _trace(drawn[order], hits, ends, kept)
                found[index] = accuracy[:-1].mean(), accuracy[-1]

    for_each_block(work, count, 50)
    return Resampled(values, {name: draws[alike[key]] for name, key in keys.items()})


def _rank(right: Bools, trust: Floats) -> tuple[np.ndarray, Bools, np.ndarray]:
    """Return the rows, the most trusted first, which are right, and where blocks of ties end."""
    order = np.argsort(-trust, kind="stable")
    falling = trust[order]
    ends = np.flatnonzero(np.append(falling[1:] != falling[:-1], True))
    return order, right[order], ends


def _trace(drawn: np.ndarray, right: Bools, ends: np.ndarray, kept: Floats) -> Floats:
    """Return the accuracy where so many are kept; within ties, its expectation."""
    sizes = np.concatenate([[0], np.cumsum(drawn)[ends]])
    hits = np.concatenate([[0], np.cumsum(drawn * right)[ends]])
    return np.interp(kept, sizes, hits) / kept
