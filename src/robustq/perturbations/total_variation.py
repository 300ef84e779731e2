"""Total variation: a mass δ may move from any outcome to any other."""

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

__all__ = ["TotalVariation"]


class TotalVariation(ClosedForm):
    """All q′ with ½ Σ|q′−q| ≤ δ.

    The minimum takes δ of mass from the outcomes with the largest values, emptying
    each before the next, and gives it to one with the smallest.

    Examples
    --------
    >>> ball = TotalVariation()
    >>> float(ball.lower_expectation([0.5, 0.25, 0.25], [3, 1, 2], delta=0.5))
    1.25
    >>> ball.minimising([0.5, 0.25, 0.25], [3, 1, 2], delta=0.5)
    array([0.  , 0.75, 0.25])
    """

    name = "tv"
    domain = Domain(1.0, closed=True)
    together = True
    expectation = "tv"

    def _lower_expectation(self, q: Floats, f: Floats, delta: Floats) -> Floats:
        _, q, f = levels.sort_by_value(q, f)
        return levels.expectation(_move_down(q, delta), f)

    def _minimising(self, q: Floats, f: Floats, delta: Floats) -> Floats:
        order, q, f = levels.sort_by_value(q, f)
        return levels.restore_order(order, _move_down(q, delta))

    def _lower_probability(self, q: Floats, delta: Floats) -> Floats:
        return np.maximum(0.0, q - delta)

    def _upper_probability(self, q: Floats, delta: Floats) -> Floats:
        return np.minimum(1.0, q + delta)

    def form(self, p: ArrayLike, rows: ArrayLike | None = None) -> Form:
        """Return the bounds as functions of one number; see `Perturbation.form`."""
        p = as_masses(p)
        n = rows_behind(p, rows)
        none = np.zeros_like(p)
        return Form(fall=1.0 / n, fall_scale=none, rise=1.0 / n, rise_scale=none)


def _move_down(ordered: Floats, delta: Floats) -> Floats:
    """Move δ of mass from the last outcomes to the first."""
    taken = np.clip(delta - levels.mass_above(ordered), 0.0, ordered)
    moved = ordered - taken
    moved[0] += levels.total(taken)
    return moved
