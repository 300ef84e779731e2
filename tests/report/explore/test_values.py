"""The page's recursion in JavaScript gives what Python gives."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

from robustq import CircuitClassifier, GenerativeForestClassifier, NaiveBayesClassifier
from robustq.exceptions import UnsupportedError
from robustq.report import make_exploration

BALLS = ("tv", "epsilon", "chi2", "pari_mutuel", "odds_ratio")
ENDINGS = ("", "_all", "_rows", "_all_rows", "_joint", "_posterior")
ASSESS = """([rows, name]) => rows.map((row) => {
  const one = window.robustq.assess(row, name);
  return {...one, robustness: one.robustness === Infinity ? "inf" : one.robustness};
})"""


def punch(X, share, seed):
    """Return rows with gaps."""
    holes = np.random.default_rng(seed).random(X.shape) < share
    return X.mask(holes, None).astype(object)


def edit(X, seed):
    """Return rows in some of which a value is that of another row."""
    rng, made = np.random.default_rng(seed), X.copy()
    for column in X.columns:
        some = rng.random(len(X)) < 0.3
        made.loc[some, column] = rng.permutation(X[column].to_numpy(dtype=object))[some]
    return made


def as_lists(X):
    """Return rows as JSON has them."""
    return [
        [None if pd.isna(v) else v.item() if hasattr(v, "item") else v for v in row]
        for row in X.itertuples(index=False)
    ]


def require_equal(page, model, X, name):
    expected = model.assess(X, [name])
    found = page.evaluate(ASSESS, [as_lists(X), name])
    sizes = [float(one["robustness"]) for one in found]
    np.testing.assert_allclose(sizes, expected.robustness[name], rtol=1e-6, err_msg=name)
    probabilities = [one["probability"] for one in found]
    np.testing.assert_allclose(probabilities, expected.probability, rtol=1e-6)
    assert [one["prediction"] for one in found] == expected.prediction.tolist()
    if len(model.classes_) == 2:
        tipping = [one["tipping_class"] for one in found]
        assert tipping == expected.tipping_class[name].tolist(), name


@pytest.mark.parametrize("kind", ["naive_bayes", "tan", "aode", "forest"])
def test_values_are_pythons_on_rows_gaps_and_edits(kind, visit, pages, models, german):
    page, model, X = visit(pages(kind)), models(kind), german[0][600:]
    rows = pd.concat(
        [X[:80], punch(X[80:180], 0.2, 0), edit(X[180:260], 1), punch(X[260:], 0.7, 2)]
    )
    for ball in BALLS:
        for ending in ENDINGS:
            require_equal(page, model, rows[:: 1 if ball == "tv" else 5], ball + ending)


def test_values_are_pythons_for_other_networks(visit, pages, models, german):
    page, model, X = visit(pages("kdb")), models("kdb"), german[0][600:]
    for name in ("tv", "epsilon_all", "chi2_rows"):
        require_equal(page, model, X[:150], name)
    child = next(c for c in X.columns if sum(end == c for _, end in model.edges_) == 3)
    gap = X[:1].copy()
    gap[[parent for parent, end in model.edges_ if end == child and parent in X.columns]] = None
    with pytest.raises(UnsupportedError):
        model.robustness(gap, "tv")
    refused = "(row) => { try { robustq.assess(row, 'tv'); } catch (e) { return e.message; } }"
    assert "no exact robustness" in page.evaluate(refused, as_lists(gap)[0])


@pytest.fixture(scope="module")
def wine():
    data = load_wine()
    X = pd.DataFrame(data.data, columns=data.feature_names)
    X["colour"] = np.random.default_rng(0).choice(["red", "white", "rosé"], len(X))
    return X, np.array(["one", "two", "three"])[data.target]


@pytest.mark.parametrize(
    "make",
    [
        lambda: GenerativeForestClassifier(n_estimators=15, random_state=0),
        lambda: NaiveBayesClassifier(n_bins=4),
        lambda: NaiveBayesClassifier(smoothing=0.0),
    ],
    ids=["forest", "bins", "zeros"],
)
def test_values_are_pythons_with_numbers_and_three_classes(make, visit, wine, tmp_path):
    X, y = wine
    model, path = make().fit(X[::2], y[::2]), tmp_path / "wine.html"
    make_exploration(model, X, y).write(path)
    rows = pd.concat([X[1::2].astype(object), punch(X, 0.25, 3)])
    for ball in BALLS:
        require_equal(page := visit(path), model, rows[::2], f"{ball}_all")
        require_equal(page, model, rows[1::4], f"{ball}_all_rows")


def test_values_are_pythons_for_circuits(visit, models, german, tmp_path):
    X, y = german
    for kind in ("tan", "forest"):
        model, path = models(kind).to_circuit(), tmp_path / f"{kind}.html"
        assert isinstance(model, CircuitClassifier)
        make_exploration(model, X[600:650], y[600:650]).write(path)
        require_equal(visit(path), model, punch(X[600:650], 0.1, 4), "tv_all")


def test_ties_are_exactly_zero(visit, tmp_path):
    X = pd.DataFrame({"a": ["x", "x", "y", "y"], "b": ["u", "v", "u", "v"]})
    model, path = NaiveBayesClassifier(smoothing=0.3).fit(X, [0, 1, 0, 1]), tmp_path / "tie.html"
    make_exploration(model, X, [0, 1, 0, 1]).write(path)
    rows = pd.DataFrame({"a": ["x", "y", None, "x"], "b": [None, None, None, "u"]}, dtype=object)
    require_equal(page := visit(path), model, rows, "chi2")
    found = page.evaluate(ASSESS, [as_lists(rows), "tv"])
    assert [one["robustness"] == 0 for one in found] == [True, True, True, False]


def test_hundreds_of_features_do_not_underflow(visit, tmp_path):
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.choice(["a", "b", "c"], (60, 900)), columns=[f"f{i}" for i in range(900)])
    y = rng.integers(0, 2, 60)
    model, path = NaiveBayesClassifier(smoothing=1.0).fit(X, y), tmp_path / "wide.html"
    make_exploration(model, X, y).write(path)
    for name in ("tv", "odds_ratio", "chi2"):
        require_equal(visit(path), model, X[:10], name)


def test_numbers_and_texts_are_understood_as_values(visit, tmp_path):
    X = pd.DataFrame({"n": [1, 2, 3, 1] * 5, "flag": [True, False] * 10})
    model, path = NaiveBayesClassifier().fit(X, [0, 1] * 10), tmp_path / "values.html"
    make_exploration(model, X).write(path)
    page = visit(path)
    one, text, none = page.evaluate(
        "() => [[1, true], ['1', 'True'], [7, null]].map((v) => robustq.assess(v).probability)"
    )
    assert one == text
    expected = model.predict_proba(pd.DataFrame({"n": [None], "flag": [None]}, dtype=object)).max()
    assert none == pytest.approx(expected)
