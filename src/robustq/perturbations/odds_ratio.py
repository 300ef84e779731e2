"""Constant odds ratio: no odds fall by more than a share δ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import levels, sizes
from .built_in import ClosedForm
from .domain import Domain
from .forms import Form, as_masses, rows_behind

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

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
    expectation = "odds_ratio"
    keeps_zero = True

    def _lower_expectation(self, q: Floats, f: Floats, delta: Floats) -> Floats:
        f, low, span = levels.on_support(q, f)
        _, q, f = levels.sort_by_value(q, f)
        weight = _shrink_above(q, levels.gaps(f, span), delta)
        return np.maximum(levels.expectation(weight, f) / levels.total(weight), low)

    def _minimising(self, q: Floats, f: Floats, delta: Floats) -> Floats:
        f, _, span = levels.on_support(q, f)
        order, q, f = levels.sort_by_value(q, f)
        weight = _shrink_above(q, levels.gaps(f, span), delta)
        return levels.restore_order(order, weight / levels.total(weight))

    # 1 − δq, written so that nothing cancels near δ = q = 1.

    def _lower_probability(self, q: Floats, delta: Floats) -> Floats:
        return np.minimum(q, (1.0 - delta) * q / ((1.0 - delta) + delta * (1.0 - q)))

    def _upper_probability(self, q: Floats, delta: Floats) -> Floats:
        return np.clip(q / ((1.0 - delta) + delta * q), q, 1.0)

    def form(self, p: ArrayLike, rows: ArrayLike | None = None) -> Form:
        """Return the bounds as functions of one number; see `Perturbation.form`."""
        p = as_masses(p)
        n = rows_behind(p, rows)
        none = np.zeros_like(p)
        return Form(fall=none, fall_scale=(1.0 - p) / n, rise=p / n, rise_scale=p / n)

    def local_size(self, delta: ArrayLike, rows: ArrayLike) -> Floats:
        """Return δ/(n+δ), the share of δ hidden records; see `Perturbation.local_size`."""
        return np.minimum(sizes.hidden_records(delta, rows), self.domain.largest)[()]

    def x_of(self, delta: ArrayLike, by_rows: bool = False) -> Floats:
        """Return δ/(1−δ), or by rows δ; see `Perturbation.x_of`."""
        return super().x_of(delta) if by_rows is True else sizes.to_odds(delta)

    def delta_of(self, x: ArrayLike, by_rows: bool = False) -> Floats:
        """Return x/(1+x), or by rows x; see `Perturbation.delta_of`."""
        return super().delta_of(x) if by_rows is True else sizes.from_odds(x)


def _shrink_above(q: Floats, gap: Floats, delta: Floats) -> Floats:
    """Shrink by 1−δ what lies above the lower expectation m, which solves (1−δ)E(f−m)₊ = E(f−m)₋.

    A value lies below m if the left side is the larger one there. Both are sums of
    positive terms: comparing the means that the levels give would cancel.
    """
    below = (levels.mass_below(q) * gap).cumsum(axis=0)
    above = levels.mass_above((q + levels.mass_above(q)) * gap)
    return np.where((1.0 - delta) * above >= below, q, (1.0 - delta) * q)
