"""Kernels are found on disk, and work where nothing can be kept there."""

import os
import subprocess
import sys

# Few and small ones: how they are kept is the same for all, and each is compiled twice here.
SCRIPT = """
import numpy as np
import robustq
X, y = np.array([[0, 1], [1, 0], [1, 1]]), [0, 1, 1]
print(robustq.NaiveBayesClassifier().fit(X, y).predict_proba(X).round(6).tolist())
"""


def run(**environment: str) -> str:
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, env=os.environ | environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_kernels_are_kept_on_disk_and_work_without(tmp_path):
    first = run(NUMBA_CACHE_DIR=str(tmp_path))
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb[ci]")}
    assert any("log_joint" in path.name for path in kept)
    assert run(NUMBA_CACHE_DIR=str(tmp_path)) == first
    # Compiled again, they would be written again.
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb[ci]")} == kept
    # A locator for zip files finds no place for ours: as where nothing may be written.
    assert run(NUMBA_CACHE_LOCATOR_CLASSES="ZipCacheLocator") == first
