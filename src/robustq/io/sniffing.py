"""How a text file is written: its encoding, its delimiter, the names of its columns."""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from robustq.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SAMPLE", "CsvOptions", "check_names", "guess_encoding", "sniff"]

SAMPLE = 1 << 18
LONGEST_CELL = 2**31 - 1  # none is too long while the delimiter is not known
DELIMITERS = (",", ";", "\t", "|")
LINES = 50
BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
FORMATS = {
    b"PAR1": ("Parquet", "give it as a file that ends with .parquet"),
    b"\x1f\x8b": ("compressed (gzip)", "let its name end with .gz, or unpack it (zcat)"),
    b"PK\x03\x04": ("a zip archive or a spreadsheet", "unpack it, or save it as CSV"),
    b"\xfd7zXZ": ("compressed (xz)", "unpack it (xzcat)"),
    b"BZh": ("compressed (bzip2)", "let its name end with .bz2, or unpack it (bzcat)"),
    b"\x28\xb5\x2f\xfd": ("compressed (zstd)", "let its name end with .zst, or unpack it"),
}
FALLBACK = "cp1252"  # what spreadsheets write where it is not UTF-8


@dataclass(frozen=True)
class CsvOptions:
    """How a CSV file is to be read; what is None is found out.

    Attributes
    ----------
    delimiter : str, optional
    encoding : str, optional
    header : bool, default True
        Whether the first row names the columns; if not, they are column_1, column_2, …
    """

    delimiter: str | None = None
    encoding: str | None = None
    header: bool = True

    def __post_init__(self) -> None:
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


def sniff(sample: bytes, options: CsvOptions, where: str) -> tuple[CsvOptions, tuple[str, ...]]:
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
    delimiter = options.delimiter or _guess_delimiter(text)
    first = next(row for row in _rows(text, delimiter) if row)
    found = replace(options, encoding=encoding, delimiter=delimiter)
    return found, _name_columns(first, header=options.header, where=where)


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
    for delimiter in DELIMITERS:
        rows = [row for row, _ in zip(_rows(text, delimiter), range(LINES), strict=False) if row]
        # The last row may be cut off.
        whole = rows[:-1] if len(rows) > 2 else rows
        counts = [len(row) for row in whole]
        even = sum(count == counts[0] for count in counts) / len(counts)
        widths[delimiter] = counts[0] if even >= 0.9 else 1
    return max(DELIMITERS, key=lambda delimiter: widths[delimiter])


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    csv.field_size_limit(LONGEST_CELL)
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)


def _name_columns(first: list[str], *, header: bool, where: str) -> tuple[str, ...]:
    names = [name.strip() if header else "" for name in first]
    # Spreadsheets and pandas leave the name of an index empty.
    names = [name or f"column_{index}" for index, name in enumerate(names, start=1)]
    check_names(names, where)
    return tuple(names)


def check_names(names: list[str], where: str) -> None:
    """Raise if two columns have the same name."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        msg = f"{where} has two columns named {twice[0]!r}: rename one"
        raise InputError(msg)
