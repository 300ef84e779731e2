"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from robustq.io import CsvOptions
    from robustq.perturbations import Perturbation

__all__ = ["Delimiter", "EncodingName", "ModelPath", "NoHeader", "find_balls", "make_csv_options"]

Delimiter = Annotated[
    str | None, typer.Option("--delimiter", help="Of CSV; found out by default. Also: tab.")
]
EncodingName = Annotated[
    str | None, typer.Option("--encoding", help="Of CSV, as in utf-8 or cp1252.")
]
NoHeader = Annotated[
    bool, typer.Option("--no-header", help="The first row of CSV holds data, not names.")
]
ModelPath = Annotated[Path, typer.Argument(help="A model file.", metavar="MODEL")]


def make_csv_options(delimiter: str | None, encoding: str | None, no_header: bool) -> CsvOptions:
    """Return how CSV is to be read."""
    from robustq.io import CsvOptions  # noqa: PLC0415 (slow to import)

    return CsvOptions(delimiter, encoding, header=not no_header)


def find_balls(names: tuple[str, ...]) -> list[Perturbation]:
    """Return the perturbations of names or `module:Class`."""
    from robustq.exceptions import InputError  # noqa: PLC0415
    from robustq.perturbations.importing import find_ball  # noqa: PLC0415

    balls = [find_ball(name) for name in names]
    named = [ball.name for ball in balls]
    twice = sorted({name for name in named if named.count(name) > 1})
    if twice:
        msg = f"each perturbation can be named once, got {twice[0]} again"
        raise InputError(msg)
    return balls
