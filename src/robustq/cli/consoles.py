"""Where the command writes: results to standard output, everything else to standard error."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from robustq.texts import make_visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

__all__ = [
    "Progress",
    "caution",
    "check_folder",
    "check_output",
    "check_page",
    "check_seed",
    "complain",
    "fill_row",
    "make_console",
    "make_table",
    "naming_file",
    "naming_options",
    "read_number",
    "say",
    "say_json",
    "showing_progress",
    "split_list",
    "start_up",
]

WIDE, READABLE = 140, 88
LONGEST = 60
PAGES = (".html", ".htm")
FILES = (*PAGES, ".pdf", ".csv", ".json", ".parquet", ".robustq", ".png", ".svg", ".txt", ".zip")


def say_json(text: str) -> None:
    """Print JSON: the same JSON, but nothing in it acts on a terminal."""
    typer.echo(make_visible(text, json=True))


def make_console(*, stderr: bool = False) -> Console:
    """Return a console as wide as the terminal, also where its output goes through a pipe first.

    Where there is no terminal, lines may be long.

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
    return Harmless(stderr=stderr, highlight=False, width=_find_width())


def _find_width() -> int:
    for stream in (sys.stderr, sys.stdin):
        try:
            return os.get_terminal_size(stream.fileno()).columns
        except (AttributeError, OSError, ValueError):
            continue
    return WIDE


