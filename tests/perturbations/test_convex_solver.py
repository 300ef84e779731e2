"""The lower expectations against a convex solver that knows only the definitions."""

import cvxpy as cp
import numpy as np
import pytest

from .cases import BALLS, IDS, random_cases

CASES = 200

# Clarabel stops at a gap of 1e-8 relative to values of order one; near the end of a
# domain the exponential cone is nearly flat, and a digit or two more is lost.
AGREEMENT = 1e-6


def chi2(p, q, delta):
    return cp.norm2(cp.multiply(p - q, 1 / np.sqrt(q))) <= np.sqrt(delta)


def odds_ratio(p, q, delta):
    left, right = (pair.ravel() for pair in np.indices((len(q), len(q))))
    return cp.multiply(q[right], p[left]) >= (1 - delta) * cp.multiply(q[left], p[right])


# What a ball of size δ > 0 around q asks of p. Those in the second table keep to the support of q.
ANYWHERE = {
    "epsilon": lambda p, q, delta: p >= (1 - delta) * q,
    "tv": lambda p, q, delta: 0.5 * cp.norm1(p - q) <= delta,
}
ON_THE_SUPPORT = {
    "chi2": chi2,
    "pari_mutuel": lambda p, q, delta: p <= (1 + delta) * q,
    "odds_ratio": odds_ratio,
    "kl": lambda p, q, delta: cp.sum(cp.kl_div(p, q)) <= delta,
}


def solve(name: str, q: np.ndarray, f: np.ndarray, delta: float) -> float:
    if delta == 0:
        return float(q @ f)
    if name in ON_THE_SUPPORT:
        q, f = q[q > 0], f[q > 0]
    p = cp.Variable(len(q), nonneg=True)
    constraint = (ANYWHERE | ON_THE_SUPPORT)[name](p, q, delta)
    problem = cp.Problem(cp.Minimize(f @ p), [cp.sum(p) == 1, constraint])
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


@pytest.mark.parametrize("ball", BALLS, ids=IDS)
def test_the_lower_expectation_is_the_solvers_minimum(ball):
    for q, f, delta in random_cases(ball, CASES):
        expected = solve(ball.name, q, f, delta)
        got = ball.lower_expectation(q, f, delta)
        assert got == pytest.approx(expected, abs=AGREEMENT), (q.tolist(), f.tolist(), delta)
