"""The perturbations that have a name."""

from __future__ import annotations

import difflib
from typing import TypeVar

from robustq.exceptions import InputError, UnknownNameError

from .base import Perturbation
from .chi_squared import ChiSquared
from .epsilon import Epsilon
from .kullback_leibler import KullbackLeibler
from .odds_ratio import OddsRatio
from .pari_mutuel import PariMutuel
from .total_variation import TotalVariation

__all__ = ["get", "names", "register"]

# What follows a ball's name where parts of a model are perturbed, or sizes go by rows.
_ENDINGS = ("_all", "_joint", "_posterior", "_rows")
_TAKEN = {"idm": "the imprecise Dirichlet model, which is no ball"}

_Ball = TypeVar("_Ball", bound=Perturbation)

_BALLS: dict[str, type[Perturbation]] = {
    ball.name: ball
    for ball in (Epsilon, TotalVariation, ChiSquared, PariMutuel, OddsRatio, KullbackLeibler)
}


def get(perturbation: str | Perturbation) -> Perturbation:
    """Return the perturbation of that name, or the one given.

    Parameters
    ----------
    perturbation : str or Perturbation
        A registered name (see `names`), or a perturbation, which is returned as it is.

    Returns
    -------
    Perturbation

    Examples
    --------
    >>> get("chi2")
    ChiSquared()
    """
    if isinstance(perturbation, Perturbation):
        return perturbation
    if isinstance(perturbation, type) and issubclass(perturbation, Perturbation):
        msg = f"give a perturbation, not its class: {perturbation.__name__}()"
        raise InputError(msg)
    if not isinstance(perturbation, str):
        msg = f"a perturbation is a name or a Perturbation object, got {perturbation!r}"
        raise InputError(msg)
    if perturbation not in _BALLS:
        raise UnknownNameError(_explain(perturbation))
    return _BALLS[perturbation]()


def _can_be_made(ball: type[Perturbation]) -> bool:
    try:
        ball()
    except TypeError:
        return False
    return True


def names() -> tuple[str, ...]:
    """Return the names `get` knows."""
    return tuple(_BALLS)


def register(ball: type[_Ball]) -> type[_Ball]:
    """Make a perturbation known by its name; also a class decorator.

    Parameters
    ----------
    ball : subclass of Perturbation
        Must be made without arguments.

    Returns
    -------
    type
        The class given.

    Raises
    ------
    InputError
        If it is no such class, another one has its name, or the name means something else.
    """
    if not (isinstance(ball, type) and issubclass(ball, Perturbation)):
        msg = f"register takes a subclass of Perturbation, got {ball!r}"
        raise InputError(msg)
    if not _can_be_made(ball):
        msg = f"{ball.__qualname__}() must make a perturbation without arguments, and does not"
        raise InputError(msg)
    _require_free(ball)
    holder = _BALLS.get(ball.name, ball)
    # Running a notebook cell again defines the same class anew: that is no clash.
    if (holder.__module__, holder.__qualname__) != (ball.__module__, ball.__qualname__):
        msg = (
            f"the name {ball.name!r} belongs to {holder.__module__}.{holder.__qualname__}: "
            f"give {ball.__qualname__} another name"
        )
        raise InputError(msg)
    _BALLS[ball.name] = ball
    return ball


def _require_free(ball: type[Perturbation]) -> None:
    another = f"give {ball.__qualname__} another name"
    if ball.name in _TAKEN:
        msg = f"the name {ball.name!r} stands for {_TAKEN[ball.name]}: {another}"
        raise InputError(msg)
    for ending in _ENDINGS:
        if ball.name.endswith(ending):
            msg = (
                f"the name {ball.name!r} ends in {ending!r}, which after the name of a ball says "
                f"what is perturbed, and by how much (tv{ending}): {another}"
            )
            raise InputError(msg)


def _explain(name: str) -> str:
    longer = [f"{ball}{ending}" for ball in _BALLS for ending in _ENDINGS] if "_" in name else []
    nearest = difflib.get_close_matches(name.lower(), [*_BALLS, *longer], n=1, cutoff=0.5)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    return f"unknown perturbation {name!r}: the known ones are {', '.join(_BALLS)}{hint}"
