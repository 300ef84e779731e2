"""Work over many rows, cut into blocks that fit the cache, on all cores that may be used."""

from __future__ import annotations

import contextvars
import math
import os
import queue
import re
import threading
from collections import deque
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from robustq.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["THREADS", "count_cores", "for_each_block", "using_threads", "watching"]

FEW = 32  # blocks of no more rows are done before anybody could interrupt them
PATIENCE = 0.2  # seconds between looks whether somebody interrupts: not every system wakes us
THREADS = "ROBUSTQ_THREADS"
GROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


_watcher: contextvars.ContextVar[Callable[[int, int], None] | None] = contextvars.ContextVar(
    "_watcher", default=None
)

_allowed: contextvars.ContextVar[int | None] = contextvars.ContextVar("_allowed", default=None)


@contextmanager
def using_threads(threads: int | None) -> Iterator[None]:
    """Let all work within use so many threads, whatever else is said; None changes nothing."""
    token = _allowed.set(threads or _allowed.get())
    try:
        yield
    finally:
        _allowed.reset(token)


@contextmanager
def watching(tell: Callable[[int, int], None]) -> Iterator[None]:
    """Let `tell` know how many blocks are done, and of how many, of all work within.

    Of work that is done within other work, nothing is told.
    """
    token = _watcher.set(tell)
    try:
        yield
    finally:
        _watcher.reset(token)


def for_each_block(
    work: Callable[[slice], None], rows: int, block_rows: int, threads: int | None = None
) -> None:
    """Call `work` with slices that cover `rows`, in threads.

    An interrupt (Ctrl-C) is answered at once, though compiled code cannot be: no more blocks are
    begun, and those that are running end by themselves and are forgotten.

    Parameters
    ----------
    work : callable
        Takes a slice of rows; must not depend on the order of the calls.
    rows : int
    block_rows : int
        The length of a slice; the last one may be shorter.
    threads : int, optional
        How many threads to use; see `count_cores` for the default. Within `using_threads`, that
        many.
    """
    blocks = [slice(start, min(start + block_rows, rows)) for start in range(0, rows, block_rows)]
    threads = min(_allowed.get() or threads or count_cores(), len(blocks))
    quick = block_rows > 1 and rows <= FEW
    if threads <= 1 and (quick or threading.current_thread() is not threading.main_thread()):
        for block in blocks:
            work(block)
        return
    _Crew(work, blocks).run(threads)


class _Crew:
    """Threads that take blocks in turn, while the one that asked waits and can be interrupted."""

    def __init__(self, work: Callable[[slice], None], blocks: list[slice]) -> None:
        self.work = work
        self.waiting = deque(enumerate(blocks))
        self.stopped = threading.Event()
        self.done: queue.SimpleQueue[tuple[int, BaseException | None]] = queue.SimpleQueue()

    def run(self, threads: int) -> None:
        total, tell = len(self.waiting), _watcher.get()
        errors = {}
        try:
            for _ in range(threads):
                # What the caller has set for itself, such as how to treat warnings, holds there.
                context = contextvars.copy_context()
                # Daemons: leaving Python does not wait for work that was interrupted.
                threading.Thread(target=context.run, args=(self._take_part,), daemon=True).start()
            for count in range(total):
                position, error = self._await()
                if error is not None:
                    errors[position] = error
                elif tell is not None:
                    tell(count + 1, total)
        finally:
            self.stopped.set()
        if errors:
            # The first in the order of the rows, whoever was quicker.
            raise errors[min(errors)]

    def _take_part(self) -> None:
        _watcher.set(None)
        while self.waiting:
            try:
                position, block = self.waiting.popleft()
            except IndexError:
                return
            self.done.put((position, self._attempt(block)))

    def _attempt(self, block: slice) -> BaseException | None:
        try:
            if not self.stopped.is_set():
                self.work(block)
        except BaseException as error:
            self.stopped.set()
            return error
        return None

    def _await(self) -> tuple[int, BaseException | None]:
        while True:
            try:
                return self.done.get(timeout=PATIENCE)
            except queue.Empty:
                continue


def count_cores() -> int:
    """Return how many threads or processes to use where nothing else is said.

    That is what `using_threads` or the environment variable ROBUSTQ_THREADS says; or the number of
    cores that this process may use, by its affinity and by the limit of its container.

    Raises
    ------
    InputError
        If the variable is not a positive whole number.
    """
    if allowed := _allowed.get():
        return allowed
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
