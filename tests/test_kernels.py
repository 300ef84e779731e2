"""Kernels are found on disk, and work where nothing can be kept there."""

import os
import subprocess
import sys

SCRIPT = """
import numpy as np
import robustq
X, y = np.array([[0, 1], [1, 0], [1, 1]]), [0, 1, 1]
print(robustq.NaiveBayesClassifier().fit(X, y).robustness(X, "chi2").round(6).tolist())
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
    kept = sorted(path.name for path in tmp_path.rglob("*.nbc"))
    assert any("search" in name for name in kept)
    assert run(NUMBA_CACHE_DIR=str(tmp_path)) == first
    assert sorted(path.name for path in tmp_path.rglob("*.nbc")) == kept
    # A locator for zip files finds no place for ours: as where nothing may be written.
    assert run(NUMBA_CACHE_LOCATOR_CLASSES="ZipCacheLocator") == first
