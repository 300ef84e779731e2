"""How a text file is written: its encoding, its delimiter, the names of its columns."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from robustq.exceptions import InputError
from robustq.tables.texts import NUMBER
from robustq.texts import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "SAMPLE",
    "CsvOptions",
    "Sniffed",
    "check_names",
    "guess_encoding",
    "name_columns",
    "note_header",
    "sniff",
    "squeeze",
]

SAMPLE = 1 << 18
LONGEST_VALUE = 2**31 - 1  # none is too long while the delimiter is not known
DELIMITERS = (",", ";", "\t", "|")
# What is only suggested: spaces and the like stand in text too.
OTHER_DELIMITERS = {" ": "space", ":": ":", "~": "~", "^": "^", "#": "#", "/": "/", "_": "_"}
LINES = 50
BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
FORMATS = {
    b"PAR1": ("Parquet", "give it as a file that ends with .parquet"),
    b"\x1f\x8b": ("compressed (gzip)", "let its name end with .gz, or unpack it (zcat)"),
    b"PK\x03\x04": ("a zip archive", "unpack it; a workbook has a name that ends with .xlsx"),
    b"\xfd7zXZ": ("compressed (xz)", "unpack it (xzcat)"),
    b"BZh": ("compressed (bzip2)", "let its name end with .bz2, or unpack it (bzcat)"),
    b"\x28\xb5\x2f\xfd": ("compressed (zstd)", "let its name end with .zst, or unpack it"),
}
PAGES = ("<!doctype", "<html", "<?xml")
FALLBACK = "cp1252"  # what spreadsheets write where it is not UTF-8


@dataclass(frozen=True)
class CsvOptions:
    """How a file is to be read; what is None is found out.

    Attributes
    ----------
    delimiter : str, optional
    encoding : str, optional
    header : bool, default True
        Whether the first row names the columns; if not, they are column_1, column_2, …
    decimal : {".", ","}, optional
        The decimal mark; the other one marks thousands. A point by default, and then thousands
        are told where there is no doubt, as in $1,001.
    sheet : str, optional
        Of a workbook; the first one by default.
    """

    delimiter: str | None = None
    encoding: str | None = None
    header: bool = True
    decimal: str | None = None
    sheet: str | None = None

    def __post_init__(self) -> None:
        for name in ("delimiter", "encoding", "decimal", "sheet"):
            value = getattr(self, name)
            if not isinstance(value, str | None):
                msg = f"{name} must be text, got {shorten(repr(value), 60)}"
                raise InputError(msg)
        if self.decimal not in {None, ".", ","}:
            msg = f"the decimal mark is a point or a comma, got {self.decimal!r}"
            raise InputError(msg)
        given = {"tab": "\t", "\\t": "\t", "space": " "}.get(self.delimiter or "", self.delimiter)
        object.__setattr__(self, "delimiter", given)
        if given is not None and (len(given) != 1 or given in '"\r\n' or not given.isascii()):
            msg = f"a delimiter is a single character such as , or ; (or tab), got {given!r}"
            raise InputError(msg)
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError as error:
                msg = f"unknown encoding {self.encoding!r}: utf-8, cp1252 and utf-16 are usual"
                raise InputError(msg) from error


class Sniffed(NamedTuple):
    """How a file is written, the names of its columns, and what its reader should know."""

    options: CsvOptions
    names: tuple[str, ...]
    notes: tuple[str, ...]


def sniff(sample: bytes, options: CsvOptions, where: str) -> Sniffed:
    """Return how a file is written, and the names of its columns.

    Parameters
    ----------
    sample : bytes
        The beginning of the file.
    options : CsvOptions
        What is known already.
    where : str
        What to call the file in an error.
    """
    for mark, (kind, remedy) in FORMATS.items():
        if sample.startswith(mark):
            msg = f"{where} is {kind}, not text: {remedy}"
            raise InputError(msg)
    encoding = options.encoding or guess_encoding(sample)
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(sample).lstrip("\ufeff")
    except UnicodeDecodeError as error:
        guessed = "any encoding known here" if options.encoding is None else encoding
        msg = f"{where} is not written in {guessed}: give its encoding (--encoding)"
        raise InputError(msg) from error
    if "\x00" in text[:1000]:
        msg = f"{where} is no table that can be read: give a CSV, ARFF or Parquet file"
        raise InputError(msg)
    if not text.strip():
        msg = f"{where} is empty: there is not even a row with the names of columns"
        raise InputError(msg)
    if text.lstrip()[:9].lower().startswith(PAGES):
        msg = f"{where} is a page of HTML or XML, not a table: did the download need a sign-in?"
        raise InputError(msg)
    delimiter = options.delimiter or _guess_delimiter(text)
    first, *rows = _take_rows(text, delimiter)
    found = replace(options, encoding=encoding, delimiter=delimiter)
    notes = note_header(first, rows) if options.header else ()
    if len(first) == 1 and options.delimiter is None:
        notes = (*_note_single_column(text), *notes)
    return Sniffed(found, name_columns(first, options.header, where, notes), notes)


def guess_encoding(sample: bytes) -> str:
    """Return the encoding of a file that begins like this."""
    for bom, encoding in BOMS.items():
        if sample.startswith(bom):
            return encoding
    try:
        # The sample may end within a character.
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return FALLBACK
    return "utf-8"


def _guess_delimiter(text: str) -> str:
    """Return what cuts the first rows into the most columns, as many in each."""
    widths = {}
    widths = {delimiter: _measure(text, delimiter) for delimiter in DELIMITERS}
    return max(DELIMITERS, key=lambda delimiter: widths[delimiter])


def _measure(text: str, delimiter: str) -> int:
    """Return into how many columns a delimiter cuts rows; 1 where it is not the same in each."""
    rows = _take_rows(text, delimiter)
    # The last row may be cut off.
    whole = rows[:-1] if len(rows) > 2 else rows
    counts = [len(row) for row in whole]
    even = sum(count == counts[0] for count in counts) / len(counts)
    return counts[0] if even >= 0.9 else 1


def _take_rows(text: str, delimiter: str) -> list[list[str]]:
    """Return the first rows that are not empty."""
    csv.field_size_limit(LONGEST_VALUE)
    lines: Iterable[str] = io.StringIO(text, newline="")
    if delimiter == " ":
        lines = (squeeze(line.encode()).decode() for line in lines)
    rows = csv.reader(lines, delimiter=delimiter)
    return list(itertools.islice((row for row in rows if row), LINES))


def squeeze(line: bytes) -> bytes:
    """Return a line whose values are one space apart, but for what is quoted."""
    line = re.sub(rb'("[^"]*")| +', lambda found: found[1] or b" ", line)
    return re.sub(rb" (\r?\n?)$", rb"\1", line.lstrip(b" "))


def _note_single_column(text: str) -> tuple[str, ...]:
    """Return a note on text that has one column here, and would have more with a delimiter."""
    for delimiter, name in OTHER_DELIMITERS.items():
        width = _measure(text, delimiter)
        if width > 1:
            said = f"is it one column, or {width} with another delimiter"
            return (f"{said} (--delimiter {name}; in Python, delimiter={delimiter!r})?",)
    return ()


def note_header(first: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return a note on names of columns that look like a row of data."""
    columns = zip(first, *(row for row in rows if len(row) == len(first)), strict=True)
    like_data = sum(_is_like(*map(str.strip, column)) for column in columns)
    if like_data * 2 <= len(first):
        return ()
    shown = ", ".join(first[:3])[:40]
    return (f"its first row looks like data ({shown}, …): are there no names (--no-header)?",)


def _is_like(name: str, *values: str) -> bool:
    if re.fullmatch(NUMBER, name):
        return any(re.fullmatch(NUMBER, value) for value in values)
    return bool(name) and name in values


def name_columns(
    first: Sequence[str], header: bool, where: str, notes: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the names of columns; those without get one."""
    names = [name.strip() if header else "" for name in first]
    # Spreadsheets and pandas leave the name of an index empty.
    names = [name or f"column_{index}" for index, name in enumerate(names, start=1)]
    check_names(names, where, notes)
    return tuple(names)


def check_names(names: Sequence[str], where: str, notes: Sequence[str] = ()) -> None:
    """Raise if two columns have the same name."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        remedy = "; ".join(notes) or "rename one"
        msg = f"{where} has two columns named {twice[0]!r}: {remedy}"
        raise InputError(msg)