def make_table(
    *titles: str, right: Sequence[str] = (), title: str | None = None, shrink: str | None = None
) -> Table:
    """Return a table to be filled and printed.

    No word is broken: what does not fit ends with an ellipsis.

    Parameters
    ----------
    *titles : str
    right : sequence of str
        The columns that are aligned to the right.
    title : str, optional
    shrink : str, optional
        The column that gives way where the terminal is narrow, as the first one does; by default
        the last one.
    """
    from rich import box  # noqa: PLC0415 (slow to import)
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    class Harmless(Table):
        def add_row(self, *cells: Any, **options: Any) -> None:
            super().add_row(*map(_show, cells), **options)

    table = Harmless(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in titles:
        justify: Literal["left", "right"] = "right" if name in right else "left"
        # To rich, a column gives way where it may be wrapped; the cells say that they are not.
        gives_way = name in (titles[0], titles[-1] if shrink is None else shrink)
        table.add_column(
            Text(make_visible(name, lines=False), no_wrap=True),
            justify=justify,
            no_wrap=not gives_way,
            overflow="ellipsis",
            min_width=len(name),
        )
    return table


def fill_row(table: Table, *cells: str | Text) -> None:
    """Add a row to a table, each cell of it one line; long texts are cut."""
    from rich.text import Text  # noqa: PLC0415 (slow to import)

    texts = [_show(Text(cell) if isinstance(cell, str) else cell) for cell in cells]
    for text in texts:
        text.no_wrap, text.overflow = True, "ellipsis"
    table.add_row(*texts)


def say(console: Console, text: str, style: str = "") -> None:
    """Print a paragraph, in lines that are not too long to be read."""
    console.print(text, style=style, markup=False, width=min(console.width, READABLE))


def complain(text: str) -> None:
    """Say on standard error what is wrong; in a terminal no word is broken."""
    if sys.stderr is not None and sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        text = textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
    typer.echo(make_visible(text), err=True)


def caution(console: Console, text: str) -> None:
    """Print what should be known before figures are believed."""
    say(console, text[:1].upper() + text[1:], style="yellow")


class Progress:
    """What is being done, how far it is and for how long, on standard error."""

    def __init__(self, shown: Any) -> None:
        self.shown = shown

    def begin(self, what: str) -> None:
        """Say what is done from now on."""
        if self.shown is not None:
            for task in self.shown.task_ids:
                self.shown.remove_task(task)
            self.shown.add_task(what, total=None, note="")

    def tell(self, done: float, total: float, note: str = "") -> None:
        """Say how far it is; what is done in full is followed by something nobody can measure."""
        if self.shown is not None:
            task = self.shown.tasks[-1]
            task.total = total if done < total else None
            self.shown.update(task.id, completed=done if done < total else 0, note=note)


@contextmanager
def showing_progress(what: str, *, by_blocks: bool = True) -> Iterator[Progress]:
    """Show how far work is; nothing where nobody sees it.

    Nothing may be printed within: it would be mixed up.

    Parameters
    ----------
    what : str
        What is being done.
    by_blocks : bool, default True
        Whether the blocks that work is cut into tell how far it is, or the caller does.
    """
    from robustq.blocks import watching  # noqa: PLC0415 (slow to import)

    console = make_console(stderr=True)
    if not console.is_terminal:
        yield Progress(None)
        return
    from rich import progress as parts  # noqa: PLC0415 (slow to import)
    from rich.table import Column  # noqa: PLC0415

    line = Column(no_wrap=True, overflow="ellipsis")
    columns = (
        parts.SpinnerColumn(),
        parts.TextColumn("{task.description}", markup=False, table_column=line),
        parts.BarColumn(20),
        parts.TaskProgressColumn(),
        parts.TimeElapsedColumn(),
        parts.TextColumn("{task.fields[note]}", markup=False, table_column=line),
    )
    # Standard output is not ours to redirect: it may be a pipe.
    with parts.Progress(*columns, console=console, transient=True, redirect_stdout=False) as shown:
        progress = Progress(shown)
        progress.begin(what)
        with watching(progress.tell) if by_blocks else nullcontext():
            yield progress


def start_up() -> None:
    """Import what all commands need that read or make models: it takes a second or two."""
    with showing_progress("starting"):
        import_module("robustq.families.table")


def _show(cell: Any) -> Any:
    """Return a cell that can be measured and read: written out, on one line, not too long."""
    from rich.text import Text  # noqa: PLC0415 (slow to import)

    from robustq.tables.display import shorten  # noqa: PLC0415

    plain = cell.plain if isinstance(cell, Text) else cell
    if not isinstance(plain, str):
        return cell
    shown = shorten(make_visible(plain, lines=False), LONGEST)
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
    """Let errors about a parameter speak of the option that sets it."""
    from robustq.exceptions import InputError, ParameterError  # noqa: PLC0415

    try:
        yield
    except ParameterError as error:
        if error.name not in options:
            raise
        msg = f"{options[error.name]} {error.problem}"
        raise InputError(msg) from error


@contextmanager
def naming_file(*names: str) -> Iterator[None]:
    """Let errors about what files hold name them; those about options stay as they are."""
    from robustq.exceptions import (  # noqa: PLC0415
        InputError,
        UnknownNameError,
        UnsupportedError,
    )

    try:
        yield
    except (InputError, UnsupportedError) as error:
        about_option = isinstance(error, UnknownNameError) or str(error).startswith("--")
        if about_option or any(name in str(error) for name in names):
            raise
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        msg = f"{names[0]}{more}: {error}"
        raise type(error)(msg) from error


def check_seed(seed: int) -> None:
    """Raise if a seed is none."""
    from robustq.exceptions import InputError  # noqa: PLC0415

    if not 0 <= seed < 2**31:
        msg = f"--seed must be a whole number from 0 to {2**31 - 1}, got {seed}"
        raise InputError(msg)


def check_page(output: str) -> None:
    """Raise if the name of a report is not that of a page."""
    from robustq.exceptions import InputError  # noqa: PLC0415
    from robustq.files import hide_secrets, name_file  # noqa: PLC0415

    ending = Path(name_file(output)).suffix.lower()
    if ending not in PAGES:
        what = "the report is a page for a browser: choose a name that ends in .html"
        msg = f"{hide_secrets(output)}: {what}"
        if ending == ".pdf":
            msg += "; the browser prints it as PDF"
        raise InputError(msg)


def check_folder(output: Path) -> None:
    """Raise if what is to become a folder has the name of a file."""
    from robustq.exceptions import InputError  # noqa: PLC0415

    if output.suffix.lower() in FILES and not output.is_dir():
        folder = output.with_suffix("")
        msg = f"{output} would be a folder: several files go there; name it as one, as in {folder}"
        raise InputError(msg)


def check_output(output: str, inputs: Sequence[str]) -> None:
    """Raise if a command would write where nothing can be written, or over what it reads."""
    from robustq import files  # noqa: PLC0415 (slow to import)

    files.check_output(output, inputs)
