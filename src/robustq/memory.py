"""Whether something fits into the memory of this machine, asked before it is tried."""

from __future__ import annotations

import os

from robustq.exceptions import UnsupportedError

__all__ = ["require_memory"]

FALLBACK = 8 << 30  # where the system does not tell


def require_memory(size: int, what: str, remedy: str) -> None:
    """Raise if so many bytes are more than the machine has.

    Raises
    ------
    UnsupportedError
        The message says what would not fit, and the remedy.
    """
    if size > (have := _physical_memory()):
        msg = (
            f"{what} need {size / 2**30:,.0f} GiB, and this machine has {have / 2**30:,.0f}: "
            f"{remedy}"
        )
        raise UnsupportedError(msg)


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return FALLBACK
