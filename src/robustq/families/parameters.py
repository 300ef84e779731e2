"""Checks of the parameters that estimators are given, which may be anything."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from sklearn.utils import check_random_state

from robustq.exceptions import InputError, ParameterError

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "LARGEST_COUNT",
    "LARGEST_SMOOTHING",
    "SMOOTHINGS",
    "is_between",
    "is_count",
    "is_one_of",
    "is_smoothing",
    "read_random_state",
    "require",
]

LARGEST_COUNT = 2**31 - 1
LARGEST_SMOOTHING = 1e100  # beyond, sums overflow, and no count would show anyway
SMOOTHINGS = f'a number from 0 to {LARGEST_SMOOTHING:g}, "cv" or a list of numbers to choose from'


def require(name: str, value: Any, holds: bool, allowed: str) -> None:
    """Raise if a parameter is not what is allowed."""
    if not holds:
        raise ParameterError(name, f"must be {allowed}, got {value!r}")


def is_one_of(value: Any, *choices: str) -> bool:
    """Tell whether something is one of some words."""
    return isinstance(value, str) and value in choices


def is_count(value: Any, least: int, most: int = LARGEST_COUNT) -> bool:
    """Tell whether something is a whole number in a range."""
    return (
        isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) <= most
    )


def is_between(value: Any, low: float, high: float, *, low_included: bool = False) -> bool:
    """Tell whether something is a number above one and at most another."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        number = float(value)
    except OverflowError:
        return False
    return low < number <= high or (low_included and number == low)


def is_smoothing(value: Any) -> bool:
    """Tell whether something is a smoothing, or says from what to choose one."""
    if isinstance(value, (list, tuple)):
        return len(value) > 0 and all(map(_is_amount, value))
    return is_one_of(value, "cv") or _is_amount(value)


def _is_amount(value: Any) -> bool:
    return is_between(value, 0.0, LARGEST_SMOOTHING, low_included=True)


def read_random_state(random_state: Any) -> np.random.RandomState:
    """Return the generator that scikit-learn's users seed so."""
    try:
        return check_random_state(random_state)
    except ValueError as error:
        raise InputError(str(error)) from error
