"""Roots of leads that fall in straight pieces, with kinks next to the root."""

import math

import numpy as np
import pytest
from numba import types

from robustq.core._bracket_kernels import FACTS, KNOTS, KNOWN, UNDECIDED, add_point, advance, start
from robustq.kernels import float_matrix_out, float_vector, inner, kernel

MOST_STEPS = 120


@inner
def lead_at(x, kinks, slopes):
    """Return how far a lead has to fall from x to 1, where it is 0."""
    lead = 0.0
    for piece in range(len(slopes)):
        low = kinks[piece - 1] if piece > 0 else 0.0
        high = kinks[piece] if piece < len(kinks) else math.inf
        part = min(max(high, min(x, 1.0)), max(x, 1.0)) - min(max(low, min(x, 1.0)), max(x, 1.0))
        lead += slopes[piece] * part
    return lead if x < 1.0 else -lead


@kernel(
    types.float64(
        *(float_vector, float_vector, types.float64, types.float64, types.float64),
        *(float_matrix_out, types.Array(types.float64, 1, "C")),
    )
)
def find(kinks, slopes, guess, against, end, knots, facts):
    lead = lead_at(0.0, kinks, slopes)
    x = start(guess, end, lead + against, against, knots, facts)
    for _ in range(MOST_STEPS):
        add_point(knots, x, lead_at(x, kinks, slopes))
        found, x = advance(x, False, facts, knots)
        if found != UNDECIDED:
            return found
    return UNDECIDED


def find_root(kinks, slopes, guess, against, end=1e3):
    room = np.full((len(KNOTS), len(KNOWN)), np.nan), np.empty(len(FACTS))
    return find(np.sort(kinks), slopes, guess, against, end, *room)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_no_kink_next_to_a_root_hides_it(count):
    rng = np.random.default_rng(11)
    for _ in range(3000):
        near = 10.0 ** rng.uniform(-13.0, -0.3, count)
        kinks = 1.0 + near * rng.choice([-1.0, 1.0], count)
        slopes = 10.0 ** rng.uniform(-4.0, 4.0, count + 1)
        found = find_root(kinks, slopes, rng.uniform(0.2, 2.0), 10.0 ** rng.uniform(-6.0, 1.0))
        assert found == pytest.approx(1.0, rel=5e-10, abs=0.0)


def test_many_kinks_hide_no_root():
    rng = np.random.default_rng(12)
    for _ in range(1000):
        kinks = rng.uniform(0.0, 2.0, 300)
        slopes = 10.0 ** rng.uniform(-3.0, 3.0, len(kinks) + 1)
        found = find_root(kinks, slopes, rng.uniform(0.2, 2.0), 10.0 ** rng.uniform(-3.0, 3.0))
        assert found == pytest.approx(1.0, rel=5e-10, abs=0.0)


def test_a_lead_that_falls_no_more_right_before_its_root_is_followed():
    # Up to 1 − 1e-8 it looks as if the root were at 1 − 5e-9.
    kinks, slopes = np.array([1.0 - 1e-8, 1.0 - 1e-9]), np.array([1.0, 0.0, 5.0])
    assert find_root(kinks, slopes, 0.7, 0.5) == pytest.approx(1.0, rel=5e-10, abs=0.0)


def test_a_root_beyond_the_end_is_infinite():
    assert find_root(np.empty(0), np.ones(1), 0.7, 0.5, end=0.999) == np.inf
