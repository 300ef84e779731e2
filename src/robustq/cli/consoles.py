"""Where the command writes: results to standard output, everything else to standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

__all__ = ["make_console", "split_list"]

WIDE = 140


def make_console(*, stderr: bool = False) -> Console:
    """Return a console; where nobody sees it, lines may be long."""
    from rich.console import Console  # noqa: PLC0415 (slow to import)

    console = Console(stderr=stderr, highlight=False)
    return console if console.is_terminal else Console(stderr=stderr, highlight=False, width=WIDE)


def split_list(given: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names in options like `a,b` and `--option a --option b`."""
    return tuple(name.strip() for part in given or () for name in part.split(",") if name.strip())
