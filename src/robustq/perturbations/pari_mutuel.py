"""Pari-mutuel: no outcome becomes more than 1 + δ times as likely."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import levels
from .built_in import ClosedForm
from .domain import Domain

if TYPE_CHECKING:
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

    def _lower_expectation(self, q: Floats, f: Floats, delta: Floats) -> Floats:
        _, q, f = levels.sort_by_value(q, f)
        return levels.expectation(_fill_up(q, delta), f)

    def _minimising(self, q: Floats, f: Floats, delta: Floats) -> Floats:
        order, q, f = levels.sort_by_value(q, f)
        return levels.restore_order(order, _fill_up(q, delta))

    def _lower_probability(self, q: Floats, delta: Floats) -> Floats:
        return np.maximum(0.0, q - delta * (1.0 - q))

    def _upper_probability(self, q: Floats, delta: Floats) -> Floats:
        return np.minimum(1.0, q + delta * q)


def _fill_up(ordered: Floats, delta: Floats) -> Floats:
    """Give each outcome, the first ones first, (1+δ) of its mass while there is any."""
    bound = (1.0 + delta) * ordered
    return np.clip(1.0 - levels.mass_below(bound), 0.0, bound)
