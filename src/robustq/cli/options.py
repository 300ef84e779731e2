"""Options that several commands have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from robustq.io import CsvOptions

__all__ = [
    "Decimal",
    "Delimiter",
    "EncodingName",
    "ModelName",
    "ModelPath",
    "NoHeader",
    "SheetName",
    "make_csv_options",
]

Delimiter = Annotated[
    str | None, typer.Option("--delimiter", help="Of CSV, as in ; or tab or space.")
]
EncodingName = Annotated[
    str | None, typer.Option("--encoding", help="Of CSV, as in utf-8 or cp1252.")
]
NoHeader = Annotated[bool, typer.Option("--no-header", help="The first row holds no names.")]
Decimal = Annotated[str | None, typer.Option("--decimal", help="The decimal mark: . or ,")]
SheetName = Annotated[str | None, typer.Option("--sheet", help="Of an Excel file.")]
ModelName = Annotated[
    str,
    typer.Argument(
        help="A model file; or module:object, a fitted classifier in code of yours, which is run.",
        metavar="MODEL",
    ),
]
ModelPath = Annotated[str, typer.Argument(help="A model file.", metavar="MODEL")]


def make_csv_options(
    delimiter: str | None,
    encoding: str | None,
    no_header: bool,
    decimal: str | None,
    sheet: str | None,
) -> CsvOptions:
    """Return how files are to be read."""
    from robustq.io import CsvOptions  # noqa: PLC0415 (slow to import)

    return CsvOptions(delimiter, encoding, not no_header, decimal, sheet)
