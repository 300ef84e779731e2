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
        least = np.maximum(s.mean - np.sqrt(s.variance * s.excess), 0.0)
        return low + span * np.where(s.level < 0, 0.0, least)

    def _minimising(self, q: Floats, f: Floats, delta: Floats) -> Floats:
        _, _, u = levels.to_unit_interval(q, f)
        order, q, u = levels.sort_by_value(q, u)
        s = _solve(q, u, delta)
        kept = np.arange(len(q))[:, None] <= s.level
        # u − μ from the top of the level set down, where the mass may be nearly all.
        deviation = s.reach - (np.take_along_axis(u, np.maximum(s.level, 0)[None], axis=0) - u)
        tilt = 1.0 - np.sqrt(s.excess) / np.sqrt(s.variance) * deviation
        # Positive, but for rounding.
        weight = np.where(kept, q * np.maximum(tilt, 0.0), 0.0)
        weight = np.where(s.level < 0, q * (u == 0.0), weight)
        return levels.restore_order(order, weight / levels.total(weight))

    def _lower_probability(self, q: Floats, delta: Floats) -> Floats:
        return np.maximum(0.0, q - np.sqrt(delta) * np.sqrt(q * (1.0 - q)))

    def _upper_probability(self, q: Floats, delta: Floats) -> Floats:
        return np.minimum(1.0, q + np.sqrt(delta) * np.sqrt(q * (1.0 - q)))


class _Solution(NamedTuple):
    """The level set the minimiser lives on, −1 where it is {u = 0}; μ, σ², D and v − μ on it."""

    level: Indices
    mean: Floats
    variance: Floats
    excess: Floats
    reach: Floats


def _solve(q: Floats, u: Floats, delta: Floats) -> _Solution:
    """Find the largest level set A = {u ≤ v} with D < σ²/(v−μ)², for u sorted upward.

    All prefixes are tried, also those that cut through a tie: whether the best
    mass function leaves v empty does not depend on how much mass q has there.
    """
    mass = q.cumsum(axis=0)
    safe = np.where(mass > 0.0, mass, 1.0)
    before = levels.mass_below(q)
    gap = np.zeros_like(u)
    gap[1:] = u[1:] - u[:-1]
    # Sums of positive terms only: v − μ and E u² − μ² would cancel.
    reach = (before * gap).cumsum(axis=0) / safe
    step = gap
    step[1:] += reach[:-1]
    variance = (q * step * step * (before / safe)).cumsum(axis=0) / safe
    excess = np.maximum(delta * mass - levels.mass_above(q), 0.0)
    fits = excess * reach * reach < variance
    level = np.where(fits.any(axis=0), len(q) - 1 - fits[::-1].argmax(axis=0), -1)
    at = np.maximum(level, 0)[None]
    mean = (q * u).cumsum(axis=0) / safe
    picked = (np.take_along_axis(a, at, axis=0)[0] for a in (mean, variance, excess, reach))
    return _Solution(level, *picked)
