"""`idm`: how many training records, added to the data, flip a prediction of naive Bayes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robustq
from robustq import (
    GenerativeTreeClassifier,
    NaiveBayesClassifier,
    RobustqError,
    UnsupportedError,
    indicators,
)

from .idm import count, flips_with, joint, records_to_flip, zaffalon_dominates


def draw_table(rng, missing=0.0, features=3, classes=3):
    """Make a table in which every value occurs, its labels, and the sizes of its features."""
    sizes = [int(size) for size in rng.integers(1, 4, features)]
    table = [
        [int(rng.integers(size)) if rng.random() >= missing else None for size in sizes]
        for _ in range(int(rng.integers(2, 20)))
    ]
    for i, size in enumerate(sizes):
        table += [
            [int(rng.integers(s)) if j != i else value for j, s in enumerate(sizes)]
            for value in range(size)
        ]
    labels = [int(label) for label in rng.integers(0, classes, len(table))]
    labels[:classes] = range(classes)
    return table, labels, sizes


def fit(table, labels, smoothing, **options):
    columns = list(range(len(table[0])))
    model = NaiveBayesClassifier(smoothing=smoothing, categorical=columns, **options)
    return model.fit(np.array(table, dtype=object), labels)


def draw_row(rng, sizes, missing=0.0):
    return [int(rng.integers(size)) if rng.random() >= missing else None for size in sizes]


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    smoothing=st.sampled_from([0.0, 0.01, 0.5, 1.0, 3.0]),
    missing=st.sampled_from([0.0, 0.2]),
    features=st.integers(1, 4),
    classes=st.integers(2, 3),
)
def test_the_number_of_records_is_that_of_a_plain_search(
    seed, smoothing, missing, features, classes
):
    rng = np.random.default_rng(seed)
    table, labels, sizes = draw_table(rng, missing, features, classes)
    row = draw_row(rng, sizes, missing)
    model = fit(table, labels, smoothing)
    found = model.assess(np.array([row], dtype=object), "idm")
    best, given = int(found.prediction[0]), found.robustness["idm"][0]
    each = [joint(table, labels, c, row, sizes, smoothing) for c in range(classes)]
    if each[best] <= sorted(each)[-2] * (1.0 + 1e-12):
        assert given == 0.0
        return
    wanted = {
        c: records_to_flip(table, labels, best, c, row, sizes, smoothing)
        for c in range(classes)
        if c != best
    }
    assert given == pytest.approx(min(wanted.values()), rel=1e-9, abs=1e-12)
    tipping = int(found.tipping_class["idm"][0])
    assert wanted[tipping] == pytest.approx(min(wanted.values()), rel=1e-9, abs=1e-12)
    for size in (0.5, 1.0, 2.0):
        maximal = model.credal_predict(np.array([row], dtype=object), "idm", size)[0]
        assert maximal.tolist() == [
            not any(
                each[a] > each[b] * (1 + 1e-12)
                and records_to_flip(table, labels, a, b, row, sizes, smoothing) > size * (1 + 1e-9)
                for a in range(classes)
                if a != b
            )
            for b in range(classes)
        ]


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_no_insertion_of_records_does_it_with_fewer(smoothing):
    rng = np.random.default_rng(7)
    outcomes = set()
    for _ in range(40):
        table, labels, sizes = draw_table(rng, features=2, classes=2)
        row = draw_row(rng, sizes)
        model = fit(table, labels, smoothing)
        (size,), (best,) = (
            model.robustness(np.array([row], dtype=object), "idm"),
            model.predict(np.array([row], dtype=object)),
        )
        flips = [
            flips_with(table, labels, int(best), row, sizes, smoothing, 2, k) for k in (1, 2, 3)
        ]
        outcomes.update(flips)
        fewest = flips.index(True) + 1 if True in flips else 4
        # Of whole records: t like f, the others of the predicted class and different.
        assert size <= fewest or fewest == 4
        assert fewest == next((k for k in (1, 2, 3) if _flips(model, row, k, best)), 4)
        if size > 3:
            assert not any(flips)
    assert outcomes == {True, False}


def _flips(model, row, number, best):
    """Tell whether t records like f and number − t others, all different, flip it, for some t."""
    records = model.model_.records
    rival = 1 - int(best)
    log = []
    for t in range(number + 1):
        logs = []
        for c, seen, more in ((int(best), 0, number - t), (rival, t, t)):
            p = math.log(max(records.class_probs[c] * records.prior_rows + more, 1e-300))
            for i, code in enumerate(row):
                total = records.totals[i, c]
                if not math.isnan(total):
                    n = records.feature_probs[records.offsets[i] + code * 2 + c] * total
                    p += math.log(max(n + seen, 1e-300)) - math.log(max(total + more, 1e-300))
            logs.append(p)
        log.append(logs[0] - logs[1])
    return min(log) <= 1e-12


def test_dominance_is_zaffalons():
    rng = np.random.default_rng(3)
    several = 0
    for _ in range(60):
        table, labels, sizes = draw_table(rng, features=4, classes=3)
        sizes_seen = [i for i, size in enumerate(sizes) if size > 1]
        row = draw_row(rng, sizes)
        model = fit(table, labels, 0.0)
        maximal = model.credal_predict(np.array([row], dtype=object), "idm", 0.7)[0]
        counts = [count(table, labels, c, row) for c in range(3)]
        beaten = [
            any(
                zaffalon_dominates(
                    counts[a][0],
                    counts[b][0],
                    [counts[a][1][i][0] for i in sizes_seen],
                    [counts[b][1][i][0] for i in sizes_seen],
                    0.7,
                )
                for a in range(3)
                if a != b
            )
            for b in range(3)
        ]
        assert maximal.tolist() == [not one for one in beaten]
        several += maximal.sum() > 1
    assert 0 < several < 60


def test_a_tie_at_a_whole_number_of_records_counts_as_caught_up():
    model = fit([[0], [0], [0], [0], [0]], ["a", "a", "a", "b", "b"], 0.0)
    row = np.array([[0]], dtype=object)
    assert model.robustness(row, "idm").tolist() == [1.0]
    assert model.credal_predict(row, "idm", 1.0).tolist() == [[True, True]]
    assert model.credal_predict(row, "idm", 0.999).tolist() == [[True, False]]
    assert not model.is_robust(row, "idm", 1.0)[0]


def test_degenerate_models():
    one = NaiveBayesClassifier().fit([["x"], ["y"]], ["a", "a"])
    assert one.robustness([["x"]], "idm").tolist() == [math.inf]
    assert one.credal_predict([["x"]], "idm", 5.0).tolist() == [[True]]
    tied = fit([[0], [0]], ["a", "b"], 0.0)
    assert tied.robustness(np.array([[0]], dtype=object), "idm").tolist() == [0.0]
    # Never seen with any class: nobody dominates.
    zero = fit([[0, 1], [1, 0]], ["a", "b"], 0.0)
    impossible = np.array([[0, 0]], dtype=object)
    assert zero.robustness(impossible, "idm").tolist() == [0.0]
    assert zero.credal_predict(impossible, "idm", 0.0).all()
    # A feature that was never seen with the predicted class backs nothing.
    unbacked = fit([[None, 0], [None, 0], [0, 1], [1, 1]], ["a", "a", "b", "b"], 0.0)
    assert unbacked.robustness(np.array([[0, 0]], dtype=object), "idm").tolist() == [0.0]


def test_a_class_without_records_can_catch_up():
    model = NaiveBayesClassifier(smoothing=0.0, categorical=[0, 1])
    X = np.array([[0, 1], [0, 1], [1, 1], [0, 0]], dtype=object)
    model.partial_fit(X, ["a"] * 4, classes=["a", "b"])
    sizes = model.robustness(X, "idm")
    wanted = [records_to_flip(X.tolist(), [0] * 4, 0, 1, row, (2, 2), 0.0) for row in X.tolist()]
    assert sizes == pytest.approx(wanted, rel=1e-9)


def test_a_given_prior_stays_as_it_is():
    X = np.array([[0], [0], [1], [1], [1], [0]], dtype=object)
    y = ["a", "a", "a", "b", "b", "b"]
    fixed = fit(X.tolist(), y, 0.0, class_prior=[0.5, 0.5])
    (size,) = fixed.robustness(np.array([[0]], dtype=object), "idm")
    # 2/(3+u) = (1+t)/(3+t) with the smallest u + t.
    sums = [u + (6 - (3 + u)) / (1 + u) for u in np.linspace(0.0, 3.0, 100_001)]
    assert size == pytest.approx(min(sums), rel=1e-8)
    alone = NaiveBayesClassifier(class_prior=[0.9, 0.1]).fit([["x"], ["y"]], ["a", "b"])
    assert alone.robustness([[None]], "idm").tolist() == [math.inf]


def test_it_goes_wherever_a_ball_goes(tmp_path):
    rng = np.random.default_rng(0)
    table, labels, _ = draw_table(rng, features=3)
    X = np.array(table, dtype=object)
    model = fit(table, labels, 1.0)
    sizes = robustq.robustness(model, X, "idm")
    model.save(tmp_path / "model.robustq")
    assert np.array_equal(robustq.load(tmp_path / "model.robustq").robustness(X, "idm"), sizes)
    restored = NaiveBayesClassifier.from_dict(model.to_dict())
    assert np.array_equal(restored.robustness(X, "idm"), sizes)
    assert np.array_equal(indicators.compute(model, X, ["r_idm"])["r_idm"], sizes)
    assert "training records" in indicators.get("r_idm").meaning
    assert np.array_equal(robustq.is_robust(model, X, "idm", 1.0), sizes > 1.0)
    assert model.assess(X, ["tv", "idm"]).to_pandas().columns.tolist()[-2:] == [
        "robustness_idm",
        "tipping_class_idm",
    ]


def test_what_has_no_counts_is_refused_with_the_reason():
    X, y = [["x"], ["y"], ["x"]], ["a", "b", "a"]
    document = NaiveBayesClassifier().fit(X, y).to_dict()
    del document["rows"]
    with pytest.raises(UnsupportedError, match="no counts"):
        NaiveBayesClassifier.from_dict(document).robustness(X, "idm")
    with pytest.raises(UnsupportedError, match="epsilon_rows"):
        GenerativeTreeClassifier().fit(X, y).robustness(X, "idm")
    with pytest.raises(RobustqError, match="leave parts and sizes out"):
        NaiveBayesClassifier().fit(X, y).robustness(X, "idm", parts="all")
    with pytest.raises(RobustqError, match="smoothing"):
        NaiveBayesClassifier.from_dict({**document, "smoothing": -1.0})
