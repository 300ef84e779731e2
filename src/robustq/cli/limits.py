"""Running where memory is limited: sparingly, and watched by a process that can tell how it ended.

Compiled libraries that get no memory end the process: no error reaches Python. So where there is a
limit (ulimit -v) the command runs in a child; where there is none, nothing of this happens.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from robustq.files import sweep
from robustq.memory import explain_shortage, find_limit, tells_of_shortage

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["divide_if_limited"]

# Each thread of each library takes address space for itself.
SPARING = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "ARROW_IO_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "ROBUSTQ_THREADS": "1",
}
ARENAS = -8  # M_ARENA_MAX of malloc
# The libraries alone need this much; with less, some of them never end.
LEAST = 600 << 20
PATIENCE = 5  # seconds that a child has to end
NO_THREAD = 127  # how glibc leaves without memory for a thread
WRONG = 2


def divide_if_limited(arguments: Sequence[str]) -> None:
    """Return in a child that is to do the work, or at once where memory has no limit."""
    limit = find_limit()
    if limit is None or not hasattr(os, "fork"):
        return
    if limit < LEAST:
        shortage = explain_shortage(MemoryError(f"robustq itself needs {LEAST >> 20} MiB"))
        _leave(WRONG, f"Error: {shortage}\n")
    noise, room = os.pipe()
    child = os.fork()
    if child:
        os.close(room)
        _watch(child, noise, arguments)
    os.close(noise)
    os.environ.update({name: os.environ.get(name, value) for name, value in SPARING.items()})
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(ARENAS, 1)
    # What Python says goes where it always did; what dying libraries shout is not for users.
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, errors="replace")
    os.dup2(room, 2)
    os.close(room)


def _watch(child: int, noise: int, arguments: Sequence[str]) -> NoReturn:
    """Wait for a child, and leave as it does; where a library ended it, say why."""

    def end(number: int, _: object) -> None:
        os.kill(child, number)
        signal.alarm(PATIENCE)

    for name in ("SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), end)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal tells the child itself
    said = b""
    while part := os.read(noise, 1 << 16):
        said = (said + part)[-(1 << 16) :]
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    text = said.decode(errors="replace")
    if code >= 0 and code != NO_THREAD and not (code and tells_of_shortage(text)):
        _leave(code, text)
    for argument in arguments:
        # A process that is ended so leaves what it had begun to write.
        path = Path(argument.partition("=")[2] or argument)
        for folder in (path, path.parent):
            sweep(folder)
    if code in (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGHUP, -signal.SIGINT):
        _leave(128 - code)
    _leave(WRONG, f"Error: {explain_shortage(MemoryError())}\n")


def _leave(code: int, text: str = "") -> NoReturn:
    with suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()
    os._exit(code)
