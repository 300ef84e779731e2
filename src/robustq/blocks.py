"""Work over many rows, cut into blocks that fit the cache, on all cores that may be used."""

from __future__ import annotations

import math
import os
import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from robustq.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["THREADS", "count_cores", "for_each_block"]

THREADS = "ROBUSTQ_THREADS"
GROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


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
        How many threads to use; see `count_cores` for the default.
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
    """Return how many threads or processes to use where nothing else is said.

    That is what the environment variable ROBUSTQ_THREADS says; or the number of cores that this
    process may use, by its affinity and by the limit of its container.

    Raises
    ------
    InputError
        If the variable is not a positive whole number.
    """
    given = os.environ.get(THREADS, "").strip()
    if given:
        if not (re.fullmatch("[0-9]{1,9}", given) and int(given) > 0):
            msg = f"{THREADS} must be a whole number from 1, got {given!r}: change it or unset it"
            raise InputError(msg)
        return int(given)
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return max(1, min(cores, _limit_of_container()))


@cache
def _limit_of_container(groups: Path = GROUPS, own: Path = OWN) -> int:
    """Return how many cores the control groups of this process grant, at most."""
    limits = [math.ceil(share) for share in _shares(groups, own)]
    return min(limits, default=2**31)


def _shares(groups: Path, own: Path) -> Iterator[float]:
    """Yield the cores that each group grants, from the process's own one to the root."""
    for line in _read(own).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:  # version 2 has one hierarchy for all
            for folder in _ancestors(groups, path):
                yield from _divide(_read(folder / "cpu.max"))
        elif "cpu" in controllers.split(","):
            for name in (controllers, "cpu"):
                for folder in _ancestors(groups / name, path):
                    quota = _read(folder / "cpu.cfs_quota_us")
                    yield from _divide(f"{quota} {_read(folder / 'cpu.cfs_period_us')}")


def _ancestors(root: Path, path: str) -> Iterator[Path]:
    """Yield a group's folder and those above it; within a container, not all may be there."""
    folder = root / path.strip().lstrip("/")
    while folder != root and root in folder.parents:
        yield folder
        folder = folder.parent
    yield root


def _divide(text: str) -> Iterator[float]:
    """Yield quota / period; nothing where there is no limit ("max", −1) or no such file."""
    parts = text.split()
    if len(parts) == 2 and all(part.isdigit() for part in parts) and int(parts[1]) > 0:
        yield int(parts[0]) / int(parts[1])


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, ValueError):
        return ""
