"""What every perturbation offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from robustq.exceptions import InputError, UnsupportedError

from . import arguments
from .domain import Domain

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from robustq.arrays import Floats

__all__ = ["Perturbation"]


class Perturbation(ABC):
    """Neighbourhoods of a mass function that grow with a size delta.

    A subclass gives `lower_expectation`; everything else follows from it. It may
    also give a `name` (by default the class's own, in lower case), a `domain` (by
    default [0, ∞)), closed-form bounds, and a minimiser.

    Attributes
    ----------
    name : str
        What the perturbation is called in tables and on the command line.
    domain : Domain
        The sizes it can have; at size 0 it holds the mass function itself alone.
    """

    name: ClassVar[str]
    domain: ClassVar[Domain] = Domain()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" not in cls.__dict__:
            cls.name = cls.__name__.lower()
        if not (isinstance(cls.name, str) and cls.name):
            msg = f"{cls.__name__}.name must be text, got {cls.name!r}"
            raise InputError(msg)
        if not isinstance(cls.domain, Domain):
            msg = f"{cls.__name__}.domain must be a Domain, got {cls.domain!r}"
            raise InputError(msg)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @abstractmethod
    def lower_expectation(self, q: ArrayLike, f: ArrayLike, delta: ArrayLike) -> Floats:
        """Return the smallest expectation of f over the ball of size delta around q.

        Parameters
        ----------
        q : array_like of shape (..., outcomes)
            Mass functions.
        f : array_like of shape (..., outcomes)
            A value for each outcome.
        delta : array_like
            Sizes; they broadcast over the axes before the outcomes.

        Returns
        -------
        ndarray of float64
            One number for each mass function, value function and size.
        """

    def upper_expectation(self, q: ArrayLike, f: ArrayLike, delta: ArrayLike) -> Floats:
        """Return the largest expectation of f over the ball of size delta around q.

        Parameters and result are those of `lower_expectation`.
        """
        return 0.0 - self.lower_expectation(q, 0.0 - arguments.values(f), delta)

    def lower_probability(self, q: ArrayLike, delta: ArrayLike) -> Floats:
        """Return the smallest probability of an outcome that has probability q.

        Parameters
        ----------
        q : array_like
            Probabilities of single outcomes (or events), of any shape.
        delta : array_like
            Sizes; they broadcast against q.

        Returns
        -------
        ndarray of float64

        Notes
        -----
        The rest of the mass function is taken as one other outcome of probability
        1 − q. Every built-in ball sees an event only through its probability, so
        nothing is lost; for a ball that does not (a Euclidean one, say), take the
        lower expectation of an indicator instead. Where the outcome is the only
        one there is, its probability is 1 whatever the size.
        """
        return self.lower_expectation(
            arguments.against_the_rest(arguments.probabilities(q)), [1.0, 0.0], delta
        )

    def upper_probability(self, q: ArrayLike, delta: ArrayLike) -> Floats:
        """Return the largest probability of an outcome that has probability q.

        Parameters, result and notes are those of `lower_probability`.
        """
        return self.upper_expectation(
            arguments.against_the_rest(arguments.probabilities(q)), [1.0, 0.0], delta
        )

    def minimising(self, q: ArrayLike, f: ArrayLike, delta: ArrayLike) -> Floats:  # noqa: ARG002 (the signature is the contract)
        """Return a mass function in the ball under which f has its lower expectation.

        Parameters are those of `lower_expectation`.

        Returns
        -------
        ndarray of float64, of shape (..., outcomes)

        Raises
        ------
        UnsupportedError
            If the perturbation gives no minimiser.
        """
        msg = (
            f"{type(self).__name__} gives no minimiser: define minimising(q, f, delta), which "
            "returns a mass function in the ball that attains lower_expectation(q, f, delta)"
        )
        raise UnsupportedError(msg)

    def check(self, q: ArrayLike, f: ArrayLike, delta: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Check and broadcast what `lower_expectation` is given.

        Returns
        -------
        q, f : ndarray of float64, of the same shape (..., outcomes)
        delta : ndarray of float64, of the shape of their leading axes

        Raises
        ------
        InputError
            If q is no mass function, f is not finite, delta lies outside the
            domain, or the shapes do not broadcast. The message says what was got.
        """
        return arguments.broadcast(
            arguments.mass_functions(q), arguments.values(f), self.domain.check(delta)
        )
