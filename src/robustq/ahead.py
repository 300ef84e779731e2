"""Kernels compiled by another process, while this one does what comes before they are needed.

Compiling keeps Python to itself, so a thread would gain nothing. What the other process compiles is
found on disk; what it is about to finish is waited for.
"""

import atexit
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

__all__ = ["compile_ahead", "wait_for"]

BEGUN, DONE = "begun", "done"
PATIENCE = 60.0  # seconds for one kernel; then it is compiled here
# Where numba keeps what it may not write beside a package, on the systems there are.
AT_HOME = (
    "$XDG_CACHE_HOME/numba",
    "~/.cache/numba",
    "~/Library/Caches/numba",
    "$LOCALAPPDATA/numba/Cache",
)


class _Helper:
    """Another process that compiles kernels, one after the other."""

    def __init__(self, names: Sequence[str]) -> None:
        self._begun: dict[str, threading.Event] = {}
        self._process = subprocess.Popen(  # noqa: S603 (it is this very Python)
            [sys.executable, "-m", __name__, *names],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        threading.Thread(target=self._listen, daemon=True).start()
        atexit.register(self._process.kill)

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            word, _, name = line.strip().partition(" ")
            if word == BEGUN:
                self._begun[name] = threading.Event()
            elif name in self._begun:
                self._begun[name].set()
        for event in self._begun.values():  # whatever has become of it, nobody is to wait
            event.set()
        self._process.wait()

    def wait_for(self, name: str) -> bool:
        """Return when a kernel that was begun is done; tell whether it was begun."""
        event = self._begun.get(name)
        if event is not None:
            event.wait(PATIENCE)
        return event is not None


_helpers: list[_Helper] = []


def compile_ahead(names: Sequence[str]) -> None:
    """Let another process, which should have a core, compile kernels that are not on disk."""
    missing = [name for name in names if not _is_kept(name)]
    if missing and sys.executable:
        try:
            _helpers.append(_Helper(missing))
        except OSError:
            return  # they are compiled here, when they are needed


def wait_for(name: str) -> bool:
    """Return when another process has compiled a kernel; tell whether one had begun to."""
    return any(helper.wait_for(name) for helper in _helpers)


def _is_kept(name: str) -> bool:
    """Tell whether something of that name is on disk, be it good or not."""
    module, _, function = name.rpartition(".")
    found = find_spec(module)
    given = os.environ.get("NUMBA_CACHE_DIR")
    if found is None or found.origin is None:
        return True
    source = Path(found.origin)
    pattern = f"{source.stem}.{function}-*.nbc"
    if given:
        return any(Path(given).rglob(pattern))
    if os.access(source.parent, os.W_OK):
        return any((source.parent / "__pycache__").glob(pattern))
    places = (Path(os.path.expandvars(place)).expanduser() for place in AT_HOME)
    return any(any(place.rglob(pattern)) for place in places)


def _compile(names: Sequence[str]) -> None:
    """Compile kernels, and say when each is begun and done."""
    for name in names:
        import_module(name.rpartition(".")[0])
        _say(BEGUN, name)
        import_module("robustq.kernels").KERNELS[name]()
        _say(DONE, name)


def _say(word: str, name: str) -> None:
    sys.stdout.write(f"{word} {name}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _compile(sys.argv[1:])
