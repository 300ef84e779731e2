"""`robustq datasets`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .consoles import fill_row, make_console, make_table

__all__ = ["list_datasets"]

OTHERS, ROOM = 62, 16  # the width of the other columns, and what is left for places at least


def list_datasets(
    data_dir: Annotated[
        Path | None, typer.Option(help="A folder with UCI's files or archives.")
    ] = None,
    fetch: Annotated[
        bool, typer.Option("--fetch", help="Download those that are not here yet.")
    ] = False,
) -> None:
    """List the paper's data sets, and where each was found.

    They are looked for in [bold]--data-dir[/bold], in the folder that the environment variable
    ROBUSTQ_DATA names, in the user's cache, in the package itself; and downloaded from UCI when
    they are needed.

    Example: [bold]robustq datasets --data-dir ~/uci[/bold]
    """
    from rich.text import Text  # noqa: PLC0415 (slow to import)

    from robustq import datasets  # noqa: PLC0415

    console = make_console()
    table = make_table(
        *("id", "name", "rows", "classes", "features", "where"),
        right=("rows", "classes", "features"),
    )
    missing, room = [], max(ROOM, console.width - OTHERS)
    for name in datasets.names():
        source = datasets.get(name)
        place = datasets.locate(source, data_dir)
        if place is None and fetch:
            place = datasets.find(source, data_dir, download=True, progress=True)
        if place is None:
            missing.append(source)
        style = "" if place else "dim"
        where = Text(_end_of(str(place or f"at UCI: {source.archive}"), room), style=style)
        counts = (str(source.rows), str(source.classes), str(len(source.features)))
        fill_row(table, source.id, name, *counts, where)
    console.print(table)
    if missing:
        console.print(
            f"{len(missing)} not here: they are downloaded when needed, or now with --fetch. "
            f"Without a connection, put UCI's archives ({missing[0].url}, …) or the files in them "
            "into a folder, and give it as --data-dir or in ROBUSTQ_DATA.",
            markup=False,
        )


def _end_of(text: str, most: int) -> str:
    """Return a path of at most so many letters: its end tells more than its beginning."""
    return text if len(text) <= most else f"…{text[1 - most :]}"
