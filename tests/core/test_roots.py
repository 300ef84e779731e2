import numpy as np
import pytest

from robustq.core.roots import smallest_roots
from robustq.perturbations import Domain

ROOTS = np.array([1e-300, 1e-20, 3e-7, 0.01, 0.3, 0.5, 0.99, 1.0])


def decreasing(shape):
    """Return margins that reach 0 at ROOTS, in several shapes."""

    shapes = {
        "straight": lambda x: 1 - x,
        "steep": lambda x: np.expm1(50 * (1 - np.minimum(x, 1e6))),
        "step": lambda x: np.where(x < 1, 1.0, -1.0),
        "flat": lambda x: np.where(x < 1, 1.0, 0.0),
        "late": lambda x: 1 - np.minimum(x, 1e6) ** 9,
    }
    return lambda rows, delta: shapes[shape](np.minimum(delta, 1e3) / ROOTS[rows])


@pytest.mark.parametrize("shape", ["straight", "steep", "step", "flat", "late"])
@pytest.mark.parametrize("domain", [Domain(1, closed=True), Domain()])
def test_roots_of_any_size_are_found(shape, domain):
    found = smallest_roots(decreasing(shape), domain, len(ROOTS))
    np.testing.assert_allclose(found, ROOTS, rtol=1e-10)


def test_what_is_returned_is_no_longer_robust():
    margin = decreasing("straight")
    found = smallest_roots(margin, Domain(1, closed=True), len(ROOTS))
    assert np.all(margin(np.arange(len(ROOTS)), found) <= 0)


def test_no_root_is_infinite():
    found = smallest_roots(lambda _, delta: np.ones_like(delta), Domain(), 3)
    assert found.tolist() == [np.inf] * 3


def test_an_open_end_is_no_root():
    found = smallest_roots(lambda _, delta: 1 - delta, Domain(1, closed=False), 1)
    assert found.tolist() == [np.inf]


def test_large_roots_are_found_too():
    found = smallest_roots(lambda _, delta: 1e200 - delta, Domain(), 1)
    np.testing.assert_allclose(found, 1e200, rtol=1e-10)


def test_no_rows_give_no_roots():
    assert smallest_roots(lambda _, delta: delta, Domain(), 0).shape == (0,)


def test_what_any_size_flips_has_root_zero():
    found = smallest_roots(lambda _, delta: np.where(delta > 0, -1.0, 1.0), Domain(), 2)
    assert found.tolist() == [0.0, 0.0]


def test_only_roots_before_a_size_are_found():
    before = np.array([0.2, 0.4, 0.0])
    found = smallest_roots(lambda _, delta: 0.3 - delta, Domain(1, closed=True), 3, before)
    np.testing.assert_allclose(found, [np.inf, 0.3, np.inf], rtol=1e-10)
