"""Training with rows held out."""

import numpy as np
import pytest

from robustq import GenerativeForestClassifier, InputError, NaiveBayesClassifier, indicators
from robustq.selection.gates import Promise
from robustq.selection.training import split_rows, train

RNG = np.random.default_rng(1)
X = np.stack([RNG.integers(0, 4, 300), RNG.integers(0, 3, 300)], axis=1)
Y = np.where(X.sum(axis=1) + RNG.normal(0, 1.0, 300) > 2.5, "b", "a")


def test_rows_are_split_at_random_and_all_are_used():
    learned, held = split_rows(100, 0.3, 5)
    assert len(held) == 30
    assert sorted([*learned, *held]) == list(range(100))
    assert split_rows(100, 0.3, 5)[1].tolist() == held.tolist()
    assert split_rows(100, 0.3, 6)[1].tolist() != held.tolist()
    assert len(split_rows(2, 0.9, 0)[0]) == 1


def test_the_model_learns_from_all_rows_and_a_copy_is_tried():
    model, found = train(NaiveBayesClassifier(), X, Y, holdout=0.4, seed=2)
    known = NaiveBayesClassifier().fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), known.predict_proba(X))
    learned, held = split_rows(300, 0.4, 2)
    copy = NaiveBayesClassifier().fit(X[learned], Y[learned])
    assert found.rows == 120
    assert found.accuracy == copy.score(X[held], Y[held])
    assert list(found.au_arc) == ["r_epsilon", "r_tv", "r_chi2", "u_max"]
    told = model.training_["holdout"]
    assert told == {"rows": 120, "accuracy": found.accuracy, "au_arc": found.au_arc}
    assert "gate" not in model.training_


def test_forests_are_also_tried_with_everything_perturbed():
    forest = GenerativeForestClassifier(3, random_state=0)
    _, found = train(forest, X, Y, holdout=0.4, seed=2)
    assert list(found.au_arc)[3:5] == ["r_epsilon_all", "r_tv_all"]


def test_a_gate_holds_for_the_model_it_was_calibrated_for():
    model, _ = train(
        NaiveBayesClassifier(), X, Y, holdout=0.5, seed=2, promise=Promise(0.3, 0.8),
        neighbourhood="tv_rows",
    )  # fmt: skip
    learned, held = split_rows(300, 0.5, 2)
    assert model.training_["rows"] == len(learned)
    gate = model.training_["gate"]
    assert gate["indicators"] == ["r_tv_rows"]
    assert gate["rows"] == len(held)
    score = indicators.compute(model, X[held], "r_tv_rows")["r_tv_rows"]
    accepted = score > gate["above"]
    assert accepted.mean() == gate["accepted"]
    assert (model.predict(X[held]) != Y[held])[accepted].mean() < gate["bound"] <= 0.3


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (300, {"holdout": 1.0}, "holdout must lie between 0 and 1, got 1.0"),
        (300, {"holdout": None, "promise": Promise(0.1, 0.9)}, "max_error needs rows"),
        (1, {"holdout": 0.2}, "a single row"),
    ],
)
def test_what_cannot_be_done_is_said(rows, options, message):
    with pytest.raises(InputError, match=message):
        train(NaiveBayesClassifier(), X[:rows], Y[:rows], seed=0, **options)
