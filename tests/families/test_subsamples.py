"""Forests whose trees grow on some of the rows."""

import numpy as np
import pytest

from robustq import GenerativeForestClassifier, GenerativeTreeClassifier, InputError
from robustq.exceptions import RobustqError


def make(rows=600, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    X = np.column_stack([y ^ (rng.random(rows) < 0.2), rng.integers(0, 4, rows), rng.normal(y)])
    return X, y


def fit(X, y, weights=None, **options):
    return GenerativeForestClassifier(5, random_state=0, **options).fit(X, y, weights)


def test_a_small_sample_makes_small_trees_that_still_predict():
    X, y = make()
    few, all_rows = fit(X, y, max_samples=60), fit(X, y)
    assert len(few.model_.nodes) < len(all_rows.model_.nodes)
    assert few.score(*make(seed=1)) > 0.75


def test_shrunk_leaves_learn_from_all_rows():
    X, y = make()
    assert all(row["rows"] == len(y) for row in _roots(fit(X, y, max_samples=60)))
    additive = fit(X, y, max_samples=60, smoothing=0.1)
    assert all(row["rows"] == 60 for row in _roots(additive))


def _roots(model):
    return [tree["nodes"][0] for tree in model.to_dict()["trees"]]


def test_a_share_is_so_many_rows():
    X, y = make()
    assert fit(X, y, max_samples=0.1).to_dict() == fit(X, y, max_samples=60).to_dict()


@pytest.mark.parametrize("most", [600, 10_000, 1.0])
def test_as_many_rows_as_there_are_is_a_bootstrap_sample(most):
    X, y = make()
    assert fit(X, y, max_samples=most).to_dict() == fit(X, y).to_dict()


def test_threads_change_nothing():
    X, y = make()
    one, two = (fit(X, y, max_samples=100, n_jobs=jobs) for jobs in (1, 2))
    assert one.to_dict() == two.to_dict()


def test_rows_of_no_weight_are_never_drawn():
    X, y = make()
    weights = np.r_[np.ones(300), np.zeros(300)]
    rest = fit(X[:300], y[:300], max_samples=100)
    assert fit(X, y, weights, max_samples=100).to_dict() == rest.to_dict()


def test_distributions_sum_to_one():
    X, y = make()
    proba = fit(X, y, max_samples=50).predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)


@pytest.mark.parametrize("most", [0, -1, 1.5, 0.0, "many", True])
def test_what_is_no_count_is_refused(most):
    with pytest.raises(RobustqError, match="max_samples"):
        fit(*make(), max_samples=most)


def test_nothing_is_drawn_without_bootstrap():
    with pytest.raises(InputError, match="bootstrap=False"):
        fit(*make(), max_samples=10, bootstrap=False)
    assert "max_samples" not in GenerativeTreeClassifier().get_params()
