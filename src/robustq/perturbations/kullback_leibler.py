"""Kullback–Leibler: the surprise of q′, seen from q, is at most δ."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from . import kl_bounds, levels, tilts
from .built_in import ClosedForm
from .domain import Domain

if TYPE_CHECKING:
    from robustq.arrays import Floats, Indices

__all__ = ["KullbackLeibler"]


class KullbackLeibler(ClosedForm):
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
    expectation = "kl"
    keeps_zero = True

    def _lower_expectation(self, q: Floats, f: Floats, delta: Floats) -> Floats:
        f, low, span = levels.on_support(q, f)
        # From the minimiser, which has all digits of small probabilities; the dual cancels.
        return np.maximum(levels.expectation(_minimiser(q, f, low, span, delta), f), low)

    def _minimising(self, q: Floats, f: Floats, delta: Floats) -> Floats:
        return _minimiser(q, *levels.on_support(q, f), delta)

    def _lower_probability(self, q: Floats, delta: Floats) -> Floats:
        _, rest = kl_bounds.raise_probability(1.0 - q, q, delta)
        return np.clip(rest, 0.0, q)

    def _upper_probability(self, q: Floats, delta: Floats) -> Floats:
        raised, _ = kl_bounds.raise_probability(q, 1.0 - q, delta)
        return np.clip(raised, q, 1.0)


class _Problem(NamedTuple):
    """Mass functions and values of which the smallest on the support is 0; outcomes first."""

    q: Floats
    log_q: Floats
    f: Floats
    span: Floats  # the largest value, one per row

    def take(self, rows: Indices) -> _Problem:
        if len(rows) == len(self.span):
            return self
        return _Problem(*(array.take(rows, axis=-1) for array in self))


class _Tilted(NamedTuple):
    """The mass functions q_t ∝ q e^(−tf)."""

    p: Floats
    log_ratio: Floats  # log(p/q)
    distance: Floats  # of each value, in spans, from that of the outcome with most mass


def _minimiser(q: Floats, f: Floats, low: Floats, span: Floats, delta: Floats) -> Floats:
    lowest = f == low
    mass, rest = levels.expectation(q, lowest), levels.expectation(q, ~lowest)
    room = tilts.room_left(mass, rest, delta)
    p = np.where(room > 0.0, q, q * lowest / mass)
    rows = np.flatnonzero((delta > 0.0) & (room > 0.0))
    problem = _Problem(q, np.log(q), f - low, span).take(rows)
    t = tilts.solve(
        lambda t, some: _measure(problem.take(some), t), delta[rows], room[rows], _spread(problem)
    )
    p[:, rows] = _tilt(problem, t).p
    return p


def _spread(problem: _Problem) -> Floats:
    still = _tilt(problem, np.zeros_like(problem.span))
    return np.sqrt(_variance(still))


def _tilt(problem: _Problem, t: Floats) -> _Tilted:
    """Tilt each mass function by its t.

    All is seen from the outcome that then has most mass: no weight overflows, none that
    counts underflows, and short distances between values keep their digits.
    """
    q, log_q, f, span = problem
    most = (log_q - t * (f / span)).argmax(axis=0)[None]
    q_most, f_most = np.take_along_axis(q, most, axis=0), np.take_along_axis(f, most, axis=0)
    distance = (f - f_most) / span
    exponent = -t * distance
    weight = q / q_most * np.exp(exponent)
    total = levels.total(weight)
    log_mean = np.log(q_most[0]) + np.log(total)
    # Near one the sum must have its digits as a distance from one.
    near_one = np.log1p(levels.expectation(q, np.expm1(exponent)))
    log_mean = np.where(q_most[0] * total > 0.5, near_one, log_mean)
    return _Tilted(weight / total, exponent - log_mean, distance)


def _variance(tilted: _Tilted) -> Floats:
    mean = levels.expectation(tilted.p, tilted.distance)
    return levels.expectation(tilted.p, (tilted.distance - mean) ** 2)


def _measure(problem: _Problem, t: Floats) -> tilts.Tilt:
    tilted = _tilt(problem, t)
    divergence = levels.total(tilts.divergence_terms(problem.q, tilted.p, tilted.log_ratio))
    lowest = problem.f == 0.0
    height = levels.expectation(tilted.p, problem.f) / problem.span
    odds = levels.expectation(tilted.p, ~lowest) / levels.expectation(tilted.p, lowest)
    return tilts.Tilt(divergence, t * height + np.log1p(odds), t * t * _variance(tilted))
