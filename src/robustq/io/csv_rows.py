"""The rows of CSV: where it is plain, as they are cut, and else as Arrow reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv

from robustq.exceptions import InputError
from robustq.tables.table import join_chunks
from robustq.tables.words import encode_words

from .cells import PlainCells, is_worth_it
from .gathering import gather
from .utf8 import CSV_BLOCK, Squeezed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from .sniffing import CsvOptions
    from .utf8 import Utf8

__all__ = ["CsvRows"]


@dataclass
class CsvRows:
    """The rows of a text.

    Attributes
    ----------
    name : str
        What to call it.
    text : Utf8
    options : CsvOptions
        How it is written; nothing is to be found out any more.
    names : tuple of str
        Of all columns.
    wanted : list of str
        The columns to read, in that order.
    repeating : collection of str
        The columns that become dictionaries.
    """

    name: str
    text: Utf8
    options: CsvOptions
    names: tuple[str, ...]
    wanted: list[str]
    repeating: Collection[str]

    def read(self, batch_rows: int, size: int) -> Iterator[pa.Table]:
        """Yield tables of so many rows at most; the first one may have none, but columns.

        Parameters
        ----------
        batch_rows : int
        size : int
            Of the file, in bytes; 0 if nobody knows.

        Raises
        ------
        InputError
            Where a row has too many cells, or too few.
        """
        before = 0
        if self._may_be_plain and is_worth_it(size, len(self.names), batch_rows):
            yield self._encode(pa.schema([(n, pa.string()) for n in self.wanted]).empty_table())
            delimiter = str(self.options.delimiter)
            cells = PlainCells(self.text, delimiter, self.names, self.wanted, self.repeating)
            yield from cells.read(batch_rows, header=self.options.header)
            if cells.is_done:
                return
            before = cells.rows
        yield from self._read_rest(batch_rows, before)

    @property
    def _may_be_plain(self) -> bool:
        wanted = set(self.wanted)
        # Of mere numbers Arrow loses no time; and it says what is wrong with unknown names.
        some = not wanted.isdisjoint(self.repeating) and wanted <= set(self.names)
        return some and self.text.is_valid and self.options.delimiter != " "

    def _read_rest(self, batch_rows: int, before: int) -> Iterator[pa.Table]:
        """Yield what comes behind some rows."""
        wrong: list[Any] = []
        header = self.options.header and not before
        try:
            batches = self._open(wrong, header=header)
            if not before:  # its schema comes first, also where there is no row
                yield self._encode(batches.schema.empty_table())
            pieces = (self._encode(pa.table(batch)) for batch in batches)
            yield from gather(pieces, batch_rows)
        except pa.ArrowInvalid as error:
            raise InputError(self._explain(error, wrong, before)) from error

    def _open(self, wrong: list[Any], *, header: bool) -> Any:
        """Open Arrow's reader, which notes what is wrong."""

        def note(row: Any) -> str:
            wrong.append(row)
            return "error"

        delimiter = self.options.delimiter
        return pa.csv.open_csv(
            Squeezed(self.text) if delimiter == " " else self.text,
            read_options=pa.csv.ReadOptions(
                column_names=list(self.names),
                skip_rows_after_names=1 if header else 0,
                block_size=CSV_BLOCK,
                use_threads=False,  # else nobody can tell the number of a wrong row
            ),
            parse_options=pa.csv.ParseOptions(
                delimiter=delimiter,
                newlines_in_values=True,
                invalid_row_handler=note,
                ignore_empty_lines=len(self.names) > 1,  # of one column, they are empty cells
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(self.names, pa.string()),
                include_columns=self.wanted,
                strings_can_be_null=False,
                check_utf8=not self.text.is_valid,
            ),
        )

    def _encode(self, table: pa.Table) -> pa.Table:
        """Return a table some of whose texts are dictionaries."""
        columns = {
            name: encode_words(join_chunks(table[name])) if name in self.repeating else table[name]
            for name in table.column_names
        }
        return pa.table(columns)

    def _explain(self, error: Exception, wrong: list[Any], before: int) -> str:
        if wrong:
            row = wrong[0]
            shown = row.text if len(row.text) <= 60 else row.text[:57] + "…"
            return (
                f"{self.name}, row {before + row.number}: {row.actual_columns} values where "
                f"{row.expected_columns} were expected: {shown!r}; mend the row, or give the "
                "delimiter (--delimiter)"
            )
        text = str(error)
        if "straddling" in text:
            what = f"a row is longer than {self.text.piece:,} bytes"
            return f"{self.name}: {what}: is a quote left open, or is it no table?"
        return f"{self.name} cannot be read as a table ({text})"
