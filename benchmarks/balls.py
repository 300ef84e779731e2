"""How long the lower expectation of a million mass functions takes, for each ball."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from robustq.perturbations import get, names

from .table import Limits

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["measure"]

ROWS, OUTCOMES, REPEATS = 1_000_000, 5, 3
LIMITS = {"kl": 5.0}  # seconds; the closed forms have one


def measure() -> Limits:
    """Time every built-in ball; the best of a few runs counts."""
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(OUTCOMES), size=ROWS)
    f = rng.normal(size=(ROWS, OUTCOMES))
    delta = rng.uniform(0.0, 0.9, size=ROWS)
    table = Limits(
        f"lower_expectation of {ROWS:,} mass functions of {OUTCOMES} outcomes",
        ("ball", "seconds", "rows per second"),
    )
    for name in names():
        call = partial(get(name).lower_expectation, q, f, delta)
        seconds = min(_time(call) for _ in range(REPEATS))
        table.add(
            name,
            f"{seconds:.3f}",
            f"{ROWS / seconds:,.0f}",
            measured=seconds,
            limit=LIMITS.get(name, 1.0),
        )
    return table


def _time(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
