"""From import to the first answer, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from .table import Limits

__all__ = ["measure_first_use"]


def measure_first_use(what: str, script: str, *, compiling: float, starting: float) -> Limits:
    """Run a script that prints seconds twice: first it compiles, then it finds that on disk."""
    table = Limits(
        f"From import to the first assessment of {what} (scikit-learn imported before)",
        ("what", "seconds"),
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, limit in (("first use, compiles", compiling), ("second process", starting)):
            seconds = _run(script, folder)
            table.add(name, f"{seconds:.2f}", measured=seconds, limit=limit)
    return table


def _run(script: str, cache: str) -> float:
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)  # noqa: S603
    return float(done.stdout)
