"""Uncertainty from predicted probabilities: of one model, or of several.

One model's probabilities are (rows, classes), several models' (models, rows, classes).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import entr, rel_entr

if TYPE_CHECKING:
    from robustq.arrays import Floats

__all__ = ["aleatoric", "entropy", "epistemic", "margin", "rest", "total"]


def rest(probs: Floats) -> Floats:
    """Return u_max: what the best class leaves to the others."""
    return np.asarray(1.0 - probs.max(axis=-1))


def margin(probs: Floats) -> Floats:
    """Return u_marg: best minus second best; a single class has nobody behind it."""
    if probs.shape[-1] == 1:
        return np.asarray(probs[..., 0])
    second, best = np.moveaxis(np.sort(probs, axis=-1)[..., -2:], -1, 0)
    return np.asarray(best - second)


def entropy(probs: Floats) -> Floats:
    """Return u_H = −Σ p log p, with 0 log 0 = 0."""
    return np.asarray(entr(probs).sum(axis=-1))


def total(probs: Floats) -> Floats:
    """Return u_t, the entropy of the mean distribution, as the sum of its two parts."""
    return aleatoric(probs) + epistemic(probs)


def aleatoric(probs: Floats) -> Floats:
    """Return u_a, the mean of the entropies."""
    return np.asarray(entropy(probs).mean(axis=0))


def epistemic(probs: Floats) -> Floats:
    """Return u_e = u_t − u_a, as the mean divergence from the mean distribution.

    So computed it is never negative, and exactly 0 where all models agree.
    """
    first = probs[0]
    mean = first + (probs - first).mean(axis=0)
    # A probability is at most the number of models times its mean: rounding may leave a mean of 0.
    mean = np.where((mean <= 0.0) & (probs > 0.0).any(axis=0), probs.max(axis=0), mean)
    divergence = np.asarray(rel_entr(probs, np.maximum(mean, 0.0)).sum(axis=-1).mean(axis=0))
    return np.where((probs == first).all(axis=(0, -1)), 0.0, np.maximum(divergence, 0.0))
