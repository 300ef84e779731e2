"""Passes of our own leave the same behind as numba's."""

import math
import subprocess
import sys

import pytest
from numba.core.compiler import run_frontend
from numba.core.ssa import reconstruct_ssa

from robustq.passes import _tell_versions_apart

# A kernel that takes the root of a float is compiled before vectors define what it is of them.
LATE = """
import math
import numpy as np
from numba import types
from robustq.kernels import float_vector_out, kernel

@kernel(types.void(float_vector_out))
def halve(out):
    out[0] = math.sqrt(out[0])

from robustq.kernels import KERNELS
KERNELS["__main__.halve"]()
from robustq.vectors import LANES, load, store

@kernel(types.void(float_vector_out))
def halve_all(out):
    store(out, 0, math.sqrt(load(out, 0)))

squares = np.arange(LANES, dtype=float) ** 2
halve_all(squares)
print(squares.tolist() == list(range(LANES)))
"""


def test_what_is_defined_later_is_found(tmp_path):
    script = tmp_path / "late.py"
    script.write_text(LATE, encoding="utf-8")
    command = [sys.executable, script]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
    assert done.stdout.strip() == "True", done.stderr


def loop_twice(xs):
    total, best = 0.0, -math.inf
    for i in range(len(xs)):
        x = xs[i]
        if x > best:
            best = x
            total = 0.0
        elif x < 0.0:
            continue
        while x > 1.0:
            x = x / 2.0
            total += x
    return total, best


def set_in_a_branch(x):
    if x > 0:
        y = 1
    if x > 1:
        return y
    y = 2
    return y + x


def set_once(x):
    y = x + 1
    return y * x


@pytest.mark.parametrize("function", [loop_twice, set_in_a_branch, set_once])
@pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaWarning")
def test_versions_of_variables_are_those_that_numba_finds(function):
    ours, theirs = run_frontend(function), reconstruct_ssa(run_frontend(function))
    ours.blocks = _tell_versions_apart(ours.blocks)
    assert ours.dump_to_string() == theirs.dump_to_string()
