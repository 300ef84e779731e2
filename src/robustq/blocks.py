"""Work over many rows, cut into blocks that fit the cache, on all cores."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["count_cores", "for_each_block"]


def for_each_block(
    work: Callable[[slice], None], rows: int, block_rows: int, threads: int | None = None
) -> None:
    """Call `work` with slices that cover `rows`, in threads.

    Parameters
    ----------
    work : callable
        Takes a slice of rows; must not depend on the order of the calls.
    rows : int
    block_rows : int
        The length of a slice; the last one may be shorter.
    threads : int, optional
        How many threads to use, all cores by default.
    """
    blocks = [slice(start, min(start + block_rows, rows)) for start in range(0, rows, block_rows)]
    threads = min(threads or count_cores(), len(blocks))
    if threads <= 1:
        for block in blocks:
            work(block)
        return
    with ThreadPoolExecutor(threads) as pool:
        # Asking for the results raises what a worker raised.
        list(pool.map(work, blocks))


def count_cores() -> int:
    """Return how many cores this process may use, where the system tells."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
