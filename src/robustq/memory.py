"""What fits into the memory that this process may have, and how to say that something did not."""

from __future__ import annotations

import errno
import os
import re

from robustq.exceptions import UnsupportedError

__all__ = ["explain_shortage", "find_limit", "find_room", "require_memory", "tells_of_shortage"]

FALLBACK = 8 << 30  # where the system does not tell
# What libraries say who ran out of memory and do not raise MemoryError.
SHORTAGES = re.compile(
    "alloc of size|bad_alloc|cannot allocate|[Mm]emory allocation|failed to map segment|"
    "start new thread|libllvmlite"
)


def require_memory(size: int, what: str, remedy: str) -> None:
    """Raise if so many bytes are more than this process may have.

    Raises
    ------
    UnsupportedError
        The message says what would not fit, and the remedy.
    """
    if size > (have := find_room()):
        msg = f"{what} need {_say(size)} of memory, and there is {_say(have)}: {remedy}"
        raise UnsupportedError(msg)


def find_room() -> int:
    """Return how many bytes this process may have at most."""
    have = _physical_memory()
    return min(have, find_limit() or have)


def find_limit() -> int | None:
    """Return how many bytes this process may have, None if nobody set a limit (ulimit -v)."""
    try:
        import resource  # noqa: PLC0415 (not on every system)
    except ImportError:
        return None
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return min((limit for limit in limits if limit != resource.RLIM_INFINITY), default=None)


def explain_shortage(error: BaseException | None) -> str | None:
    """Return what is to be said if memory ran out, None if something else went wrong.

    Parameters
    ----------
    error : BaseException
        It, or what caused it, may say so.
    """
    while error is not None:
        if isinstance(error, MemoryError) or tells_of_shortage(error):
            limit = find_limit()
            allowed = "" if limit is None else f"; this process may have {_say(limit)} (ulimit -v)"
            told = str(error).strip().rstrip(".") if isinstance(error, MemoryError) else ""
            asked = told or "a library got none"
            return (
                f"memory ran out ({asked}{allowed}): allow more of it, learn from fewer rows, or "
                "score fewer at a time (score --batch-rows)"
            )
        error = error.__cause__ or error.__context__
    return None


def tells_of_shortage(error: BaseException | str) -> bool:
    """Tell whether an error, or what a library says before it ends, is about memory."""
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    # Such words mean other things too, where there is enough.
    return find_limit() is not None and SHORTAGES.search(str(error)) is not None


def _say(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{size / 2**20:,.0f} MiB"


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return FALLBACK
