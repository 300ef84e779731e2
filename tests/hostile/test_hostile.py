"""Nothing that breaks: whatever is given, robustq works or says why not, and leaves nothing behind.

Seeded, about a minute in all; `make fuzz` goes on with other seeds as long as one likes.
"""

import random
import resource
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import robustq
from tests.cli.commands import ENVIRONMENT, call

from .attacks import ATTACKS, prepare
from .calls import FRAME, LABELS
from .failing import count_calls, end_at_random, fail_at

# Models know other values when theirs were changed.
pytestmark = pytest.mark.filterwarnings("ignore::robustq.UnknownValueWarning")

SIZES = {"calls": 1200, "files": 600, "insides": 150, "documents": 500, "tables": 120}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    prepare(folder)
    return folder


@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_whatever_is_given_is_taken_or_refused(name, folder):
    told = Counter(ATTACKS[name](random.Random(seed), folder) for seed in range(SIZES[name]))
    # Both happen: an attack that is always refused, or never, tries nothing. But no file is as
    # good as before when a byte of it is another.
    assert set(told) == {"fine", "refused"} or (name, set(told)) == ("files", {"refused"})


COMMANDS = {
    "fit": ("fit", "train.csv", "--target", "y", "--model", "nbc", "-o", "out.robustq"),
    "score": ("score", "good.robustq", "train.csv", "-o", "out.parquet"),
    "evaluate": ("evaluate", "good.robustq", "train.csv", "--target", "y", "-o", "out.html"),
}


def place(folder, command):
    """Return the arguments with whole paths, and the output."""
    arguments = [folder / a if "." in a and not a.startswith("-") else a for a in COMMANDS[command]]
    return tuple(arguments), arguments[-1]


@pytest.mark.parametrize("command", COMMANDS)
def test_any_call_of_the_file_system_may_fail(command, folder):
    arguments, output = place(folder, command)
    calls = count_calls(folder, arguments)
    good = output.read_bytes()
    assert calls >= 4
    before = sorted(folder.iterdir())
    for number in range(calls):
        with fail_at(number, folder):
            done = call(*arguments)
        assert done.returncode in {0, 2}, (number, done.output)
        assert sorted(folder.iterdir()) == before  # nothing left, and nothing lost
        if done.returncode == 2:
            assert output.read_bytes() == good
    output.unlink()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_ended_at_any_moment_leaves_all_or_nothing(command, folder):
    arguments, output = place(folder, command)
    done = call(*arguments)
    good = output.read_bytes()
    for seed in range(3):
        output.unlink(missing_ok=True)
        end_at_random(random.Random(seed), arguments, folder, longest=4.0)
        if output.exists() and output.suffix != ".html":
            assert output.read_bytes() == good
    # Whoever writes there next sweeps up what a killed process had begun.
    done = call(*arguments)
    assert done.returncode == 0
    assert not list(folder.glob(".*.part"))
    output.unlink()


def run_limited(limit, *arguments):
    return subprocess.run(  # noqa: PLW1510, S603
        [sys.executable, "-m", "robustq", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts as Linux does")
@pytest.mark.parametrize("mebibytes", [300, 620, 700])
def test_where_memory_is_scarce_it_is_told(mebibytes, folder):
    arguments, output = place(folder, "score")
    done = run_limited(mebibytes << 20, *arguments)
    assert done.returncode in {0, 2}, done.stderr
    if done.returncode == 2:
        assert done.stderr.startswith("Error: memory ran out (")
        assert "--batch-rows" in done.stderr
        assert not output.exists()
    assert not list(folder.glob(".*.part"))
    output.unlink(missing_ok=True)


def test_fewer_rows_at_a_time_give_the_same(folder):
    arguments, output = place(folder, "score")
    output = output.with_suffix(".csv")
    told = []
    for rows in ("3", "1000"):
        done = call(*arguments[:-1], output, "--batch-rows", rows)
        assert done.returncode == 0, done.output
        told.append(output.read_bytes())
    assert told[0] == told[1]
    assert call(*arguments, "--batch-rows", "0").returncode == 2
    output.unlink()


def test_twenty_thousand_columns_take_no_age():
    codes = np.random.default_rng(0).integers(0, 3, (20, 20_000))
    seconds = []
    for columns in (2_000, 20_000):
        table = pa.table({f"c{i}": codes[:, i] for i in range(columns)})
        start = time.process_time()
        robustq.NaiveBayesClassifier(smoothing="cv").fit(table, LABELS).predict(table)
        seconds.append(time.process_time() - start)
    # Ten times the cells; the square would be a hundred times.
    assert seconds[1] < 40 * seconds[0] + 2.0


def test_a_message_can_be_read_however_long_a_name_is():
    name = "n" * 5_000_000
    with pytest.raises(robustq.RobustqError) as caught:
        robustq.NaiveBayesClassifier().fit(FRAME.rename(columns={"a": name}), LABELS).predict(FRAME)
    assert len(str(caught.value)) < 1500
    assert str(caught.value).startswith("the table lacks column 'nnn")
    assert str(caught.value).endswith("it has columns 'a', 'b'")
