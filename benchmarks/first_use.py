"""From import to the first answer, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

from .races import Race

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .conditions import Conditions

__all__ = ["races"]

# Everything a user calls first; prints seconds.
SCRIPT = """
import time
import numpy as np
import sklearn.base, sklearn.ensemble, sklearn.naive_bayes
start = time.perf_counter()
import robustq
rng = np.random.default_rng(0)
X, y = rng.integers(0, 3, (50, 4)), rng.integers(0, 2, 50)
model = robustq.{model}.fit(X, y)
model.predict_proba(X)
model.assess(X)
print(time.perf_counter() - start)
"""
MODELS = {
    "naive Bayes": "NaiveBayesClassifier()",
    "a forest": "GenerativeForestClassifier(3, random_state=0)",
}
COMPILES, STARTS = 6.0, 1.0  # seconds


def races(_: Conditions) -> Iterator[Race]:
    """Time the first use, which compiles, and the next process, which finds it on disk."""
    table = "From import to the first assessment (scikit-learn imported before)"
    for name, model in MODELS.items():
        script = SCRIPT.format(model=model)
        with tempfile.TemporaryDirectory() as folder:
            cache = Path(folder) / "cache"
            compiles = partial(_run_anew, script, cache)
            yield Race(table, f"{name}: first use, compiles", compiles, limit=COMPILES, rounds=1)
            starts = partial(_run, script, cache)
            yield Race(table, f"{name}: second process", starts, limit=STARTS)


def _run_anew(script: str, cache: Path) -> float:
    if cache.exists():
        rmtree(cache)
    return _run(script, cache)


def _run(script: str, cache: Path) -> float:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)  # noqa: S603
    return float(done.stdout)
