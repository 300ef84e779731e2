"""Sets of leaves find the leaves that walks find."""

import numpy as np
import pytest

from robustq import GenerativeForestClassifier
from robustq.families.forest import traces
from robustq.families.forest.leaf_sets import LeafSets
from robustq.tables import Table


@pytest.mark.parametrize("sizes", [(3, 5, 2, 7, 4, 9), (6, 2), (4,)])
def test_sets_lead_where_walks_lead(sizes, monkeypatch):
    rng = np.random.default_rng(0)
    X = np.stack([rng.integers(0, size, 2000) for size in sizes], axis=1)
    y = (X.sum(axis=1) + rng.integers(0, 3, 2000)) % 3
    model = GenerativeForestClassifier(5, max_depth=None, random_state=0).fit(X, y)
    rows = model.encoding_.encode(Table.read(X))
    by_sets = traces.follow(model.model_, rows)
    monkeypatch.setattr(traces, "MANY", len(X) + 1)
    np.testing.assert_array_equal(by_sets.leaves, traces.follow(model.model_, rows).leaves)
    assert model.model_.leaf_sets is not None


# So many that the number of their values together does not fit into 64 bits.
@pytest.mark.parametrize("features", [20, 100, 130])
def test_many_features_have_no_sets(features):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 4, (200, features))
    model = GenerativeForestClassifier(2, random_state=0).fit(X, rng.integers(0, 2, 200))
    assert LeafSets.of(model.model_) is None
