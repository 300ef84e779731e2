"""χ²: the squared change of each probability counts in units of that probability."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from . import arguments, levels
from .built_in import ClosedForm
from .domain import Domain
from .forms import Form, as_masses, rows_behind

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

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
    expectation = "chi2"
    keeps_zero = True

    def _lower_expectation(self, q: Floats, f: Floats, delta: Floats) -> Floats:
        f, low, span = levels.on_support(q, f)
        _, q, f = levels.sort_by_value(q, f)
        s = _solve(q, levels.gaps(f, span), delta)
        kept = np.arange(len(q))[:, None] <= s.level
        mean = levels.expectation(q * f, kept) / levels.expectation(q, kept)
        least = mean - span * s.deviation * s.root
        return np.where(s.level < 0, low, np.maximum(least, low))

    def _minimising(self, q: Floats, f: Floats, delta: Floats) -> Floats:
        f, low, span = levels.on_support(q, f)
        order, q, f = levels.sort_by_value(q, f)
        s = _solve(q, levels.gaps(f, span), delta)
        kept = np.arange(len(q))[:, None] <= s.level
        # f − μ from the top of the level set down, where the mass may be nearly all.
        top = np.take_along_axis(f, np.maximum(s.level, 0)[None], axis=0)
        tilt = 1.0 - s.root / s.deviation * (s.reach - (top - f) / span)
        # Positive, but for rounding.
        weight = np.where(kept, q * np.maximum(tilt, 0.0), 0.0)
        weight = np.where(s.level < 0, q * (f == low), weight)
        return levels.restore_order(order, weight / levels.total(weight))

    # As a product, because q − √(δq(1−q)) cancels where it is nearly zero.

    def _lower_probability(self, q: Floats, delta: Floats) -> Floats:
        spread = np.sqrt(delta) * np.sqrt(q * (1.0 - q))
        room = np.where(q < 0.5, (q - delta) + delta * q, q - delta * (1.0 - q))
        return np.clip(room * (q / np.where(q > 0.0, q + spread, 1.0)), 0.0, q)

    def _upper_probability(self, q: Floats, delta: Floats) -> Floats:
        return np.minimum(1.0, q + np.sqrt(delta) * np.sqrt(q * (1.0 - q)))

    def form(self, p: ArrayLike, rows: ArrayLike | None = None) -> Form:
        """Return the bounds as functions of one number; see `Perturbation.form`."""
        p = as_masses(p)
        n = rows_behind(p, rows)
        none, spread = np.zeros_like(p), np.sqrt(p * (1.0 - p)) / np.sqrt(n)
        return Form(fall=spread, fall_scale=none, rise=spread, rise_scale=none)

    def x_of(self, delta: ArrayLike, by_rows: bool = False) -> Floats:  # noqa: ARG002 (the same)
        """Return √δ; see `Perturbation.x_of`."""
        return np.sqrt(arguments.numbers(delta, "delta"))

    def delta_of(self, x: ArrayLike, by_rows: bool = False) -> Floats:  # noqa: ARG002 (the same)
        """Return x²; see `Perturbation.delta_of`."""
        x = arguments.numbers(x, "x")
        # Only an infinite x has an infinite size.
        with np.errstate(over="ignore"):
            return np.where(np.isinf(x), x, np.minimum(x * x, self.domain.largest))[()]


class _Solution(NamedTuple):
    """The level set the minimiser lives on, −1 where only the least value is left; σ, √D, v − μ.

    Values are counted in spans of f.
    """

    level: Indices
    deviation: Floats
    root: Floats
    reach: Floats


def _solve(q: Floats, gap: Floats, delta: Floats) -> _Solution:
    """Find the largest level set A = {f ≤ v} with D < σ²/(v−μ)², for values sorted upward.

    All prefixes are tried, also those that cut through a tie: whether the best
    mass function leaves v empty does not depend on how much mass q has there.
    """
    mass = q.cumsum(axis=0)
    safe = np.where(mass > 0.0, mass, 1.0)
    before = levels.mass_below(q)
    # Sums of positive terms only: v − μ and E f² − μ² would cancel.
    reach = (before * gap).cumsum(axis=0) / safe
    step = gap.copy()
    step[1:] += reach[:-1]
    deviation = np.sqrt((q * step * step * (before / safe)).cumsum(axis=0) / safe)
    root = np.sqrt(np.maximum(delta * mass - levels.mass_above(q), 0.0))
    # Not squared: of small probabilities the squares would vanish.
    fits = root * reach < deviation
    level = np.where(fits.any(axis=0), len(q) - 1 - fits[::-1].argmax(axis=0), -1)
    at = np.maximum(level, 0)[None]
    picked = (np.take_along_axis(a, at, axis=0)[0] for a in (deviation, root, reach))
    return _Solution(level, *picked)
