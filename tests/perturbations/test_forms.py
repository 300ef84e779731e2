"""What a ball tells kernels about itself, and that a wrong word is found out."""

import threading

import numpy as np
import pytest

from robustq import DomainError, InputError, UnsupportedError
from robustq.perturbations import (
    ChiSquared,
    Domain,
    Epsilon,
    Form,
    Perturbation,
    TotalVariation,
    forms,
    get,
)
from robustq.perturbations.forms import check_form

from .cases import BALLS, IDS

every_ball = pytest.mark.parametrize("ball", BALLS, ids=IDS)
FORMED = [ball for ball in BALLS if ball.name != "kl"]
every_form = pytest.mark.parametrize("ball", FORMED, ids=[ball.name for ball in FORMED])

Q = np.array([[0.5, 0.3, 0.2], [0.9, 0.1, 0.0], [1e-9, 1e-3, 1 - 1e-3 - 1e-9]])
ROWS = np.array([[40.0], [3.5], [0.0]])


@pytest.fixture(autouse=True)
def nothing_checked(monkeypatch):
    monkeypatch.setattr(forms, "_CHECKED", {})


def sizes(ball):
    return np.array([0.0, 1e-9, 0.01, 0.2, 0.6, 0.999] + [7.0] * (ball.domain.end == np.inf))


