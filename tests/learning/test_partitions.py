"""What is learned from parts of a table is what is learned from all of it, to the bit."""

import itertools
import warnings
from functools import partial

import hypothesis
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import strategies as st

from robustq import (
    BayesianNetworkClassifier,
    GenerativeForestClassifier,
    NaiveBayesClassifier,
)
from robustq.exceptions import InputError, RigidModelWarning, TableWarning, UnsupportedError
from robustq.families.parted import fit_parts
from robustq.learning import folds
from robustq.learning.partitions import LocalPartitions, Reader
from robustq.tables import order_statistics
from robustq.tables.distinct import Different

MAKE = {
    "naive Bayes": NaiveBayesClassifier,
    "naive Bayes, smoothed": lambda: NaiveBayesClassifier(0.5, n_bins=4),
    "naive": lambda: BayesianNetworkClassifier("naive", "cv"),
    "tan": lambda: BayesianNetworkClassifier("tan", n_bins=5),
    "fan": lambda: BayesianNetworkClassifier("fan", "cv", n_bins=3),
    "kdb": lambda: BayesianNetworkClassifier("kdb", n_bins=4),
    "aode": lambda: BayesianNetworkClassifier("aode", "cv", n_bins=3),
    "forest": lambda: GenerativeForestClassifier(4, max_samples=60, random_state=1),
    "forest, shares": lambda: GenerativeForestClassifier(3, max_samples=0.5, random_state=2),
    "forest, additive": lambda: GenerativeForestClassifier(
        3, max_samples=70, smoothing=0.1, random_state=1
    ),
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
    return [table.slice(a, b - a) for a, b in itertools.pairwise(bounds)]


def learn(estimator, tables, **options):
    parts = LocalPartitions([partial(iter, [table]) for table in tables])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        warnings.simplefilter("ignore", RigidModelWarning)
        return fit_parts(estimator, parts, Reader("y", **options)).estimator


def learn_at_once(estimator, table, weight=None):
    X = table.drop_columns(["y", "weight"] if weight else ["y"])
    y = pd.Series(table["y"].to_pylist(), name="y")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        warnings.simplefilter("ignore", RigidModelWarning)
        return estimator.fit(X, y, table[weight].to_numpy() if weight else None)


def assert_same(parted, whole):
    assert parted.to_dict() == whole.to_dict()
    assert parted.encoding_.verdicts == whole.encoding_.verdicts
    for name in ("smoothing_", "shrinkage_"):
        assert getattr(parted, name, None) == getattr(whole, name, None)
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


def test_a_forest_says_what_it_needs():
    parts = part(make_table(0), [50])
    with pytest.raises(UnsupportedError, match="max_samples=100_000"):
        learn(GenerativeForestClassifier(2), parts)


def test_parts_may_hold_other_types_and_categories():
    """A part may be whole numbers, or have no value, where another has fractions or text."""
    rng = np.random.default_rng(3)
    first = {"n": pa.array(rng.integers(0, 9, 60)), "t": pa.nulls(60), "c": pa.array(["u"] * 60)}
    second = {
        "n": pa.array(rng.normal(size=60)),
        "t": pa.array(rng.choice(["x", "z"], 60)),
        "c": pa.array(rng.choice(["v", "w"], 60)).dictionary_encode(),
    }
    labels = [pa.array(rng.choice(["a", "b"], 60)) for _ in range(2)]
    tables = [pa.table({**t, "y": y}) for t, y in zip((first, second), labels, strict=True)]
    plain = tables[1].set_column(2, "c", tables[1]["c"].cast(pa.string()))
    whole = pa.concat_tables([tables[0], plain], promote_options="permissive")
    for make in (NaiveBayesClassifier, lambda: BayesianNetworkClassifier("tan")):
        assert_same(learn(make(), tables), learn_at_once(make(), whole))


def test_a_column_that_a_part_lacks_is_missing_there():
    table = make_table(4)
    first, second = part(table, [70])
    whole = pa.concat_tables([first.drop_columns("size"), second], promote_options="default")
    parted = learn(NaiveBayesClassifier(), [first.drop_columns("size"), second])
    assert_same(parted, learn_at_once(NaiveBayesClassifier(), whole))


def test_types_that_do_not_fit_are_refused():
    tables = [pa.table({"a": a, "y": ["p", "q"]}) for a in (["x", "z"], [1.5, 2.5])]
    with pytest.raises(InputError, match="column 'a' is string and double"):
        learn(NaiveBayesClassifier(), tables)


def test_rows_without_a_label_are_left_out():
    table = make_table(5)
    gaps = pa.array(
        [None if i % 7 == 0 else y for i, y in enumerate(table["y"].to_pylist())], pa.string()
    )
    holed = table.set_column(table.column_names.index("y"), "y", gaps)
    kept = holed.filter(pc.is_valid(holed["y"]))
    parted = learn(NaiveBayesClassifier(), part(holed, [10, 11, 90]))
    assert_same(parted, learn_at_once(NaiveBayesClassifier(), kept))


@pytest.mark.parametrize(
    "options",
    [
        {"class_weight": {"a": 3.0, "b": 0.0}},
        {"categorical": ["count"], "numeric": ["size"]},
        {"class_prior": [0.2, 0.3, 0.5]},
    ],
)
def test_parameters_mean_the_same(options):
    table = make_table(6)
    whole = learn_at_once(NaiveBayesClassifier(**options), table)
    assert_same(learn(NaiveBayesClassifier(**options), part(table, [40, 41, 100])), whole)


def test_rows_that_change_between_two_looks_are_noticed():
    table, looks = make_table(7), []

    def read():
        looks.append(1)
        return iter([table.slice(0, 150 - len(looks))])

    with pytest.raises(InputError, match="had other rows when it was looked at first"):
        fit_parts(NaiveBayesClassifier(1.0), LocalPartitions([read]), Reader("y"))


def test_identifiers_are_remarked_on_alike():
    table = make_table(8)
    ids = table.append_column("id", pa.array(range(150))).append_column(
        "told", table["y"].combine_chunks()
    )
    whole = learn_at_once(NaiveBayesClassifier(), ids)
    assert set(whole.encoding_.remarks) >= {"id", "told"}
    assert_same(learn(NaiveBayesClassifier(), part(ids, [33, 34, 120])), whole)


def test_very_many_different_numbers_are_estimated_alike():
    rng = np.random.default_rng(0)
    numbers = rng.permutation(20_000)
    whole = Different.of(numbers, 1000)
    assert len(whole.values) <= 1000
    assert whole.count == pytest.approx(20_000, rel=0.15)
    parts = [Different.of(piece, 1000) for piece in np.split(numbers, [5, 9000, 9001])]
    joined = parts[0] + parts[1] + parts[2] + parts[3]
    assert joined.level == whole.level
    np.testing.assert_array_equal(joined.values, whole.values)
