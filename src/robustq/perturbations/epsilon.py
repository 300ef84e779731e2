"""ε-contamination: a share δ of the mass may be anything."""

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

__all__ = ["Epsilon"]


class Epsilon(ClosedForm):
    """All (1−δ)q + δq′, for any mass function q′.

    Also known as the linear-vacuous mixture.

    Examples
    --------
    >>> ball = Epsilon()
    >>> float(ball.lower_expectation([0.5, 0.3, 0.2], [3, 1, 2], delta=0.5))
    1.6
    >>> ball.minimising([0.5, 0.3, 0.2], [3, 1, 2], delta=0.5)
    array([0.25, 0.65, 0.1 ])
    """

    name = "epsilon"
    domain = Domain(1.0, closed=True)
    together = True
    expectation = "epsilon"

    def _lower_expectation(self, q: Floats, f: Floats, delta: Floats) -> Floats:
        return (1.0 - delta) * levels.expectation(q, f) + delta * np.min(f, axis=0)

    def _minimising(self, q: Floats, f: Floats, delta: Floats) -> Floats:
        kept = (1.0 - delta) * q
        kept[f.argmin(axis=0), np.arange(len(delta))] += delta
        return kept

    def _lower_probability(self, q: Floats, delta: Floats) -> Floats:
        return (1.0 - delta) * q

    def _upper_probability(self, q: Floats, delta: Floats) -> Floats:
        return q + delta * (1.0 - q)

    def form(self, p: ArrayLike, rows: ArrayLike | None = None) -> Form:
        """Return the bounds as functions of one number; see `Perturbation.form`."""
        p = as_masses(p)
        n = rows_behind(p, rows)
        return Form(fall=np.zeros_like(p), fall_scale=1.0 / n, rise=1.0 / n, rise_scale=1.0 / n)

    def local_size(self, delta: ArrayLike, rows: ArrayLike) -> Floats:
        """Return δ/(n+δ), the share of δ hidden records; see `Perturbation.local_size`."""
        return np.minimum(sizes.hidden_records(delta, rows), self.domain.largest)[()]

    def x_of(self, delta: ArrayLike, by_rows: bool = False) -> Floats:
        """Return δ/(1−δ), or by rows δ; see `Perturbation.x_of`."""
        return super().x_of(delta) if by_rows is True else sizes.to_odds(delta)

    def delta_of(self, x: ArrayLike, by_rows: bool = False) -> Floats:
        """Return x/(1+x), or by rows x; see `Perturbation.delta_of`."""
        return super().delta_of(x) if by_rows is True else sizes.from_odds(x)
