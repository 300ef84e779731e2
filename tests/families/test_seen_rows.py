"""A model file knows, without holding them, which rows the model has learned from."""

import numpy as np
import pyarrow as pa
import pytest

from robustq import GenerativeForestClassifier, NaiveBayesClassifier
from robustq.families.seen_rows import SIZE, find_seen, sketch_rows


def make_rows(rows, seed):
    rng = np.random.RandomState(seed)
    table = pa.table({"f": rng.choice(list("abc"), rows), "x": rng.normal(size=rows)})
    return table, rng.choice(["no", "yes"], rows)


def fit(rows=400):
    X, y = make_rows(rows, 0)
    return GenerativeForestClassifier(2, random_state=0).fit(X, y), X, y


def test_all_rows_are_known_again_in_any_order():
    model, X, y = fit()
    sketch = sketch_rows(model, X, y)
    order = np.random.RandomState(1).permutation(len(y))
    assert find_seen(model, X.take(order), y[order], sketch) == (400, 400)


def test_other_rows_are_not_known():
    model, X, y = fit()
    other, labels = make_rows(300, 1)
    assert find_seen(model, other, labels, sketch_rows(model, X, y)) == (300, 0)


def test_a_row_with_another_label_is_another_row():
    model, X, y = fit()
    flipped = np.where(y == "no", "yes", "no")
    assert find_seen(model, X, flipped, sketch_rows(model, X, y)) == (400, 0)


def test_a_share_of_many_rows_is_estimated():
    model, X, y = fit(20_000)
    sketch = sketch_rows(model, X, y)
    assert len(sketch) < 6000
    other, labels = make_rows(20_000, 1)
    mixed = pa.concat_tables([X.slice(0, 10_000), other.slice(0, 10_000)])
    seen = find_seen(model, mixed, np.concatenate([y[:10_000], labels[:10_000]]), sketch)
    assert 300 < seen.looked_at < 800
    assert abs(seen.found / seen.looked_at - 0.5) < 0.1


def test_gaps_and_bins_are_compared_as_the_model_reads_them():
    X = [["a", 1.0], [None, 2.5], ["b", None], ["a", 3.5]]
    model = NaiveBayesClassifier(1.0, n_bins=2).fit(X, [0, 1, 0, 1])
    sketch = sketch_rows(model, X, np.array([0, 1, 0, 1]))
    assert find_seen(
        model, [["a", 1.0], [None, 2.5], ["b", None]], np.array([0, 1, 0]), sketch
    ) == (
        3,
        3,
    )
    assert find_seen(model, [["b", 3.5]], np.array([0]), sketch) == (1, 0)


@pytest.mark.parametrize(
    "sketch", [None, 7, [], "", "é", "AAAA", "not base64!", "A" * 32 * SIZE, {"a": 1}, "====", True]
)
def test_what_is_no_sketch_tells_nothing(sketch):
    model, X, y = fit()
    assert find_seen(model, X, y, sketch) is None
