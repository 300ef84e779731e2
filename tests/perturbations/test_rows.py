"""Blocks and threads change the time, never the result."""

import numpy as np
import pytest

from robustq.perturbations.rows import map_rows

from .cases import BALLS, IDS

ROWS, OUTCOMES = 257, 12  # numpy adds up more than eight numbers in an order of its own


@pytest.mark.parametrize("ball", BALLS, ids=IDS)
@pytest.mark.parametrize("block_cells", [1, 5 * OUTCOMES, 10**6])
@pytest.mark.parametrize("threads", [1, 3])
def test_the_result_is_the_same_to_the_bit(ball, block_cells, threads):
    rng = np.random.default_rng(5)
    q = rng.dirichlet(np.full(OUTCOMES, 0.5), size=ROWS)
    f = rng.normal(size=(ROWS, OUTCOMES))
    delta = rng.uniform(0, 0.9, size=ROWS)
    out = np.empty(ROWS)
    map_rows(ball._lower_expectation, q, f, delta, out, block_cells=block_cells, threads=threads)
    np.testing.assert_array_equal(out, ball.lower_expectation(q, f, delta))
    np.testing.assert_array_equal(out[::-1], ball.lower_expectation(q[::-1], f[::-1], delta[::-1]))


@pytest.mark.parametrize("ball", BALLS, ids=IDS)
def test_bounds_do_not_depend_on_the_order_of_the_rows(ball):
    rng = np.random.default_rng(6)
    q, delta = 10.0 ** -rng.uniform(0, 20, size=40_000), rng.uniform(0, 0.9, size=40_000)
    for bound in (ball.lower_probability, ball.upper_probability):
        whole = bound(q, delta)
        np.testing.assert_array_equal(whole[::-1], bound(q[::-1], delta[::-1]))
        np.testing.assert_array_equal(whole[7:50], bound(q[7:50], delta[7:50]))
        assert whole[3] == bound(q[3], delta[3])
