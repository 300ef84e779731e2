"""Where the command writes: results to standard output, everything else to standard error."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from robustq.texts import make_visible, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console
    from rich.table import Table

__all__ = [
    "check_output",
    "check_seed",
    "make_console",
    "make_table",
    "naming_file",
    "naming_options",
    "read_number",
    "say",
    "say_json",
    "split_list",
]

WIDE = 140
LONGEST_CELL = 200


def say(text: str, *, err: bool = False) -> None:
    """Print plain text, for a terminal or a pipe: nothing in it acts."""
    typer.echo(make_visible(text), err=err)


def say_json(text: str) -> None:
    """Print JSON: the same JSON, but nothing in it acts on a terminal."""
    typer.echo(make_visible(text, json=True))


def make_console(*, stderr: bool = False) -> Console:
    """Return a console; where nobody sees it, lines may be long.

    Whatever it prints, names of columns and categories have no power over the terminal.
    """
    from rich.console import Console  # noqa: PLC0415 (slow to import)
    from rich.segment import Segment  # noqa: PLC0415

    class Harmless(Console):
        def render(self, *arguments: Any, **options: Any) -> Iterator[Segment]:
            for text, style, control in super().render(*arguments, **options):
                yield Segment(text if control else make_visible(text), style, control)

    console = Harmless(stderr=stderr, highlight=False)
    if console.is_terminal or "COLUMNS" in os.environ:
        return console
    return Harmless(stderr=stderr, highlight=False, width=WIDE)


def make_table(*titles: str, right: Sequence[str] = (), title: str | None = None) -> Table:
    """Return a table to be filled and printed; the columns in `right` are aligned so."""
    from rich import box  # noqa: PLC0415 (slow to import)
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    class Harmless(Table):
        def add_row(self, *cells: Any, **options: Any) -> None:
            super().add_row(*map(_show, cells), **options)

    table = Harmless(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in titles:
        justify: Literal["left", "right"] = "right" if name in right else "left"
        table.add_column(_show(Text(name)), justify=justify, overflow="fold")
    return table


def _show(cell: Any) -> Any:
    """Return a cell that can be measured and read: written out, on one line, not too long."""
    from rich.text import Text  # noqa: PLC0415 (slow to import)

    plain = cell.plain if isinstance(cell, Text) else cell
    if not isinstance(plain, str):
        return cell
    shown = shorten(make_visible(plain, lines=False), LONGEST_CELL)
    return cell if shown == plain else Text(shown, style=getattr(cell, "style", ""))


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


@contextmanager
def naming_file(name: str) -> Iterator[None]:
    """Let errors about what a file holds name the file; those about options stay as they are."""
    from robustq.exceptions import (  # noqa: PLC0415
        InputError,
        UnknownNameError,
        UnsupportedError,
    )

    try:
        yield
    except (InputError, UnsupportedError) as error:
        about_option = isinstance(error, UnknownNameError) or str(error).startswith("--")
        if about_option or name in str(error):
            raise
        msg = f"{name}: {error}"
        raise type(error)(msg) from error


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
