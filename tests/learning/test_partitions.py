"""What is learned from parts of a table is what is learned from all of it, to the bit."""

import warnings

import hypothesis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from robustq import BayesianNetworkClassifier, NaiveBayesClassifier
from robustq.exceptions import TableWarning
from robustq.families.parted import fit_parts
from robustq.learning import folds
from robustq.learning.partitions import LocalPartitions, Reader
from robustq.tables import order_statistics

MAKE = {
    "naive Bayes": lambda: NaiveBayesClassifier(),
    "naive Bayes, smoothed": lambda: NaiveBayesClassifier(0.5, n_bins=4),
    "naive": lambda: BayesianNetworkClassifier("naive", "cv"),
    "tan": lambda: BayesianNetworkClassifier("tan", n_bins=5),
    "fan": lambda: BayesianNetworkClassifier("fan", "cv", n_bins=3),
    "kdb": lambda: BayesianNetworkClassifier("kdb", n_bins=4),
    "aode": lambda: BayesianNetworkClassifier("aode", "cv", n_bins=3),
    "edges": lambda: BayesianNetworkClassifier([("colour", "size"), ("size", "amount")]),
}


@pytest.fixture(autouse=True)
def large(monkeypatch):
    """Take every table for one of many rows."""
    monkeypatch.setattr(folds, "FEW", 0)
    monkeypatch.setattr(order_statistics, "FEW_NUMBERS", 8)
    monkeypatch.setattr(order_statistics, "MOST_BUCKETS", 1 << 10)


def make_table(seed, rows=150):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 3, rows)
    colour = np.array(["red", "green", "blue", "grey"])[(label + rng.integers(0, 2, rows)) % 4]
    amount = np.round(rng.normal(label, 1.0), 2)
    table = {
        "colour": pa.array(colour, mask=rng.random(rows) < 0.1),
        "size": pa.array(rng.integers(0, 5, rows)),
        "amount": pa.array(amount, mask=rng.random(rows) < 0.2),
        "count": pa.array(rng.integers(0, 500, rows)),
        "flag": pa.array(rng.random(rows) < 0.4, mask=rng.random(rows) < 0.1),
        "kind": pa.array(colour[::-1].tolist()).dictionary_encode(),
        "empty": pa.nulls(rows, pa.float64()),
        "weight": pa.array(rng.integers(0, 4, rows)),
        "y": pa.array(np.array(["a", "b", "c"])[label]),
    }
    return pa.table(table)


def part(table, cuts):
    bounds = [0, *sorted(cuts), table.num_rows]
    return [table.slice(a, b - a) for a, b in zip(bounds, bounds[1:], strict=False)]


def learn(estimator, tables, **options):
    parts = LocalPartitions([lambda table=table: iter([table]) for table in tables])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        return fit_parts(estimator, parts, Reader("y", **options)).estimator


def learn_at_once(estimator, table, weight=None):
    X = table.drop_columns(["y", "weight"] if weight else ["y"])
    y = pd.Series(table["y"].to_pylist(), name="y")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        return estimator.fit(X, y, table[weight].to_numpy() if weight else None)


def assert_same(parted, whole):
    assert parted.to_dict() == whole.to_dict()
    assert parted.encoding_.verdicts == whole.encoding_.verdicts
    assert parted.smoothing_ == whole.smoothing_
    assert parted.training_ == whole.training_


@pytest.mark.parametrize("name", MAKE)
@hypothesis.settings(max_examples=10, deadline=None, derandomize=True)
@hypothesis.given(
    seed=st.integers(0, 50),
    cuts=st.lists(st.integers(0, 150), max_size=6),
    weight=st.sampled_from([None, "weight"]),
)
def test_any_parts_give_the_same_model(name, seed, cuts, weight):
    table = make_table(seed)
    whole = learn_at_once(MAKE[name](), table, weight)
    assert_same(learn(MAKE[name](), part(table, cuts), weight=weight), whole)
