"""Bounds on single outcomes over the whole range of probabilities and sizes."""

import itertools

import numpy as np
import pytest

from robustq.perturbations import get
from tests.arithmetic import mpf, precision

from .cases import BALLS, IDS
from .exact import BOUNDS, binary_divergence

every_ball = pytest.mark.parametrize("ball", BALLS, ids=IDS)

DIGITS = 1e-12  # relative
ULPS = 2e-15  # what rounding may do to monotony, relative
NEAREST = 4e-16  # the sizes that a float stands for, relative
LEAST = 1e-323  # floats below 2e-308 have ever fewer digits, down to two of these
ENOUGH = 700  # decimal digits in which not even 1 + 1e-300 is rounded


def probabilities(count):
    """Go from 1e-300 to 1 − 1e-16, as many on either side of one half."""
    rare = np.geomspace(1e-300, 0.5, count)
    common = 1.0 - np.geomspace(1e-16, 0.5, count)[::-1]
    return np.unique(np.concatenate([rare, common, np.linspace(0.1, 0.9, 9)]))


def sizes(ball, count):
    """Cover the domain, with both of its ends; the middle more densely."""
    if ball.domain.end == np.inf:
        parts = [np.geomspace(1e-310, 1e-20, count), np.geomspace(1e-20, 1e4, 2 * count)]
        return np.unique(np.concatenate([[0.0], *parts, [1e16, 1e100, 1e300, ball.domain.largest]]))
    small = np.geomspace(1e-310, 0.5, 2 * count)
    large = 1.0 - np.geomspace(2.0**-53, 0.5, count)
    return np.unique(np.concatenate([[0.0], small, large, [ball.domain.largest]]))


@every_ball
def test_bounds_enclose_the_probability_and_stay_in_the_unit_interval(ball):
    q, delta = np.append(probabilities(150), 2.3e-308)[:, None], sizes(ball, 150)
    lower, upper = ball.lower_probability(q, delta), ball.upper_probability(q, delta)
    assert np.all((lower >= 0) & (lower <= q) & (q <= upper) & (upper <= 1))


@every_ball
def test_bounds_are_monotone_in_the_size(ball):
    q, delta = probabilities(100)[:, None], sizes(ball, 400)
    lower, upper = ball.lower_probability(q, delta), ball.upper_probability(q, delta)
    assert np.all(lower[:, 1:] <= lower[:, :-1] * (1 + ULPS))
    assert np.all(upper[:, 1:] >= upper[:, :-1] * (1 - ULPS))


@every_ball
def test_bounds_are_monotone_in_the_probability(ball):
    q, delta = probabilities(400)[:, None], sizes(ball, 100)
    lower, upper = ball.lower_probability(q, delta), ball.upper_probability(q, delta)
    assert np.all(lower[1:] >= lower[:-1] * (1 - ULPS))
    assert np.all(upper[1:] >= upper[:-1] * (1 - ULPS))


@every_ball
def test_certain_and_impossible_outcomes_are_exact(ball):
    delta = sizes(ball, 30)
    lower, upper = ball.lower_probability(0.0, delta), ball.upper_probability(1.0, delta)
    assert np.all(lower == 0)
    assert np.all(upper == 1)
    if ball.keeps_zero:
        assert np.all(ball.upper_probability(0.0, delta) == 0)
        assert np.all(ball.lower_probability(1.0, delta) == 1)


def slack(formula, q, delta, which):
    """Return what twelve digits allow, and the last digit of a size without end.

    Where such a ball empties an outcome, all digits of the bound hang on that one.
    """
    near = [formula(q, delta * factor)[which] for factor in (1 - NEAREST, 1 + NEAREST)]
    return DIGITS * formula(q, delta)[which] + LEAST + abs(near[0] - near[1])


@pytest.mark.parametrize("name", BOUNDS)
def test_closed_bounds_have_twelve_digits(name):
    ball, formula = get(name), BOUNDS[name]
    with precision(ENOUGH):
        for q, delta in itertools.product(probabilities(20), sizes(ball, 20)):
            got = ball.lower_probability(q, delta), ball.upper_probability(q, delta)
            exact = mpf(float(q)), mpf(float(delta))
            for which in (0, 1):
                wanted = formula(*exact)[which]
                allowed = DIGITS * wanted + LEAST
                if ball.domain.end == np.inf:
                    allowed = slack(formula, *exact, which)
                assert abs(mpf(float(got[which])) - wanted) <= allowed, (q, delta, got)


@pytest.mark.parametrize("name", ["chi2", "pari_mutuel"])
@pytest.mark.parametrize("q", [1e-12, 1e-6, 1e-3, 0.25])
def test_bounds_that_nearly_vanish_keep_their_digits(name, q):
    with precision(ENOUGH):
        wanted = float(BOUNDS[name](mpf(q), mpf(q))[0])
    assert 0 < wanted < q * 0.75
    assert get(name).lower_probability(q, q) == pytest.approx(wanted, rel=DIGITS, abs=0)


def assert_at_divergence(x, q, delta, *, up):
    """Check that the divergence is delta within a relative distance of DIGITS around x."""
    q, x, delta = (mpf(float(number)) for number in (q, x, delta))
    distance = (DIGITS * x + LEAST) * (1 if up else -1)
    inner, outer = x - distance, x + distance
    context = float(q), float(delta), float(x)
    if (inner > q) if up else (inner < q):
        assert binary_divergence(inner, q) <= delta * (1 + NEAREST), context
    if 0 < outer < 1:
        assert binary_divergence(outer, q) >= delta * (1 - NEAREST), context


def test_kl_bounds_have_twelve_digits():
    ball = get("kl")
    with precision(ENOUGH):
        for q, delta in itertools.product(probabilities(16), sizes(ball, 10)):
            if 0 < delta < 1e4:
                assert_at_divergence(ball.upper_probability(q, delta), q, delta, up=True)
                assert_at_divergence(ball.lower_probability(q, delta), q, delta, up=False)


def test_kl_bounds_close_to_their_ends_have_twelve_digits():
    # Just before the ball holds all of an outcome the other one goes to 0 steeply.
    ball = get("kl")
    with precision(ENOUGH):
        for q, short in itertools.product(probabilities(12), np.geomspace(1e-15, 0.5, 12)):
            up, down = -np.log(q) * (1 - short), -np.log1p(-q) * (1 - short)
            assert_at_divergence(ball.upper_probability(q, up), q, up, up=True)
            assert_at_divergence(ball.lower_probability(q, down), q, down, up=False)


def test_kl_bounds_where_the_exponential_of_the_tilt_underflows():
    got = get("kl").upper_probability(1e-6, [0.26, 0.27, 0.277, 0.29])
    wanted = [0.0280861196110199, 0.02905801965250033, 0.02973641479547524, 0.03099223669358574]
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_forty_thousand_random_kl_bounds_lie_at_their_divergence():
    rng = np.random.default_rng(0)
    q, delta = 10.0 ** -rng.uniform(0, 8, 40_000), 10.0 ** rng.uniform(-4, 1, 40_000)
    x = get("kl").upper_probability(q, delta)
    inside = delta < -np.log(q) * (1 - 1e-9)
    assert np.all((x < 1) == (delta < -np.log(q)))
    q, x, delta = q[inside], x[inside], delta[inside]
    divergence = x * np.log(x / q) + (1 - x) * np.log((1 - x) / (1 - q))
    np.testing.assert_allclose(divergence, delta, rtol=1e-6)
