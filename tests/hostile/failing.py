"""A file system on which one call after another fails; processes ended at any moment."""

from __future__ import annotations

import builtins
import errno
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.cli.commands import ENVIRONMENT, call

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

__all__ = ["count_calls", "end_at_random", "fail_at"]

METHODS = ("open", "replace", "chmod", "write_bytes", "read_bytes", "write_text")


@contextmanager
def fail_at(number: int, folder: Path, error: int = errno.ENOSPC) -> Iterator[list[str]]:
    """Let the call of that number fail, of those that are about files in a folder."""
    seen: list[str] = []

    def wrap(function: Any, name: str) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            if arguments and str(folder) in str(arguments[0]):
                seen.append(name)
                if len(seen) - 1 == number:
                    raise OSError(error, os.strerror(error), str(arguments[0]))
            return function(*arguments, **options)

        return call

    places = [(Path, name) for name in METHODS] + [(os, "fsync"), (os, "open"), (builtins, "open")]
    kept = [(owner, name, getattr(owner, name)) for owner, name in places]
    for owner, name, function in kept:
        setattr(owner, name, wrap(function, name))
    try:
        yield seen
    finally:
        for owner, name, function in kept:
            setattr(owner, name, function)


def count_calls(folder: Path, arguments: tuple[Any, ...]) -> int:
    """Return how many calls a command makes that could fail."""
    with fail_at(-1, folder) as seen:
        done = call(*arguments)
    assert done.returncode == 0, done.output
    return len(seen)


def end_at_random(
    rng: random.Random, arguments: tuple[Any, ...], folder: Path, longest: float
) -> int:
    """Run a command in a process that is ended somewhere; return how it left."""
    command = [sys.executable, "-m", "robustq", *map(str, arguments)]
    process = subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT, cwd=folder
    )
    time.sleep(rng.uniform(0.0, longest))
    process.send_signal(rng.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT)))
    return process.wait(60)
