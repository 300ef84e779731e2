"""Constant odds ratio: no odds fall by more than a share δ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import levels
from .built_in import ClosedForm
from .domain import Domain

if TYPE_CHECKING:
    from robustq.arrays import Floats

__all__ = ["OddsRatio"]


class OddsRatio(ClosedForm):
    """All q′ with q′(a)/q′(b) ≥ (1−δ) q(a)/q(b) for every two outcomes a and b.

    The minimum keeps the weight of the outcomes up to some level of f, shrinks that
    of the others by 1−δ, and normalises; the level is the one that does best.

    Examples
    --------
    >>> ball = OddsRatio()
    >>> float(ball.lower_expectation([0.5, 0.25, 0.25], [3, 1, 2], delta=0.5))
    2.0
    >>> ball.minimising([0.5, 0.25, 0.25], [4, 1, 3], delta=0.5)
    array([0.4, 0.4, 0.2])
    """

    name = "odds_ratio"
    domain = Domain(1.0, closed=False)

    def _lower_expectation(self, q: Floats, f: Floats, delta: Floats) -> Floats:
        low, span, u = levels.to_unit_interval(q, f)
        _, q, u = levels.sort_by_value(q, u)
        return low + span * _shrunken_means(q, u, delta).min(axis=0)

    def _minimising(self, q: Floats, f: Floats, delta: Floats) -> Floats:
        _, _, u = levels.to_unit_interval(q, f)
        order, q, u = levels.sort_by_value(q, u)
        level = _shrunken_means(q, u, delta).argmin(axis=0)
        kept = np.arange(len(q))[:, None] <= level
        weight = np.where(kept, q, (1.0 - delta) * q)
        return levels.restore_order(order, weight / levels.total(weight))

    # 1 − δq, written so that nothing cancels near δ = q = 1.

    def _lower_probability(self, q: Floats, delta: Floats) -> Floats:
        return (1.0 - delta) * q / ((1.0 - delta) + delta * (1.0 - q))

    def _upper_probability(self, q: Floats, delta: Floats) -> Floats:
        return q / ((1.0 - delta) + delta * q)


def _shrunken_means(q: Floats, u: Floats, delta: Floats) -> Floats:
    """Return for each level the mean of u when what lies above it is shrunk by 1−δ."""
    value = _shrink_above(q * u, delta)
    mass = _shrink_above(q, delta)
    return value / mass


def _shrink_above(ordered: Floats, delta: Floats) -> Floats:
    return ordered.cumsum(axis=0) + (1.0 - delta) * levels.mass_above(ordered)
