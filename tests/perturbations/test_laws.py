"""What holds for every ball, whatever the numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustq.perturbations import get

from .cases import BALLS, IDS

every_ball = pytest.mark.parametrize("ball", BALLS, ids=IDS)
EPS = 1e-12

values = st.one_of(st.integers(-3, 3).map(float), st.floats(-10, 10))
weights = st.one_of(st.just(0.0), st.floats(1e-12, 1.0))


@st.composite
def masses(draw, outcomes):
    q = np.array(draw(st.lists(weights, min_size=outcomes, max_size=outcomes)))
    if q.sum() == 0:
        q[draw(st.integers(0, outcomes - 1))] = 1.0
    return q / q.sum()


@st.composite
def pairs(draw, functions=1):
    """Draw a mass function and value functions on the same 1 to 8 outcomes."""
    outcomes = draw(st.integers(1, 8))
    drawn = [
        np.array(draw(st.lists(values, min_size=outcomes, max_size=outcomes)))
        for _ in range(functions)
    ]
    return draw(masses(outcomes)), *drawn


# A share of the domain, mapped onto it by `size`: one strategy for all balls.
shares = st.one_of(st.sampled_from([0.0, 1e-12, 1e-6, 1.0]), st.floats(0, 1))


def size(ball, share):
    if ball.domain.end == np.inf:
        return 20.0 * share**3
    return share if ball.domain.closed else 0.999999 * share


def span(f):
    return max(1.0, np.abs(f).max())


@every_ball
@given(pair=pairs())
def test_size_zero_gives_the_plain_expectation(ball, pair):
    q, f = pair
    assert ball.lower_expectation(q, f, 0.0) == pytest.approx(q @ f, abs=EPS * span(f))
    assert ball.upper_expectation(q, f, 0.0) == pytest.approx(q @ f, abs=EPS * span(f))


@every_ball
@given(pair=pairs(), share=shares, other=shares)
def test_never_increases_in_size(ball, pair, share, other):
    q, f = pair
    small, large = sorted([size(ball, share), size(ball, other)])
    assert ball.lower_expectation(q, f, large) <= (
        ball.lower_expectation(q, f, small) + EPS * span(f)
    )


@every_ball
@given(pair=pairs(), share=shares)
def test_lies_between_the_extremes_and_the_expectation(ball, pair, share):
    q, f = pair
    delta = size(ball, share)
    lower, upper = ball.lower_expectation(q, f, delta), ball.upper_expectation(q, f, delta)
    tolerance = EPS * span(f)
    assert f.min() - tolerance <= lower <= q @ f + tolerance
    assert q @ f - tolerance <= upper <= f.max() + tolerance


@every_ball
@given(pair=pairs(), share=shares, shift=st.floats(-10, 10), scale=st.floats(1e-3, 1e3))
def test_adding_a_constant_adds_it_and_scaling_scales(ball, pair, share, shift, scale):
    q, f = pair
    delta = size(ball, share)
    plain = ball.lower_expectation(q, f, delta)
    moved = ball.lower_expectation(q, scale * f + shift, delta)
    assert moved == pytest.approx(scale * plain + shift, abs=1e-10 * scale * span(f) + 1e-10)


@every_ball
@given(triple=pairs(functions=2), share=shares)
def test_is_superadditive(ball, triple, share):
    q, f, g = triple
    delta = size(ball, share)
    together = ball.lower_expectation(q, f + g, delta)
    apart = ball.lower_expectation(q, f, delta) + ball.lower_expectation(q, g, delta)
    assert together >= apart - EPS * (span(f) + span(g))


@every_ball
@given(pair=pairs(), share=shares)
def test_the_bounds_are_the_expectations_of_indicators(ball, pair, share):
    q, _ = pair
    if len(q) == 1:
        return  # the only outcome there is: see the test below
    delta = size(ball, share)
    indicators = np.eye(len(q))
    lower = ball.lower_expectation(q, indicators, delta)
    upper = ball.upper_expectation(q, indicators, delta)
    # The mass of the other outcomes is 1 − q only up to rounding, and near q = 1 that
    # matters: the bounds of the neighbouring q enclose the expectation.
    below, above = np.clip(q - 4e-16, 0, 1), np.clip(q + 4e-16, 0, 1)
    assert np.all(ball.lower_probability(below, delta) <= lower + EPS)
    assert np.all(ball.lower_probability(above, delta) >= lower - EPS)
    assert np.all(ball.upper_probability(below, delta) <= upper + EPS)
    assert np.all(ball.upper_probability(above, delta) >= upper - EPS)


@every_ball
def test_a_single_outcome_has_nowhere_to_go(ball):
    delta = size(ball, 0.9)
    assert ball.lower_expectation([1.0], [2.5], delta) == 2.5
    assert ball.upper_expectation([1.0], [2.5], delta) == 2.5
    np.testing.assert_array_equal(ball.minimising([1.0], [2.5], delta), [1.0])


@given(pair=pairs(), share=shares)
def test_balls_of_equal_size_are_nested(pair, share):
    q, f = pair
    delta = 0.999999 * share
    lower = {
        name: get(name).lower_expectation(q, f, delta)
        for name in ("odds_ratio", "epsilon", "pari_mutuel", "tv")
    }
    tolerance = EPS * span(f)
    assert lower["odds_ratio"] >= lower["epsilon"] - tolerance
    assert lower["epsilon"] >= lower["tv"] - tolerance
    assert lower["pari_mutuel"] >= lower["tv"] - tolerance
    # No outcome's odds grow by more than 1/(1−δ) = 1 + δ/(1−δ).
    wider = get("pari_mutuel").lower_expectation(q, f, delta / (1 - delta))
    assert lower["odds_ratio"] >= wider - 1e-9 * span(f)


def test_odds_ratio_is_not_inside_pari_mutuel_of_equal_size():
    # q/(1−δ(1−q)) against (1+δ)q: rare outcomes may grow by more than 1 + δ.
    assert get("odds_ratio").upper_probability(0.1, 0.5) == pytest.approx(0.1 / 0.55)
    assert get("pari_mutuel").upper_probability(0.1, 0.5) == pytest.approx(0.15)


@pytest.mark.parametrize("name", ["epsilon", "tv"])
@given(pair=pairs())
def test_at_the_closed_end_anything_goes(name, pair):
    q, f = pair
    assert get(name).lower_expectation(q, f, 1.0) == pytest.approx(f.min(), abs=EPS * span(f))


@pytest.mark.parametrize("name", ["chi2", "pari_mutuel", "kl"])
@given(pair=pairs())
def test_at_huge_sizes_anything_on_the_support_goes(name, pair):
    q, f = pair
    least = f[q > 0].min()
    assert get(name).lower_expectation(q, f, 1e300) == pytest.approx(least, abs=EPS * span(f))


@given(pair=pairs())
def test_odds_ratio_tends_to_the_least_value_on_the_support(pair):
    q, f = pair
    delta = 1 - 2.0**-53
    least = f[q > 0].min()
    lightest = q[q > 0].min()
    assert least - EPS * span(f) <= get("odds_ratio").lower_expectation(q, f, delta)
    assert get("odds_ratio").lower_expectation(q, f, delta) <= least + (
        2.0**-52 * np.ptp(f) / lightest + EPS * span(f)
    )


@pytest.mark.parametrize("name", ["chi2", "pari_mutuel", "odds_ratio", "kl"])
@given(pair=pairs(), share=shares)
def test_mass_never_moves_to_an_outcome_of_probability_zero(name, pair, share):
    q, f = pair
    ball = get(name)
    delta = size(ball, share)
    assert np.all(ball.minimising(q, f, delta)[q == 0] == 0)
    assert ball.upper_probability(0.0, delta) == 0
    assert ball.lower_probability(1.0, delta) == 1


@every_ball
@given(pair=pairs(), share=shares, order=st.randoms(use_true_random=False))
def test_the_order_of_the_outcomes_does_not_matter(ball, pair, share, order):
    q, f = pair
    shuffled = list(range(len(q)))
    order.shuffle(shuffled)
    delta = size(ball, share)
    assert ball.lower_expectation(q[shuffled], f[shuffled], delta) == pytest.approx(
        ball.lower_expectation(q, f, delta), abs=EPS * span(f)
    )
