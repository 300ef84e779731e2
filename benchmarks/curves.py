"""How long an accuracy-rejection curve of a million predictions takes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from robustq.rejection import accuracy_rejection_curve

from .races import Race, timed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .conditions import Conditions

__all__ = ["races"]


def races(conditions: Conditions) -> Iterator[Race]:
    """Time curves of scores that all differ, and of scores that tie."""
    rows = conditions.pick(1_000_000, quick=100_000)
    rng = np.random.default_rng(0)
    correct = rng.random(rows) < 0.8
    for name, score in (
        ("scores all different", rng.random(rows)),
        ("scores of 100 values", rng.integers(0, 100, rows)),
    ):
        curve = partial(accuracy_rejection_curve, correct, score)
        yield Race(f"accuracy_rejection_curve of {rows:,} predictions", name, timed(curve), limit=1)
