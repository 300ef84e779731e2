"""How long an accuracy-rejection curve of a million predictions takes."""

from __future__ import annotations

from functools import partial

import numpy as np

from robustq.rejection import accuracy_rejection_curve

from .clock import best_time
from .table import Limits

__all__ = ["measure"]

ROWS = 1_000_000


def measure() -> Limits:
    """Time curves of scores that all differ, and of scores that tie."""
    rng = np.random.default_rng(0)
    correct = rng.random(ROWS) < 0.8
    table = Limits(f"accuracy_rejection_curve of {ROWS:,} predictions", ("scores", "seconds"))
    for name, score in (
        ("all different", rng.random(ROWS)),
        ("100 values", rng.integers(0, 100, ROWS)),
    ):
        seconds = best_time(partial(accuracy_rejection_curve, correct, score))
        table.add(name, f"{seconds:.3f}", measured=seconds, limit=1.0)
    return table
