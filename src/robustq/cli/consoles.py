"""Where the command writes: results to standard output, everything else to standard error."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console
    from rich.table import Table

__all__ = [
    "check_output",
    "check_seed",
    "make_console",
    "make_table",
    "naming_options",
    "read_number",
    "split_list",
]

WIDE = 140


def make_console(*, stderr: bool = False) -> Console:
    """Return a console; where nobody sees it, lines may be long."""
    from rich.console import Console  # noqa: PLC0415 (slow to import)

    console = Console(stderr=stderr, highlight=False)
    if console.is_terminal or "COLUMNS" in os.environ:
        return console
    return Console(stderr=stderr, highlight=False, width=WIDE)


def make_table(*titles: str, right: Sequence[str] = (), title: str | None = None) -> Table:
    """Return a table to be filled and printed; the columns in `right` are aligned so."""
    from rich import box  # noqa: PLC0415 (slow to import)
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in titles:
        justify: Literal["left", "right"] = "right" if name in right else "left"
        table.add_column(Text(name), justify=justify, overflow="fold")
    return table


def split_list(given: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names in options like `a,b` and `--option a --option b`."""
    names = [name.strip() for part in given or () for name in part.split(",")]
    return tuple(dict.fromkeys(name for name in names if name))


def read_number(text: str, option: str, words: dict[str, Any], kind: type) -> Any:
    """Return the number that an option gives, or what one of some words stands for."""
    if text.lower() in words:
        return words[text.lower()]
    try:
        return kind(text)
    except ValueError:
        allowed = " or ".join(["a number", *words])
        msg = f"{text!r} is not {allowed}"
        raise typer.BadParameter(msg, param_hint=option) from None


@contextmanager
def naming_options(options: Mapping[str, str]) -> Iterator[None]:
    """Let errors that begin with the name of a parameter begin with that of an option."""
    from robustq.exceptions import InputError  # noqa: PLC0415

    try:
        yield
    except InputError as error:
        name, _, rest = str(error).partition(" ")
        if name not in options:
            raise
        msg = f"{options[name]} {rest}"
        raise InputError(msg) from error


def check_seed(seed: int) -> None:
    """Raise if a seed is none."""
    from robustq.exceptions import InputError  # noqa: PLC0415

    if not 0 <= seed < 2**31:
        msg = f"--seed must be a whole number from 0 to {2**31 - 1}, got {seed}"
        raise InputError(msg)


def check_output(output: Path | str, inputs: Sequence[str]) -> None:
    """Raise if a command would write where there is no folder, or over what it reads."""
    from robustq.exceptions import FileError, InputError  # noqa: PLC0415

    path = Path(output)
    if not path.parent.is_dir():
        msg = f"{output} cannot be written: there is no folder {path.parent}"
        raise FileError(msg)
    for given in inputs:
        if path.exists() and Path(given).exists() and path.samefile(given):
            msg = f"{output} is read and would be written over: choose another name"
            raise InputError(msg)
