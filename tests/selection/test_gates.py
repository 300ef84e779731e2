"""One gate for the command, model files and the classifier that abstains."""

import numpy as np
import pytest

from robustq import InputError, NaiveBayesClassifier, SelectiveClassifier
from robustq.selection.gates import Gate, Promise, calibrate_gate
from robustq.selection.thresholds import calibrate
from robustq.selection.training import train

RNG = np.random.default_rng(7)
SCORES = RNG.random(400)
CORRECT = RNG.random(400) < 0.6 + 0.4 * SCORES
PROMISE = Promise(0.25, 0.9)


def test_it_accepts_what_lies_above():
    scores = np.array([-np.inf, 0.0, 0.5, 1.0, np.inf])
    assert Gate("r_tv", 0.5).accepts(scores).tolist() == [False, False, False, True, True]
    at_least = Gate("r_tv", 0.5, inclusive=True)
    assert at_least.accepts(scores).tolist() == [False, False, True, True, True]
    assert Gate("r_tv", -np.inf, inclusive=True).accepts(scores).all()
    assert not Gate("r_tv", np.inf).accepts(scores).any()


def test_what_is_calibrated_keeps_its_promise_on_the_rows_themselves():
    promise = Promise(0.17, 0.9)
    gate, found = calibrate_gate(CORRECT, {"u_marg": SCORES}, promise)
    accepted = gate.accepts(SCORES)
    assert 0 < accepted.mean() < 1
    assert gate.accepted == accepted.mean()
    assert (~CORRECT[accepted]).mean() < gate.bound <= promise.max_error
    assert gate.indicator == "u_marg"
    assert gate.threshold in found.thresholds.tolist()


@pytest.mark.parametrize("max_error", [0.001, 0.25, 0.9])
def test_a_file_gives_the_same_gate_back(max_error):
    promise = Promise(max_error, 0.9)
    gate, _ = calibrate_gate(CORRECT, {"r_tv_all": SCORES}, promise)
    told = gate.to_dict(promise, len(SCORES))
    assert set(told) == {*("ball", "above", "max_error", "confidence", "bound", "accepted", "rows")}
    assert told["ball"] == "tv_all"
    again = Gate.from_dict(told)
    assert again.robustness == "tv_all"
    np.testing.assert_array_equal(again.accepts(SCORES), gate.accepts(SCORES))
    assert (again.bound, again.accepted) == (gate.bound, gate.accepted)


def test_gates_of_older_files_are_read():
    gate = Gate.from_dict({"ball": "chi2", "above": 0.25, "accepted": 0.5})
    assert (gate.indicator, gate.robustness, gate.threshold) == ("r_chi2", "chi2", 0.25)
    assert gate.accepts(np.array([0.25, 0.3])).tolist() == [False, True]
    closed = Gate.from_dict({"ball": "tv", "above": None, "bound": None})
    assert not closed.accepts(np.array([1.0, np.inf])).any()


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
    assert told["above"] == pytest.approx(max(selective.threshold_, -1.0))
    assert told["bound"] == selective.error_bound_
    assert told["accepted"] == selective.coverage_
    accepted = Gate.from_dict(told).accepts(trained.robustness(X, "chi2"))
    np.testing.assert_array_equal(accepted, selective.accepts(X))


def test_a_calibration_is_shown_threshold_by_threshold():
    found = calibrate(np.arange(40) > 4, np.arange(40.0), 0.9)
    lines = repr(found).splitlines()
    assert lines[0] == "Calibration on 40 predictions"
    assert lines[1].split("  ")[-1] == "error at most"
    assert lines[2].split()[:3] == ["-inf", "40", "5"]
    assert len(lines) == 2 + len(found.thresholds)
    page = found._repr_html_()
    assert "<td>-inf</td><td>40</td><td>5</td>" in page
    assert page.count("<tr>") == 1 + len(found.thresholds)
