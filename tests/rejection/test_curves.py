"""Accuracy-rejection curves: ties in expectation, areas, averages, bands."""

import itertools
import math

import numpy as np
import pytest

from robustq import InputError, rejection


def plain_auc(correct):
    """Return the mean accuracy of the first k, of predictions sorted by trust."""
    return np.mean([np.mean(correct[:k]) for k in range(1, len(correct) + 1)])


def test_the_area_is_the_mean_over_all_ways_to_break_ties():
    rng = np.random.default_rng(1)
    for _ in range(40):
        n = int(rng.integers(1, 7))
        correct, score = rng.random(n) < 0.6, rng.integers(0, 3, n)
        areas = [
            plain_auc(correct[list(order)])
            for order in itertools.permutations(range(n))
            if all(score[a] >= score[b] for a, b in itertools.pairwise(order))
        ]
        assert rejection.auc(correct, score) == pytest.approx(np.mean(areas), abs=1e-12)


def test_the_order_of_the_rows_does_not_matter():
    rng = np.random.default_rng(2)
    correct, score = rng.random(200) < 0.7, rng.integers(0, 5, 200).astype(float)
    order = rng.permutation(200)
    one = rejection.accuracy_rejection_curve(correct, score)
    other = rejection.accuracy_rejection_curve(correct[order], score[order])
    np.testing.assert_allclose(one.accuracy, other.accuracy, rtol=1e-12)


@pytest.mark.parametrize(("right", "rows"), [(0, 5), (5, 5), (3, 5), (70, 100), (1, 1)])
def test_the_best_and_the_random_curve_have_closed_forms(right, rows):
    correct = np.arange(rows) < right
    best = (right + sum(right / k for k in range(right + 1, rows + 1))) / rows
    assert rejection.best_curve(correct).auc == pytest.approx(best, abs=1e-12)
    random = rejection.random_curve(correct)
    np.testing.assert_allclose(random.accuracy, right / rows)
    assert random.auc == pytest.approx(right / rows)
    assert rejection.best_curve(correct).excess_aurc == pytest.approx(0.0, abs=1e-12)


def test_the_areas_belong_together():
    rng = np.random.default_rng(3)
    correct, score = rng.random(300) < 0.8, rng.normal(size=300)
    curve = rejection.accuracy_rejection_curve(correct, score)
    assert curve.auc == pytest.approx(1 - rejection.aurc(correct, score))
    best = rejection.best_curve(correct).auc
    assert rejection.excess_aurc(correct, score) == pytest.approx(best - curve.auc)
    assert curve.rates[0] == 0
    assert curve.accuracy[0] == pytest.approx(correct.mean())


def test_the_accuracy_at_a_rate_rejects_as_many_as_fit():
    correct, score = [True, False, True, False, False], [5, 4, 3, 2, 1]
    curve = rejection.accuracy_rejection_curve(correct, score)
    assert curve.at([0.0, 0.19, 0.2, 0.4, 0.6, 0.8]).tolist() == pytest.approx(
        [2 / 5, 2 / 5, 2 / 4, 2 / 3, 1 / 2, 1]
    )
    ten = rejection.accuracy_rejection_curve(np.arange(10) < 7, -np.arange(10.0))
    assert ten.at(0.3) == 1.0  # 0.3 · 10 is 3


def test_infinite_scores_are_trusted_most():
    curve = rejection.accuracy_rejection_curve([False, True, True], [-math.inf, math.inf, math.inf])
    assert curve.accuracy.tolist() == pytest.approx([2 / 3, 1, 1])


def test_a_million_rows_are_a_matter_of_sorting():
    rng = np.random.default_rng(4)
    correct, score = rng.random(1_000_000) < 0.7, rng.integers(0, 1000, 1_000_000)
    curve = rejection.accuracy_rejection_curve(correct, score)
    assert len(curve.accuracy) == 1_000_000
    assert curve.auc == pytest.approx(0.7, abs=0.01)


@pytest.mark.parametrize(
    ("correct", "score", "message"),
    [
        ([], [], "one truth value for each prediction"),
        ([True, False], [0.5], r"there are 2 predictions and scores of shape \(1,\)"),
        ([True, False], [0.5, math.nan], "score 1 is NaN"),
        ([True, False], ["a", "b"], "score must be numbers"),
        ([1, 2], [0.5, 0.5], "correct must hold truth values, got 2"),
        ([[True]], [[0.5]], "one truth value for each prediction"),
    ],
)
def test_bad_input_is_named(correct, score, message):
    with pytest.raises(InputError, match=message):
        rejection.accuracy_rejection_curve(correct, score)


