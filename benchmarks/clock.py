"""How long a call takes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["best_time"]


def best_time(call: Callable[[], object], repeats: int = 3) -> float:
    """Return the seconds of the best of a few runs."""
    return min(_time(call) for _ in range(repeats))


def _time(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
