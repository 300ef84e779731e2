"""Checks of the parameters that estimators are given, which may be anything."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

__all__ = ["LARGEST_COUNT", "is_between", "is_count", "is_one_of"]

LARGEST_COUNT = 2**31 - 1


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
