"""`robustq explain`, and `robustq score --explain`."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest

import robustq
from robustq import NaiveBayesClassifier

from .commands import call

NASTY = "<script>alert(1)</script>"
RNG = np.random.default_rng(5)
ROWS = 60
TABLE = pd.DataFrame(
    {
        "id": np.arange(501, 501 + ROWS),
        "checking": RNG.choice(["none", "little", "much", NASTY], ROWS),
        "a_column_with_a_rather_long_name_that_does_not_fit": RNG.choice(["x", "y"], ROWS),
        "age": RNG.normal(40, 10, ROWS).round(1),
    }
)
TARGET = np.where((TABLE.checking == "none") ^ (RNG.random(ROWS) < 0.3), "bad", "good")
FEATURES = TABLE.columns[1:]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("explain")
    TABLE.assign(risk=TARGET).to_csv(path / "data.csv", index=False)
    NaiveBayesClassifier(1.0).fit(TABLE[FEATURES], TARGET).save(path / "m.robustq")
    return path


def test_a_row_is_explained_in_eighty_columns(folder):
    done = call("explain", "m.robustq", "data.csv", "--row", 17, cwd=folder, env={"COLUMNS": "80"})
    assert done.returncode == 0
    assert max(map(len, done.stdout.splitlines())) <= 80
    for words in ("Row 17: ", "It hangs on", "support", "alone", "disagrees", "What if"):
        assert words in done.stdout


def test_json_tells_what_the_library_does(folder):
    done = call("explain", "m.robustq", "data.csv", "--row", 17, "--json", cwd=folder)
    told = json.loads(done.stdout)["rows"][0]
    model = robustq.load(folder / "m.robustq")
    expected = model.explain(TABLE[FEATURES].iloc[[16]], "tv")[0].to_dict()
    assert told["row"] == 17
    assert told["robustness"] == expected["robustness"]
    assert [f["alone"] for f in told["features"]] == [f["alone"] for f in expected["features"]]
    assert told["changes"][0]["after"] == expected["changes"][0]["after"]
    flips = model.counterfactuals(TABLE[FEATURES].iloc[[16]], "tv", limit=None)
    smallest = told["what_if"]["counterfactuals"]
    assert smallest[0] == flips[0].to_dict()
    changes = [one["changes"].items() for one in smallest]
    assert not any(a <= b for a, b in itertools.permutations(changes, 2))
    assert all(any(one <= c.changes.items() for one in changes) for c in flips[:40])


def test_rows_are_found_by_a_value_or_by_how_robust_they_are(folder):
    options = ("explain", "m.robustq", "data.csv", "--json", "--perturbation", "chi2")
    found = json.loads(call(*options, "--where", "id=517", cwd=folder).stdout)["rows"]
    assert [row["row"] for row in found] == [17]
    least = json.loads(call(*options, "--least", 4, cwd=folder).stdout)["rows"]
    sizes = robustq.load(folder / "m.robustq").robustness(TABLE[FEATURES], "chi2")
    assert [row["row"] for row in least] == (np.argsort(sizes, kind="stable")[:4] + 1).tolist()
    held = json.loads(call(*options, "--row", 17, "--keep", "checking", cwd=folder).stdout)
    flips = held["rows"][0]["what_if"]["counterfactuals"]
    assert all("checking" not in one["changes"] for one in flips)


def test_without_a_row_all_are_summarised(folder):
    done = call("explain", "m.robustq", "data.csv", cwd=folder, env={"COLUMNS": "80"})
    assert "What 60 predictions hang on" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    told = json.loads(call("explain", "m.robustq", "data.csv", "--json", cwd=folder).stdout)
    expected = robustq.load(folder / "m.robustq").explain(TABLE[FEATURES]).summary().to_dict()
    assert told["summary"] == {"rows": 60, "features": expected}


@pytest.mark.parametrize("more", [("--least", "60"), ()])
def test_pages_show_names_and_values_as_text(folder, more):
    done = call("explain", "m.robustq", "data.csv", *more, "-o", "page.html", cwd=folder)
    assert done.returncode == 0
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert ("&lt;script&gt;" in page) == bool(more)
    assert "hang" in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--row", "0"), "--row must be a whole number from 1 on, got 0"),
        (("--row", "61"), "--row 61: there are 60 rows"),
        (("--row", "1", "--least", "2"), "give one of --row, --where and --least"),
        (("--least", "101"), "at most 100 rows are explained one by one"),
        (("--where", "id"), "--where takes column=value, as in id=17"),
        (("--where", "nr=3"), "has no column 'nr', which --where names"),
        (("--where", "id=3"), "no row has '3' in 'id'"),
        (("--row", "1", "-o", "x.pdf"), "choose a name that ends in .html"),
        (("--row", "1", "--keep", "nr"), "keep names 'nr', which is no column of the model"),
        (("--row", "1", "--perturbation", "tvv"), "did you mean 'tv'?"),
    ],
)
def test_what_is_wrong_is_said(folder, options, message):
    done = call("explain", "m.robustq", "data.csv", *options, cwd=folder)
    assert done.returncode == 2
    assert message in " ".join(done.output.split())
    assert not (folder / "x.pdf").exists()


def test_score_tells_what_predictions_hang_on(folder):
    options = ("--explain", "--perturbation", "chi2,tv")
    done = call("score", "m.robustq", "data.csv", "-o", "s.csv", *options, cwd=folder)
    assert done.returncode == 0
    scored = pd.read_csv(folder / "s.csv")
    model = robustq.load(folder / "m.robustq")
    assert scored["hangs_on"].tolist() == model.explain(TABLE[FEATURES], "chi2").hangs_on.tolist()
    plain = call("score", "m.robustq", "data.csv", "-o", "t.csv", cwd=folder)
    assert plain.returncode == 0
    assert "hangs_on" not in pd.read_csv(folder / "t.csv")


def test_values_never_seen_are_said(folder):
    TABLE.assign(checking="strange").head(3).to_csv(folder / "new.csv", index=False)
    done = call("explain", "m.robustq", "new.csv", "--row", 2, cwd=folder)
    assert done.returncode == 0
    assert "Values never seen in training, taken as missing: 1 in column 'checking'" in done.stderr
