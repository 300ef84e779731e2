"""Tables that a model keeps: made once, whichever thread asks first."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

__all__ = ["Keeper"]

Kept = TypeVar("Kept")
MOST = 64  # a ball with a parameter may come in many sizes


class Keeper:
    """What was made for a model, by the neighbourhood it was made for.

    It belongs to the model, and goes with it; copies begin with nothing.
    """

    def __init__(self) -> None:
        self._made: dict[Hashable, Any] = {}
        self._lock = threading.Lock()

    def find(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """Return what was made for a key, or make it."""
        made: Kept
        try:
            return self._made[key]
        except KeyError:
            made = make()
        with self._lock:
            if len(self._made) >= MOST:
                self._made.pop(next(iter(self._made)))
            return self._made.setdefault(key, made)

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def __setstate__(self, _: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]