@pytest.mark.parametrize("rate", [-0.1, 1.0, math.nan, "x"])
def test_rates_outside_the_curve_are_refused(rate):
    curve = rejection.accuracy_rejection_curve([True], [1.0])
    with pytest.raises(InputError, match="rejection rates must"):
        curve.at(rate)


# Averages and bands


def test_curves_of_any_length_are_averaged():
    rng = np.random.default_rng(5)
    curves = [
        rejection.accuracy_rejection_curve(rng.random(n) < 0.7, rng.normal(size=n))
        for n in (50, 51, 400)
    ]
    average = rejection.average_curves(curves, [0.0, 0.5])
    assert average.accuracy[1] == pytest.approx(np.mean([curve.at(0.5) for curve in curves]))
    assert average.auc == pytest.approx(np.mean([curve.auc for curve in curves]))
    assert average.curves == 3
    with pytest.raises(InputError, match="at least one curve"):
        rejection.average_curves([])


def test_a_band_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(6)
    inside = []
    for _ in range(60):
        score = rng.random(300)
        correct = rng.random(300) < 0.5 + 0.5 * score
        band = rejection.confidence_band(correct, score, rates=[0.0, 0.5], n_resamples=200)
        # E[0.5 + 0.5 s] over all, and over the upper half
        inside.append(
            [band.low[i] <= truth <= band.high[i] for i, truth in enumerate((0.75, 0.875))]
        )
    assert np.all(np.abs(np.mean(inside, axis=0) - 0.95) < 0.08)


def test_a_band_lies_around_its_curve():
    rng = np.random.default_rng(7)
    score = rng.integers(0, 4, 200)
    correct = rng.random(200) < 0.6 + 0.1 * score
    band = rejection.confidence_band(correct, score)
    curve = rejection.accuracy_rejection_curve(correct, score)
    assert np.all(band.low <= curve.at(band.rates) + 0.01)
    assert np.all(band.high >= curve.at(band.rates) - 0.01)
    assert band.auc[0] < curve.auc < band.auc[1]
    again = rejection.confidence_band(correct, score)
    np.testing.assert_array_equal(again.low, band.low)
    with pytest.raises(InputError, match="confidence must lie between 0 and 1"):
        rejection.confidence_band(correct, score, confidence=1.0)
    with pytest.raises(InputError, match="n_resamples must be at least 1"):
        rejection.confidence_band(correct, score, n_resamples=0)


def test_rates_just_below_one_keep_one_prediction():
    curve = rejection.accuracy_rejection_curve([True, False], [2.0, 1.0])
    assert curve.at([1 - 1e-10, np.nextafter(1, 0)]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rejection.auc([[1], [1, 2]], [1, 2]), "a list of truth values"),
        (lambda: rejection.auc([True, None], [1, 2]), "truth values, got None"),
        (lambda: rejection.auc([1, 0], [10**400, 1]), "score must be numbers"),
        (lambda: rejection.confidence_band([1], [1], confidence="a"), "confidence must lie"),
        (lambda: rejection.confidence_band([1], [1], n_resamples=10.5), "n_resamples must"),
        (lambda: rejection.confidence_band([1], [1], random_state=-1), "cannot be used to seed"),
        (lambda: rejection.average_curves(np.ones(1)), "at least one curve, and nothing else"),
        (
            lambda: rejection.average_curves([rejection.random_curve([1])], [0.5, 0.2]),
            "a list that ascends",
        ),
    ],
)
def test_odd_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_a_curve_is_shown_in_a_line_and_in_a_notebook_as_a_table():
    curve = rejection.accuracy_rejection_curve([True] * 9 + [False], np.arange(10)[::-1])
    assert repr(curve) == "Curve of 10 predictions, AU-ARC 0.9900"
    page = curve._repr_html_()
    assert "<p>Curve of 10 predictions, AU-ARC 0.9900</p>" in page
    assert "<td>0%</td><td>0.9000</td>" in page
    assert "<td>90%</td><td>1.0000</td>" in page
    assert page.count("<tr>") == 11
    short = rejection.accuracy_rejection_curve([True], [1.0])
    assert "<td>90%</td><td>1.0000</td>" in short._repr_html_()
