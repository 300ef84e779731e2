"""Whole tables, as the command reads them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from robustq.exceptions import InputError, TableWarning

from .columns import infer_types, require_columns
from .sniffing import CsvOptions
from .sources import as_path, open_sources

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .sources import Source

__all__ = ["ReadTable", "read", "read_table"]


class ReadTable(NamedTuple):
    """A table that was read.

    Attributes
    ----------
    table : pyarrow.Table
    notes : dict of str to str
        What was done, or may be wrong, by column; by file where it is about all of them.
    """

    table: pa.Table
    notes: dict[str, str]

    def require(self, wanted: Sequence[str], where: str, why: str) -> None:
        """Raise if a column is not there; say what may have gone wrong in reading."""
        require_columns(wanted, self.table.column_names, where, why, self.notes.get(where, ""))


def read(
    path: str | Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    header: bool = True,
    decimal: str | None = None,
    sheet: str | None = None,
) -> pa.Table:
    r"""Return a table as the command reads it: CSV, Parquet or Excel, compressed or not.

    Empty cells, NA, N/A, NaN, null, None and ? are missing values, in any case of letters; so are
    #N/A and <NA>. Text that is numbers becomes numbers, $1,001 and 45% too; 007 stays text.

    Parameters
    ----------
    path : path
        A file, a folder, or a pattern such as "parts/*.csv".
    delimiter, encoding : str, optional
        Of CSV; found out by default.
    header : bool, default True
        Whether the first row names the columns; if not, they are column_1, column_2, …
    decimal : {".", ","}, optional
        The decimal mark, a point by default.
    sheet : str, optional
        Of a workbook; the first one by default.

    Returns
    -------
    pyarrow.Table

    Warns
    -----
    TableWarning
        If values were read in a way that is not plain to see, or the file seems to be written
        otherwise: without names, with another delimiter.

    Examples
    --------
    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("colour,size\nred,2.5\n?,3.5\n")
    ...     file.flush()
    ...     read(file.name).to_pylist()
    [{'colour': 'red', 'size': 2.5}, {'colour': None, 'size': 3.5}]
    """
    options = CsvOptions(delimiter, encoding, header, decimal, sheet)
    table, notes = read_table(open_sources([as_path(path)], options))
    if notes:
        msg = "; ".join(f"{name}: {note}" for name, note in notes.items())
        warnings.warn(TableWarning(msg, notes), stacklevel=2)
    return table


def read_table(sources: Sequence[Source], *, infer: bool = True) -> ReadTable:
    """Return whole files as one table.

    Parameters
    ----------
    sources : sequence of Source
    infer : bool, default True
        Whether columns of text get the types they look like.
    """
    tables, notes = [], {}
    for source in sources:
        table = pa.concat_tables(list(source.read())).combine_chunks()
        if infer:
            table, found = infer_types(table)
            notes.update(found)
        if source.notes:
            notes[source.name] = " ".join(source.notes)
        tables.append(table)
    try:
        whole = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    except pa.ArrowException as error:
        names = ", ".join(source.name for source in sources[:3])
        msg = f"the columns of {names} do not fit together ({error})"
        raise InputError(msg) from error
    return ReadTable(whole, notes)
