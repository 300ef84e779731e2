"""Counting, estimating and multiplying."""

import numpy as np
import pytest

from robustq.families.naive_bayes.model import log_joint
from robustq.learning.counts import Counts
from robustq.learning.folds import deal

SIZES = (3, 1, 2)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(-1, size, 200) for size in SIZES], axis=1).astype(np.int32)
    return codes, rng.integers(0, 4, 200), rng.uniform(0, 2, 200)


def test_counts_are_sums_of_weights(rows):
    codes, labels, weights = rows
    counts = Counts.of(codes, labels, weights, SIZES, 4)
    np.testing.assert_allclose(counts.classes, [weights[labels == c].sum() for c in range(4)])
    for feature, size in enumerate(SIZES):
        for code in range(size):
            for c in range(4):
                chosen = (codes[:, feature] == code) & (labels == c)
                cell = counts.layout.feature(counts.values, feature)[code, c]
                assert cell == pytest.approx(weights[chosen].sum())


def test_what_is_taken_away_can_be_put_back(rows):
    codes, labels, weights = rows
    whole = Counts.of(codes, labels, weights, SIZES, 4)
    part = Counts.of(codes[:50], labels[:50], weights[:50], SIZES, 4)
    again = (whole - part) + part
    np.testing.assert_allclose(again.values, whole.values)
    np.testing.assert_allclose(again.classes, whole.classes)


def test_room_for_more_categories_changes_no_count(rows):
    codes, labels, weights = rows
    counts = Counts.of(codes, labels, weights, SIZES, 4)
    wider = counts.resize((5, 1, 2))
    np.testing.assert_array_equal(
        wider.layout.feature(wider.values, 0),
        np.vstack([counts.layout.feature(counts.values, 0), np.zeros((2, 4))]),
    )
    np.testing.assert_array_equal(
        wider.layout.feature(wider.values, 2), counts.layout.feature(counts.values, 2)
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_estimates_sum_to_one_even_of_nothing(rows, smoothing):
    codes, labels, weights = rows
    counts = Counts.of(codes[labels < 2], labels[labels < 2], weights[labels < 2], SIZES, 4)
    prior, probs = counts.estimate(smoothing)
    for feature, size in enumerate(SIZES):
        local = counts.layout.feature(probs, feature)
        np.testing.assert_allclose(local.sum(axis=0), 1)
        np.testing.assert_allclose(local[:, 3], 1 / size)  # a class never seen
    assert prior[3] == 0


def test_the_joint_is_the_product(rows):
    codes, labels, weights = rows
    counts = Counts.of(codes, labels, weights, SIZES, 4)
    prior, probs = counts.estimate(1.0)
    joint = log_joint(codes, prior, probs, counts.layout)
    for row in range(len(codes)):
        local = [counts.layout.feature(probs, i) for i in range(len(SIZES))]
        factors = [local[i][code] for i, code in enumerate(codes[row]) if code >= 0]
        expected = np.prod([prior, *factors], axis=0)
        np.testing.assert_allclose(joint[row], np.log(expected), rtol=1e-13)


def test_folds_are_balanced_in_every_class():
    labels = np.repeat([0, 1, 2], [50, 23, 7])
    codes = np.random.default_rng(0).integers(0, 4, size=(80, 5)).astype(np.int32)
    folds = deal(codes, labels, np.ones(80), np.random.default_rng(1))
    assert set(folds.ravel()) == {0.0, 1.0}
    np.testing.assert_array_equal(folds.sum(axis=1), 1.0)
    for c in range(3):
        assert np.ptp(folds[labels == c].sum(axis=0)) <= 1


def test_weight_is_dealt_as_rows_are():
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 3, size=(60, 3)).astype(np.int32)
    labels, weights = rng.integers(0, 2, size=60), rng.integers(0, 4, size=60)
    dealt = deal(codes, labels, weights.astype(float), np.random.default_rng(1))
    shuffled = rng.permutation(np.repeat(np.arange(60), weights))
    repeated = deal(
        codes[shuffled], labels[shuffled], np.ones(len(shuffled)), np.random.default_rng(1)
    )
    for row in range(60):
        alike = np.all(codes == codes[row], axis=1) & (labels == labels[row])
        again = np.isin(shuffled, np.flatnonzero(alike))
        np.testing.assert_allclose(repeated[again].sum(axis=0), dealt[alike].sum(axis=0))
    parts = deal(codes, labels, np.full(60, 1 / 120), np.random.default_rng(1))
    np.testing.assert_allclose(parts.sum(axis=0), 0.1)
