"""Names that would act: on a terminal, in a pipe, in a browser."""

import json
import os
import re
import shutil
import subprocess

import pandas as pd
import pytest

from robustq.texts import COMMANDS
from tests.cli.commands import call

RUN = "document.title='owned'"
NAMES = [
    "red\x1b[31m\x1b]0;owned\x07",
    "b\u202egnp.exe",
    f"<script>{RUN}</script>",
    f'<img src=x onerror="{RUN}">',
    f"'\"></td><svg onload={RUN}>",
    "c\x9b5m",
]
TARGET = "y\x1b[5m"
BROWSER = os.environ.get("BROWSER_FOR_TESTS") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("names")
    rows = range(60)
    columns = {name: [NAMES[(i + j * i) % 6] for i in rows] for j, name in enumerate(NAMES)}
    labels = [NAMES[(i * i) % 3 + 1] for i in rows]
    pd.DataFrame(columns | {TARGET: labels}).to_csv(folder / "table.csv", index=False)
    return folder


def test_nothing_that_is_printed_acts(folder):
    table, model, page = (folder / name for name in ("table.csv", "m.robustq", "report.html"))
    told = [
        call("fit", table, "--target", TARGET, "--trees", "3", "-o", model),
        call("inspect", model),
        call("inspect", model, "--json"),
        call("evaluate", model, table, "-o", page),
        call("evaluate", model, table, "-o", page, "--json"),
        call("fit", table, "--target", NAMES[0] + "?", "-o", model),
        call("score", model, table, "-o", folder / "s.csv", "--keep", NAMES[1] + "?"),
    ]
    assert [done.returncode for done in told] == [0, 0, 0, 0, 0, 2, 2]
    for done in told:
        assert not COMMANDS.search(done.output)
    # Written out, not lost; and JSON says what it said.
    assert r"red\x1b[31m" in told[0].output
    assert r"b\u202egnp.exe" in told[1].output
    assert [f["name"] for f in json.loads(told[2].stdout)["features"]] == NAMES
    content = page.read_text()
    assert not COMMANDS.search(content)
    assert r"\u202e" in content
    assert "<script" not in content
    policy = re.search('Content-Security-Policy" content="([^"]*)"', content)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'")
    assert "script-src" not in policy[1]


def dump(page):
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", page.as_uri()]
    return subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, timeout=120, check=True
    ).stdout


@pytest.mark.skipif(BROWSER is None, reason="needs a browser: chromium")
def test_nothing_runs_in_a_browser(folder):
    test_nothing_that_is_printed_acts(folder)
    page = folder / "report.html"
    assert "owned</title>" not in dump(page)
    # The policy alone would do: what slips into the page is not run either.
    content = page.read_text().replace("</h1>", f"</h1><script>{RUN}</script>{NAMES[3]}", 1)
    page.write_text(content)
    assert "owned</title>" not in dump(page)
    # And this test can fail.
    page.write_text(re.sub("<meta http-equiv[^>]*>", "", content))
    assert "owned</title>" in dump(page)
