"""What sets of classes are worth."""

import math

import numpy as np
import pytest

from robustq import RobustqError, credal

SETS = np.array(
    [
        [True, False, False],  # right
        [False, True, False],  # wrong
        [True, True, False],  # holds it
        [True, True, True],  # holds it
        [False, True, True],  # does not
    ]
)
Y = [0, 0, 1, 2, 0]


def test_measures_are_those_of_the_literature():
    found = credal.measure(SETS, Y)
    assert found.determinacy == pytest.approx(2 / 5)
    assert found.single_accuracy == pytest.approx(1 / 2)
    assert found.set_accuracy == pytest.approx(2 / 3)
    assert found.set_size == pytest.approx(7 / 3)
    assert found.discounted_accuracy == pytest.approx((1 + 1 / 2 + 1 / 3) / 5)
    assert found.u65 == pytest.approx((1 + 0.65 + (1.6 / 3 - 0.6 / 9)) / 5)
    assert found.u80 == pytest.approx((1 + 0.80 + (2.2 / 3 - 1.2 / 9)) / 5)


def test_each_has_a_function():
    found = credal.measure(SETS, Y)
    assert credal.determinacy(SETS) == found.determinacy
    assert credal.set_size(SETS) == found.set_size
    for name in ("single_accuracy", "set_accuracy", "discounted_accuracy", "u65", "u80"):
        assert getattr(credal, name)(SETS, Y) == getattr(found, name)
    assert credal.utility(SETS, Y, a=1.6) == found.u65


def test_labels_are_found_among_the_classes_and_others_are_never_held():
    classes = np.array(["a", "b", "c"])
    assert credal.measure(SETS, ["a", "a", "b", "c", "a"], classes) == credal.measure(SETS, Y)
    strange = credal.measure(SETS, ["z"] * 5, classes)
    assert (strange.u80, strange.single_accuracy, strange.determinacy) == (0.0, 0.0, 2 / 5)


def test_what_does_not_occur_is_nan():
    single = credal.measure(SETS[:2], Y[:2])
    assert math.isnan(single.set_accuracy)
    assert math.isnan(single.set_size)
    assert single.u65 == single.u80 == single.discounted_accuracy == 0.5
    assert math.isnan(credal.measure(SETS[2:], Y[2:]).single_accuracy)


def test_sets_by_their_size():
    assert credal.by_set_size(SETS, Y) == {
        1: {"rows": 2, "accuracy": 0.5},
        2: {"rows": 2, "accuracy": 0.5},
        3: {"rows": 1, "accuracy": 1.0},
    }


@pytest.mark.parametrize(
    ("sets", "y", "classes", "words"),
    [
        ([[True, False], [False, False]], [0, 0], None, "row 1 of sets holds no class"),
        ([[1, 0]], [0], None, "booleans"),
        ([], [], None, "at least one row"),
        ([[True, False]], [2], None, "below 2"),
        ([[True, False]], ["a"], None, "classes="),
        ([[True, False]], [0, 1], None, "one label for each"),
        ([[True, False]], ["a"], ["a", "b", "c"], "for sets of 2 classes"),
    ],
)
def test_what_is_wrong_is_said(sets, y, classes, words):
    with pytest.raises(RobustqError, match=words):
        credal.measure(sets, y, classes)


def test_sets_are_written_with_their_labels():
    sets = np.array([[True, True], [False, True]])
    assert credal.write_sets(sets, [0, 10]).tolist() == ["0|10", "10"]
    assert credal.write_sets(sets, ["a|b", "c\\"]).tolist() == [r"a\|b|c\\", r"c\\"]
