"""The minimiser lies in the ball and attains the lower expectation."""

import numpy as np
import pytest

from robustq import UnsupportedError
from robustq.perturbations import Perturbation

from .cases import BALLS, IDS, divergence, random_cases

every_ball = pytest.mark.parametrize("ball", BALLS, ids=IDS)


@every_ball
def test_the_minimiser_lies_in_the_ball_and_attains_the_value(ball):
    for q, f, delta in random_cases(ball, 500, seed=3):
        p = ball.minimising(q, f, delta)
        assert p.min() >= 0
        assert p.sum() == pytest.approx(1, abs=1e-12)
        assert divergence(ball.name, q, p) <= delta * (1 + 1e-9) + 1e-12
        assert p @ f == pytest.approx(ball.lower_expectation(q, f, delta), abs=1e-11)


@every_ball
def test_minimisers_broadcast(ball):
    q = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    f = np.array([1.0, 0.0, 2.0])
    delta = np.array([[0.1], [0.4], [0.7]])
    p = ball.minimising(q, f, delta)
    assert p.shape == (3, 2, 3)
    np.testing.assert_array_equal(p[2, 1], ball.minimising(q[1], f, 0.7))
    np.testing.assert_allclose((p * f).sum(-1), ball.lower_expectation(q, f, delta), atol=1e-13)


def test_a_ball_without_a_minimiser_says_how_to_give_one():
    class Still(Perturbation):
        def lower_expectation(self, q, f, delta):
            q, f, _ = self.check(q, f, delta)
            return (q * f).sum(axis=-1)

    with pytest.raises(UnsupportedError, match=r"Still gives no minimiser: define minimising"):
        Still().minimising([1.0], [1.0], 0.0)
