"""A table that is larger than the memory."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import robustq

pytestmark = pytest.mark.workers

MIB = 1 << 20
FILES, ROWS, COLUMNS, LETTERS = 6, 200_000, 10, 75
DECODED = FILES * ROWS * COLUMNS * LETTERS
LIMIT = 700 * MIB
COMMAND = """
import resource, sys
resource.setrlimit(resource.RLIMIT_DATA, ({limit}, {limit}))
from robustq.cli.main import main
sys.argv = ["robustq", "fit", "table", "--target", "y", "--model", "nbc", "-o", "m.robustq"]
main()
"""

# A small process between them: a child counts the memory of who started it as its own.
LAUNCHER = """
import resource, subprocess, sys
code = subprocess.run([sys.executable, "-c", sys.argv[1]]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


def make_large_part(rng):
    """Return long texts of few kinds, so that they are short in a file and not in memory."""
    label = rng.integers(0, 2, ROWS)
    words = np.array([str(i).rjust(LETTERS, "x") for i in range(12)], dtype=object)
    columns = {f"x{i}": words[rng.integers(0, 10, ROWS) + label * (i % 3)] for i in range(COLUMNS)}
    return pa.table({**columns, "z": rng.normal(label), "y": label})


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited otherwise elsewhere")
def test_a_table_larger_than_the_memory_is_learned_from(tmp_path):
    (tmp_path / "table").mkdir()
    first = tmp_path / "table" / "0.parquet"
    pq.write_table(make_large_part(np.random.default_rng(0)), first)
    for index in range(1, FILES):
        (tmp_path / "table" / f"{index}.parquet").hardlink_to(first)
    command = [sys.executable, "-c", LAUNCHER, COMMAND.format(limit=LIMIT)]
    done = subprocess.run(  # noqa: S603
        command, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert robustq.load(tmp_path / "m.robustq").training_["rows"] == FILES * ROWS
    used = int(done.stdout.split()[-1]) * 1024
    assert used < DECODED, f"{used / MIB:.0f} MiB, and the table has {DECODED / MIB:.0f}"
