"""Kernels are found on disk, and work where nothing can be kept there, or what is there is bad."""

import os
import pickle
import subprocess
import sys

import numpy as np
from numba import types
from numba.core.caching import NullCache

from robustq.kernels import (
    _compile,
    _declare,
    digest,
    float_matrix_out,
    float_vector,
    float_vector_out,
    fused,
    inner,
    kernel,
)

# Few and small ones: how they are kept is the same for all, and each is compiled twice here.
SCRIPT = """
import numpy as np
import robustq
X, y = np.array([[0, 1], [1, 0], [1, 1]]), [0, 1, 1]
print(robustq.NaiveBayesClassifier().fit(X, y).predict_proba(X).round(6).tolist())
"""

PLAIN = """
import sys
sys.modules["robustq.compiler"] = None  # as where numba is not as we know it
import robustq.kernels
assert not robustq.kernels.OF_KERNELS
"""

QUICK = """
import numpy as np
import robustq.tables._kernels
from robustq.kernels import KERNELS
from robustq.tables import find_distinct
KERNELS["robustq.tables._kernels.find_distinct"]()  # what is small is not compiled else
print(*find_distinct(np.array([[0, 1], [1, 0], [0, 1]], dtype=np.int32)))
"""


@inner
def square(x):
    return x * x


@fused
def add_squares(xs):
    total = 0.0
    for x in xs:
        total += square(x)
    return total, len(xs)


MEASURING = types.void(float_vector, float_vector_out)


@kernel(MEASURING)
def measure(xs, out):
    total, count = add_squares(xs)
    out[0], out[1] = total, square(total / count)


def take(xs, ys, out):
    for i in range(len(xs)):
        out[0, i], out[1, i] = min(xs[i], ys[i]), max(xs[i], ys[i])
        out[2, i], out[3, i] = min(i, 2), max(i, 2)
        out[4, i], out[5, i] = min(xs[i], ys[i], 0), max(i, xs[i])


def run(script: str = SCRIPT, **environment: str) -> str:
    command = [sys.executable, "-c", script]
    done = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, env=os.environ | environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_kernels_are_kept_on_disk_and_work_without(tmp_path):
    first = run(NUMBA_CACHE_DIR=str(tmp_path))
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb[ci]")}
    assert any("_joint_kernels" in path.name for path in kept)
    assert run(NUMBA_CACHE_DIR=str(tmp_path)) == first
    # Compiled again, they would be written again.
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb[ci]")} == kept
    # A locator for zip files finds no place for ours: as where nothing may be written.
    assert run(NUMBA_CACHE_LOCATOR_CLASSES="ZipCacheLocator") == first


def test_kernels_work_as_numba_compiles_them_by_itself(tmp_path):
    assert run(PLAIN + QUICK, NUMBA_CACHE_DIR=str(tmp_path)) == run(QUICK)


def test_a_damaged_or_foreign_cache_is_compiled_anew_and_mended(tmp_path):
    first = run(QUICK, NUMBA_CACHE_DIR=str(tmp_path))
    (file,) = tmp_path.rglob("*.nbc")
    good = file.read_bytes()
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 1  # of machine code: nobody would notice before it runs
    for bad in (b"", good[: len(good) // 2], pickle.dumps("another's"), bytes(flipped)):
        file.write_bytes(bad)
        assert run(QUICK, NUMBA_CACHE_DIR=str(tmp_path)) == first
        assert len(file.read_bytes()) > len(good) // 2
        assert file.read_bytes() != bad
    file.unlink()
    file.mkdir()  # nothing can be kept there, and nothing is asked of it
    assert run(QUICK, NUMBA_CACHE_DIR=str(tmp_path)) == first


def test_the_smaller_and_the_larger_of_two_are_those_of_python():
    signature = types.void(float_vector, float_vector, float_matrix_out)
    compiled = _compile(_declare(take, signature, False), signature)
    some = np.array([-np.inf, -1.0, -0.0, 0.0, 2.5, np.inf, np.nan])
    xs, ys = np.repeat(some, len(some)), np.tile(some, len(some))
    expected, found = np.empty((6, len(xs))), np.empty((6, len(xs)))
    take(xs, ys, expected)
    compiled(xs, ys, found)
    assert found.tobytes() == expected.tobytes()


def test_a_kernel_holds_all_that_it_calls_each_compiled_once():
    xs, out = np.arange(100.0), np.empty(2)
    declared = _declare(measure.__wrapped__, MEASURING, allocates=False)
    declared._cache = NullCache()  # as if nothing was on disk
    _compile(declared, MEASURING)(xs, out)
    assert out.tolist() == [np.sum(xs**2), np.mean(xs**2) ** 2]
    assert [len(part.overloads) for part in (square, add_squares)] == [1, 1]


def written(factor: str, above: str = "", called: str = "x * FACTOR"):
    """Return a kernel's function as a file with these lines would define it."""
    found = {"inner": inner}
    exec(  # noqa: S102
        f"{above}\nFACTOR = {factor}\n@inner\ndef scale(x):\n    return {called}\n"
        "def call(xs, out):\n    out[0] = scale(xs[0])\n",
        found,
    )
    return found["call"]


def test_what_is_kept_is_good_for_the_code_and_all_that_it_calls():
    kept = digest(written("2.0"))
    assert digest(written("2.0", above="# a remark\n\n")) == kept
    assert digest(written("3.0")) != kept
    assert digest(written("2.0", called="x + FACTOR")) != kept
    assert digest(written("2.0"), float_vector) != kept
