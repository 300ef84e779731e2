"""Pari-mutuel: no outcome becomes more than 1 + δ times as likely."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import levels
from .built_in import ClosedForm
from .domain import Domain
from .forms import Form, as_masses, rows_behind

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from robustq.arrays import Floats

__all__ = ["PariMutuel"]


class PariMutuel(ClosedForm):
    """All q′ ≤ (1+δ)q.

    The minimum fills the outcomes with the smallest values first, each up to its
    bound, until the mass is used up.

    Examples
    --------
    >>> ball = PariMutuel()
    >>> float(ball.lower_expectation([0.5, 0.25, 0.25], [3, 1, 2], delta=1.0))
    1.5
    >>> ball.minimising([0.5, 0.25, 0.25], [3, 1, 2], delta=1.0)
    array([0. , 0.5, 0.5])
    """

    name = "pari_mutuel"
    domain = Domain()
    together = True
    expectation = "pari_mutuel"
    keeps_zero = True

    def _lower_expectation(self, q: Floats, f: Floats, delta: Floats) -> Floats:
        _, q, f = levels.sort_by_value(q, f)
        return levels.expectation(_fill_up(q, delta), f)

    def _minimising(self, q: Floats, f: Floats, delta: Floats) -> Floats:
        order, q, f = levels.sort_by_value(q, f)
        return levels.restore_order(order, _fill_up(q, delta))

    def _lower_probability(self, q: Floats, delta: Floats) -> Floats:
        # The way to write it in which the digits of a small q, or of a small 1 − q, survive.
        kept = np.where(q < 0.5, (q - delta) + delta * q, q - delta * (1.0 - q))
        return np.clip(kept, 0.0, q)

    def _upper_probability(self, q: Floats, delta: Floats) -> Floats:
        return np.minimum(1.0, q + delta * q)

    def form(self, p: ArrayLike, rows: ArrayLike | None = None) -> Form:
        """Return the bounds as functions of one number; see `Perturbation.form`."""
        p = as_masses(p)
        n = rows_behind(p, rows)
        none = np.zeros_like(p)
        return Form(fall=(1.0 - p) / n, fall_scale=none, rise=p / n, rise_scale=none)


def _fill_up(ordered: Floats, delta: Floats) -> Floats:
    """Give each outcome, the first ones first, (1+δ) of its mass while there is any."""
    # Not one minus what was given so far: that has no digits for a rare last outcome.
    left = (ordered + levels.mass_above(ordered)) - delta * levels.mass_below(ordered)
    return np.clip(left, 0.0, (1.0 + delta) * ordered)
