"""The report needs nothing but itself, and escapes what it shows."""

import re
from html.parser import HTMLParser

import pytest

from robustq.experiments import READINGS, Plan, reproduce
from robustq.report import write_reproduction
from robustq.report.pages import fill
from robustq.report.reproduction import tabulate


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.links, self.images, self.cells = [], [], [], 0

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag not in {"meta", "img", "br", "link"}:
            self.open.append(tag)
        self.links += [given[name] for name in ("href", "src") if name in given]
        self.images += [given["alt"]] if tag == "img" else []
        self.cells += tag == "td"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    plan = Plan(data_sets=("german",), runs=2, trees=2, bootstrap_models=2, most_tests=40)
    found = reproduce(plan, folder, workers=1)
    return write_reproduction([found], folder).read_text(), found.summary


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("both")
    given = {"runs": 2, "trees": 2, "bootstrap_models": 2, "most_tests": 40}
    found = [
        reproduce(
            Plan(("german", "australian"), reading=name, **given),
            reading.place(folder),
            workers=1,
        )
        for name, reading in READINGS.items()
    ]
    return write_reproduction(found, folder).read_text(), [one.summary for one in found]


def test_it_is_one_file_that_needs_no_network(page):
    text, _ = page
    parser = Page()
    parser.feed(text)
    assert parser.open == []
    assert all(link.startswith(("#", "data:image/svg+xml;base64,")) for link in parser.links)
    assert len(parser.images) == 3
    assert "<script" not in text
    # Every link within the page leads somewhere.
    assert all(f'id="{link[1:]}"' in text for link in parser.links if link.startswith("#"))


def test_both_readings_stand_in_one_table(both):
    text, summaries = both
    parser = Page()
    parser.feed(text)
    assert parser.open == []
    assert len(parser.images) == len(set(parser.images)) == 2 * 5
    assert all(f'id="{link[1:]}"' in text for link in parser.links if link.startswith("#"))
    assert text.count('id="') == len(set(re.findall(r'id="([^"]*)"', text)))
    overview = tabulate(summaries)
    assert [one["name"] for one in overview["readings"]] == ["paper", "nearest"]
    assert len(overview["findings"]) == 11
    for index, summary in enumerate(summaries):
        cells = [finding["cells"][index] for finding in overview["findings"]]
        assert cells == summary["findings"]
        assert sum(counts[index] for counts in overview["counts"].values()) == 11
    table = text[text.index('class="findings"') :].partition("</table>")[0]
    for words in ("UCI’s own split", "pooled, split at random", "maximum likelihood"):
        assert words in table
    assert "smoothed by 1e-06" in table
    assert table.count('class="verdict') == 22
    assert "not run" not in table


def test_a_reading_that_was_not_run_is_not_hidden(both):
    _, (_, nearest) = both
    overview = tabulate([nearest])
    assert [one["ran"] for one in overview["readings"]] == [False, True]
    assert all(finding["cells"][0] is None for finding in overview["findings"])
    assert overview["choices"]["SPECT"] == ["UCI’s own split", "pooled, split at random"]


def test_a_changed_reading_says_so(page):
    text, summary = page
    assert "paper, changed" not in text
    assert "not run" in text
    changed = summary | {"reading": summary["reading"] | {"changed": True}}
    assert tabulate([changed])["readings"][0]["title"] == "paper, changed"


def test_it_has_the_numbers_of_the_summary(page):
    text, summary = page
    table = summary["models"]["nbc"]["table"]
    for row in table["mean"]:
        for value in row:
            assert f"{100 * value:.2f}" in text
    for finding in summary["findings"]:
        assert finding["rule"] in text
    assert "by maximum likelihood" in text
    assert re.search(r"robustq \d", text)


def test_what_comes_from_outside_is_escaped(page):
    _, summary = page
    evil = "<script>alert(1)</script>"
    data = [summary["data_sets"][0] | {"title": evil, "note": evil, "citation": evil}]
    models = {
        m: found | {"data_sets": {"german": found["data_sets"]["german"]}}
        for m, found in summary["models"].items()
    }
    pictures = {"overview": "data:,", "nbc/german": "data:,", "gef/german": "data:,"}
    timings = {"wall": 1.0, "workers": 1, "kept": 0, "pieces": {}}
    changed = summary | {"data_sets": data, "models": models, "versions": {evil: evil}}
    part = {"summary": changed, "timings": timings, "pictures": pictures, "place": ""}
    text = fill("reproduction.html", parts=[part], overview=tabulate([changed]))
    assert evil not in text
    assert "&lt;script&gt;" in text
