"""The lower expectations against their formulas in rational or 60-digit arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from robustq.perturbations import get
from tests.arithmetic import mpf

from .cases import BALLS, IDS, divergence, random_pair
from .exact import EXACT

CASES = 120
DIGITS = 1e-12  # relative to the span of f


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
    to = mpf if ball.name in ("chi2", "kl") else Fraction
    masses = [Fraction(p) for p in q.tolist()]
    masses = [p / sum(masses) for p in masses]
    if to is mpf:
        masses = [to(p.numerator) / p.denominator for p in masses]
    return EXACT[ball.name](masses, [to(v) for v in f.tolist()], to(float(delta)))


@pytest.mark.parametrize("ball", BALLS, ids=IDS)
def test_the_lower_expectation_has_twelve_digits(ball):
    rng = np.random.default_rng(7)
    for _ in range(CASES):
        q, f, delta = extreme_case(ball, rng)
        error = abs(float(exact(ball, q, f, delta) - float(ball.lower_expectation(q, f, delta))))
        assert error <= DIGITS * max(np.ptp(f), np.abs(f).max()), (q.tolist(), f.tolist(), delta)


def test_chi2_survives_rare_outcomes_beside_ties():
    ball = get("chi2")
    shares = [0.019284675469332033, 0.797263374672534, 0.18345194985813398]
    assert ball.lower_expectation([1e-35, *shares], [0, 1, 1, 1], 0.5) == pytest.approx(1)
    assert ball.lower_expectation([0.3, 1e-20, 0.7], [0, -1, 0], 1e30) == -1
    assert ball.lower_expectation([0.3, 1e-20, 0.7], [0, -1, 0], 1e19) == pytest.approx(
        float(exact(ball, np.array([0.3, 1e-20, 0.7]), np.array([0.0, -1.0, 0.0]), 1e19))
    )


@pytest.mark.parametrize("ball", BALLS, ids=IDS)
def test_numbers_too_small_for_their_digits_count_as_zero(ball):
    q, f = [0.5, 0.5, 1e-310], [1, 2, 0]
    for delta in (0.0, 0.5, 400.0):
        if delta in ball.domain:
            got = ball.lower_expectation(q, f, delta)
            assert got == pytest.approx(ball.lower_expectation([0.5, 0.5, 0.0], f, delta))
            assert ball.upper_probability(1e-310, delta) == ball.upper_probability(0.0, delta)


@pytest.mark.parametrize("ball", BALLS, ids=IDS)
def test_minimisers_attain_the_value_at_the_extremes_too(ball):
    rng = np.random.default_rng(10)
    for _ in range(CASES):
        q, f, delta = extreme_case(ball, rng)
        p = ball.minimising(q, f, delta)
        assert p.sum() == pytest.approx(1, abs=1e-12)
        # What a rounding error of p can do to the divergence grows with 1/q.
        if q[q > 0].min() > 1e-6:
            assert divergence(ball.name, q, p) <= delta * (1 + 1e-9) + 1e-12
        value = ball.lower_expectation(q, f, delta)
        assert p @ f == pytest.approx(value, abs=1e-11 * max(1, np.abs(f).max()))


def test_odds_keep_their_digits_near_certainty():
    ball, q, delta = get("odds_ratio"), 1 - 1e-12, 1 - 1e-12
    lower = exact(ball, np.array([q, 1 - q]), np.array([1.0, 0.0]), delta)
    assert ball.lower_probability(q, delta) == pytest.approx(float(lower), rel=1e-12)


def test_kl_bounds_keep_the_digits_of_small_probabilities():
    ball = get("kl")
    for single in (1e-5, 1e-12, 1e-20, 1e-100, 2.3e-308):
        pair = np.array([single, 1 - single])
        for delta in (1e-16, 1e-5, 0.3, 700.0):
            p = ball.upper_probability(single, delta)
            if p < 1:
                assert (
                    divergence("kl", pair, np.array([p, 1 - p])) == pytest.approx(delta, rel=1e-9)
                    or delta < 10 * single
                )
            assert ball.lower_probability(single, delta) <= single <= p


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
