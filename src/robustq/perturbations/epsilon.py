"""ε-contamination: a share δ of the mass may be anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import levels
from .built_in import ClosedForm
from .domain import Domain

if TYPE_CHECKING:
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

    def _lower_expectation(self, q: Floats, f: Floats, delta: Floats) -> Floats:
        return (1.0 - delta) * levels.expectation(q, f) + delta * np.min(f, axis=0)

    def _minimising(self, q: Floats, f: Floats, delta: Floats) -> Floats:
        kept = (1.0 - delta) * q
        kept[f.argmin(axis=0), np.arange(len(delta))] += delta
        return kept

    def _lower_probability(self, q: Floats, delta: Floats) -> Floats:
        return (1.0 - delta) * q

    def _upper_probability(self, q: Floats, delta: Floats) -> Floats:
        return (1.0 - delta) * q + delta