@every_form
def test_the_form_gives_the_bounds(ball):
    form = ball.form(Q)
    for delta in sizes(ball):
        x = ball.x_of(delta)
        lower, upper = ball.lower_probability(Q, delta), ball.upper_probability(Q, delta)
        np.testing.assert_allclose(form.lower(Q, x), lower, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(form.upper(Q, x), upper, rtol=1e-12, atol=1e-15)


@every_form
def test_the_form_by_rows_gives_the_bounds_at_local_sizes(ball):
    form = ball.form(Q, np.broadcast_to(ROWS, Q.shape))
    for records in (0.0, 0.3, 2.0, 50.0):
        x, local = ball.x_of(records, by_rows=True), ball.local_size(records, ROWS)
        lower, upper = ball.lower_probability(Q, local), ball.upper_probability(Q, local)
        # Without rows the size is the largest, which for the odds ratio is not quite 1.
        for some, digits in ((slice(2), 1e-14), (slice(2, 3), 1e-6)):
            np.testing.assert_allclose(form.lower(Q, x)[some], lower[some], atol=digits)
            np.testing.assert_allclose(form.upper(Q, x)[some], upper[some], atol=digits)


@every_form
@pytest.mark.parametrize("rows", [None, ROWS])
def test_each_array_of_a_form_has_the_shape_of_the_probabilities(ball, rows):
    for p in (Q, Q[0].tolist()):
        form = ball.form(p, rows if rows is None or p is Q else [1.0, 2.0, 3.0])
        assert {array.shape for array in form} == {np.shape(p)}
        assert all(np.isfinite(array).all() for array in form)


def test_kl_has_no_form():
    assert get("kl").form(Q) is None
    assert get("kl").expectation == "kl"


def test_what_the_built_in_balls_say_of_themselves():
    said = {ball.name: (ball.together, ball.expectation, ball.keeps_zero) for ball in BALLS}
    assert said == {
        "epsilon": (True, "epsilon", False),
        "tv": (True, "tv", False),
        "chi2": (False, "chi2", True),
        "pari_mutuel": (True, "pari_mutuel", True),
        "odds_ratio": (False, "odds_ratio", True),
        "kl": (False, "kl", True),
    }


def test_a_compiled_expectation_is_not_inherited():
    class Own(ChiSquared):
        def _lower_expectation(self, q, f, delta):
            return super()._lower_expectation(q, f, 2 * delta)

    assert Own().expectation is None


@every_ball
@pytest.mark.parametrize("by_rows", [False, True])
def test_sizes_and_their_numbers_are_inverse(ball, by_rows):
    delta = sizes(ball)
    x = ball.x_of(delta, by_rows)
    assert x[0] == 0
    assert np.all(np.diff(x) > 0)
    np.testing.assert_allclose(ball.delta_of(x, by_rows), delta, rtol=1e-13)


@every_ball
def test_an_infinite_number_has_no_size(ball):
    assert ball.delta_of(np.inf) == np.inf
    assert ball.delta_of(np.inf, by_rows=True) == np.inf


@pytest.mark.parametrize("name", ["epsilon", "odds_ratio"])
def test_huge_numbers_have_the_size_one(name):
    ball = get(name)
    np.testing.assert_array_equal(ball.delta_of([1e17, 1e308]), [1.0, 1.0])
    np.testing.assert_array_equal(ball.x_of([1.0, np.inf]), [np.inf, np.inf])


def test_chi2_of_a_finite_number_is_finite():
    assert get("chi2").delta_of(1e200) == np.finfo(float).max


LOCAL = {
    "epsilon": (2.0 / 12.0, 1.0),
    "tv": (0.2, 1.0),
    "chi2": (0.2, np.finfo(float).max),
    "pari_mutuel": (0.2, np.finfo(float).max),
    "odds_ratio": (2.0 / 12.0, 1.0 - 2.0**-53),
    "kl": (0.2, np.finfo(float).max),
}


@every_ball
def test_local_sizes_count_records(ball):
    usual, end = LOCAL[ball.name]
    assert ball.local_size(2.0, 10.0) == pytest.approx(usual, rel=1e-15)
    assert ball.local_size(2.0, 0.0) == end
    assert ball.local_size(np.inf, 10.0) == end
    np.testing.assert_array_equal(ball.local_size(0.0, [0.0, 1.0, 10.0]), [0, 0, 0])
    assert ball.local_size([[1.0], [2.0]], [3.0, 0.0, 1e300]).shape == (2, 3)
    assert np.all(ball.domain.contains(ball.local_size(np.geomspace(1e-300, 1e300, 99), 7.0)))


@pytest.mark.parametrize("name", ["epsilon", "odds_ratio"])
def test_hidden_records_never_outweigh_all_that_were_seen(name):
    assert get(name).local_size(1e300, 10.0) < 1.0


@every_ball
def test_local_sizes_of_nonsense_are_refused(ball):
    with pytest.raises(InputError, match=r"rows must be 0 or more, got -1\.0"):
        ball.local_size(1.0, -1.0)
    with pytest.raises(InputError, match=r"delta must be 0 or more, got nan"):
        ball.local_size(np.nan, 1.0)
    with pytest.raises(InputError, match=r"to broadcast, got \(2,\) for rows, \(3,\) for delta"):
        ball.local_size([1.0, 2.0, 3.0], [1.0, 2.0])


def test_the_default_local_size_stays_inside_the_domain():
    class Short(TotalVariation):
        domain = Domain(0.25, closed=False)

    assert Short().local_size(1.0, 2.0) == np.nextafter(0.25, 0)
    with pytest.raises(DomainError):
        Short().lower_probability(0.5, 0.25)


@every_ball
def test_the_built_in_balls_pass_their_check(ball):
    check_form(ball)


class Plain(Perturbation):
    """A TV ball as a user would write it, with nothing but its lower expectation."""

    domain = Domain(1.0, closed=True)
    asked = 0

    def lower_expectation(self, q, f, delta):
        type(self).asked += 1
        return get("tv").lower_expectation(q, f, delta)


def test_a_ball_that_claims_nothing_is_not_asked():
    Plain.asked = 0
    assert Plain().form(Q) is None
    check_form(Plain())
    assert Plain.asked == 0


class Formed(Plain):
    together = True

    def form(self, p, rows=None):
        return get("tv").form(p, rows)


def test_a_right_form_is_asked_once_for_equal_parameters():
    check_form(Formed())
    asked = Formed.asked
    assert asked > 0
    check_form(Formed())
    assert Formed.asked == asked


def test_threads_do_not_check_twice():
    threads = [threading.Thread(target=check_form, args=(Formed(),)) for _ in range(4)]
    Formed.asked = 0
    check_form(Formed())
    once, Formed.asked = Formed.asked, 0
    forms._CHECKED.clear()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Formed.asked == once


def wrong(ball, message):
    for _ in range(2):  # the second time from memory
        with pytest.raises(UnsupportedError, match=message):
            check_form(ball)


def test_a_wrong_form_is_found():
    class Off(Formed):
        def form(self, p, rows=None):
            form = super().form(p, rows)
            return form._replace(rise=1.001 * form.rise)

    wrong(
        Off(),
        r"^Off contradicts itself: for outcome \d of q = \[.*\] and delta = 0\.001, the upper "
        r"bound of form\(p\) is 0\.\d+, and the upper expectation of its indicator is 0\.\d+; "
        r"mend form, x_of, or let form return None",
    )


def test_a_form_that_is_wrong_by_rows_alone_is_found():
    class Off(Formed):
        def form(self, p, rows=None):
            return super().form(p, None if rows is None else 2 * np.asarray(rows))

    wrong(Off(), r"bound of form\(p, rows\) is .* mend form, x_of or local_size")


def test_a_form_without_rows_is_found():
    class Off(Formed):
        def form(self, p):  # type: ignore[override]
            return get("tv").form(p)

    wrong(Off(), r"Off\.form must take \(p, rows=None\): ")


def test_a_form_of_another_shape_is_found():
    class Off(Formed):
        def form(self, p, rows=None):
            return Form(*np.ones(4))

    wrong(Off(), r"Off\.form\(p, rows\)\.fall must give floats of shape \(8, 2\), got shape \(\)")


@pytest.mark.parametrize("name", ["chi2", "odds_ratio", "kl"])
def test_a_ball_that_is_not_together_is_found(name):
    ball = get(name)
    off = type("Off", (type(ball),), {"together": True})()
    wrong(off, r"^Off contradicts itself: .* together = True says they are the same")


def test_a_ball_that_looks_at_outcomes_one_by_one_is_not_together():
    class Fuzz(Perturbation):
        domain = Domain(1.0, closed=True)
        together = True

        def lower_expectation(self, q, f, delta):
            q, f, delta = self.check(q, f, delta)
            plain, uniform = (q * f).sum(axis=-1), f.mean(axis=-1)
            return np.minimum(plain, (1 - delta) * plain + delta * uniform)

    wrong(Fuzz(), "together = True says they are the same")


@pytest.mark.parametrize("name", ["epsilon", "tv"])
def test_a_ball_that_does_not_keep_zeros_is_found(name):
    off = type("Off", (type(get(name)),), {"keeps_zero": True})()
    wrong(off, r"keeps_zero = True says they are the same: give keeps_zero = False")


def test_a_missing_inverse_is_found():
    class Off(Epsilon):
        def delta_of(self, x, by_rows=False):
            return x

    wrong(Off(), r"Off\.delta_of is not the inverse of x_of: .* give both, or neither")


def test_a_number_that_does_not_grow_is_found():
    class Off(Formed):
        def x_of(self, delta, by_rows=False):
            return 0.0 * np.asarray(delta)

    wrong(Off(), r"Off\.x_of must grow from 0")


def test_a_local_size_outside_the_domain_is_found():
    class Off(Formed):
        def local_size(self, delta, rows):
            return np.asarray(delta) * np.ones_like(rows)

    wrong(Off(), r"Off\.local_size\(7, rows=.*\) is 7, outside the domain \[0, 1\]")


def test_a_ball_that_does_not_broadcast_is_found():
    class Off(Formed):
        def lower_expectation(self, q, f, delta):
            return super().lower_expectation(q, f, delta).ravel()

    wrong(Off(), r"Off\.lower_expectation must give floats of shape")


class Sized(Formed):
    def __init__(self, width, table=None):
        self.width = width
        self.table = table


def test_equal_parameters_make_equal_keys():
    assert get("tv").key == TotalVariation().key
    assert get("tv").key != get("epsilon").key
    assert Sized(0.5).key == Sized(0.5).key
    assert Sized(0.5).key != Sized(0.6).key
    assert hash(Sized(0.5).key) == hash(Sized(0.5).key)


def test_arrays_and_collections_count_by_their_contents():
    for make in (lambda: np.arange(3.0), lambda: [1, (2, {3})], lambda: {"a": np.ones(2)}):
        assert Sized(1, make()).key == Sized(1, make()).key
    assert Sized(1, np.arange(3.0)).key != Sized(1, np.arange(3)).key
    assert Sized(1, np.ones((2, 3))).key != Sized(1, np.ones((3, 2))).key
    assert Sized(1, [1, 2]).key != Sized(1, (1, 2)).key


def test_a_key_follows_its_ball():
    ball = Sized(0.5)
    before = ball.key
    ball.width = 0.6
    assert ball.key != before


def test_what_cannot_be_hashed_is_equal_to_itself_alone():
    for part in (bytearray(3), np.array([None, "x"], dtype=object)):
        ball = Sized(1, part)
        assert ball.key == ball.key
        assert ball.key != Sized(1, part).key
        assert len({ball.key, ball.key}) == 1


def test_slots_are_parameters_too():
    class Slotted(Formed):
        __slots__ = ("width",)

        def __init__(self, width):
            self.width = width

    assert Slotted(1).key == Slotted(1).key
    assert Slotted(1).key != Slotted(2).key
