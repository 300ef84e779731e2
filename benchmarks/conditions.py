"""The conditions under which both sides run; to be set before numpy is imported."""

from __future__ import annotations

import os
from dataclasses import dataclass

__all__ = ["Conditions"]

THREADS = (
    "ROBUSTQ_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "POLARS_MAX_THREADS",
)


@dataclass(frozen=True)
class Conditions:
    """How much is measured, and on what.

    Parameters
    ----------
    quick : bool
        Fewer rows: for a look, not for a promise.
    all_cores : bool
        Both sides on all cores, instead of both on one core and one thread.
    """

    quick: bool = False
    all_cores: bool = False

    @property
    def jobs(self) -> int:
        """What scikit-learn calls `n_jobs`."""
        return -1 if self.all_cores else 1

    def pick(self, rows: int, quick: int) -> int:
        """Return how many rows to measure."""
        return quick if self.quick else rows

    def impose(self) -> None:
        """Hold this process, and those it starts, to one core and one thread."""
        if self.all_cores:
            return
        for name in THREADS:
            os.environ[name] = "1"
        if hasattr(os, "sched_setaffinity"):
            # The last one: the first often serves the system.
            os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
