"""How long the lower expectation of a million mass functions takes, for each ball."""

from __future__ import annotations

from functools import partial

import numpy as np

from robustq.perturbations import get, names

from .clock import best_time
from .table import Limits

__all__ = ["measure"]

ROWS, OUTCOMES = 1_000_000, 5
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
        seconds = best_time(partial(get(name).lower_expectation, q, f, delta))
        table.add(
            name,
            f"{seconds:.3f}",
            f"{ROWS / seconds:,.0f}",
            measured=seconds,
            limit=LIMITS.get(name, 1.0),
        )
    return table
