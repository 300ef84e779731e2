"""Kullback–Leibler: the surprise of q′, seen from q, is at most δ."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from . import arguments, levels
from .built_in import BuiltIn
from .domain import Domain

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from robustq.arrays import Floats

__all__ = ["KullbackLeibler"]

MAX_STEPS = 100
LARGEST_STEP = 3.0  # in log t
TOLERANCE = 1e-9
SMALL = 0.05
# The coefficients of Σ (n−1)/n! xⁿ⁻², highest power first: see `_divergence`.
SERIES = tuple((n - 1) / float(np.prod(np.arange(1, n + 1))) for n in range(10, 1, -1))


class KullbackLeibler(BuiltIn):
    """All q′ with KL(q′‖q) = Σ q′ log(q′/q) ≤ δ.

    An outcome of probability 0 stays at 0. The minimum is attained by a tilted
    mass function q_t ∝ q e^(−tf), with t ≥ 0 such that KL(q_t‖q) = δ: that is the
    dual max over λ = 1/t of −λ log E e^(−f/λ) − λδ. Where no t is large enough, it
    is attained by q given that f is smallest.

    Examples
    --------
    >>> ball = KullbackLeibler()
    >>> round(float(ball.lower_expectation([0.5, 0.5], [1, 0], delta=0.1)), 6)
    0.280205
    >>> ball.minimising([0.5, 0.5], [1, 0], delta=1.0)
    array([0., 1.])
    """

    name = "kl"
    domain = Domain()

    def _lower_expectation(self, q: Floats, f: Floats, delta: Floats) -> Floats:
        low, span, u = levels.to_unit_interval(q, f)
        t, log_mean = _solve(q, u, delta)
        # The dual is flat at its maximum: an error in t hardly shows in it.
        dual = np.where(t == 0.0, levels.expectation(q, u), (-log_mean - delta) / t)
        return low + span * np.where(np.isinf(t), 0.0, np.maximum(dual, 0.0))

    def _minimising(self, q: Floats, f: Floats, delta: Floats) -> Floats:
        _, _, u = levels.to_unit_interval(q, f)
        t, _ = _solve(q, u, delta)
        # At u = 0 the weight is q even for infinite t, where −tu is no number.
        weight = q * np.where(u == 0.0, 1.0, np.exp(-t * u))
        return weight / levels.total(weight)

    def lower_probability(self, q: ArrayLike, delta: ArrayLike) -> Floats:
        """Return the smallest probability of an outcome that has probability q.

        See `Perturbation.lower_probability`.
        """
        # From the minimiser: an expectation would lose the digits of a small probability.
        q = arguments.probabilities(q)
        return np.minimum(
            q, self.minimising(arguments.against_the_rest(q), [1.0, 0.0], delta)[..., 0]
        )

    def upper_probability(self, q: ArrayLike, delta: ArrayLike) -> Floats:
        """Return the largest probability of an outcome that has probability q.

        See `Perturbation.upper_probability`.
        """
        q = arguments.probabilities(q)
        return np.maximum(
            q, self.minimising(arguments.against_the_rest(q), [0.0, 1.0], delta)[..., 0]
        )


class _Tilt(NamedTuple):
    """What the tilted mass function q_t ∝ q e^(−tu) is like, one number per row."""

    log_mean: Floats  # log E e^(−tu)
    divergence: Floats  # KL(q_t‖q)
    room: Floats  # how much further it can go: KL(q_∞‖q) − KL(q_t‖q)
    slope: Floats  # of the divergence against log t


def _tilt(q: Floats, u: Floats, t: Floats) -> _Tilt:
    lowest = u == 0.0
    weight = q * np.exp(-t * u)
    total = levels.total(weight)
    log_mean = _log_mean(q, u, t, total)
    tilted = weight / total
    mean = levels.expectation(tilted, u)
    at_lowest = levels.expectation(q, lowest)
    elsewhere = levels.expectation(weight, ~lowest) / at_lowest
    room = t * mean + np.log1p(elsewhere)
    divergence = _divergence(q, tilted, -t * u - log_mean)
    slope = t * t * levels.expectation(tilted, (u - mean) ** 2)
    return _Tilt(log_mean, divergence, room, slope)


def _log_mean(q: Floats, u: Floats, t: Floats, total: Floats) -> Floats:
    # The plain logarithm would lose a small t, log1p a small total.
    return np.where(total < 0.5, np.log(total), np.log1p(levels.expectation(q, np.expm1(-t * u))))


def _divergence(q: Floats, p: Floats, x: Floats) -> Floats:
    """Return KL(p‖q) = Σ (p log(p/q) − p + q) with x = log(p/q): no term is negative.

    Near x = 0 a term is q x² Σ (n−1)/n! xⁿ⁻², because its parts cancel.
    """
    series = q * x * x * np.polyval(SERIES, x)
    return levels.total(np.where(np.abs(x) < SMALL, series, p * x - (p - q)))


def _solve(q: Floats, u: Floats, delta: Floats) -> tuple[Floats, Floats]:
    """Return t with KL(q_t‖q) = δ, infinite where there is none, and log E e^(−tu)."""
    lowest = u == 0.0
    elsewhere = levels.expectation(q, ~lowest)
    limit = np.where(elsewhere < 0.5, -np.log1p(-elsewhere), -np.log(levels.expectation(q, lowest)))
    t = np.where(delta >= limit, np.inf, 0.0)
    rows = np.flatnonzero((delta > 0.0) & (delta < limit))
    t[rows] = _find_tilt(q.take(rows, axis=1), u.take(rows, axis=1), delta[rows], limit[rows])
    total = levels.expectation(q, np.exp(-t * u))
    return t, _log_mean(q, u, t, total)


def _find_tilt(q: Floats, u: Floats, delta: Floats, limit: Floats) -> Floats:
    """Solve KL(q_t‖q) = δ for 0 < δ < limit, by Newton's method in a kept bracket.

    The unknown is log t and the equation the log odds of the divergence within
    [0, limit]: linear for small t, nearly so for large.
    """
    mean = levels.expectation(q, u)
    spread = np.sqrt(levels.expectation(q, (u - mean) ** 2))
    # A variance on [0, 1] is at most 1/4, so the divergence is at most t²/8.
    low = 0.5 * np.log(8.0 * delta)
    high = np.full_like(low, np.inf)
    position = np.maximum(0.5 * np.log(2.0 * delta) - np.log(spread), low)
    last_move = np.full_like(low, np.inf)
    rows = np.arange(len(delta))
    for _ in range(MAX_STEPS):
        here = position[rows]
        error, step = _newton(
            q.take(rows, axis=1), u.take(rows, axis=1), here, delta[rows], limit[rows]
        )
        short = error < 0.0
        low[rows] = np.where(short, here, low[rows])
        high[rows] = np.where(short, high[rows], here)
        there = here - step
        # Newton must stay inside and at least halve its steps, or it may go in circles.
        slow = np.isfinite(high[rows]) & (np.abs(step) > 0.5 * last_move[rows])
        outside = (there < low[rows]) | (there > high[rows])
        there = np.where(slow | outside, 0.5 * (low[rows] + high[rows]), there)
        position[rows] = there
        last_move[rows] = np.abs(there - here)
        # Convergence is quadratic: after a step this small only rounding is left.
        rows = rows[last_move[rows] > TOLERANCE]
        if not len(rows):
            break
    return np.exp(position)


def _newton(
    q: Floats, u: Floats, log_t: Floats, delta: Floats, limit: Floats
) -> tuple[Floats, Floats]:
    """Return the difference of the log odds and the step that would make it vanish."""
    tilt = _tilt(q, u, np.exp(log_t))
    error = np.log(tilt.divergence / delta) - np.log(tilt.room / (limit - delta))
    step = error / (tilt.slope * (1.0 / tilt.divergence + 1.0 / tilt.room))
    step = np.where(np.isfinite(step), step, LARGEST_STEP * np.sign(error))
    return error, np.clip(step, -LARGEST_STEP, LARGEST_STEP)
