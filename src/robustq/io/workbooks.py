"""Excel workbooks in and out: a sheet is a table of text, as CSV is."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Self

import pyarrow as pa

from robustq.exceptions import FileError, InputError, UnsupportedError
from robustq.files import explain_os_error

from .sniffing import LINES, CsvOptions, name_columns, note_header

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

__all__ = ["Sheet", "WorkbookWriter", "open_sheet"]

MOST_ROWS = (1 << 20) - 1  # of a sheet, beside its header
LONGEST_TEXT = 32_767  # in a cell
ERRORS = ("#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!")
ILLEGAL = "[\x00-\x08\x0b\x0c\x0e-\x1f]"


@dataclass(frozen=True, eq=False)
class Sheet:
    """A sheet of a workbook, of which the names of the columns are known.

    Attributes
    ----------
    where : str
        What to call the workbook.
    names : tuple of str
    notes : tuple of str
        What its reader should know.
    book, rows
        The workbook, and the rows below the names.
    """

    where: str
    names: tuple[str, ...]
    notes: tuple[str, ...]
    book: Any
    rows: Iterator[list[str]]

    def read(self, wanted: list[str], size: int) -> Iterator[pa.Table]:
        """Yield batches of so many rows, all columns text."""
        places = [self.names.index(name) for name in wanted]
        schema = pa.schema([(name, pa.string()) for name in wanted])
        yield schema.empty_table()
        numbered = enumerate(self.rows, start=2)
        while batch := list(itertools.islice(numbered, size)):
            for number, row in batch:
                if any(row[len(self.names) :]):
                    msg = (
                        f"{self.where}, row {number}: a value to the right of the last named "
                        "column: name its column, or clear it"
                    )
                    raise InputError(msg)
            filled = [row + [""] * len(self.names) for _, row in batch if any(row)]
            columns = [pa.array([row[place] for row in filled], pa.string()) for place in places]
            yield pa.table(columns, schema=schema)
        self.book.close()


def open_sheet(file: IO[bytes], options: CsvOptions, where: str) -> Sheet:
    """Return a sheet of a workbook.

    Raises
    ------
    UnsupportedError
        If openpyxl is not installed.
    InputError
        If it is no workbook, has no such sheet, or the sheet is empty.
    """
    with _explaining(where):
        book = _import().load_workbook(file, read_only=True, data_only=True)
        sheets = {sheet.title: sheet for sheet in book.worksheets}
        name = next(iter(sheets), None) if options.sheet is None else options.sheet
        if name not in sheets:
            have = ", ".join(map(repr, sheets)) or "none"
            msg = f"{where} has no sheet {options.sheet!r}; it has {have}"
            raise InputError(msg)
        rows = _read_rows(sheets[name], where)
        head = list(itertools.islice(rows, LINES))
    if not head or not any(head[0]):
        msg = f"{where}, sheet {name!r}: the first row is empty, where names are expected"
        raise InputError(msg)
    width = max(i for i, value in enumerate(head[0], start=1) if value)
    first = head[0][:width]
    notes = note_header(first, [row[:width] for row in head[1:]]) if options.header else ()
    names = name_columns(first, options.header, where, notes)
    if options.sheet is None and len(sheets) > 1:
        others = ", ".join(repr(other) for other in sheets if other != name)
        notes = (*notes, f"of its sheets, {name!r} was read; others (--sheet) are {others}")
    below = itertools.chain(head[1:] if options.header else head, rows)
    return Sheet(where, names, notes, book, below)


def _import() -> ModuleType:
    try:
        import openpyxl  # noqa: PLC0415 (optional)
    except ImportError as error:
        msg = 'Excel files need openpyxl: pip install "robustq[excel]", or save the table as CSV'
        raise UnsupportedError(msg) from error
    return openpyxl


@contextmanager
def _explaining(where: str) -> Iterator[None]:
    try:
        yield
    except (InputError, UnsupportedError):
        raise
    except OSError as error:
        msg = f"{where} cannot be read ({explain_os_error(error)})"
        raise FileError(msg) from error
    except Exception as error:
        # A damaged workbook fails in any way that archives, XML and their readers know.
        what = str(error).strip() or type(error).__name__
        msg = f"{where} cannot be read as an Excel workbook ({what}): save it anew, or as CSV"
        raise InputError(msg) from error


def _read_rows(sheet: Any, where: str) -> Iterator[list[str]]:
    # Some programs write a wrong extent.
    sheet.reset_dimensions()
    with _explaining(where):
        for row in sheet.iter_rows(values_only=True):
            yield [_say(value) for value in row]


def _say(value: Any) -> str:
    """Return a cell as CSV would have it."""
    if value is None or value in ERRORS:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, dt.datetime):
        return str(value).removesuffix(" 00:00:00")
    return str(value)


class WorkbookWriter:
    """A workbook of one sheet."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        nested = [field.name for field in schema if pa.types.is_nested(field.type)]
        if nested:
            msg = f"column {nested[0]!r} holds lists or records, which Excel cannot: use .parquet"
            raise InputError(msg)
        self.file, self.rows = file, 0
        self.book = _import().Workbook(write_only=True)
        self.sheet = self.book.create_sheet("robustq")
        self._append(schema.names)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.book.save(self.file)
        else:
            # It keeps what was written in a file of its own until it is closed.
            self.sheet.close()

    def write_table(self, table: pa.Table) -> None:
        """Write a batch."""
        self.rows += table.num_rows
        if self.rows > MOST_ROWS:
            msg = f"an Excel sheet has room for {MOST_ROWS:,} rows: write .parquet or .csv instead"
            raise InputError(msg)
        for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
            self._append(row)

    def _append(self, values: Any) -> None:
        self.sheet.append([self._make_cell(value) for value in values])

    def _make_cell(self, value: Any) -> Any:
        if isinstance(value, (bool, int, type(None))) and abs(value or 0) < 2**53:
            return value
        if isinstance(value, float) and math.isfinite(value):
            return value
        if isinstance(value, float) and math.isnan(value):
            return None
        from openpyxl.cell import WriteOnlyCell  # noqa: PLC0415 (optional)

        text = re.sub(ILLEGAL, "\ufffd", str(value))[:LONGEST_TEXT]
        cell = WriteOnlyCell(self.sheet, text)
        # Text that begins with = is text: nothing that comes out of data is a formula.
        cell.data_type = "s"
        return cell
