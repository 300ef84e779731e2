"""How long the lower expectation of a million mass functions takes, for each ball."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from robustq.perturbations import get, names

from .races import Race, timed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .conditions import Conditions

__all__ = ["races"]

OUTCOMES = 5
LIMITS = {"kl": 5.0}  # seconds; the closed forms have one


def races(conditions: Conditions) -> Iterator[Race]:
    """Time every built-in ball."""
    rows = conditions.pick(1_000_000, quick=100_000)
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(OUTCOMES), size=rows)
    f = rng.normal(size=(rows, OUTCOMES))
    delta = rng.uniform(0.0, 0.9, size=rows)
    for name in names():
        yield Race(
            f"lower_expectation of {rows:,} mass functions of {OUTCOMES} outcomes",
            name,
            timed(partial(get(name).lower_expectation, q, f, delta)),
            limit=LIMITS.get(name, 1.0),
        )
