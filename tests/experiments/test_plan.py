"""A plan is data, and says what is wrong with it."""

import json
from pathlib import Path

import pytest

from robustq.exceptions import InputError, UnknownNameError
from robustq.experiments import READINGS, Piece, Plan


def test_the_defaults_are_the_papers():
    plan = Plan()
    assert len(plan.data_sets) == 11
    assert len(plan.indicators) == 9
    assert len(plan.pieces()) == 11 * 10 * 2
    assert (plan.test_share, plan.most_tests, plan.trees, plan.bootstrap_models) == (
        0.4,
        500,
        25,
        10,
    )
    assert (plan.nbc_smoothing, plan.leaf_smoothing) == ("cv", 0.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"runs": 0}, "runs must be"),
        ({"runs": 1.5}, "runs must be"),
        ({"seed": -1}, "seed must be"),
        ({"data_sets": ()}, "there must be data sets"),
        ({"data_sets": ("german", "D5")}, "german again"),
        ({"models": ("svm",)}, "unknown model 'svm'; known are nbc, naive_bayes, gef"),
        ({"models": ("gef", "forest")}, "gef again"),
        ({"indicators": ("r_tv", "r_tv")}, "r_tv again"),
        ({"indicators": ("nowhere:Ball",)}, "nowhere:Ball cannot be imported"),
        ({"rates": (0.5, 0.1)}, "ascends"),
        ({"leaf_smoothing": -1.0}, "leaf_smoothing must be"),
        ({"leaf_smoothing": float("nan")}, "leaf_smoothing must be"),
        ({"nbc_smoothing": "guess"}, "nbc_smoothing must be"),
        ({"nbc_smoothing": ()}, "nbc_smoothing must be"),
        ({"nbc_smoothing": (1.0, -1.0)}, "nbc_smoothing must be"),
        ({"own_splits": "no"}, "own_splits must be"),
        ({"reading": "best"}, "unknown reading 'best'; known are paper, nearest"),
        ({"reading": "neares"}, "did you mean 'nearest'"),
        ({"test_share": 1.0}, "test_share must be"),
        ({"max_depth": 0}, "max_depth must be"),
        ({"trees": 0}, "trees must be"),
        ({"bootstrap_models": 0}, "bootstrap_models must be"),
        ({"most_tests": 0}, "most_tests must be"),
    ],
)
def test_wrong_plans_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        Plan(**given)


def test_a_reading_decides_what_is_not_said():
    paper, nearest = Plan(), Plan(reading="nearest")
    assert (paper.nbc_smoothing, paper.leaf_smoothing, paper.own_splits) == ("cv", 0.0, True)
    assert nearest.nbc_smoothing == tuple(float(f"1e{n}") for n in range(-10, 1))
    assert (nearest.leaf_smoothing, nearest.own_splits) == (1e-6, False)
    assert not paper.is_changed
    assert not nearest.is_changed
    changed = Plan(reading="nearest", leaf_smoothing=0.0)
    assert changed.leaf_smoothing == 0.0
    assert changed.is_changed


@pytest.mark.parametrize("reading", READINGS)
def test_a_plan_comes_back_from_plain_data(reading):
    plan = Plan(reading=reading)
    plain = json.loads(json.dumps(plan.to_dict()))
    assert plain["reading"] == reading
    assert Plan(**plain) == plan


def test_readings_have_pieces_of_their_own():
    for model in ("nbc", "gef"):
        piece = Piece("german", model, 0)
        first, second = (Plan(reading=name).fingerprint(piece, "x") for name in READINGS)
        assert first != second


def test_only_the_papers_own_reading_stands_in_the_folder_itself():
    places = {name: reading.place(Path("results")) for name, reading in READINGS.items()}
    assert places == {"paper": Path("results"), "nearest": Path("results/nearest")}


def test_unknown_names_get_a_hint():
    with pytest.raises(UnknownNameError, match="did you mean 'german'"):
        Plan(data_sets=("germany",))
    with pytest.raises(UnknownNameError, match="unknown indicator"):
        Plan(indicators=("r_tvv",))
    with pytest.raises(UnknownNameError, match="did you mean 'r_tv_all'"):
        Plan(indicators=("r_tv_al",))
    with pytest.raises(UnknownNameError, match=r"unknown model 'ngc'.*did you mean 'nbc'"):
        Plan(models=("ngc",))


def test_models_may_be_called_by_any_of_their_names():
    assert Plan().models == ("nbc", "gef")
    assert Plan(models=("generative_forest", "naive_bayes")).models == ("gef", "nbc")
    assert str(Piece("german", "gef", 0)) == "german, generative forest, run 1"


def test_neighbourhoods_are_indicators():
    plan = Plan(indicators=("r_tv", "r_tv_all", "r_epsilon_all_rows"))
    assert plan.indicators == ("r_tv", "r_tv_all", "r_epsilon_all_rows")


def test_a_fingerprint_tells_all_that_decides_the_result():
    plan, piece = Plan(), Piece("german", "nbc", 0)
    known = plan.fingerprint(piece, "content")
    assert known == Plan(runs=3, data_sets=("german",), models=("nbc",)).fingerprint(
        piece, "content"
    )
    # What only forests use does not matter to naive Bayes.
    assert known == Plan(leaf_smoothing=1.0, trees=3, max_depth=2).fingerprint(piece, "content")
    # Nor does what only naive Bayes uses to forests.
    forest = Piece("german", "gef", 0)
    assert plan.fingerprint(forest, "x") == Plan(nbc_smoothing=1.0).fingerprint(forest, "x")
    assert plan.fingerprint(forest, "x") != Plan(trees=3).fingerprint(forest, "x")
    others = [
        plan.fingerprint(piece, "other content"),
        plan.fingerprint(Piece("german", "nbc", 1), "content"),
        plan.fingerprint(Piece("german", "gef", 0), "content"),
        plan.fingerprint(Piece("bank", "nbc", 0), "content"),
        Plan(seed=1).fingerprint(piece, "content"),
        Plan(nbc_smoothing=1.0).fingerprint(piece, "content"),
        Plan(indicators=("r_tv",)).fingerprint(piece, "content"),
        Plan(most_tests=10).fingerprint(piece, "content"),
        Plan(bootstrap_models=3).fingerprint(piece, "content"),
    ]
    assert len({known, *others}) == len(others) + 1
