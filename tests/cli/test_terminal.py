"""The command in a real terminal of eighty columns."""

import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from robustq import GenerativeForestClassifier

pty = pytest.importorskip("pty")
fcntl = pytest.importorskip("fcntl")
termios = pytest.importorskip("termios")

COLUMNS = 80
WORDS = ["administration", "blue-collar", "entrepreneurship", "housekeeping", "management"]
LONG = 60  # seconds that anything may take on a machine that has other things to do


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terminal")
    rng = np.random.RandomState(0)
    lines = ["a_rather_long_name_of_a_column,number,y"]
    lines += [
        f"{rng.choice(WORDS)},{rng.normal():.6f},{rng.choice(['no', 'yes'])}" for _ in range(300)
    ]
    (folder / "train.csv").write_text("\n".join(lines) + "\n")
    return folder


class Terminal:
    """A process and the terminal that it runs in."""

    def __init__(self, *arguments, cwd):
        self.screen, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, b"\x32\x00\x50\x00" + bytes(4))
        environment = {k: v for k, v in os.environ.items() if k not in {"COLUMNS", "NO_COLOR"}}
        command = [sys.executable, "-m", "robustq", *map(str, arguments)]
        self.process = subprocess.Popen(  # noqa: S603
            command,
            cwd=cwd,
            stdin=inside,
            stdout=inside,
            stderr=inside,
            env=environment | {"TERM": "xterm-256color"},
            start_new_session=True,
        )
        os.close(inside)
        self.seen = ""

    def read(self, until=None):
        """Read until something is seen, or to the end."""
        end = time.monotonic() + 5 * LONG
        while time.monotonic() < end and not (until and re.search(until, self.seen)):
            try:
                self.seen += os.read(self.screen, 4096).decode(errors="replace")
            except OSError:
                break
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.seen)

    def close(self):
        self.process.kill()
        self.process.wait(LONG)
        os.close(self.screen)


@pytest.fixture
def terminal(folder):
    opened: list[Terminal] = []

    def start(*arguments):
        opened.append(Terminal(*arguments, cwd=folder))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def test_fit_shows_how_far_it_is_and_breaks_no_word(terminal):
    run = terminal("fit", "train.csv", "--target", "y", "-o", "m.robustq", "--model", "nbc")
    text = run.read()
    assert run.process.wait(LONG) == 0
    for step in ("starting", "reading train.csv", "learning"):
        assert step in text
    lines = [line.rstrip() for line in text[text.index(" column ") :].splitlines()]
    assert max(map(len, lines)) <= COLUMNS
    assert lines[0].split() == ["column", "taken", "as", "values", "missing", "for", "example"]
    row = next(line for line in lines if "a_rather" in line)
    assert row.endswith("…")
    told = " ".join(lines)
    assert "always the most frequent class: 0." in re.sub(r"\s+", " ", told)


def test_errors_are_wrapped_between_words(terminal):
    run = terminal("evaluate", "m.robustq", "train.csv", "-o", "r.pdf")
    text = run.read()
    assert run.process.wait(LONG) == 2
    lines = text[text.index("Error: ") :].splitlines()
    assert len(lines) == 2
    assert max(map(len, lines)) <= COLUMNS
    assert " ".join(lines).endswith("a name that ends in .html; the browser prints it as PDF")


def test_ctrl_c_ends_what_compiled_code_would_go_on_with(terminal, folder):
    rng = np.random.RandomState(0)
    X, y = rng.normal(size=(3000, 40)), rng.randint(8, size=3000)
    model = GenerativeForestClassifier(20, max_depth=4, random_state=0).fit(X, y)
    model.training_["target"] = "40"
    model.save(folder / "slow.robustq")
    header = ",".join(map(str, range(41)))
    rows = [",".join(map(str, [*x, label])) for x, label in zip(X.tolist(), y, strict=True)]
    (folder / "slow.csv").write_text("\n".join([header, *rows]) + "\n")
    # Divergences of everything in a forest take the longest.
    hard = ("--indicators", "r_kl_all,r_odds_ratio_all,r_chi2_all", "--perturbation", "kl_all")
    run = terminal("evaluate", "slow.robustq", "slow.csv", "-o", "slow.html", *hard)
    assert "assessing" in run.read(until="assessing 3,000 rows")
    time.sleep(3)
    assert run.process.poll() is None
    start = time.monotonic()
    os.kill(run.process.pid, signal.SIGINT)
    assert run.process.wait(LONG) == 130
    assert time.monotonic() - start < 10  # a tenth of a second, where nobody else computes
    assert "Interrupted." in run.read()
    assert not list(folder.glob("*slow.html*"))
