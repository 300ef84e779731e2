"""One gate for the command, model files and the classifier that abstains."""

import json

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

from robustq import (
    GenerativeForestClassifier,
    InputError,
    NaiveBayesClassifier,
    SelectiveClassifier,
)
from robustq.selection.choosing import choose
from robustq.selection.gates import Gate, Promise, make_gate
from robustq.selection.thresholds import calibrate, list_promises
from robustq.selection.training import split_rows, train

RNG = np.random.default_rng(7)
SCORES = RNG.random(400)
CORRECT = RNG.random(400) < 0.6 + 0.4 * SCORES
PROMISE = Promise(0.25, 0.9)


def make(correct, scores, promise):
    candidates = [(name,) for name in scores]
    return make_gate(correct, scores, promise, candidates, np.random.RandomState(0))


def test_it_accepts_what_lies_above():
    scores = {"r_tv": np.array([-np.inf, 0.0, 0.5, 1.0, np.inf])}
    assert Gate.by("r_tv", 0.5).accepts(scores).tolist() == [False, False, False, True, True]
    at_least = Gate.by("r_tv", 0.5, inclusive=True)
    assert at_least.accepts(scores).tolist() == [False, False, True, True, True]
    assert Gate.by("r_tv", -np.inf, inclusive=True).accepts(scores).all()
    assert not Gate.by("r_tv", np.inf).accepts(scores).any()


def test_what_is_calibrated_keeps_its_promise_on_the_rows_themselves():
    promise = Promise(0.17, 0.9)
    gate, found, _, choice = make(CORRECT, {"u_marg": SCORES}, promise)
    accepted = gate.accepts({"u_marg": SCORES})
    assert 0 < accepted.mean() < 1
    assert gate.accepted == accepted.mean()
    assert (~CORRECT[accepted]).mean() < gate.bound == promise.max_error
    assert gate.ranking.name == "u_marg"
    assert gate.threshold in found.thresholds.tolist()
    # Where there is nothing to choose, no row is spent on it.
    assert (found.rows, choice.rows) == (400, 0)


@pytest.mark.parametrize("max_error", [0.001, 0.25, 0.9])
@pytest.mark.parametrize("names", [("r_tv_all",), ("r_tv_all", "u_max")])
def test_a_file_gives_the_same_gate_back(max_error, names):
    promise = Promise(max_error, 0.9)
    scores = {"r_tv_all": np.where(SCORES > 0.9, np.inf, SCORES), "u_max": RNG.random(400)}
    made = make_gate(CORRECT, scores, promise, [names, names], np.random.RandomState(0))
    told = json.loads(json.dumps(made.to_dict(promise), allow_nan=False))
    assert told["indicators"] == list(names)
    assert (told["rows"], told["choice"]["rows"]) == (300, 100)
    again = Gate.from_dict(told)
    assert again.ranking.neighbourhoods == ["tv_all"]
    np.testing.assert_array_equal(again.accepts(scores), made.gate.accepts(scores))
    assert (again.bound, again.accepted) == (made.gate.bound, made.gate.accepted)


def test_gates_of_older_files_are_read():
    gate = Gate.from_dict({"ball": "chi2", "above": 0.25, "accepted": 0.5})
    assert (gate.ranking.neighbourhoods, gate.threshold) == (["chi2"], 0.25)
    assert gate.accepts({"r_chi2": np.array([0.25, 0.3])}).tolist() == [False, True]
    closed = Gate.from_dict({"ball": "tv", "above": None, "bound": None})
    assert not closed.accepts({"r_tv": np.array([1.0, np.inf])}).any()


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"indicators": 3},
        {"indicators": ["r_tv", "u_max"], "above": 1.0},
        {"indicators": ["r_tv", "u_max"], "levels": [["x"], [1.0]], "above": 1.0},
        {"indicators": ["r_tv", "u_max"], "levels": [[1.0], []], "above": 1.0},
        {"indicators": ["r_tv"], "above": "high"},
        {"ball": "payload:X", "above": 1.0},
    ],
)
def test_a_gate_that_is_none_is_refused(told):
    with pytest.raises(InputError, match=r"damaged|unknown indicator"):
        Gate.from_dict(told)


@pytest.mark.parametrize("given", [(0.0, 0.9), (1.0, 0.9), (0.1, 1.0), ("x", 0.9), (0.1, None)])
def test_promises_nobody_can_make_are_refused(given):
    with pytest.raises(InputError, match="must lie between 0 and 1"):
        Promise(*given)


