"""Lower expectations keep the digits of small probabilities.

An error is measured against Σ q′|f| at the minimising q′: where f is zero on nearly all
of the mass, that is as small as the probabilities of the rest.
"""

import numpy as np
import pytest

from robustq.perturbations import get
from tests.arithmetic import mpf, precision

from .cases import BALLS, IDS
from .exact import EXACT

every_ball = pytest.mark.parametrize("ball", BALLS, ids=IDS)

CASES = 150
DIGITS = 1e-12
NEAREST = 1e-15  # rounding errors of sums count like this one of the size, relative
ENOUGH = 400

# Where these empty an outcome, all digits hang on the last one of the size.
EMPTYING = ("tv", "chi2", "pari_mutuel", "kl")


def exact(ball, q, f, delta):
    with precision(ENOUGH):
        total = sum(mpf(float(mass)) for mass in q)
        masses = [mpf(float(mass)) / total for mass in q]
        return EXACT[ball.name](masses, [mpf(float(v)) for v in f], mpf(delta))


def random_masses(rng, outcomes):
    """Draw about half of the outcomes from within 16, or 300, orders of magnitude."""
    orders = rng.choice([16, 300])
    q = rng.uniform(0.1, 1, outcomes) * 10.0 ** -rng.uniform(0, orders, outcomes)
    common = rng.random(outcomes) < 0.5
    common[rng.integers(outcomes)] = True
    q = np.where(common, rng.uniform(0.1, 1, outcomes), q)
    return q / q.sum()


def random_values(rng, outcomes):
    kind = rng.integers(4)
    if kind == 0:
        return rng.normal(size=outcomes)
    f = np.zeros(outcomes)
    if kind == 1:  # near ties
        f = rng.normal(size=outcomes)
        f[0] = f[1] + 10.0 ** -rng.uniform(0, 14)
    else:  # what naive Bayes asks of the prior
        f[:2] = 10.0 ** rng.uniform(-8, 8, 2) if kind == 2 else rng.exponential(size=2)
        f[1] *= -1
    return rng.permutation(f)


def random_size(ball, rng, q):
    sizes = [10.0 ** rng.uniform(-16, 0), rng.choice(q) * 10.0 ** rng.uniform(-2, 2)]
    if ball.domain.end == np.inf:
        return float(rng.choice([*sizes, 10.0 ** rng.uniform(-3, 2.8)]))
    return float(min(rng.choice([*sizes, 1 - 10.0 ** -rng.uniform(0, 12)]), ball.domain.largest))


def allowed_error(ball, q, f, delta):
    scale = DIGITS * float((ball.minimising(q, f, delta) * np.abs(f)).sum())
    if ball.name not in EMPTYING:
        return scale
    near = [exact(ball, q, f, mpf(delta) * factor) for factor in (1 - NEAREST, 1 + NEAREST)]
    return scale + float(abs(near[0] - near[1]))


@every_ball
def test_lower_expectations_of_tiny_masses_have_twelve_digits(ball):
    rng = np.random.default_rng(20)
    for _ in range(CASES):
        outcomes = int(rng.integers(2, 6))
        q, f = random_masses(rng, outcomes), random_values(rng, outcomes)
        delta = random_size(ball, rng, q)
        got = mpf(float(ball.lower_expectation(q, f, delta)))
        error = float(abs(got - exact(ball, q, f, delta)))
        assert error <= allowed_error(ball, q, f, delta), (q.tolist(), f.tolist(), delta)


@every_ball
@pytest.mark.parametrize("small", [1e-8, 1e-13, 1e-100, 1e-300])
@pytest.mark.parametrize("share", [1e-3, 0.1, 0.7])
def test_one_outcome_against_another_among_many(ball, small, share):
    # α on one rare outcome, −β on another, 0 on all the rest.
    q, f = np.array([small, 2 * small, 0.5, 0.5 - 3 * small]), np.array([3.0, -1.0, 0.0, 0.0])
    for delta in (share, share * small):
        got = float(ball.lower_expectation(q, f, delta))
        wanted = float(exact(ball, q, f, delta))
        assert got == pytest.approx(wanted, rel=1e-12, abs=0)


@every_ball
def test_minimisers_have_the_digits_of_each_outcome(ball):
    # Lower expectations of the other way round: what one outcome gets, another one gives.
    q, f = np.array([1e-30, 2e-30, 1e-9, 1.0 - 1e-9]), np.array([3.0, -1.0, 0.5, 0.0])
    p = ball.minimising(q, f, 0.3)
    value = float(exact(ball, q, f, 0.3))
    assert p @ f == pytest.approx(value, rel=1e-12, abs=0)


def test_kl_survives_values_of_several_scales():
    # The most probable outcome is emptied long before the two lowest are told apart.
    ball = get("kl")
    q = [2.12100792298078e-15, 0.5470789931901461, 0.45292100368538574, 3.124466080119449e-09]
    f, delta = [-1.0, 3564.647300790185, 0.0, 0.0], 0.9978791616398193
    wanted = float(exact(ball, np.array(q), np.array(f), delta))
    assert ball.lower_expectation(q, f, delta) == pytest.approx(wanted, rel=1e-12, abs=0)


def test_kl_gets_past_plateaus():
    # Between the scales of f the divergence hardly changes with the tilt.
    ball = get("kl")
    q, f = np.array([1e-300, 0.5, 0.5 - 1e-20, 1e-20]), np.array([-1e-6, 0.0, 1.0, -1e-12])
    for delta in (0.5, np.log(2), 0.6931471805599454, 0.7, 3.0, 46.0, 46.06, 600.0, 690.0):
        error = float(abs(float(ball.lower_expectation(q, f, delta)) - exact(ball, q, f, delta)))
        assert error <= allowed_error(ball, q, f, delta), delta


def test_chi2_does_not_lose_products_of_small_numbers():
    ball = get("chi2")
    q = np.array([6e-229, 5e-146, 4e-203, 1.0])
    f, delta = np.array([-1.0, 0.0, 0.18, 0.0]), 6.5e-202
    wanted = float(exact(ball, q, f, delta))
    assert ball.lower_expectation(q, f, delta) == pytest.approx(wanted, rel=1e-12, abs=0)
