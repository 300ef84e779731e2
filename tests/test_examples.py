"""The examples run as they stand, and what they compute is right."""

import runpy
import subprocess
import sys
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

from robustq.perturbations import Perturbation, get, registry

from .perturbations.cases import random_cases

EXAMPLES = Path(__file__).parents[1] / "examples"
ELSEWHERE = {"mlflow_model.py"}  # tests/engines/test_mlflow.py runs it: MLflow itself warns
PATHS = sorted(path for path in EXAMPLES.glob("*.py") if path.name not in ELSEWHERE)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_every_example_runs(path):
    command = [sys.executable, "-W", "error", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.fixture
def hellinger(monkeypatch) -> Perturbation:
    monkeypatch.setattr(registry, "_BALLS", dict(registry._BALLS))
    runpy.run_path(str(EXAMPLES / "custom_ball.py"))
    return get("hellinger")


def test_the_hellinger_ball_agrees_with_a_convex_solver(hellinger):
    # Not at the ends: there the solver has no room to move, or nothing to hold on to.
    cases = [case for case in random_cases(hellinger, 200, seed=11) if 1e-3 < case[2] < 1]
    assert len(cases) > 80
    for q, f, delta in cases:
        p = cp.Variable(len(q), nonneg=True)
        overlap = np.sqrt(q) @ cp.sqrt(p)
        problem = cp.Problem(cp.Minimize(f @ p), [cp.sum(p) == 1, overlap >= 1 - delta])
        problem.solve(solver=cp.CLARABEL)
        got = hellinger.lower_expectation(q, f, delta)
        assert got == pytest.approx(problem.value, abs=2e-6), (q.tolist(), f.tolist(), delta)


def test_the_hellinger_ball_ends_with_everything(hellinger):
    assert hellinger.lower_expectation([0.7, 0.3, 0.0], [2, 1, 0], 1.0) == 0
    assert hellinger.lower_expectation([0.7, 0.3, 0.0], [2, 1, 0], 0.0) == pytest.approx(1.7)


def test_the_hellinger_minimiser_lies_in_the_ball(hellinger):
    for q, f, delta in random_cases(hellinger, 300, seed=12):
        p = hellinger.minimising(q, f, delta)
        assert p.sum() == pytest.approx(1, abs=1e-12)
        assert 1 - np.sqrt(p * q).sum() <= delta + 1e-12


def test_bounds_follow_from_the_lower_expectation_alone(hellinger):
    # Two outcomes: √(p q) + √((1−p)(1−q)) = 1 − δ in closed form, by the half angle.
    q, delta = np.array([0.1, 0.5, 0.9]), 0.05
    angle, turn = np.arcsin(np.sqrt(q)), np.arccos(1 - delta)
    lower = np.sin(np.maximum(angle - turn, 0)) ** 2
    upper = np.sin(np.minimum(angle + turn, np.pi / 2)) ** 2
    np.testing.assert_allclose(hellinger.lower_probability(q, delta), lower, atol=1e-12)
    np.testing.assert_allclose(hellinger.upper_probability(q, delta), upper, atol=1e-12)