def test_the_command_and_the_classifier_have_the_same_gate():
    X = np.stack([RNG.integers(0, 4, 600), RNG.integers(0, 3, 600)], axis=1)
    y = np.where(X.sum(axis=1) + RNG.normal(0, 1.0, 600) > 2.5, "b", "a")
    trained, _ = train(
        NaiveBayesClassifier(), X, y, holdout=0.5, seed=3, promise=PROMISE, neighbourhood="chi2"
    )
    selective = SelectiveClassifier(
        NaiveBayesClassifier(), "r_chi2", PROMISE.max_error, PROMISE.confidence, random_state=3
    ).fit(X, y)
    told = trained.training_["gate"]
    assert told["above"] == pytest.approx(max(selective.threshold_, -2.0))
    assert told["bound"] == selective.error_bound_
    assert told["accepted"] == selective.coverage_
    accepted = Gate.from_dict(told).accepts({"r_chi2": trained.robustness(X, "chi2")})
    np.testing.assert_array_equal(accepted, selective.accepts(X))


def test_the_command_and_the_classifier_choose_alike():
    X = np.stack([RNG.integers(0, 4, 600), RNG.integers(0, 3, 600)], axis=1)
    y = np.where(X.sum(axis=1) + RNG.normal(0, 1.0, 600) > 2.5, "b", "a")
    forest = GenerativeForestClassifier(5, random_state=0)
    trained, _ = train(forest, X, y, holdout=0.5, seed=3, promise=PROMISE)
    told = trained.training_["gate"]
    areas = told["choice"]["au_arc"]
    assert list(areas) == [
        *("u_max", "r_tv", "r_tv_all", "hybrid(r_tv, u_max)", "hybrid(r_tv_all, u_max)")
    ]
    assert areas[Gate.from_dict(told).ranking.name] == pytest.approx(max(areas.values()))
    assert (told["rows"], told["choice"]["rows"]) == (225, 75)
    frozen = SelectiveClassifier(
        FrozenEstimator(trained), "auto", PROMISE.max_error, PROMISE.confidence, random_state=3
    )
    held = split_rows(600, 0.5, 3)[1]
    frozen.fit(X[held], y[held])
    assert frozen.choice_.areas == pytest.approx(areas)
    assert frozen.coverage_ == told["accepted"]
    shares = dict(told["promises"])
    assert shares[0.25] == told["accepted"]
    assert frozen.promises_.accepted.tolist() == list(shares.values())


def test_a_choice_is_the_one_that_ranks_best():
    noise = RNG.random(400)
    scores = {"u_max": noise, "r_tv": SCORES}
    made = make(CORRECT, scores, PROMISE)
    assert made.gate.ranking.name == "r_tv"
    both = choose(CORRECT, scores, [("u_max",), ("r_tv", "u_max")])
    assert both.ranking.name == "hybrid(r_tv, u_max)"
    assert both.areas["hybrid(r_tv, u_max)"] > both.areas["u_max"]
    # Of equals the first, and without rows too.
    assert choose(CORRECT, scores, [("r_tv",), ("r_tv",)]).ranking.name == "r_tv"
    nothing = {name: score[:0] for name, score in scores.items()}
    assert choose(CORRECT[:0], nothing, [("u_max",), ("r_tv",)]).ranking.name == "u_max"


def test_ranks_are_places_among_the_rows_they_were_chosen_on():
    scores = {"a": np.array([0.0, 1.0, 1.0, np.inf]), "b": np.array([4.0, 3.0, 2.0, 1.0])}
    ranking = choose(np.array([True, False, True, True]), scores, [("a", "b")]).ranking
    found = ranking.score({"a": np.array([-1.0, 0.0, np.inf]), "b": np.array([9.0, 4.0, 0.0])})
    # The levels repeat each value: the middle of those places.
    assert found[0] == found[1]
    assert np.all((found > 0.8) & (found < 1.2))
    more = ranking.score({"a": np.array([0.0, 1.0, 5.0, np.inf]), "b": np.full(4, 2.5)})
    assert np.all(np.diff(more) >= 0)
    assert more[-1] > more[1] > more[0]


def test_a_calibration_is_shown_threshold_by_threshold():
    found = calibrate(np.arange(40) > 4, np.arange(40.0), 0.2, 0.9)
    lines = repr(found).splitlines()
    assert lines[0] == "Calibration on 40 predictions"
    assert lines[1].split("  ")[-2:] == ["error at most", "passed"]
    assert lines[-1].split()[:3] == ["-inf", "40", "5"]
    assert len(lines) == 2 + len(found.thresholds)
    page = found._repr_html_()
    assert "<td>-inf</td><td>40</td><td>5</td>" in page
    assert page.count("<tr>") == 1 + len(found.thresholds)
    promises = list_promises(np.arange(40) > 4, np.arange(40.0), 0.9, [0.01, 0.3])
    assert repr(promises).splitlines()[-1].split() == ["0.3", "1"]
    assert promises.accepted[0] == 0.0
