"""log p(c, f) of a row, alone or among others."""

import numpy as np
import pytest

from robustq import NaiveBayesClassifier
from robustq.core._joint_kernels import FEW


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
