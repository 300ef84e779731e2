import math

import numpy as np
import pytest

from robustq import DomainError, InputError
from robustq.perturbations import Domain, get


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("epsilon", "[0, 1]"),
        ("tv", "[0, 1]"),
        ("chi2", "[0, ∞)"),
        ("pari_mutuel", "[0, ∞)"),
        ("odds_ratio", "[0, 1)"),
        ("kl", "[0, ∞)"),
    ],
)
def test_each_ball_has_its_domain(name, text):
    assert str(get(name).domain) == text


def test_membership_respects_the_ends():
    closed, half_open = Domain(2, closed=True), Domain(2, closed=False)
    assert 0 in closed
    assert 2 in closed
    assert 2 not in half_open
    assert -1e-300 not in closed
    assert np.nan not in closed  # noqa: PLW0177 (asking is the point)
    assert math.inf not in Domain()


def test_check_names_the_first_size_outside():
    with pytest.raises(DomainError, match=r"delta must lie in \[0, 2\], got 3\.0"):
        Domain(2, closed=True).check(np.array([[0.0, 1.0], [3.0, -1.0]]))


@pytest.mark.parametrize("end", [0, -1, float("nan"), "x", None, 1j])
def test_a_domain_ends_above_zero(end):
    with pytest.raises(InputError, match="ends above 0"):
        Domain(end)


def test_membership_is_asked_of_numbers_only():
    with pytest.raises(InputError, match="delta must be a number"):
        "x" in Domain()  # noqa: B015


def test_infinity_is_never_a_size():
    with pytest.raises(InputError, match="closed=False"):
        Domain(float("inf"), closed=True)


def test_the_largest_size_is_the_last_float_inside():
    assert Domain(2, closed=True).largest == 2.0
    assert Domain(2, closed=False).largest == math.nextafter(2.0, 0.0)
    assert Domain().largest == np.finfo(float).max
    for domain in (Domain(2, closed=True), Domain(2, closed=False), Domain()):
        assert domain.largest in domain
