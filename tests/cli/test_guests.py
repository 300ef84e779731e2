"""Classifiers of one's own code where a model file goes."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

import robustq

from .commands import call

CODE = """
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from robustq import NaiveBayesClassifier

frame = pd.read_csv("train.csv")
X, y = frame[["colour", "size"]], frame["y"]
coded = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), ["colour"]), remainder="passthrough"
)
forest = make_pipeline(coded, RandomForestClassifier(9, max_depth=4, random_state=0)).fit(X, y)
logistic = make_pipeline(coded, LogisticRegression()).fit(X, y)
strict = FixedThresholdClassifier(logistic, threshold=0.8, pos_label="yes").fit(X, y)
arrays = RandomForestClassifier(3, random_state=0).fit(X[["size"]].to_numpy(), y)
ours = NaiveBayesClassifier(1.0).fit(X, y)
inside = make_pipeline(FunctionTransformer(feature_names_out="one-to-one"), ours).fit(X, y)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with tables and the module `guests_of_tests`."""
    path = tmp_path_factory.mktemp("guests")
    rng = np.random.default_rng(0)
    for name in ("train", "test"):
        colour, size = rng.choice(["red", "blue"], 200), rng.normal(size=200).round(3)
        y = np.where(size + (colour == "red") + rng.normal(0, 0.7, 200) > 0.5, "yes", "no")
        frame = pd.DataFrame({"id": range(200), "colour": colour, "size": size, "y": y})
        frame.to_csv(path / f"{name}.csv", index=False)
    (path / "guests_of_tests.py").write_text(CODE)
    return path


def score(folder, name, *options):
    return call(
        *("score", f"guests_of_tests:{name}", "test.csv", "-o", f"{name}.csv", "--keep", "id"),
        *options,
        cwd=folder,
    )


def test_scores_are_those_of_the_library(folder):
    done = score(folder, "forest", "--perturbation", "tv,tv_all", "--batch-rows", 60)
    assert done.returncode == 0, done.output
    guests = sys.modules["guests_of_tests"]

    test = pd.read_csv(folder / "test.csv")
    expected = robustq.assess(guests.forest, test[["colour", "size"]], ["tv", "tv_all"])
    scored = pd.read_csv(folder / "forest.csv")
    assert scored["id"].tolist() == list(range(200))
    for name in ("tv", "tv_all"):
        np.testing.assert_allclose(scored[f"robustness_{name}"], expected.robustness[name])
    assert scored["prediction"].tolist() == expected.prediction.tolist()


def test_other_predictions_are_counted_over_all_batches(folder):
    done = score(folder, "strict", "--batch-rows", 60)
    assert done.returncode == 0, done.output
    guests = sys.modules["guests_of_tests"]

    X = pd.read_csv(folder / "test.csv")[["colour", "size"]]
    differs = int((guests.strict.predict(X) != guests.logistic.predict(X)).sum())
    assert f"In {differs} of 200 rows" in " ".join(done.stderr.split())


def test_evaluate_takes_them_too(folder):
    arguments = ("--target", "y", "-o", "report.html", "--json")
    done = call("evaluate", "guests_of_tests:forest", "test.csv", *arguments, cwd=folder)
    assert done.returncode == 0, done.output
    told = json.loads(done.stdout)
    assert told["kind"] == "Pipeline"
    assert {"r_tv", "r_tv_all", "u_marg"} <= set(told["indicators"])
    assert told["indicators"]["r_tv"]["area"] == pytest.approx(told["indicators"]["u_marg"]["area"])
    assert "posterior" in told["remarks"][0]
    assert (folder / "report.html").exists()
    ours = call("evaluate", "guests_of_tests:ours", "test.csv", *arguments, cwd=folder)
    assert json.loads(ours.stdout)["kind"] == "NaiveBayesClassifier"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("guests_of_tests:nothing", "guests_of_tests has no 'nothing'"),
        ("no_such_module:model", "cannot be imported"),
        ("guests_of_tests:LogisticRegression", "is the class LogisticRegression"),
        ("guests_of_tests:frame", "is a DataFrame"),
        ("guests_of_tests:arrays", "has 4 columns, and RandomForestClassifier was fitted with 1"),
        ("model.pkl", "robustq opens no pickles"),
        ("no_such_file.robustq", "cannot be read"),
    ],
)
def test_what_is_no_classifier_is_explained_and_writes_nothing(folder, name, message):
    done = call("score", name, "test.csv", "-o", "none.csv", cwd=folder)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert not (folder / "none.csv").exists()


def test_text_where_the_first_rows_had_numbers_is_explained(folder):
    rows = ["colour,size", *["red,1.5"] * 70, "red,large"]
    (folder / "mixed.csv").write_text("\n".join(rows) + "\n")
    arguments = ("mixed.csv", "-o", "none.csv", "--batch-rows", 60)
    done = call("score", "guests_of_tests:logistic", *arguments, cwd=folder)
    assert done.returncode == 2
    assert "column 'size' holds 'large', where a number is expected" in done.stderr
    assert not (folder / "none.csv").exists()


def test_sets_of_classes_are_those_of_the_library(folder):
    done = score(folder, "forest", "--perturbation", "tv_all", "--delta", 0.1)
    assert done.returncode == 0, done.output
    guests = sys.modules["guests_of_tests"]
    test = pd.read_csv(folder / "test.csv")[["colour", "size"]]
    sets = robustq.credal_predict(guests.forest, test, "tv_all", 0.1)
    scored = pd.read_csv(folder / "forest.csv")["classes_tv_all"]
    assert scored.str.count(r"\|").add(1).tolist() == sets.sum(axis=1).tolist()
    done = score(folder, "forest", "--perturbation", "tv_all", "--delta", 2)
    assert "a size of tv_all lies in [0, 1], got 2" in done.output


def test_explore_shows_what_is_known_of_a_posterior(folder):
    done = call("explore", "guests_of_tests:forest", "test.csv", "-o", "e.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "only its probabilities are known" in " ".join(done.stderr.split())
    assert "predictions" in done.stdout
    assert "only its probabilities are known" in (folder / "e.html").read_text()


def explain(folder, name, *options):
    arguments = ("explain", f"guests_of_tests:{name}", "test.csv", *options)
    return call(*arguments, cwd=folder, env={"COLUMNS": "80"})


@pytest.mark.parametrize("ball", ["tv", "chi2", "tv_all"])
def test_explain_tells_of_a_posterior_what_the_library_does(folder, ball):
    done = explain(folder, "forest", "--least", 3, "--perturbation", ball, "--json")
    assert done.returncode == 0, done.output
    told = json.loads(done.stdout)
    guests = sys.modules["guests_of_tests"]
    X = pd.read_csv(folder / "test.csv")[["colour", "size"]]
    sizes = robustq.robustness(guests.forest, X, ball)
    rows = np.argsort(sizes, kind="stable")[:3]
    assert [row["row"] for row in told["rows"]] == (rows + 1).tolist()
    expected = robustq.explain(guests.forest, X.iloc[rows], ball)
    for row, own in zip(told["rows"], expected, strict=True):
        assert {name: row[name] for name in own.to_dict()} == own.to_dict()
        assert row["what_if"] is None
        assert row["features"] == []
        proba = [outcome["probability"] for outcome in row["outcomes"]]
        assert sum(proba) == pytest.approx(1.0)
        if ball != "tv_all":
            assert row["outcomes"][1]["alone"] == pytest.approx(row["robustness"])
    assert "not what features do" in told["remarks"][0]


def test_explain_of_a_posterior_fits_a_terminal_and_a_page(folder):
    done = explain(folder, "logistic", "--where", "id=4", "-o", "page.html")
    assert done.returncode == 0, done.output
    assert max(map(len, done.stdout.splitlines())) <= 80
    for words in (
        "Row 5: class = ",
        "catches up at",
        "nearest that disagrees",
        "not what features",
    ):
        assert words in " ".join(done.stdout.split())
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "catches up at" in page
    assert "What if" not in page


def test_explain_counts_what_posteriors_would_turn_into(folder):
    done = explain(folder, "forest", "-o", "turns.html")
    assert "What 200 predictions would turn into (tv)" in done.stdout
    assert "would turn into" in (folder / "turns.html").read_text(encoding="utf-8")
    told = json.loads(explain(folder, "forest", "--json").stdout)["summary"]
    guests = sys.modules["guests_of_tests"]
    labels = guests.forest.predict(pd.read_csv(folder / "test.csv")[["colour", "size"]])
    assert told["rows"] == 200
    counts = {turn["prediction"]: turn["count"] for turn in told["turns"]}
    assert counts == {label: int((labels == label).sum()) for label in ("yes", "no")}


def test_explain_looks_into_pipelines_around_our_models(folder):
    done = explain(folder, "inside", "--row", 3, "--json")
    assert done.returncode == 0, done.output
    row = json.loads(done.stdout)["rows"][0]
    guests = sys.modules["guests_of_tests"]
    X = pd.read_csv(folder / "test.csv")[["colour", "size"]]
    assert row["hangs_on"] == guests.ours.explain(X.iloc[[2]])[0].hangs_on
    assert row["what_if"]["counterfactuals"]


def test_explain_says_where_predict_differs(folder):
    done = explain(folder, "strict")
    assert "predict says another class than the most probable one" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("forest", ("--keep", "colour"), "--keep: of Pipeline the probabilities of classes"),
        ("forest", ("--perturbation", "tv_joint"), "only p(c | f) is known"),
        ("logistic", ("--perturbation", "tv_rows"), "sizes by rows need rows"),
        ("forest", ("--row", "201"), "--row 201: there are 200 rows"),
        ("nothing", (), "guests_of_tests has no 'nothing'"),
        ("arrays", (), "RandomForestClassifier was fitted with 1"),
    ],
)
def test_what_cannot_be_explained_is_said_and_writes_nothing(folder, name, options, message):
    done = explain(folder, name, *options, "-o", "none.html")
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert not (folder / "none.html").exists()


def test_score_says_why_it_cannot_tell_what_they_hang_on(folder):
    done = score(folder, "logistic", "--explain")
    assert done.returncode == 2
    assert "what predictions of Pipeline hang on is not known" in " ".join(done.stderr.split())
