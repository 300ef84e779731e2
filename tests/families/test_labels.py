"""Weights of rows: what counts, and what is refused."""

import numpy as np
import pytest

from robustq import GenerativeTreeClassifier, InputError, NaiveBayesClassifier

X, Y = [["a"], ["b"], ["b"], ["a"]], [0, 1, 1, 1]
every_family = pytest.mark.parametrize("family", [NaiveBayesClassifier, GenerativeTreeClassifier])


@every_family
@pytest.mark.filterwarnings("ignore::robustq.RigidModelWarning")  # four rows make no forest
def test_one_weight_is_that_of_every_row(family):
    one, each = (family().fit(X, Y, sample_weight=w).to_dict() for w in (3.0, [3.0] * 4))
    assert one == each
    assert one != family().fit(X, Y).to_dict()  # smoothing counts less


@every_family
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (["much"] * 4, "sample_weight must be numbers, got list"),
        (np.ones(3), r"sample_weight.shape == \(3,\), expected \(4,\): one for each row"),
        (np.ones((4, 1)), r"sample_weight.shape == \(4, 1\)"),
        ([1.0, 1.0, -1.0, 1.0], "sample_weight must be at least 0 and at most"),
        ([1.0, 1.0, np.nan, 1.0], "sample_weight must be at least 0"),
        ([1.0, 1.0, np.inf, 1.0], "sample_weight must be at least 0"),
        (np.zeros(4), "sample_weight is zero for every row"),
    ],
)
def test_weights_that_are_none_are_refused(family, weight, message):
    with pytest.raises(InputError, match=message):
        family().fit(X, Y, sample_weight=weight)
