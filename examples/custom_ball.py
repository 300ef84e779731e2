"""Bring your own ball: a Hellinger ball, which robustq does not have built in.

The ball of size δ around q holds every mass function p with

    1 − Σ √(p q) ≤ δ ,    δ in [0, 1] .

Run it: python examples/custom_ball.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from robustq.perturbations import Domain, Perturbation, get, register

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@register
class Hellinger(Perturbation):
    """All p with 1 − Σ √(pq) ≤ δ.

    Lagrange: the minimiser of Σ p f is p_ν ∝ q/(f+ν)² for some ν > −min f, and its
    overlap Σ √(p_ν q) grows with ν from √q(f = min f) to 1. So the whole problem is one
    root, found here for all rows at once by bisection. (A minimum of f where q = 0 is the
    exception: mass can be put there once ν has come down to −min f.)
    """

    name = "hellinger"
    domain = Domain(1.0, closed=True)

    def lower_expectation(
        self, q: ArrayLike, f: ArrayLike, delta: ArrayLike
    ) -> NDArray[np.float64]:
        """Return the smallest expectation of f over the ball of size delta around q."""
        p = self.minimising(q, f, delta)
        return (p * np.asarray(f)).sum(axis=-1)

    def minimising(self, q: ArrayLike, f: ArrayLike, delta: ArrayLike) -> NDArray[np.float64]:
        """Return a mass function in the ball that attains the lower expectation."""
        q, f, delta = self.check(q, f, delta)
        above_least = f - f.min(axis=-1, keepdims=True)
        span = above_least.max(axis=-1, keepdims=True)
        above_least = above_least / np.where(span > 0, span, 1.0)  # f + ν = above_least + e^s
        wanted = (1.0 - delta)[..., None]
        low, high = np.full_like(wanted, -300.0), np.full_like(wanted, 300.0)
        for _ in range(80):
            s = 0.5 * (low + high)
            enough = _overlap(_tilted(q, above_least, s), q) >= wanted
            low, high = np.where(enough, low, s), np.where(enough, s, high)
        p = _tilted(q, above_least, high)
        # What is left of the size goes straight to a least outcome (see above).
        share = np.minimum(1.0, (wanted / _overlap(p, q)) ** 2)
        least = np.zeros_like(p)
        np.put_along_axis(least, f.argmin(axis=-1)[..., None], 1.0, axis=-1)
        at_end = high < -299.0
        return np.where(at_end, share * p + (1.0 - share) * least, p)


def _tilted(
    q: NDArray[np.float64], above_least: NDArray[np.float64], s: NDArray[np.float64]
) -> NDArray[np.float64]:
    # Scaled by the smallest term, so that its square cannot underflow.
    distance = above_least + np.exp(s)
    nearest = np.min(np.where(q > 0, distance, np.inf), axis=-1, keepdims=True)
    weight = q * (nearest / distance) ** 2
    return weight / weight.sum(axis=-1, keepdims=True)


def _overlap(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.sqrt(p * q).sum(axis=-1, keepdims=True)


def main() -> None:
    """Show what the new ball says of one mass function."""
    q, f = [0.5, 0.3, 0.2], [3.0, 1.0, 2.0]
    ball = get("hellinger")
    print(f"q = {q}, f = {f}, expectation {np.dot(q, f):.4f}")
    print("delta   lower   upper   lower and upper probability of the first outcome")
    for delta in (0.0, 0.01, 0.05, 0.2, 1.0):
        lower, upper = ball.lower_expectation(q, f, delta), ball.upper_expectation(q, f, delta)
        bounds = ball.lower_probability(q[0], delta), ball.upper_probability(q[0], delta)
        print(f"{delta:5.2f}  {lower:6.4f}  {upper:6.4f}   {bounds[0]:.4f}  {bounds[1]:.4f}")


if __name__ == "__main__":
    main()
