"""log p(c, f) of a row, alone or among others."""

import numpy as np
import pytest
from scipy.special import softmax

from robustq import BayesianNetworkClassifier, NaiveBayesClassifier
from robustq.core._joint_kernels import FEW, ROWS
from robustq.core._posterior_kernels import condition
from robustq.core.quantified import Ranking


@pytest.mark.parametrize("classes", [2, 5, 9])
def test_rows_have_the_same_digits_among_few_and_among_many(classes):
    rng = np.random.default_rng(classes)
    X = rng.integers(0, 6, (2 * FEW + 5, 7)).astype(object)
    X[rng.random(X.shape) < 0.1] = None
    y = rng.integers(0, classes, len(X))
    model = NaiveBayesClassifier(smoothing=1e-30).fit(X[:200], y[:200])
    whole = model.predict_joint_log_proba(X)
    parts = [
        model.predict_joint_log_proba(X[start : start + 300]) for start in range(0, len(X), 300)
    ]
    assert np.concatenate(parts).tobytes() == whole.tobytes()


@pytest.mark.parametrize("classes", [1, 2, 5, 9])
@pytest.mark.parametrize("structure", ["nbc", "tan", "kdb", "aode"])
def test_rows_have_the_same_digits_beside_others_with_gaps(structure, classes):
    rng = np.random.default_rng(classes)
    X = rng.integers(0, 4, (4 * ROWS + 3, 9)).astype(object)
    y = np.arange(len(X)) % classes
    model = (
        NaiveBayesClassifier(1e-3)
        if structure == "nbc"
        else BayesianNetworkClassifier(structure, smoothing=1e-3, max_parents=3)
    ).fit(X, y)
    whole = model.predict_joint_log_proba(X)
    # One gap in each of what is looked at at once: there all rows are read cell by cell.
    X[:: ROWS // 2, 3] = None
    beside = np.delete(np.arange(len(X)), slice(None, None, ROWS // 2))
    assert model.predict_joint_log_proba(X)[beside].tobytes() == whole[beside].tobytes()


@pytest.mark.parametrize("smoothing", [1.0, 1e-200])
@pytest.mark.parametrize("classes", [1, 2, 3, 9, 17])
@pytest.mark.parametrize("structure", ["nbc", "tan"])
def test_who_leads_is_found_on_the_way_as_it_is_by_itself(structure, classes, smoothing):
    rng = np.random.default_rng(classes)
    X = rng.integers(0, 5, (3 * ROWS + 5, 8)).astype(object)
    X[::7, 2] = None
    y = np.arange(len(X)) % classes
    model = (
        NaiveBayesClassifier(smoothing)
        if structure == "nbc"
        else BayesianNetworkClassifier("tan", smoothing=smoothing)
    ).fit(X[:60], y[:60])
    rows = model.encoding_.encode(model._arrange(X))
    reading = model.model_.read(rows)
    found = reading.ranking or Ranking.of(reading.joint)
    alone = Ranking.of(reading.joint)
    for one, other in zip(found.arrays, alone.arrays, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    for one, other in zip(found.arrays[:2], alone.arrays[:2], strict=True):
        assert one.tolist() == other.tolist()


@pytest.mark.parametrize("rows", [0, 1, 700])
@pytest.mark.parametrize("classes", [1, 2, 3, 30])
def test_probabilities_are_shares_of_the_joint(classes, rows):
    rng = np.random.default_rng(classes)
    joint = rng.normal(-400.0, 300.0, (rows, classes))
    joint[rng.random(joint.shape) < 0.1] = -np.inf
    joint[::5] = -np.inf
    joint[1::5] = -2000.0
    found = np.empty(joint.shape)
    condition(joint, found)
    possible = np.isfinite(joint).any(axis=1, keepdims=True)
    plain = softmax(np.where(possible, joint, 0.0), axis=1)
    np.testing.assert_allclose(found, plain, rtol=1e-13)
