"""Processes that work side by side, and end when the one that started them does."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait as wait_for_process
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from robustq.exceptions import RobustqError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["Silence", "Watcher", "Workers"]

Task = TypeVar("Task")
Result = TypeVar("Result")


class Watcher(Protocol):
    """Who is told what is going on."""

    def expect(self, cost: float) -> None:
        """Hear how much there is to do."""

    def start(self, task: Any) -> None:
        """Hear that a task begins."""

    def finish(self, task: Any) -> None:
        """Hear that a task is done."""


class Silence:
    """Who does not listen."""

    def expect(self, cost: float) -> None:
        """Ignore it."""

    def start(self, task: Any) -> None:
        """Ignore it."""

    def finish(self, task: Any) -> None:
        """Ignore it."""


class Workers:
    """Processes for whatever tasks come; with one worker, everything happens in this process.

    Parameters
    ----------
    count : int

    Examples
    --------
    >>> with Workers(1) as workers:
    ...     list(workers.work(abs, [-2], Silence()))
    [(-2, 2)]
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        if self.count > 1:
            # Spawned, not forked: a copy of a process with threads may hang.
            self._pool = ProcessPoolExecutor(
                self.count,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_get_ready,
                initargs=(gc.get_threshold(),),
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            _end(self._pool)

    def call(self, function: Callable[[], object]) -> None:
        """Let every worker call a function, and do not wait: such as one whose module is slow."""
        if self._pool is not None:
            with _ignoring_interrupts():
                for _ in range(self.count):
                    self._pool.submit(function)

    def work(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], watcher: Watcher
    ) -> Iterator[tuple[Task, Result]]:
        """Yield the results of tasks as they are done, in any order."""
        if self._pool is not None:
            yield from _work_apart(self._pool, self.count, function, tasks, watcher)
            return
        for task in tasks:
            watcher.start(task)
            result = function(task)
            watcher.finish(task)
            yield task, result


def _work_apart(
    pool: ProcessPoolExecutor,
    workers: int,
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    watcher: Watcher,
) -> Iterator[tuple[Task, Result]]:
    running: dict[Future[Result], Task] = {}
    finished: list[tuple[Task, Result]] = []
    waiting = iter(tasks)
    try:
        while True:
            # No more at once than there are workers: what is handed out is what is running.
            while len(running) < workers and (task := next(waiting, None)) is not None:
                watcher.start(task)
                with _ignoring_interrupts():
                    # Workers inherit that: Ctrl-C is the parent's to answer.
                    running[pool.submit(function, task)] = task
            # Only now: whatever is done with results, workers do not wait for it.
            yield from finished
            if not running:
                break
            finished = []
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                task = running.pop(done)
                finished.append((task, done.result()))
                watcher.finish(task)
    except BrokenProcessPool as error:
        msg = (
            "a worker process was ended from outside, perhaps for lack of memory; start the same "
            "command again to go on from here, with fewer workers if it happens again"
        )
        raise RobustqError(msg) from error


def _end(pool: ProcessPoolExecutor) -> None:
    """End the workers at once; what they had not finished is done again another time."""
    processes = list((pool._processes or {}).values())  # noqa: SLF001 (no other way to them)
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.kill()


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _get_ready(garbage: tuple[int, int, int]) -> None:
    """Look for garbage as often as the parent, and end when it has ended, however it did."""
    gc.set_threshold(*garbage)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Any) -> None:
    wait_for_process([parent.sentinel])
    os._exit(1)
