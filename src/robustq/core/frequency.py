"""Which classes are the most frequent: what is left to say where f has probability 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from robustq.arrays import Floats, Indices

__all__ = ["by_frequency"]


def by_frequency(class_probs: Floats) -> Indices:
    """Return the positions of the classes, the most frequent one first."""
    # Sums over leaves differ in their last digits: those are no reason to prefer a class.
    return np.argsort(-class_probs.round(12), kind="stable")
