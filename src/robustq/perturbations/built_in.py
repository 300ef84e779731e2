"""What the built-in balls share: these classes own the public methods, a ball is a few formulas."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from . import arguments
from .base import Perturbation
from .rows import map_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from robustq.arrays import Floats

    from .rows import Formula

__all__ = ["BuiltIn", "ClosedForm"]


class BuiltIn(Perturbation):
    """A ball given by a formula for the lower expectation and one for the minimiser.

    Both take q and f with the outcomes on the first axis and delta with one size
    per row (see `rows.map_rows`), checked.
    """

    def lower_expectation(self, q: ArrayLike, f: ArrayLike, delta: ArrayLike) -> Floats:
        """Return the smallest expectation of f over the ball of size delta around q.

        See `Perturbation.lower_expectation`.
        """
        return self._map_rows(self._lower_expectation, q, f, delta, per_outcome=False)

    def minimising(self, q: ArrayLike, f: ArrayLike, delta: ArrayLike) -> Floats:
        """Return a mass function in the ball under which f has its lower expectation.

        See `Perturbation.minimising`.
        """
        return self._map_rows(self._minimising, q, f, delta, per_outcome=True)

    @abstractmethod
    def _lower_expectation(self, q: Floats, f: Floats, delta: Floats) -> Floats: ...

    @abstractmethod
    def _minimising(self, q: Floats, f: Floats, delta: Floats) -> Floats: ...

    def _map_rows(
        self, formula: Formula, q: ArrayLike, f: ArrayLike, delta: ArrayLike, *, per_outcome: bool
    ) -> Floats:
        q, f, delta = self.check(q, f, delta)
        shape = q.shape if per_outcome else delta.shape
        table = (delta.size, q.shape[-1])
        out = np.empty(table if per_outcome else delta.size)
        map_rows(formula, q.reshape(table), f.reshape(table), delta.reshape(-1), out)
        return out.reshape(shape)[()]


class ClosedForm(BuiltIn):
    """A ball whose bounds have a formula too, applied to each probability on its own."""

    def lower_probability(self, q: ArrayLike, delta: ArrayLike) -> Floats:
        """Return the smallest probability of an outcome that has probability q.

        See `Perturbation.lower_probability`.
        """
        return self._lower_probability(*self._check_bound(q, delta))

    def upper_probability(self, q: ArrayLike, delta: ArrayLike) -> Floats:
        """Return the largest probability of an outcome that has probability q.

        See `Perturbation.upper_probability`.
        """
        return self._upper_probability(*self._check_bound(q, delta))

    @abstractmethod
    def _lower_probability(self, q: Floats, delta: Floats) -> Floats: ...

    @abstractmethod
    def _upper_probability(self, q: Floats, delta: Floats) -> Floats: ...

    def _check_bound(self, q: ArrayLike, delta: ArrayLike) -> tuple[Floats, Floats]:
        probability, size = arguments.probabilities(q), self.domain.check(delta)
        arguments.require_broadcast(q=probability, delta=size)
        return probability, size
