"""The lower expectations against their formulas in rational or 60-digit arithmetic."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from robustq.perturbations import get

from .cases import BALLS, IDS, random_pair

mpmath.mp.dps = 60

CASES = 120
DIGITS = 1e-12  # relative to the span of f


def exact_epsilon(q, f, delta):
    return (1 - delta) * expectation(q, f) + delta * min(f)


def exact_tv(q, f, delta):
    taken, value = delta, expectation(q, f)
    for v, p in sorted(zip(f, q, strict=True), reverse=True):
        share = min(taken, p)
        taken -= share
        value -= share * (v - min(f))
    return value


def exact_pari_mutuel(q, f, delta):
    left, value = Fraction(1), Fraction(0)
    for v, p in sorted(zip(f, q, strict=True)):
        share = min(left, (1 + delta) * p)
        left -= share
        value += share * v
    return value


def exact_odds_ratio(q, f, delta):
    """Solve (1−δ)E(f−m)₊ = E(f−m)₋ on the piece of m between two values that holds its root."""

    def balance(m):
        above = sum(p * (v - m) for v, p in zip(f, q, strict=True) if v > m)
        below = sum(p * (m - v) for v, p in zip(f, q, strict=True) if v < m)
        return (1 - delta) * above - below

    ends = sorted({v for v, p in zip(f, q, strict=True) if p > 0})
    low = max(v for v in ends if balance(v) >= 0)
    later = [v for v in ends if v > low]
    if not later:
        return low
    start, end = balance(low), balance(later[0])
    return low + (later[0] - low) * start / (start - end)


def exact_chi2(q, f, delta):
    """Go down the level sets of f on the support, as in the docstring of ChiSquared."""
    support = [(mpmath.mpf(v), mpmath.mpf(p)) for v, p in zip(f, q, strict=True) if p > 0]
    for v in sorted({v for v, _ in support}, reverse=True):
        level = [(w, p) for w, p in support if w <= v]
        mass = sum(p for _, p in level)
        mean = sum(w * p for w, p in level) / mass
        variance = sum((w - mean) ** 2 * p for w, p in level) / mass
        excess = mass * (1 + delta) - 1
        if excess * (v - mean) ** 2 < variance:
            return mean - mpmath.sqrt(variance * max(excess, 0))
    return min(v for v, _ in support)


def exact_kl(q, f, delta):
    """Maximise the dual by bisection on t, where KL(q_t‖q) = δ."""
    low = min(v for v, p in zip(f, q, strict=True) if p > 0)
    support = [(mpmath.mpf(v - low), mpmath.mpf(p)) for v, p in zip(f, q, strict=True) if p > 0]
    if delta == 0:
        return low + sum(v * p for v, p in support)
    if delta >= -mpmath.log(sum(p for v, p in support if v == 0)):
        return low

    def log_mean(t):
        return mpmath.log(sum(p * mpmath.exp(-t * v) for v, p in support))

    def divergence(t):
        weights = [p * mpmath.exp(-t * v) for v, p in support]
        mean = sum(w * v for w, (v, _) in zip(weights, support, strict=True)) / sum(weights)
        return -t * mean - log_mean(t)

    left, right = mpmath.mpf(-200), mpmath.mpf(60)  # of log t
    for _ in range(150):
        middle = (left + right) / 2
        if divergence(mpmath.exp(middle)) < delta:
            left = middle
        else:
            right = middle
    t = mpmath.exp(left)
    return low + (-log_mean(t) - delta) / t


def expectation(q, f):
    return sum(p * v for p, v in zip(q, f, strict=True))


EXACT = {
    "epsilon": exact_epsilon,
    "tv": exact_tv,
    "chi2": exact_chi2,
    "pari_mutuel": exact_pari_mutuel,
    "odds_ratio": exact_odds_ratio,
    "kl": exact_kl,
}


def extreme_case(ball, rng):
    """Draw sizes over many orders of magnitude, rare outcomes and nearly tied values too."""
    q, f = random_pair(rng)
    if rng.random() < 0.3:
        rare = rng.integers(len(q))
        q[rare] = 10.0 ** -rng.uniform(3, 200)
        q = q / q.sum()
    if rng.random() < 0.3:
        f[0] = f[1] + 10.0 ** -rng.uniform(1, 13)
    end = min(ball.domain.end, 1e4)
    delta = min(10.0 ** rng.uniform(-16, 4), end if ball.domain.closed else 0.999999 * end)
    return q, f, float(delta)


def exact(ball, q, f, delta):
    to = mpmath.mpf if ball.name in ("chi2", "kl") else Fraction
    masses = [Fraction(p) for p in q.tolist()]
    masses = [p / sum(masses) for p in masses]
    if to is mpmath.mpf:
        masses = [to(p.numerator) / p.denominator for p in masses]
    return EXACT[ball.name](masses, [to(v) for v in f.tolist()], to(float(delta)))


@pytest.mark.parametrize("ball", BALLS, ids=IDS)
def test_the_lower_expectation_has_twelve_digits(ball):
    rng = np.random.default_rng(7)
    for _ in range(CASES):
        q, f, delta = extreme_case(ball, rng)
        error = abs(float(exact(ball, q, f, delta) - float(ball.lower_expectation(q, f, delta))))
        assert error <= DIGITS * max(np.ptp(f), np.abs(f).max()), (q.tolist(), f.tolist(), delta)


@pytest.mark.parametrize("ball", BALLS, ids=IDS)
def test_the_bounds_have_twelve_digits(ball):
    rng = np.random.default_rng(8)
    for _ in range(CASES // 2):
        _, _, delta = extreme_case(ball, rng)
        single = 10.0 ** -rng.uniform(0, 20)
        pair = np.array([single, 1 - single])
        lower = exact(ball, pair, np.array([1.0, 0.0]), delta)
        upper = -exact(ball, pair, np.array([-1.0, 0.0]), delta)
        assert ball.lower_probability(single, delta) == pytest.approx(float(lower), abs=DIGITS)
        assert ball.upper_probability(single, delta) == pytest.approx(float(upper), abs=DIGITS)


def test_kl_of_many_outcomes_has_twelve_digits():
    rng = np.random.default_rng(9)
    q, f = rng.dirichlet(np.ones(300)), rng.normal(size=300)
    got = float(get("kl").lower_expectation(q, f, 0.4))
    assert got == pytest.approx(float(exact(get("kl"), q, f, 0.4)), rel=DIGITS)
