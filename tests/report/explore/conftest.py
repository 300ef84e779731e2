"""A real browser, where there is one; models and rows of german, and pages of them."""

import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from robustq import (
    BayesianNetworkClassifier,
    GenerativeForestClassifier,
    NaiveBayesClassifier,
    datasets,
)
from robustq.report import make_exploration

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAKERS = {
    "naive_bayes": NaiveBayesClassifier,
    "tan": lambda: BayesianNetworkClassifier(structure="tan"),
    "kdb": lambda: BayesianNetworkClassifier(structure="kdb"),
    "aode": lambda: BayesianNetworkClassifier(structure="aode"),
    "forest": lambda: GenerativeForestClassifier(random_state=0),
}


def find_browser():
    """Return the path of a browser, or skip and say what is missing."""
    pytest.importorskip("playwright", reason="needs playwright (group test)")
    found = [os.environ.get("ROBUSTQ_BROWSER"), *map(shutil.which, NAMES)]
    path = next(filter(None, found), None)
    if path is None:
        pytest.skip("needs a browser: apt-get install chromium, or ROBUSTQ_BROWSER=path")
    return path


@pytest.fixture(scope="session")
def browser():
    path = find_browser()
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 (not everybody has it)

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def visit(browser):
    """Open pages; at the end nothing may have been complained about, or asked of a network."""
    contexts, troubles = [], []

    def watch(page):
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda m: troubles.append(m.text) if m.type == "error" else None)
        page.on("dialog", lambda dialog: troubles.append(dialog.message))
        page.on("request", lambda r: None if r.url.startswith("file:") else troubles.append(r.url))

    def open_page(path, width=1360, height=900, fragment="", **options):
        size = {"width": width, "height": height}
        context = browser.new_context(viewport=size, **options)
        contexts.append(context)
        page = context.new_page()
        watch(page)
        page.goto(f"{Path(path).as_uri()}{fragment}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


@pytest.fixture(scope="session")
def german():
    data = datasets.load("german")
    X = pd.DataFrame(data.X.to_pandas() if hasattr(data.X, "to_pandas") else data.X)
    return X.astype(object), np.where(np.asarray(data.y) == 1, "good", "bad")


@pytest.fixture(scope="session")
def models(german):
    X, y = german
    made = {}

    def get(name):
        if name not in made:
            made[name] = MAKERS[name]().fit(X[:600], y[:600])
        return made[name]

    return get


@pytest.fixture(scope="session")
def pages(models, german, tmp_path_factory):
    """Pages of german's last 400 rows, by the name of a model."""
    X, y = german
    folder = tmp_path_factory.mktemp("pages")

    def get(name):
        path = folder / f"{name}.html"
        if not path.exists():
            make_exploration(models(name), X[600:], y[600:], title="german.csv").write(path)
        return path

    return get
