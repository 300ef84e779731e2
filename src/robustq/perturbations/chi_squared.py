"""χ²: the squared change of each probability counts in units of that probability."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from . import levels
from .built_in import ClosedForm
from .domain import Domain

if TYPE_CHECKING:
    from robustq.arrays import Floats, Indices

__all__ = ["ChiSquared"]


class ChiSquared(ClosedForm):
    """All q′ with Σ (q′−q)²/q ≤ δ.

    An outcome of probability 0 stays at 0, and one of probability 1 at 1.

    While no probability reaches 0 the minimum is μ − σ√δ, with μ and σ the mean
    and standard deviation of f under q. Past that the outcomes with the largest
    values are empty and the same holds on the rest: with A = {f ≤ v}, P = q(A), μ and
    σ² under q(·|A) and D = P(1+δ) − 1, the largest A with D < σ²/(v−μ)² gives μ − σ√D;
    if none does, all mass lies where f is smallest.

    Examples
    --------
    >>> ball = ChiSquared()
    >>> float(ball.lower_expectation([0.5, 0.5], [1, 0], delta=0.25))
    0.25
    >>> ball.minimising([0.5, 0.5], [1, 0], delta=0.25)
    array([0.25, 0.75])
    """

    name = "chi2"
    domain = Domain()

    def _lower_expectation(self, q: Floats, f: Floats, delta: Floats) -> Floats:
        low, span, u = levels.to_unit_interval(q, f)
        _, q, u = levels.sort_by_value(q, u)
        s = _solve(q, u, delta)
        return low + span * np.where(s.level < 0, 0.0, s.mean - np.sqrt(s.variance * s.excess))

    def _minimising(self, q: Floats, f: Floats, delta: Floats) -> Floats:
        _, _, u = levels.to_unit_interval(q, f)
        order, q, u = levels.sort_by_value(q, u)
        s = _solve(q, u, delta)
        kept = np.arange(len(q))[:, None] <= s.level
        tilt = 1.0 - np.sqrt(s.excess / s.variance) * (u - s.mean)
        weight = np.where(s.level < 0, q * (u == 0.0), np.where(kept, q * tilt, 0.0))
        weight = np.maximum(weight, 0.0)
        return levels.restore_order(order, weight / levels.total(weight))

    def _lower_probability(self, q: Floats, delta: Floats) -> Floats:
        return np.maximum(0.0, q - np.sqrt(delta) * np.sqrt(q * (1.0 - q)))

    def _upper_probability(self, q: Floats, delta: Floats) -> Floats:
        return np.minimum(1.0, q + np.sqrt(delta) * np.sqrt(q * (1.0 - q)))


class _Solution(NamedTuple):
    """The level set the minimiser lives on, −1 where it is {u = 0}; μ, σ² and D on it."""

    level: Indices
    mean: Floats
    variance: Floats
    excess: Floats


def _solve(q: Floats, u: Floats, delta: Floats) -> _Solution:
    """Find the largest level set A = {u ≤ v} with D < σ²/(v−μ)², for u sorted upward."""
    mass = q.cumsum(axis=0)
    inverse = 1.0 / np.where(mass > 0.0, mass, 1.0)
    mean = (q * u).cumsum(axis=0) * inverse
    # West's updates: each adds something positive, where E u² − μ² would cancel;
    # and v − μ comes from the mean before v, for the same reason.
    step = np.zeros_like(u)
    step[1:] = u[1:] - mean[:-1]
    share_before = np.zeros_like(u)
    share_before[1:] = mass[:-1] * inverse[1:]
    variance = (q * step * step * share_before).cumsum(axis=0) * inverse
    reach = step * share_before
    excess = np.maximum(delta * mass - levels.mass_above(q), 0.0)
    fits = excess * reach * reach < variance
    # A level set holds all outcomes of its highest value.
    fits[:-1] &= u[1:] > u[:-1]
    level = np.where(fits.any(axis=0), len(q) - 1 - fits[::-1].argmax(axis=0), -1)
    at = np.maximum(level, 0)[None]
    picked = (np.take_along_axis(a, at, axis=0)[0] for a in (mean, variance, excess))
    return _Solution(level, *picked)
