import pytest

from robustq import InputError, RobustqError, UnknownNameError
from robustq.perturbations import (
    ChiSquared,
    Perturbation,
    TotalVariation,
    get,
    names,
    register,
    registry,
)


@pytest.fixture(autouse=True)
def fresh_registry(monkeypatch):
    monkeypatch.setattr(registry, "_BALLS", dict(registry._BALLS))


class Euclid(Perturbation):
    def lower_expectation(self, q, f, delta):
        return get("tv").lower_expectation(q, f, delta)


def test_the_built_in_names_are_these():
    assert names() == ("epsilon", "tv", "chi2", "pari_mutuel", "odds_ratio", "kl")


def test_get_returns_the_ball_of_a_name():
    assert isinstance(get("chi2"), ChiSquared)
    assert repr(get("tv")) == "TotalVariation()"


def test_get_returns_a_ball_as_it_is():
    ball = TotalVariation()
    assert get(ball) is ball


def test_an_unknown_name_lists_the_known_and_the_nearest():
    with pytest.raises(UnknownNameError) as caught:
        get("chi_2")
    assert str(caught.value) == (
        "unknown perturbation 'chi_2': the known ones are epsilon, tv, chi2, pari_mutuel, "
        "odds_ratio, kl; did you mean 'chi2'?"
    )
    assert isinstance(caught.value, RobustqError)


def test_a_name_like_no_other_gets_no_hint():
    with pytest.raises(UnknownNameError, match=r"odds_ratio, kl$"):
        get("wasserstein")


def test_get_says_what_else_it_does_not_take():
    with pytest.raises(InputError, match=r"not its class: ChiSquared\(\)"):
        get(ChiSquared)
    with pytest.raises(InputError, match="a name or a Perturbation object, got 3"):
        get(3)


def test_a_registered_ball_is_found_by_its_name():
    assert register(Euclid) is Euclid
    assert isinstance(get("euclid"), Euclid)
    assert names()[-1] == "euclid"


def test_registering_the_same_class_again_is_fine():
    register(Euclid)
    register(Euclid)
    assert names().count("euclid") == 1


def test_a_name_that_is_taken_is_refused():
    class Other(Perturbation):
        name = "tv"

        def lower_expectation(self, q, f, delta):
            return get("tv").lower_expectation(q, f, delta)

    with pytest.raises(InputError, match=r"the name 'tv' belongs to .*TotalVariation"):
        register(Other)


def test_what_cannot_be_made_by_its_name_is_refused():
    class Sized(Euclid):
        def __init__(self, size):
            self.size = size

    for ball in (Sized, Perturbation):
        with pytest.raises(InputError, match=r"\(\) must make a perturbation without arguments"):
            register(ball)


def test_names_and_domains_are_checked_when_a_ball_is_defined():
    with pytest.raises(InputError, match=r"Odd\.name must be text, got 3"):
        type("Odd", (Euclid,), {"name": 3})
    with pytest.raises(InputError, match=r"Odd\.domain must be a Domain, got \(0, 1\)"):
        type("Odd", (Euclid,), {"domain": (0, 1)})


@pytest.mark.parametrize("ending", ["_all", "_joint", "_posterior", "_rows"])
def test_endings_that_say_what_is_perturbed_are_refused(ending):
    with pytest.raises(InputError) as caught:
        register(type("Mine", (Euclid,), {"name": "mine" + ending}))
    assert str(caught.value) == (
        f"the name 'mine{ending}' ends in '{ending}', which after the name of a ball says "
        f"what is perturbed, and by how much (tv{ending}): give Mine another name"
    )
    assert "mine" + ending not in names()


def test_the_imprecise_dirichlet_model_keeps_its_name():
    ball = type("Mine", (Euclid,), {"name": "idm"})
    with pytest.raises(InputError, match=r"'idm' stands for the imprecise Dirichlet model"):
        register(ball)


def test_names_that_only_hold_such_an_ending_are_fine():
    for name in ("all_rows_first", "joint", "rows", "idm_like"):
        register(type("Mine", (Euclid,), {"name": name}))
        assert name in names()


@pytest.mark.parametrize("thing", [TotalVariation(), "tv", int])
def test_only_perturbations_can_be_registered(thing):
    with pytest.raises(InputError, match="register takes a subclass of Perturbation"):
        register(thing)


def test_a_ball_is_named_after_its_class_unless_it_says_otherwise():
    class Wider(TotalVariation):
        pass

    assert Wider.name == "wider"
    assert TotalVariation.name == "tv"
