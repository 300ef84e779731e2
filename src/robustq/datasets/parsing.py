"""From UCI's own files to records: the columns used, the label, and which file a row is of."""

from __future__ import annotations

import csv
import difflib
from typing import TYPE_CHECKING, NamedTuple

from robustq.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .sources import Source

__all__ = ["Record", "parse"]

GAP = "?"
SIMILAR = 0.8
REMARKS = ("|", "*")  # how the first lines of adult.test and of the flare files begin


class Record(NamedTuple):
    """A row: the place of its file among the data set's, its features, its label."""

    file: int
    features: tuple[str, ...]
    label: str


def parse(source: Source, file: str, content: bytes) -> list[Record]:
    """Return the records of a raw file; rows with missing values are left out.

    Raises
    ------
    InputError
        If it is not the file it should be; the message names the file, the line and the remedy.
    """
    try:
        rows = list(_read_rows(source, file, content))
    except csv.Error as error:
        msg = f"{file} cannot be read ({error}): {_remedy(source)}"
        raise InputError(msg) from error
    expected = source.files[file]
    if len(rows) != expected:
        msg = f"{file} has {len(rows):,} rows, and UCI's has {expected:,}: {_remedy(source)}"
        raise InputError(msg)
    place = list(source.files).index(file)
    return [
        Record(place, tuple(row[name] for name in source.features), _label(source, file, row))
        for row in rows
        if GAP not in row.values()
    ]


def _read_rows(source: Source, file: str, content: bytes) -> Iterator[dict[str, str]]:
    header = source.header
    lines = _decode(source, file, content).splitlines()
    for number, cells in enumerate(_read_cells(lines, source.delimiter), start=1):
        if not any(cells) or cells[0].startswith(REMARKS):
            continue
        if len(cells) != len(source.columns):
            msg = (
                f"{file}, line {number}: {len(cells)} values where {len(source.columns)} were "
                f"expected: {_remedy(source)}"
            )
            raise InputError(msg)
        if header:
            _check_header(source, file, cells)
            header = False
            continue
        yield dict(zip(source.columns, cells, strict=True))


def _check_header(source: Source, file: str, cells: list[str]) -> None:
    for name, given in zip(source.columns, cells, strict=True):
        # UCI's own headers have misprints.
        if difflib.SequenceMatcher(None, name.lower(), given.lower()).ratio() < SIMILAR:
            msg = f"{file}: column {given!r} where {name!r} was expected: {_remedy(source)}"
            raise InputError(msg)


def _decode(source: Source, file: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        msg = f"{file} is not text: {_remedy(source)}"
        raise InputError(msg) from error


def _read_cells(lines: list[str], delimiter: str | None) -> Iterator[list[str]]:
    if delimiter is None:
        return map(str.split, lines)
    return ([cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter))


def _label(source: Source, file: str, row: dict[str, str]) -> str:
    try:
        return source.target.read(row)
    except ValueError as error:
        msg = f"{file}: a row has no readable class ({error}): {_remedy(source)}"
        raise InputError(msg) from error


def _remedy(source: Source) -> str:
    return f"it is damaged or another version; take the one in {source.url}"
