"""Trust indicators: what they are, and that they are what the literature says."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler
from sklearn.svm import LinearSVC

from robustq import (
    GenerativeForestClassifier,
    InputError,
    NaiveBayesClassifier,
    UnknownNameError,
    UnsupportedError,
    indicators,
)
from robustq.core.neighbourhoods import read
from robustq.families.fitted import NotFittedError
from robustq.indicators import uncertainty
from robustq.indicators.choices import list_single, list_wider
from robustq.indicators.scores import examine
from robustq.perturbations import Perturbation, get
from robustq.tables import Encoding
from tests.families.weather import ROWS, weather

FRAME, LABELS = weather()
MODEL = NaiveBayesClassifier().fit(FRAME, LABELS)
ENSEMBLE = indicators.BootstrapEnsemble(MODEL, n_models=5).fit(FRAME, LABELS)
ALL = ("r_epsilon", "r_tv", "r_chi2", "u_max", "u_marg", "u_H", "u_t", "u_a", "u_e")


class Given:
    """A classifier that predicts what it is told."""

    def __init__(self, probs):
        self.classes_ = np.arange(np.shape(probs)[1])
        self.probs = np.asarray(probs, dtype=float)

    def predict_proba(self, X):
        return self.probs


def entropy(probs):
    return -sum(p * math.log(p) for p in probs if p > 0)


def test_every_indicator_says_what_it_is():
    assert set(ALL) <= set(indicators.names())
    for name in indicators.names():
        indicator = indicators.get(name)
        assert indicator.name == name
        assert indicator.meaning
        assert indicator.higher in ("trusted", "doubted")
        assert indicator.needs in ("robustness", "probabilities", "ensemble")


def test_one_call_gives_them_all():
    scores = indicators.compute(MODEL, FRAME, ALL, ensemble=ENSEMBLE)
    assert list(scores) == list(ALL)
    assert all(score.shape == (ROWS,) for score in scores.values())
    np.testing.assert_array_equal(scores["r_chi2"], MODEL.robustness(FRAME, "chi2"))


def test_uncertainty_is_what_the_literature_says():
    probs = np.array([[0.7, 0.2, 0.1], [0.4, 0.4, 0.2], [1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]])
    raw = indicators.measure(Given(probs), FRAME, ["u_max", "u_marg", "u_H"])
    for row, p in enumerate(probs.tolist()):
        best, second, _ = sorted(p, reverse=True)
        assert raw["u_max"][row] == pytest.approx(1 - best, abs=1e-15)
        assert raw["u_marg"][row] == pytest.approx(best - second, abs=1e-15)
        assert raw["u_H"][row] == pytest.approx(entropy(p), abs=1e-15)
    scores = indicators.compute(Given(probs), FRAME, ["u_max", "u_marg", "u_H"])
    np.testing.assert_array_equal(scores["u_max"], -raw["u_max"])
    np.testing.assert_array_equal(scores["u_marg"], raw["u_marg"])
    np.testing.assert_array_equal(scores["u_H"], -raw["u_H"])


def test_total_uncertainty_splits_in_two():
    raw = indicators.measure(MODEL, FRAME, ["u_t", "u_a", "u_e"], ensemble=ENSEMBLE)
    probas = ENSEMBLE.predict_probas(FRAME)
    for row in range(0, ROWS, 7):
        mean = probas[:, row].mean(axis=0)
        assert raw["u_t"][row] == pytest.approx(entropy(mean), abs=1e-12)
        each = [entropy(p) for p in probas[:, row]]
        assert raw["u_a"][row] == pytest.approx(np.mean(each), abs=1e-12)
        assert raw["u_e"][row] == pytest.approx(entropy(mean) - np.mean(each), abs=1e-12)
    assert np.all(raw["u_t"] >= raw["u_a"])
    assert np.all(raw["u_e"] >= 0)


def test_models_that_agree_leave_no_epistemic_uncertainty():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(4), size=50)
    assert np.all(uncertainty.epistemic(np.stack([probs] * 7)) == 0.0)


@pytest.mark.parametrize(
    "probs",
    [
        [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]],
        [[1.0], [1.0]],
        [[1e-300, 1.0], [5e-324, 1.0]],
    ],
)
def test_degenerate_probabilities_never_give_nan(probs):
    probs = np.array(probs)
    for formula in (uncertainty.rest, uncertainty.margin, uncertainty.entropy):
        assert np.isfinite(formula(probs)).all()
    for formula in (uncertainty.total, uncertainty.aleatoric, uncertainty.epistemic):
        for several in ([probs], [probs, probs[::-1]], [probs] * 3):
            assert np.isfinite(formula(np.stack(several))).all()
    assert uncertainty.margin(np.ones((2, 1))).tolist() == [1.0, 1.0]


def test_uncertainty_works_for_any_classifier_and_in_a_pipeline():
    X, y = np.random.default_rng(1).normal(size=(80, 3)), np.arange(80) % 3
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    names = ["u_max", "u_marg", "u_H", "u_t", "u_a", "u_e"]
    ensemble = indicators.BootstrapEnsemble(pipeline, n_models=3).fit(X, y)
    scores = indicators.compute(pipeline, X, names, ensemble=ensemble)
    assert all(np.isfinite(score).all() for score in scores.values())


def test_robustness_works_in_a_pipeline():
    text = FRAME[["sky", "wind"]].astype(str)
    pipeline = make_pipeline(OrdinalEncoder(dtype=np.int64), GenerativeForestClassifier(3))
    pipeline.fit(text, LABELS)
    assert indicators.compute(pipeline, text, "r_tv")["r_tv"].shape == (ROWS,)


class Doubled(Perturbation):
    """Total variation by another name."""

    domain = get("tv").domain

    def lower_expectation(self, q, f, delta):
        return get("tv").lower_expectation(q, f, delta)


def test_any_ball_is_an_indicator():
    scores = indicators.compute(MODEL, FRAME.head(20), [Doubled(), "r_tv", "r_odds_ratio"])
    assert list(scores) == ["r_doubled", "r_tv", "r_odds_ratio"]
    np.testing.assert_allclose(scores["r_doubled"], scores["r_tv"], rtol=1e-6)


FOREST = GenerativeForestClassifier(4, random_state=0).fit(FRAME, LABELS)


@pytest.mark.parametrize("model", [MODEL, FOREST], ids=["naive Bayes", "forest"])
@pytest.mark.parametrize(
    "name", ["tv_all", "epsilon_rows", "chi2_all_rows", "tv_posterior", "kl_all"]
)
def test_any_neighbourhood_is_an_indicator(model, name):
    rows = FRAME.head(15)
    (found,) = indicators.compute(model, rows, [f"r_{name}"]).values()
    np.testing.assert_array_equal(found, model.robustness(rows, name))


def test_neighbourhoods_of_a_ball_and_of_parts_are_indicators_too():
    rows = FRAME.head(15)
    given = [read(Doubled(), parts="all"), read("tv", parts=["prior"], sizes="rows")]
    scores = indicators.compute(MODEL, rows, given)
    assert list(scores) == ["r_doubled_all", "r_tv[prior]_rows"]
    known = MODEL.robustness(rows, "tv", parts=["prior"], sizes="rows")
    np.testing.assert_array_equal(scores["r_tv[prior]_rows"], known)


def test_what_is_perturbed_is_told_in_words():
    said = {
        "r_tv": "the smallest size of tv that flips the prediction",
        "r_tv_all": "the smallest size of tv that flips the prediction, everything perturbed",
        "r_tv_rows": "the smallest size of tv that flips the prediction, sizes by rows",
    }
    assert {name: indicators.get(name).meaning for name in said} == said
    assert (
        "features and prior perturbed" in indicators.get(read("tv", ["prior", "features"])).meaning
    )
    assert not any(name.endswith(("_all", "_rows")) for name in indicators.names())


def test_what_a_model_cannot_answer_is_refused():
    model = clone(FOREST).set_params(leaves="additive").fit(FRAME, LABELS)
    with pytest.raises(UnsupportedError, match="a density and no mass"):
        indicators.compute(model, FRAME, "r_tv_joint")


def test_one_look_gives_everything():
    names = ("r_tv", "r_epsilon_rows", "u_max", "u_marg", "u_H", "u_t")
    seen = examine(MODEL, FRAME, names, ENSEMBLE, more=[read("chi2_all"), read("tv")])
    known = indicators.measure(MODEL, FRAME, names, ensemble=ENSEMBLE)
    assert list(seen.values) == list(seen.scores) == list(names)
    for name in names:
        np.testing.assert_allclose(seen.values[name], known[name], rtol=1e-9, atol=1e-14)
    np.testing.assert_array_equal(seen.scores["u_max"], -seen.values["u_max"])
    assert list(seen.assessment.robustness) == ["tv", "epsilon_rows", "chi2_all"]
    assert seen.assessment.prediction.tolist() == MODEL.predict(FRAME).tolist()
    assert seen.possible.all()


def test_rows_are_encoded_no_more_often_than_a_model_is_asked(monkeypatch):
    encoded, encode = [], Encoding.encode

    def count(self, table):
        encoded.append(table.rows)
        return encode(self, table)

    monkeypatch.setattr(Encoding, "encode", count)
    names = ("r_tv", "r_epsilon", "r_chi2_rows", "u_max", "u_marg", "u_H")
    examine(MODEL, FRAME, names, more=[read("tv_all")])
    # For the robustness of all kinds, and for p(c, f).
    assert sum(encoded) <= 2 * ROWS


def test_rows_of_probability_zero_are_told():
    X, y = [["a", "x"], ["b", "y"]] * 4, [0, 1] * 4
    bare = NaiveBayesClassifier(smoothing=0.0).fit(X, y)
    seen = examine(bare, [["a", "x"], ["a", "y"]], ["r_tv", "u_max"])
    assert seen.possible.tolist() == [True, False]
    assert seen.values["u_max"].tolist() == [0.0, 0.5]


def test_forests_have_more_to_show():
    assert list_wider(MODEL) == ()
    assert list_wider(FOREST) == ("r_epsilon_all", "r_tv_all")
    assert set(list_single(FOREST)) - set(list_single(MODEL)) == {"r_epsilon_all", "r_tv_all"}
    assert not {"u_t", "u_a", "u_e"} & set(list_single(FOREST))


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        ("u_maxx", UnknownNameError, "unknown indicator 'u_maxx'; did you mean 'u_max'"),
        ("r_none", UnknownNameError, "known are r_epsilon, r_tv"),
        ("r_tv_al", UnknownNameError, "unknown indicator 'r_tv_al'; did you mean 'r_tv_all'"),
        ("r_chi2_row", UnknownNameError, "did you mean 'r_chi2_rows'"),
        ("u_max_all", UnknownNameError, "unknown indicator 'u_max_all'"),
        (["r_tv_all", read("tv", parts="all")], InputError, "got r_tv_all again"),
        (["u_e"], InputError, "u_e needs several models: fit a BootstrapEnsemble"),
        (["u_H", "u_H"], InputError, "each indicator can be named once, got u_H again"),
        ([3], InputError, "an indicator is a name or a Perturbation, got 3"),
    ],
)
def test_wrong_indicators_are_named(names, error, message):
    with pytest.raises(error, match=message):
        indicators.compute(MODEL, FRAME, names)


def test_a_classifier_must_be_able_to_answer():
    X, y = [[0.0], [1.0]], [0, 1]
    with pytest.raises(UnsupportedError, match="LinearSVC has no predict_proba"):
        indicators.compute(LinearSVC().fit(X, y), X, "u_max")
    with pytest.raises(UnsupportedError, match="LogisticRegression"):
        indicators.compute(LogisticRegression().fit(X, y), X, "r_tv_joint")
    with pytest.raises(InputError, match="holds nan in row 0, which is no probability"):
        indicators.compute(Given([[np.nan, 1.0]]), X, "u_max")


# Ensembles


def test_an_ensemble_is_seeded_and_its_models_differ():
    one, other = (
        indicators.BootstrapEnsemble(MODEL, n_models=4, random_state=3, n_jobs=jobs).fit(
            FRAME, LABELS
        )
        for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.predict_probas(FRAME), other.predict_probas(FRAME))
    assert len(one.models_) == 4
    probas = one.predict_probas(FRAME)
    assert not np.array_equal(probas[0], probas[1])
    # The model given is not touched.
    assert MODEL.predict_proba(FRAME).shape == (ROWS, 3)


def test_forests_of_an_ensemble_get_seeds_of_their_own():
    ensemble = indicators.BootstrapEnsemble(
        GenerativeForestClassifier(2, random_state=0), n_models=3
    ).fit(FRAME, LABELS)
    assert len({model.random_state for model in ensemble.models_}) == 3


@pytest.mark.parametrize(
    "table", [FRAME, pl.from_pandas(FRAME), FRAME.to_numpy(), FRAME.to_numpy().tolist()]
)
def test_an_ensemble_takes_every_kind_of_table(table):
    ensemble = indicators.BootstrapEnsemble(MODEL, n_models=2).fit(table, LABELS)
    expected = indicators.BootstrapEnsemble(MODEL, n_models=2).fit(FRAME, LABELS)
    np.testing.assert_allclose(
        ensemble.predict_probas(table), expected.predict_probas(FRAME), rtol=1e-12
    )


@pytest.mark.filterwarnings("ignore::robustq.exceptions.TableWarning")
def test_a_class_that_a_sample_lacks_has_probability_zero():
    X = pd.DataFrame({"x": ["a"] * 30 + ["b"] * 30 + ["c"]})
    y = ["a"] * 30 + ["b"] * 30 + ["rare"]
    ensemble = indicators.BootstrapEnsemble(NaiveBayesClassifier(), n_models=12).fit(X, y)
    probas = ensemble.predict_probas(X)
    assert probas.shape == (12, 61, 3)
    lacking = [i for i, model in enumerate(ensemble.models_) if len(model.classes_) == 2]
    assert lacking
    assert np.all(probas[lacking][:, :, 2] == 0.0)


def test_a_sample_of_one_class_is_drawn_again():
    X, y = np.arange(6.0)[:, None], [0, 0, 0, 0, 0, 1]
    ensemble = indicators.BootstrapEnsemble(LogisticRegression(), n_models=20).fit(X, y)
    assert all(len(model.classes_) == 2 for model in ensemble.models_)
    only = indicators.BootstrapEnsemble(DummyClassifier(), n_models=2).fit(X, [0] * 6)
    assert only.predict_probas(X).shape == (2, 6, 1)


def test_an_ensemble_says_what_it_needs():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        indicators.BootstrapEnsemble(MODEL).predict_probas(FRAME)
    with pytest.raises(InputError, match="n_models must be a whole number of at least 1, got 0"):
        indicators.BootstrapEnsemble(MODEL, n_models=0).fit(FRAME, LABELS)


def test_frozen_and_unfitted_models_are_told_apart():
    frozen = FrozenEstimator(MODEL)
    np.testing.assert_array_equal(
        indicators.compute(frozen, FRAME, "r_tv")["r_tv"], MODEL.robustness(FRAME, "tv")
    )
    with pytest.raises(InputError, match="cannot be fitted anew"):
        indicators.BootstrapEnsemble(frozen).fit(FRAME, LABELS)
    with pytest.raises(NotFittedError, match="not fitted"):
        indicators.compute(LogisticRegression(), [[1.0]], "u_max")


@pytest.mark.parametrize("table", [None, 3, "text"])
def test_what_is_no_table_is_named(table):
    with pytest.raises(InputError, match="X must be a table or an array"):
        indicators.BootstrapEnsemble(MODEL).fit(table, LABELS)


def test_odd_arguments_are_named():
    with pytest.raises(InputError, match="names must be a list of indicators, got None"):
        indicators.compute(MODEL, FRAME, None)
    with pytest.raises(InputError, match="u_t needs several models"):
        indicators.compute(MODEL, FRAME, "u_t", ensemble=MODEL)
    with pytest.raises(InputError, match="n_jobs must be a whole number"):
        indicators.BootstrapEnsemble(MODEL, n_jobs="a").fit(FRAME, LABELS)
    double = pd.concat([FRAME, FRAME], axis=1)
    with pytest.raises(InputError, match="unique column names"):
        indicators.BootstrapEnsemble(MODEL).fit(double, LABELS)
