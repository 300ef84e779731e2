"""The comparison table, in every form."""

import io

import numpy as np
import pytest
from rich.console import Console

from robustq import InputError, rejection


def curve(correct, score):
    return rejection.accuracy_rejection_curve(correct, score)


RIGHT = np.array([True, True, True, False, False, True, True, True, True, False])
RESULTS = {
    "one": {"r_tv": curve(RIGHT, RIGHT), "u_H": curve(RIGHT, ~RIGHT), "u_max": curve(RIGHT, RIGHT)},
    "two": {
        "r_tv": [curve(RIGHT, np.zeros(10)), curve(RIGHT, RIGHT)],
        "u_H": curve(RIGHT, RIGHT),
        "u_max": curve(RIGHT, np.zeros(10)),
    },
}


def test_means_and_wins_are_counted():
    table = rejection.compare(RESULTS, rates=[0.0, 0.3])
    assert table.labels == ("0%", "30%", "AU-ARC")
    assert table.names == ("r_tv", "u_H", "u_max")
    assert table.mean[0].tolist() == pytest.approx([0.7] * 3)
    # Nothing is rejected: all tie, and all win.
    assert table.wins[0].tolist() == [2, 2, 2]
    assert table.mean[1].tolist() == pytest.approx([(1 + 0.85) / 2, (4 / 7 + 1) / 2, 0.85])
    assert table.wins[1].tolist() == [1, 1, 1]
    assert table.is_best[1].tolist() == [True, False, False]


def test_the_table_comes_in_every_form():
    table = rejection.compare(RESULTS)
    assert len(table.labels) == 11
    frame = table.to_pandas()
    assert frame.shape == (11, 7)
    assert frame["r_tv_wins"].tolist() == table.wins[:, 0].tolist()
    assert table.to_polars().shape == table.to_arrow().shape == (11, 7)
    markdown = table.to_markdown().split("\n")
    assert markdown[0] == "| rejected | r_tv | u_H | u_max |"
    assert markdown[2].startswith("| 0% | **0.7000 (2)** |")
    assert len(markdown) == 13
    latex = table.to_latex()
    assert r"r\_tv & u\_H" in latex
    assert r"0\% & \textbf{0.7000 (2)}" in latex
    assert latex.count(r"\\") == 12
    file = io.StringIO()
    Console(width=80, file=file).print(table.to_rich("Table 1"))
    text = file.getvalue()
    assert "wins on 2 data sets" in " ".join(text.split())
    assert "70.0/2" in text
    assert max(len(line) for line in text.split("\n")) <= 80
    assert str(table).split("\n")[1].split()[:3] == ["0%", "0.7000", "(2)*"]


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ({}, "nothing to compare"),
        ({"one": {}}, "nothing to compare for 'one'"),
        ({"one": {"a": RESULTS["one"]["r_tv"]}, "two": {"b": []}}, "the same curves: a, b"),
        ({"one": {"a": []}}, "one, a: expected a Curve or several"),
        ({"one": {"a": [0.5]}}, "one, a: expected a Curve or several"),
    ],
)
def test_what_cannot_be_compared_is_named(results, message):
    with pytest.raises(InputError, match=message):
        rejection.compare(results)


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([1], "give a dictionary"),
        ({"one": [1]}, "must be a dictionary with names"),
        ({"one": {3: RESULTS["one"]["r_tv"]}}, "must be a dictionary with names"),
        ({"one": {"a": 1}}, "one, a: expected a Curve or several"),
        (
            {"one": {"a": RESULTS["one"]["r_tv"], "a_wins": RESULTS["one"]["r_tv"]}},
            "mixed up in a table",
        ),
    ],
)
def test_odd_results_are_named(results, message):
    with pytest.raises(InputError, match=message):
        rejection.compare(results)


def test_odd_names_are_escaped():
    table = rejection.compare({"one": {r"a&b#$x{}~^\|": RESULTS["one"]["r_tv"]}})
    assert r"a\&b\#\$x\{\}\textasciitilde{}\textasciicircum{}\textbackslash{}|" in table.to_latex()
    assert r"\|" in table.to_markdown()
    file = io.StringIO()
    named = rejection.compare({"one": {"x[/b]": RESULTS["one"]["r_tv"]}})
    Console(width=80, file=file).print(named.to_rich("[red]"))
    assert "x[/b]" in file.getvalue()
    assert "[red]" in file.getvalue()


def test_a_notebook_shows_a_table_with_the_best_in_bold_and_all_escaped():
    names = {"<b>good": [True, True, False], "bad&": [False, True, True]}
    curves = {name: rejection.accuracy_rejection_curve(c, [2, 1, 0]) for name, c in names.items()}
    page = rejection.compare({"toy": curves}, rates=[0, 0.5])._repr_html_()
    assert "<th>&lt;b&gt;good</th><th>bad&amp;</th>" in page
    assert "<td>AU-ARC</td><td><b>0.8889 (1)</b></td><td>0.3889 (0)</td>" in page
    assert "on 1 data set<" in page


def test_its_repr_is_its_table():
    curve = rejection.accuracy_rejection_curve([True, False], [1, 0])
    comparison = rejection.compare({"toy": {"score": curve}})
    assert repr(comparison) == str(comparison)
    assert len(repr(comparison).splitlines()) == 12


@pytest.mark.parametrize("width", [30, 50, 80, 140])
def test_scores_that_do_not_fit_stand_below_and_nothing_is_broken(width):
    rng = np.random.default_rng(0)
    names = ["r_epsilon", "r_tv", "r_chi2", "r_pari_mutuel", "r_odds_ratio", "u_marg", "u_H", "u_t"]
    curves = {
        name: rejection.accuracy_rejection_curve([True] * 50, rng.random(50)) for name in names
    }
    file = io.StringIO()
    table = rejection.compare({"toy": curves})
    Console(width=width, file=file).print(table.to_rich("Table 1", width))
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    heads = [line.split() for line in lines if line.startswith("reject")]
    assert [name for head in heads for name in head[1:]] == names
    assert file.getvalue().count("100.0/1") == 11 * len(names)
    assert "…" not in file.getvalue()
