"""What tells two perturbations apart: their class and their parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["key_of"]


def key_of(thing: object) -> Hashable:
    """Return a key that is equal for objects of one class with equal attributes.

    Arrays count by their contents, and so do lists, tuples, sets and dictionaries. An object
    with an attribute that cannot be hashed is equal to itself alone.
    """
    try:
        attributes = _freeze(_attributes(thing))
        hash(attributes)
    except TypeError:
        return type(thing), _Itself(thing)
    return type(thing), attributes


class _Itself:
    """Equal where it stands for the very same object, which it keeps from being replaced."""

    def __init__(self, thing: object) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


def _attributes(thing: object) -> dict[str, object]:
    slots = (getattr(base, "__slots__", ()) for base in type(thing).__mro__)
    names = [name for some in slots for name in ([some] if isinstance(some, str) else some)]
    return vars(thing) | {name: getattr(thing, name) for name in names if hasattr(thing, name)}


def _freeze(value: object) -> Hashable:
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            msg = "an array of objects cannot be compared by its bytes"
            raise TypeError(msg)
        return "array", value.shape, value.dtype.str, value.tobytes()
    if isinstance(value, dict):
        return "dict", frozenset((key, _freeze(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return type(value).__name__, tuple(_freeze(item) for item in value)
    if isinstance(value, set):
        return "set", frozenset(value)
    return value  # the caller finds out whether it can be hashed
