"""Help in a terminal of eighty columns: nothing is broken, nothing is left alone on a line."""

import re

import pytest
from typer.testing import CliRunner

from robustq.cli.main import app

COMMANDS = (
    *("demo", "fit", "score", "evaluate", "explain", "explore", "inspect", "reproduce"),
    "datasets",
)
LAST = "Show this message and exit."


def show_help(*command):
    done = CliRunner(env={"COLUMNS": "80", "TERM": "dumb"}).invoke(app, [*command, "--help"])
    assert done.exit_code == 0
    return done.output


def cells(text):
    """Yield the lines of each option's help, without what is said of its default."""
    found: list[list[str]] = []
    start = 0
    for panel in re.split(r"(?m)^╭", text)[1:]:
        rows = [line for line in panel.splitlines() if line.startswith("│")]
        first = next((row for row in rows if LAST in row), None)
        start = first.index(LAST) if first else 0
        for row in rows if start else ():
            words = row[start:-1].strip()
            if row[1:start].strip():
                found.append([words])
            else:
                found[-1].append(words)
    return [[line for line in lines if not line.startswith("[")] for lines in found]


@pytest.mark.parametrize("command", COMMANDS)
def test_no_help_ends_in_a_single_word(command):
    options = cells(show_help(command))
    assert len(options) > 1
    orphans = [lines for lines in options if len(lines) > 1 and " " not in lines[-1]]
    assert not orphans


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_nothing_is_wider_than_the_terminal_or_cut(command):
    text = show_help(*command)
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text


@pytest.mark.parametrize("command", COMMANDS)
def test_paragraphs_are_filled_and_do_not_end_in_a_single_word(command):
    head = show_help(command).partition("╭")[0].strip().splitlines()
    paragraphs = re.split(r"\n\s*\n", "\n".join(line.strip() for line in head))
    for paragraph in paragraphs[1:]:
        *full, last = paragraph.splitlines()
        assert all(len(line) > 60 for line in full), paragraph
        assert not full or " " in last, paragraph


def test_commands_are_told_in_lines_that_do_not_end_in_a_single_word():
    rows = [line[13:-1].strip() for line in show_help().split("Commands")[1].splitlines()[1:]]
    starts = [line[:13].strip("│ ") for line in show_help().split("Commands")[1].splitlines()[1:]]
    lonely = [row for row, name in zip(rows, starts, strict=True) if row and not name]
    assert all(" " in row for row in lonely)
