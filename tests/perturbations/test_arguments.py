"""What the balls accept, how it broadcasts, and what they say of the rest."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from robustq import DomainError, InputError, RobustqError
from robustq.perturbations import get

from .cases import BALLS, IDS

every_ball = pytest.mark.parametrize("ball", BALLS, ids=IDS)

BAD = {
    "q negative": (
        ([0.5, -0.1, 0.6], [1, 2, 3], 0.1),
        r"q must hold probabilities, from 0 to 1, got -0\.1 at index \[1\]",
    ),
    "q NaN": (
        ([0.5, float("nan"), 0.5], [1, 2, 3], 0.1),
        r"q must hold probabilities, from 0 to 1, got nan at index \[1\]",
    ),
    "q not summing to one": (
        ([[0.5, 0.5], [0.3, 0.3]], [1, 2], 0.1),
        r"q must sum to 1 .* got a sum of 0\.6 at index \[1\]; divide it by its sum",
    ),
    "q infinite": (([np.inf, 0.5], [1, 2], 0.1), r"from 0 to 1, got inf at index \[0\]"),
    "q text": ((["a", "b"], [1, 2], 0.1), r"q must be .* numbers, got \['a', 'b'\]"),
    "q ragged": (([[0.5, 0.5], [1.0]], [1, 2], 0.1), r"q must be .* numbers"),
    "q complex": (([0.5 + 0j, 0.5], [1, 2], 0.1), r"q must be .* numbers"),
    "q None": ((None, [1, 2], 0.1), r"q must be .* numbers, got None"),
    "q masked": ((np.ma.array([0.5, 0.5], mask=[0, 1]), [1, 2], 0.1), r"q must be .* numbers"),
    "q text in objects": ((np.array(["0.5", 0.5], object), [1, 2], 0.1), r"q must be .* numbers"),
    "q beyond floats": (([10**400, 1], [1, 2], 0.1), r"q must be .* numbers"),
    "delta None": (([0.5, 0.5], [1, 2], None), r"delta must be .* numbers?, got None"),
    "no outcomes": (([], [], 0.1), r"[qf] needs at least one outcome .* got shape \(0,\)"),
    "q a number": ((1.0, [1.0], 0.1), r"q needs at least one outcome .* got shape \(\)"),
    "f NaN": (([0.5, 0.5], [1, np.nan], 0.1), r"f must be finite .*, got nan at index \[1\]"),
    "f infinite": (
        ([0.5, 0.5], [-np.inf, 1], 0.1),
        r"f must be finite .*, got -inf at index \[0\]",
    ),
    "f overflowing": (
        ([0.5, 0.5], [-1.7e308, 1.7e308], 0.1),
        r"f must be finite and at most 4e\+307 in size",
    ),
    "outcomes differ": (
        ([0.5, 0.5], [1, 2, 3], 0.1),
        r"q has 2 outcomes and f has 3: they must be equal",
    ),
    "rows differ": (
        (np.full((2, 2), 0.5), np.ones((3, 2)), 0.1),
        r"must be equal or 1 to broadcast, got \(2,\) for q, \(3,\) for f, \(\) for delta",
    ),
    "sizes differ": (
        (np.full((2, 2), 0.5), [1, 2], [0.1, 0.2, 0.3]),
        r"must be equal or 1 to broadcast, got \(2,\) for q, \(\) for f, \(3,\) for delta",
    ),
}


@every_ball
@pytest.mark.parametrize("method", ["lower_expectation", "upper_expectation", "minimising"])
@pytest.mark.parametrize("problem", BAD)
def test_bad_input_is_named(ball, method, problem):
    given, message = BAD[problem]
    with pytest.raises(InputError, match=message) as caught:
        getattr(ball, method)(*given)
    assert isinstance(caught.value, RobustqError)
    assert isinstance(caught.value, ValueError)


@every_ball
@pytest.mark.parametrize("delta", [-1e-9, np.nan, np.inf, [0.1, -0.2]])
def test_sizes_outside_the_domain_are_named(ball, delta):
    q = [0.5, 0.5]
    with pytest.raises(DomainError, match=r"delta must lie in \[0, .*, got"):
        ball.lower_expectation(q, [1, 2], delta)
    with pytest.raises(DomainError, match=r"delta must lie in \[0, .*, got"):
        ball.lower_probability(0.5, delta)


@pytest.mark.parametrize(
    ("name", "delta", "domain"),
    [("epsilon", 1.5, r"\[0, 1\]"), ("tv", 1.0000001, r"\[0, 1\]"), ("odds_ratio", 1, r"\[0, 1\)")],
)
def test_the_end_of_the_domain_is_kept(name, delta, domain):
    with pytest.raises(DomainError, match=rf"delta must lie in {domain}, got {float(delta)}"):
        get(name).lower_expectation([0.5, 0.5], [1, 2], delta)


@every_ball
@pytest.mark.parametrize("method", ["lower_probability", "upper_probability"])
def test_bad_single_probabilities_are_named(ball, method):
    bound = getattr(ball, method)
    with pytest.raises(InputError, match=r"from 0 to 1, got 1\.5 at index \[1\]"):
        bound([0.2, 1.5], 0.1)
    with pytest.raises(InputError, match=r"from 0 to 1, got nan"):
        bound(np.nan, 0.1)
    with pytest.raises(InputError, match=r"to broadcast, got \(2,\) for q, .*\(3,\) for delta"):
        bound([0.2, 0.5], [0.1, 0.2, 0.3])
    with pytest.raises(InputError, match=r"delta must be a number .*, got 'x'"):
        bound(0.5, "x")


@every_ball
def test_sums_may_be_off_by_rounding_only(ball):
    q, f = np.array([0.5, 0.3, 0.2]), [1e3, 1e3 + 1, 1e3 + 2]
    expected = ball.lower_expectation(q, f, 0.1)
    for factor in (1 + 9e-10, 1 - 9e-10):
        got = ball.lower_expectation(q * factor, f, 0.1)
        assert got == pytest.approx(expected, abs=1e-12 * 1e3)
        assert ball.minimising(q * factor, f, 0.1).sum() == pytest.approx(1, abs=1e-15)
    for factor in (1 + 2e-9, 1 - 2e-9):
        with pytest.raises(InputError, match="must sum to 1"):
            ball.lower_expectation(q * factor, f, 0.1)


@every_ball
def test_everything_broadcasts(ball):
    rng = np.random.default_rng(1)
    q = rng.dirichlet(np.ones(4), size=(3, 1))
    f = rng.normal(size=(5, 4))
    delta = np.array([0.1, 0.5]).reshape(2, 1, 1)
    table = ball.lower_expectation(q, f, delta)
    assert table.shape == (2, 3, 5)
    assert table.dtype == np.float64
    for index in np.ndindex(2, 3, 5):
        d, i, j = index
        assert table[index] == ball.lower_expectation(q[i, 0], f[j], delta[d, 0, 0])


@every_ball
def test_bounds_broadcast(ball):
    table = ball.lower_probability([[0.1], [0.9]], [0.0, 0.1, 0.5])
    assert table.shape == (2, 3)
    assert table[1, 2] == pytest.approx(ball.lower_probability(0.9, 0.5), abs=1e-15)


@every_ball
def test_no_rows_give_no_rows(ball):
    assert ball.lower_expectation(np.empty((0, 3)), [1, 2, 3], 0.1).shape == (0,)
    assert ball.minimising(np.empty((0, 3)), [1, 2, 3], 0.1).shape == (0, 3)
    assert ball.upper_probability([], 0.1).shape == (0,)


@every_ball
def test_one_mass_function_gives_one_number(ball):
    assert isinstance(ball.lower_expectation([0.5, 0.5], [0, 1], 0.1), float)
    assert isinstance(ball.lower_probability(0.5, 0.1), float)


@every_ball
@pytest.mark.parametrize("number", [Fraction, Decimal, np.float32, int])
def test_numbers_of_any_kind_are_taken(ball, number):
    got = ball.lower_expectation([number(0), number(1)], [number(2), number(3)], 0.0)
    assert got == 3.0


@every_ball
def test_input_is_left_alone(ball):
    q, f, delta = np.array([0.5, 0.3, 0.2]), np.array([3.0, 1.0, 2.0]), np.array([0.2, 0.3])
    kept = q.copy(), f.copy(), delta.copy()
    ball.lower_expectation(q, f, delta)
    ball.minimising(q, f, delta)
    for now, then in zip((q, f, delta), kept, strict=True):
        np.testing.assert_array_equal(now, then)
