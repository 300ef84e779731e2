"""What every perturbation offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from robustq.exceptions import InputError, UnsupportedError

from . import arguments, keys, sizes
from .domain import Domain

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import ArrayLike

    from robustq.arrays import Floats

    from .forms import Form

__all__ = ["Perturbation"]


class Perturbation(ABC):
    """Neighbourhoods of a mass function that grow with a size delta.

    A subclass gives `lower_expectation`; everything else follows from it. It may
    also give a `name` (by default the class's own, in lower case), a `domain` (by
    default [0, ∞)), closed-form bounds, and a minimiser. With a `form` (and `x_of`,
    `delta_of`, `together`, if they differ from the defaults) it runs in compiled kernels.

    Attributes
    ----------
    name : str
        What the perturbation is called in tables and on the command line.
    domain : Domain
        The sizes it can have; at size 0 it holds the mass function itself alone.
    together : bool
        Whether one q′ in the ball attains the lowest q(a) and the highest q(b), for any two
        outcomes at once. More is meant: the lower expectation is the Choquet integral of the
        lower probabilities of events (they are 2-monotone), and the lower probability
        of an event depends on its probability alone.
    expectation : str or None
        The name of the compiled lower expectation that kernels use; built-in balls alone have
        one. It is not inherited: a subclass may have a lower expectation of its own.
    keeps_zero : bool
        Whether an outcome of probability 0 stays there, and one of probability 1 too.
    """

    name: ClassVar[str]
    domain: ClassVar[Domain] = Domain()
    together: ClassVar[bool] = False
    expectation: ClassVar[str | None] = None
    keeps_zero: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" not in cls.__dict__:
            cls.name = cls.__name__.lower()
        # Kernels would use the formula of the built-in ball it is a subclass of.
        if "expectation" not in cls.__dict__:
            cls.expectation = None
        if not (isinstance(cls.name, str) and cls.name):
            msg = f"{cls.__name__}.name must be text, got {cls.name!r}"
            raise InputError(msg)
        if not isinstance(cls.domain, Domain):
            msg = f"{cls.__name__}.domain must be a Domain, got {cls.domain!r}"
            raise InputError(msg)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @property
    def key(self) -> Hashable:
        """What tells this ball from others: its class and its parameters (its attributes).

        Every cache is keyed by it. Arrays count by their contents; a ball with an attribute
        that cannot be hashed is told apart by being that very object.
        """
        return keys.key_of(self)

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

    def local_size(self, delta: ArrayLike, rows: ArrayLike) -> Floats:
        """Return the size of a local ball with that many training rows behind it.

        That is what sizes by rows mean: δ counts records. By default δ/n, up to the end of
        the domain, which any δ > 0 reaches where n = 0.

        Parameters
        ----------
        delta : array_like
            Sizes in records, from 0 on.
        rows : array_like
            The rows n behind each local mass function; they broadcast against delta.

        Returns
        -------
        ndarray of float64
            Sizes in the domain.
        """
        return np.minimum(sizes.per_row(delta, rows), self.domain.largest)[()]

    def form(self, p: ArrayLike, rows: ArrayLike | None = None) -> Form | None:  # noqa: ARG002 (the signature is the contract)
        """Return the bounds on single outcomes as functions of one number x.

        Parameters
        ----------
        p : array_like
            Probabilities of outcomes, of any shape.
        rows : array_like, optional
            The rows behind each of them, for sizes by rows; 0 is allowed. By default the
            sizes of all are equal.

        Returns
        -------
        Form or None
            None, the default, if the bounds have no such form: then the ball is asked
            for lower expectations all along, which is slower.
        """
        return None

    def x_of(self, delta: ArrayLike, by_rows: bool = False) -> Floats:  # noqa: ARG002 (the signature is the contract)
        """Return the x of `form` that belongs to a size; by default the size itself.

        Parameters
        ----------
        delta : array_like
            Sizes; by rows, sizes in records.
        by_rows : bool
            Whether the form is the one by rows.
        """
        return arguments.numbers(delta, "delta")[()]

    def delta_of(self, x: ArrayLike, by_rows: bool = False) -> Floats:  # noqa: ARG002 (the signature is the contract)
        """Return the size that belongs to an x of `form`: the inverse of `x_of`.

        An infinite x gives the end of the domain, or infinity for "no size".
        """
        return arguments.numbers(x, "x")[()]

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
