"""What the command writes and says, without a browser."""

import base64
import hashlib
import html
import json
import re

import numpy as np
import pandas as pd
import pytest

from robustq import NaiveBayesClassifier
from robustq.report import exploration, make_exploration
from tests.cli.commands import call


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explore")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({c: rng.choice(["x", "y", "z"], 200) for c in "abc"})
    table["label"] = np.where(rng.random(200) < 0.8, table["a"], table["b"])
    table.to_csv(folder / "data.csv", index=False)
    call("fit", "data.csv", "--target", "label", "-o", "m.robustq", "--no-holdout", cwd=folder)
    return folder


def cut_out(pattern, text):
    return re.findall(pattern, text, re.DOTALL)


def read_data(text):
    return json.loads(cut_out(r'id="data">(.*?)</script>', text)[0])


def test_the_command_writes_one_page(files):
    done = call("explore", "m.robustq", "data.csv", "-o", "page.html", cwd=files)
    assert done.returncode == 0, done.output
    assert "200 predictions" in done.stdout
    data = read_data((files / "page.html").read_text(encoding="utf-8"))
    assert (data["title"], data["rows"], data["closed"]) == ("data.csv", 200, "")
    assert data["truth"] is not None


def test_labels_are_left_out_where_there_are_none(files):
    table = pd.read_csv(files / "data.csv").drop(columns="label")
    table.to_csv(files / "new.csv", index=False)
    assert call("explore", "m.robustq", "new.csv", "-o", "new.html", cwd=files).returncode == 0
    assert read_data((files / "new.html").read_text(encoding="utf-8"))["truth"] is None
    missing = call("explore", "m.robustq", "new.csv", "--target", "label", cwd=files)
    assert missing.returncode == 2
    assert "label" in missing.stderr


def test_without_data_there_is_an_empty_row(files):
    assert call("explore", "m.robustq", "-o", "none.html", cwd=files).returncode == 0
    assert read_data((files / "none.html").read_text(encoding="utf-8"))["rows"] == 0


@pytest.mark.parametrize("output", ["page.pdf", "data.csv", "nowhere/page.html"])
def test_names_that_are_no_pages_are_refused(output, files):
    before = (files / "data.csv").read_bytes()
    done = call("explore", "m.robustq", "data.csv", "-o", output, cwd=files)
    assert done.returncode == 2
    assert "Traceback" not in done.output
    assert (files / "data.csv").read_bytes() == before


def test_large_pages_are_told_before_they_are_written(files, monkeypatch):
    monkeypatch.setattr(exploration, "LARGE", 0.01)
    done = call("explore", "m.robustq", "data.csv", "-o", "large.html", cwd=files)
    assert "too much for most mail" in " ".join(done.output.split())


def test_many_rows_are_sampled_and_that_is_said(files, monkeypatch):
    monkeypatch.setattr(exploration, "MOST_ROWS", 50)
    done = call("explore", "m.robustq", "data.csv", "-o", "some.html", cwd=files)
    assert "50 of 200 rows are on the page" in " ".join(done.output.split())
    data = read_data((files / "some.html").read_text(encoding="utf-8"))
    assert (data["rows"], data["total"]) == (50, 200)


def test_only_what_the_policy_names_by_its_hash_is_in_the_page():
    X = pd.DataFrame({"<b>": ["</script>", "x"] * 5})
    text = make_exploration(NaiveBayesClassifier().fit(X, [0, 1] * 5), X).text
    policy = html.unescape(cut_out(r'Policy" content="(.*?)"', text)[0])
    scripts = cut_out(r"<script>(.*?)</script>", text)
    assert len(scripts) == 2
    for part in (*scripts, *cut_out(r"<style>(.*?)</style>", text)):
        digest = hashlib.sha256(part.encode()).digest()
        assert f"'sha256-{base64.b64encode(digest).decode()}'" in policy
    assert text.count("</script>") == 3
    assert "http" not in re.sub(r"http://www\.w3\.org/2000/svg|http-equiv", "", text)
