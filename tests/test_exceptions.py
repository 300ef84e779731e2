"""Errors that travel, and warnings that point at the line of whoever called."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import robustq
from robustq import InputError, NaiveBayesClassifier, SelectiveClassifier, UnknownValueWarning
from robustq.exceptions import NoGuaranteeWarning, ParameterError

MODEL = NaiveBayesClassifier(1.0).fit([["a"], ["b"]], [0, 1])
PIPELINE = make_pipeline(FunctionTransformer(), NaiveBayesClassifier(1.0)).fit(
    [["a"], ["b"]], [0, 1]
)
STRANGE = [["c"]]


def test_an_error_about_a_parameter_tells_which():
    with pytest.raises(InputError, match=r"n_bins must be .*, got 0") as caught:
        NaiveBayesClassifier(n_bins=0).fit([["a"]], [0])
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value)), copy.copy(caught.value)):  # noqa: S301
        assert isinstance(error, ParameterError)
        assert error.name == "n_bins"
        assert str(error) == f"n_bins {error.problem}"


@pytest.mark.parametrize(
    "ask",
    [
        lambda: MODEL.predict(STRANGE),
        lambda: MODEL.predict_proba(STRANGE),
        lambda: MODEL.robustness(STRANGE),
        lambda: MODEL.assess(STRANGE),
        lambda: MODEL.is_robust(STRANGE, "tv", 0.1),
        lambda: MODEL.credal_predict(STRANGE, "tv", 0.1),
        lambda: MODEL.log_likelihood(STRANGE),
        lambda: robustq.assess(MODEL, STRANGE),
        lambda: robustq.robustness(PIPELINE, STRANGE),
        lambda: PIPELINE.predict(STRANGE),
    ],
)
def test_warnings_point_at_the_line_that_asked(ask):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ask()
    (warning,) = caught
    assert warning.category is UnknownValueWarning
    assert warning.filename == __file__
    assert __file__ not in str(warning.message)
    assert warning.message.counts == {"column 0": 1}


def test_so_do_warnings_that_nothing_is_promised():
    X, y = np.zeros((20, 1)), [0, 1] * 10
    with pytest.warns(NoGuaranteeWarning) as caught:
        SelectiveClassifier(NaiveBayesClassifier(1.0)).fit(X, y)
    assert caught[0].filename == __file__


def test_an_assessment_tells_what_was_unknown():
    with pytest.warns(UnknownValueWarning):
        assert MODEL.assess([["c"], ["a"], ["d"]]).unknown == {"column 0": 2}
    assert MODEL.assess([["a"]]).unknown == {}
