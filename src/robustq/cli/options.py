"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from robustq.io import CsvOptions

__all__ = ["Delimiter", "EncodingName", "ModelPath", "NoHeader", "make_csv_options"]

Delimiter = Annotated[str | None, typer.Option("--delimiter", help="Of CSV, as in ; or tab.")]
EncodingName = Annotated[
    str | None, typer.Option("--encoding", help="Of CSV, as in utf-8 or cp1252.")
]
NoHeader = Annotated[bool, typer.Option("--no-header", help="The first row holds no names.")]
ModelPath = Annotated[Path, typer.Argument(help="A model file.", metavar="MODEL")]


def make_csv_options(delimiter: str | None, encoding: str | None, no_header: bool) -> CsvOptions:
    """Return how CSV is to be read."""
    from robustq.io import CsvOptions  # noqa: PLC0415 (slow to import)

    return CsvOptions(delimiter, encoding, header=not no_header)
