"""The example of a ball that gives its form: what it claims is so."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from robustq.perturbations import get, registry
from robustq.perturbations.forms import check_form

from .cases import random_cases

EXAMPLE = Path(__file__).parents[2] / "examples" / "fast_ball.py"
WEIGHTS = [0.0, 0.25, 0.5, 1.0]


@pytest.fixture
def barrier(monkeypatch):
    monkeypatch.setattr(registry, "_BALLS", dict(registry._BALLS))
    runpy.run_path(str(EXAMPLE))
    return type(get("barrier"))


@pytest.mark.parametrize("weight", WEIGHTS)
def test_its_form_passes_the_check(barrier, weight):
    assert barrier(weight).form(np.array([0.5])) is not None
    check_form(barrier(weight))


@pytest.mark.parametrize("weight", WEIGHTS)
def test_its_lower_probability_is_the_formula_it_names(barrier, weight):
    q, delta = np.linspace(0, 1, 11), 0.3
    lower = np.maximum(0, (1 - (1 - weight) * delta) * q - weight * delta)
    np.testing.assert_allclose(barrier(weight).lower_probability(q, delta), lower, atol=1e-15)


@pytest.mark.parametrize(("weight", "name"), [(0.0, "epsilon"), (1.0, "tv")])
def test_its_ends_are_built_in_balls(barrier, weight, name):
    for q, f, delta in random_cases(get(name), 100, seed=4):
        expected = get(name).lower_expectation(q, f, delta)
        assert barrier(weight).lower_expectation(q, f, delta) == pytest.approx(expected, abs=1e-14)


def test_its_minimiser_attains_the_value(barrier):
    ball = barrier(0.4)
    for q, f, delta in random_cases(ball, 100, seed=5):
        p = ball.minimising(q, f, delta)
        assert p.sum() == pytest.approx(1, abs=1e-12)
        assert p @ f == pytest.approx(ball.lower_expectation(q, f, delta), abs=1e-12)


def test_balls_of_different_weights_have_different_keys(barrier):
    assert barrier(0.5).key == barrier(0.5).key
    assert barrier(0.5).key != barrier(0.25).key
