"""The page about a model: a verdict first, then warnings, then pictures."""

import numpy as np
import pyarrow as pa
import pytest

from robustq import GenerativeForestClassifier, datasets
from robustq.experiments.evaluation import evaluate
from robustq.report import write_evaluation
from robustq.selection.gates import Promise
from robustq.selection.training import train

from .test_reproduction import Page

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def found():
    X, y = datasets.load("german", download=False).in_words()
    forest = GenerativeForestClassifier(5, smoothing=1e-6, random_state=0)
    model, _ = train(
        forest, X.slice(0, 700), y[:700], holdout=0.4, seed=0, promise=Promise(0.35, 0.8)
    )
    return evaluate(model, X.slice(700), y[700:], title="m")


def write(found, folder):
    write_evaluation([found], folder / "r.html", title="A page")
    return (folder / "r.html").read_text()


def test_it_begins_with_the_verdict_then_warns_then_shows(found, tmp_path):
    text = write(found | {"cautions": ["the model is ill"]}, tmp_path)
    parser = Page()
    parser.feed(text)
    assert parser.open == []
    assert all(link.startswith(("#", "data:image/svg+xml;base64,")) for link in parser.links)
    places = [
        text.index(part)
        for part in (
            found["verdict"]["text"][:40],
            "The model is ill.",
            "Accuracy-rejection curves",
        )
    ]
    assert places == sorted(places)
    assert "<script" not in text


def test_it_shows_words_and_no_codes(found, tmp_path):
    text = write(found, tmp_path)
    assert "checking: " in text
    assert "A11" not in text
    assert all(len(item["features"]) == 5 for item in found["least"])


def test_it_tells_the_gate_and_who_was_taken_for_whom(found, tmp_path):
    text = write(found, tmp_path)
    own = found["gate"]["own"]
    assert own["promised"]
    assert 0 < own["accepted"] <= 1
    assert "promises an error of at most 35.0 %" in text
    assert 'class="confusion"' in text
    assert "At size " in text
    assert set(found["gate"]["promises"]) == {"r_tv", "u_max"}
    for shares in found["gate"]["promises"].values():
        assert len(shares) == len(found["gate"]["errors"])


def test_what_comes_from_outside_is_escaped(tmp_path):
    rng = np.random.default_rng(0)
    X = pa.table({EVIL: [EVIL, "b"] * 60, "n": rng.integers(0, 3, 120)})
    y = np.where(rng.random(120) < 0.5, EVIL, "other")
    model = GenerativeForestClassifier(3, random_state=0).fit(X, y)
    text = write(evaluate(model, X, y, title=EVIL), tmp_path)
    assert EVIL not in text
    assert "&lt;script&gt;" in text


def test_every_code_of_german_has_a_word():
    data = datasets.load("german", download=False)
    X, y = data.in_words()
    assert set(y.tolist()) == {"good", "bad"}
    for name in X.column_names:
        codes, words = data.X[name].unique().to_pylist(), X[name].unique().to_pylist()
        assert set(codes) <= set(data.source.words[name])
        assert len(words) == len(codes)
        # “none” alone would be a gap in a CSV.
        assert "none" not in words
    other = datasets.load("breast-cancer-wisconsin", download=False)
    assert other.in_words()[0].equals(other.X)
