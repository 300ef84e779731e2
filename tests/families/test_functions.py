"""The questions as functions, also for pipelines."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import robustq
from robustq import NaiveBayesClassifier, RobustqError, UnsupportedError
from robustq.perturbations import Domain, Perturbation, get

from .weather import weather

FRAME, LABELS = weather()
MODEL = NaiveBayesClassifier().fit(FRAME, LABELS)


def test_functions_are_the_methods():
    np.testing.assert_array_equal(
        robustq.robustness(MODEL, FRAME, "chi2"), MODEL.robustness(FRAME, "chi2")
    )
    np.testing.assert_array_equal(
        robustq.is_robust(MODEL, FRAME, "tv", 0.1), MODEL.is_robust(FRAME, "tv", 0.1)
    )
    np.testing.assert_array_equal(
        robustq.credal_predict(MODEL, FRAME, "tv", 0.1), MODEL.credal_predict(FRAME, "tv", 0.1)
    )
    assert robustq.assess(MODEL, FRAME).to_pandas().equals(MODEL.assess(FRAME).to_pandas())


def test_a_pipeline_is_seen_through():
    drop = FunctionTransformer(lambda frame: frame.drop(columns="month"))
    pipeline = make_pipeline(drop, NaiveBayesClassifier()).fit(FRAME, LABELS)
    plain = NaiveBayesClassifier().fit(FRAME.drop(columns="month"), LABELS)
    np.testing.assert_array_equal(
        robustq.robustness(pipeline, FRAME), plain.robustness(FRAME.drop(columns="month"))
    )
    alone = make_pipeline(NaiveBayesClassifier()).fit(FRAME, LABELS)
    np.testing.assert_array_equal(robustq.robustness(alone, FRAME), MODEL.robustness(FRAME))


class Half(Perturbation):
    """Total variation at half the pace, given by its lower expectation alone."""

    domain = Domain(2.0, closed=True)

    def lower_expectation(self, q, f, delta):
        q, f, delta = self.check(q, f, delta)
        return get("tv").lower_expectation(q, f, delta / 2)


def test_a_ball_of_ones_own_works_from_end_to_end():
    expected = MODEL.robustness(FRAME, "tv")
    np.testing.assert_allclose(robustq.robustness(MODEL, FRAME, Half()), 2 * expected, rtol=1e-9)
    assessment = robustq.assess(MODEL, FRAME, [Half(), "tv"])
    np.testing.assert_array_equal(assessment.tipping_class["half"], assessment.tipping_class["tv"])
    below, above = expected * 2 * (1 - 1e-6), expected * 2 * (1 + 1e-6)
    assert robustq.is_robust(MODEL, FRAME, Half(), below).all()
    assert not robustq.is_robust(MODEL, FRAME, Half(), above).any()
    np.testing.assert_array_equal(
        robustq.credal_predict(MODEL, FRAME, Half(), 0.1),
        robustq.credal_predict(MODEL, FRAME, "tv", 0.05),
    )


def test_an_unfitted_pipeline_says_so():
    pipeline = make_pipeline(StandardScaler(), NaiveBayesClassifier())
    with pytest.raises(RobustqError, match="not fitted"):
        robustq.robustness(pipeline, FRAME[["month"]])


def test_an_assessment_holds_everything_once():
    assessment = MODEL.assess(FRAME)
    names = ["prediction", "probability", "runner_up"]
    for ball in ("epsilon", "tv", "chi2"):
        names += [f"robustness_{ball}", f"tipping_class_{ball}"]
    frame = assessment.to_pandas()
    assert list(frame.columns) == names
    np.testing.assert_array_equal(frame["prediction"], MODEL.predict(FRAME))
    proba = np.sort(MODEL.predict_proba(FRAME), axis=1)
    np.testing.assert_allclose(frame["probability"], proba[:, -1], rtol=1e-12)
    second = MODEL.classes_[np.argsort(MODEL.predict_proba(FRAME), axis=1)[:, -2]]
    np.testing.assert_array_equal(frame["runner_up"], second)
    for ball in ("epsilon", "tv", "chi2"):
        np.testing.assert_array_equal(frame[f"robustness_{ball}"], MODEL.robustness(FRAME, ball))
    assert len(assessment) == len(FRAME)


def test_an_assessment_becomes_any_frame():
    assessment = MODEL.assess(FRAME, ["tv"])
    frame = assessment.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert assessment.to_polars().equals(pl.from_pandas(frame))
    assert assessment.to_arrow().to_pandas().equals(frame)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_without_its_library_says_what_to_install(library, monkeypatch):
    assessment = MODEL.assess(FRAME, ["tv"])
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UnsupportedError, match=f"pip install {library}, or use to_arrow"):
        getattr(assessment, f"to_{library}")()


def test_an_assessment_can_be_read():
    text = repr(MODEL.assess(FRAME, ["tv"]))
    lines = text.splitlines()
    assert lines[0] == "Assessment of 300 predictions"
    assert lines[1].split() == [
        "prediction", "probability", "runner_up", "robustness_tv", "tipping_class_tv",
    ]  # fmt: skip
    assert lines[-1] == "… 290 more"
    assert len(lines) == 13


def test_one_name_alone_is_one_perturbation():
    assert list(MODEL.assess(FRAME, "kl").robustness) == ["kl"]
    assert list(MODEL.assess(FRAME, get("kl")).robustness) == ["kl"]


def test_a_perturbation_is_named_once():
    with pytest.raises(robustq.InputError, match="each perturbation can be named once, got tv, tv"):
        MODEL.assess(FRAME, ["tv", "tv"])
