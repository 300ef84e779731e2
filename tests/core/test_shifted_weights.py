"""Lower expectations over a few children, compiled, beside what balls themselves give."""

import numpy as np
import pytest
from numba import types

from robustq.core._ball_kernels import shift_weights
from robustq.core.modes import MODES
from robustq.kernels import float_matrix_out, int_vector_out, kernel
from robustq.perturbations import get

MOST = 4  # children


@kernel(types.float64(types.int64, types.float64, types.int64, int_vector_out, float_matrix_out))
def _shift(mode, x, count, order, work):
    return shift_weights(mode, x, count, order, work)


def _ask(ball, weights, values, delta):
    work, order = np.zeros((7, MOST)), np.full(MOST + 1, -1)
    count = len(weights)
    work[0, :count], work[1, :count] = weights, values
    pivot = _shift(MODES[ball.expectation], float(ball.x_of(delta)), count, order, work)
    return pivot, work[2, :count], work[3, :count]


def _draw(rng):
    """Return weights, of which some are rare, and values, of which some are (nearly) equal."""
    count = rng.integers(2, MOST + 1)
    weights = rng.dirichlet(np.full(count, rng.choice([0.1, 0.5, 3.0])))
    weights[rng.integers(count)] *= 10.0 ** -rng.integers(0, 9)
    values = rng.normal(size=count) * 10.0 ** rng.integers(-9, 1, count)
    if rng.random() < 0.6:
        values[rng.integers(count)] = values[0]
    if rng.random() < 0.6:
        values = values[0] * (1.0 + 10.0 ** -rng.integers(1, 18) * rng.integers(-2, 3, count))
    return weights / weights.sum(), values


@pytest.mark.parametrize("name", sorted(MODES))
def test_they_are_those_of_the_ball(name):
    ball, rng = get(name), np.random.default_rng(11)
    for _ in range(1500):
        (weights, values), delta = _draw(rng), 10.0 ** rng.uniform(-4.0, -0.01)
        expected = ball.lower_expectation(weights, values, delta)
        _, shift, moved = _ask(ball, weights, values, delta)
        size = np.abs(values).max()
        assert moved @ values == pytest.approx(expected, abs=1e-11 * size)
        assert weights @ values + shift @ values == pytest.approx(expected, abs=1e-11 * size)
        np.testing.assert_allclose(weights + shift, moved, atol=1e-11)
        assert moved.sum() == pytest.approx(1.0, abs=1e-11)


@pytest.mark.parametrize("name", sorted(MODES))
@pytest.mark.parametrize("value", [1.0 / 3.0, 0.1, -7.1e-9])
def test_equal_values_leave_nothing_to_choose(name, value):
    weights = np.array([0.1554926, 0.3445074, 0.5])
    _, shift, moved = _ask(get(name), weights, np.full(3, value), 0.9)
    assert moved @ np.full(3, value) == pytest.approx(value, rel=1e-14, abs=0.0)
    assert shift.sum() == pytest.approx(0.0, abs=1e-15)
