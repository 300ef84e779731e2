"""Kernels that another process compiles: found on disk, waited for, never needed."""

import os
import subprocess
import sys
from importlib import import_module

import pytest

from robustq import ahead
from robustq.families.compiling import NEEDED_LATER
from robustq.kernels import KERNELS

QUICK = "robustq.tables._kernels.find_distinct"
SCRIPT = """
import time
from robustq import ahead
ahead.compile_ahead(["{name}"])
(helper,) = ahead._helpers
{then}
import numpy as np
from robustq.tables.distinct import find_distinct
firsts, _ = find_distinct(np.arange(60_000, dtype=np.int32).reshape(-1, 2) % 7)
print(len(firsts), helper._process.poll() is not None)
"""


def _run(then, cache):
    """Return what a process says that lets another one compile, with nothing on disk."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    script = SCRIPT.format(name=QUICK, then=then)
    done = subprocess.run(  # noqa: S603 (it is this very Python)
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True
    )
    return done.stdout.split()


def test_what_was_begun_is_waited_for_and_kept(tmp_path):
    then = f"while not helper.wait_for('{QUICK}'): time.sleep(0.01)"
    assert _run(then, tmp_path)[0] == "7"
    assert len(list(tmp_path.rglob("_kernels.find_distinct-*.nbc"))) == 1


def test_nobody_waits_for_a_process_that_died(tmp_path):
    assert _run("helper._process.kill()", tmp_path) == ["7", "True"]


def test_what_is_on_disk_is_not_compiled_again(tmp_path, monkeypatch):
    (tmp_path / "_kernels.find_distinct-1.nbc").write_bytes(b"whatever")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(ahead, "_helpers", [])
    ahead.compile_ahead([QUICK])
    assert not ahead._helpers
    assert not ahead.wait_for(QUICK)


def test_what_is_kept_at_home_is_found_where_the_package_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(ahead, "AT_HOME", ahead.AT_HOME[:1])
    assert not ahead._is_kept(QUICK)
    (tmp_path / "numba" / "tables_0").mkdir(parents=True)
    (tmp_path / "numba" / "tables_0" / "_kernels.find_distinct-1.nbc").write_bytes(b"whatever")
    assert ahead._is_kept(QUICK)


@pytest.mark.parametrize("name", NEEDED_LATER)
def test_the_demo_names_kernels_that_are_there(name):
    import_module(name.rpartition(".")[0])
    assert name in KERNELS
