"""Changes of values that flip a prediction: all of them, none besides, the fewest first."""

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

from robustq import (
    BayesianNetworkClassifier,
    GenerativeForestClassifier,
    InputError,
    NaiveBayesClassifier,
)
from robustq.explaining import counterfactuals

RNG = np.random.default_rng(3)
VALUES: dict[str, Any] = {"a": ["p", "q", "r"], "b": ["s", "t"], "c": [0, 1, 2, 3]}
X = pd.DataFrame({name: RNG.choice(values, 200) for name, values in VALUES.items()})
Y = np.where(((X.a == "p") & (X.c > 1)) ^ (RNG.random(200) < 0.2), "yes", "no")
EDGES = [("a", "class"), ("class", "b"), ("class", "c"), ("a", "c")]
MODELS = {
    "naive Bayes": NaiveBayesClassifier(1.0).fit(X, Y),
    "forest": GenerativeForestClassifier(7, random_state=0).fit(X, Y),
    **{name: BayesianNetworkClassifier(name).fit(X, Y) for name in ("tan", "fan", "kdb", "aode")},
    "own edges": BayesianNetworkClassifier(EDGES).fit(X, Y),
}
MODELS["circuit"] = MODELS["tan"].to_circuit()
every_model = pytest.mark.parametrize("name", MODELS)


def brute_force(model, row, most):
    """Return all changes of at most so many cells that flip, and how robust the result is."""
    (before,) = model.predict(row)
    found = {}
    for size in range(1, most + 1):
        for columns in itertools.combinations(VALUES, size):
            for values in itertools.product(*(VALUES[column] for column in columns)):
                changes = dict(zip(columns, values, strict=True))
                if any(row[column].iloc[0] == value for column, value in changes.items()):
                    continue
                changed = row.assign(**changes)
                if model.predict(changed)[0] != before:
                    found[tuple(sorted(changes.items()))] = model.robustness(changed, "tv")[0]
    return found


@every_model
def test_one_and_two_cells_are_tried_exhaustively(name):
    model, total = MODELS[name], 0
    for row in (0, 7, 30):
        one = X.iloc[[row]]
        expected = brute_force(model, one, 2)
        found = model.counterfactuals(one, limit=None)
        assert {tuple(sorted(c.changes.items())): c.robustness for c in found} == expected
        order = [(len(c.changes), -c.robustness) for c in found]
        assert order == sorted(order)
        assert found.exhaustive
        total += len(found)
    assert total > 5


@every_model
def test_a_limit_leaves_the_best(name):
    row = X.iloc[[30]]
    every = MODELS[name].counterfactuals(row, "chi2", limit=None)
    some = MODELS[name].counterfactuals(row, "chi2", limit=3)
    assert [c.to_dict() for c in some] == [c.to_dict() for c in every[:3]]


@every_model
def test_columns_can_be_held_or_named(name):
    row = X.iloc[[30]]
    every = MODELS[name].counterfactuals(row, limit=None)
    held = MODELS[name].counterfactuals(row, limit=None, keep=["a"])
    named = MODELS[name].counterfactuals(row, limit=None, change=["b", 2])
    expected = [c.to_dict() for c in every if "a" not in c.changes]
    assert [c.to_dict() for c in held] == expected
    assert [c.to_dict() for c in named] == expected
    assert len(expected) < len(every)
    assert not MODELS[name].counterfactuals(row, change=[]).found


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"keep": ["d"]}, "keep names 'd', which is no column of the model: it has a, b, c"),
        ({"change": "a"}, "change must be a list of columns, got 'a'"),
        ({"change": ["a"], "keep": ["a"]}, "'a' is in both change and keep"),
        ({"max_changes": 0}, "max_changes must be at least 1"),
        ({"limit": 0}, "limit must be at least 1, or None"),
        ({"change": [True]}, "change names True"),
    ],
)
def test_what_makes_no_sense_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        MODELS["naive Bayes"].counterfactuals(X.iloc[[0]], **given)
    with pytest.raises(InputError, match="one row, got 2"):
        MODELS["naive Bayes"].counterfactuals(X.iloc[:2])


@every_model
def test_missing_cells_can_be_filled(name):
    row = X.iloc[[30]].assign(b=None)
    (before,) = MODELS[name].predict(row)
    for one in MODELS[name].counterfactuals(row, limit=5):
        assert MODELS[name].predict(row.assign(**one.changes))[0] == one.prediction != before


def test_more_than_two_cells_are_searched_and_the_result_says_so():
    rng = np.random.default_rng(0)
    table = rng.choice(["x", "y"], (300, 5))
    labels = (table == "x").sum(axis=1) >= 3
    model = NaiveBayesClassifier(1.0).fit(table, labels)
    row = np.array([["x"] * 5])
    assert not model.counterfactuals(row).found
    found = model.counterfactuals(row, max_changes=3)
    assert len(found) == 10
    assert not found.exhaustive
    assert "Changes of 3 cells were searched for" in repr(found)
    assert all(len(one.changes) == 3 for one in found)
    assert set(found[0].changes) <= set(range(5))


@pytest.mark.parametrize("estimator", [NaiveBayesClassifier, GenerativeForestClassifier])
def test_numbers_change_among_what_the_model_knows(estimator):
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"x": rng.normal(size=400), "z": rng.choice(["a", "b"], 400)})
    labels = np.where(table.x + (table.z == "a") > 0.5, "high", "low")
    model = estimator(random_state=0).fit(table, labels)
    row = pd.DataFrame({"x": [-1.0], "z": ["b"]})
    found = model.counterfactuals(row, limit=None, change=["x"])
    assert len(found) > 1
    for one in found:
        changed = row.assign(**one.changes)
        assert model.predict(changed)[0] == one.prediction == "high"
        assert model.robustness(changed, "tv")[0] == one.robustness


def test_too_many_pairs_are_searched_and_the_result_says_so(monkeypatch):
    monkeypatch.setattr(counterfactuals, "MOST_PAIRS", 3)
    found = MODELS["naive Bayes"].counterfactuals(X.iloc[[30]], limit=None)
    assert not found.exhaustive
    for one in found:
        changed = X.iloc[[30]].assign(**one.changes)
        assert MODELS["naive Bayes"].predict(changed)[0] == one.prediction
