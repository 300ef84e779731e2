"""A table of any make, seen as columns.

Frames (pandas, polars, Arrow, whatever narwhals knows) give Arrow columns, which
keep strings and categories as dictionaries; arrays, and the plain numbers of pandas, give
numpy columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeAlias

import narwhals as nw
import numpy as np
import pyarrow as pa

from robustq.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Column",
    "Table",
    "as_objects",
    "count_rows",
    "is_frame",
    "join_chunks",
    "list_columns",
    "take_rows",
]

Column: TypeAlias = "np.ndarray[Any, Any] | pa.Array"

FEW_ROWS = 32  # are looked at cell by cell: that takes less than to ask for each column


@dataclass(frozen=True)
class Table:
    """Columns of equal length, with names if the source had any.

    Attributes
    ----------
    source : narwhals.DataFrame or ndarray
        What was given; columns are made of it when they are asked for.
    names : tuple of str, or None
        Whole numbers as names become text.
    order : tuple of int, or None
        Which columns of the source these are; all of them by default.
    """

    source: nw.DataFrame[Any] | np.ndarray[Any, Any]
    names: tuple[str, ...] | None
    order: tuple[int, ...] | None = None

    @classmethod
    def read(cls, given: object) -> Table:
        """Read a pandas or polars frame, an Arrow table or a 2-D array.

        Raises
        ------
        InputError
            If it is none of these, or has no rows or no columns.
        """
        if nw.dependencies.is_into_series(given):
            msg = (
                "Expected 2D array, got 1D array instead: X is a single column; make it a table, "
                "as in frame[['name']]"
            )
            raise InputError(msg)
        table = _from_frame(given) if is_frame(given) else _from_array(given)
        _require_content(table)
        return table

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.source)

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.source.shape[1] if self.order is None else len(self.order)

    @property
    def holds_int64(self) -> bool:
        """Whether the table is an array of plain integers."""
        return isinstance(self.source, np.ndarray) and self.source.dtype == np.int64

    def column(self, index: int) -> Column:
        """Return a column: of Arrow or, if it holds plain numbers or objects, of numpy."""
        if isinstance(self.source, np.ndarray):
            return self.source[:, index]
        position = index if self.order is None else self.order[index]
        return _as_column(self._series[position], self.label(index))

    def find_texts(self, index: int) -> np.ndarray[Any, Any] | None:
        """Return a column of few rows that holds text, or nothing, as objects; else None."""
        if isinstance(self.source, np.ndarray) or self.rows > FEW_ROWS:
            return None
        position = index if self.order is None else self.order[index]
        values = [row[position] for row in self._cells]
        return as_objects(values) if all(map(_is_text_or_gap, values)) else None

    @cached_property
    def _cells(self) -> Sequence[Sequence[Any]]:
        """All cells of a frame, row by row."""
        assert isinstance(self.source, nw.DataFrame)  # noqa: S101 (whoever asks has looked)
        if self.source.implementation.is_pandas():
            return self.source.to_native().to_numpy(dtype=object)
        return self.source.rows()

    @cached_property
    def _series(self) -> list[nw.Series[Any] | pa.ChunkedArray]:
        """All columns of a frame: to ask for one takes as long as there are columns."""
        assert isinstance(self.source, nw.DataFrame)  # noqa: S101 (whoever asks has looked)
        if self.source.implementation.is_pyarrow():
            return list(self.source.to_native().columns)
        return list(self.source.iter_columns())

    def select(self, names: Sequence[str]) -> Table:
        """Return the columns of these names, in this order; others are ignored.

        Raises
        ------
        InputError
            If a column is missing; the message names it.
        """
        have = self.names or ()
        position = {name: index for index, name in enumerate(have)}
        missing = [name for name in names if name not in position]
        if missing:
            msg = (
                f"the table lacks {list_columns(missing)}, which the model was fitted with; "
                f"it has {list_columns(have)}"
            )
            raise InputError(msg)
        return Table(self.source, tuple(names), tuple(position[name] for name in names))

    def slice(self, rows: slice) -> Table:
        """Return some of the rows."""
        if rows.start == 0 and rows.stop == self.rows:
            return self
        return Table(self.source[rows], self.names, self.order)

    def label(self, index: int) -> str:
        """Return how to speak of a column: by its name, or by its position."""
        return f"column {self.names[index]!r}" if self.names else f"column {index}"


def _is_text_or_gap(value: object) -> bool:
    return type(value) is str or value is None or (type(value) is float and value != value)  # noqa: PLR0124 (NaN)


def take_rows(given: Any, rows: np.ndarray[Any, Any]) -> Any:
    """Return some rows of a frame or array, as the same kind of thing."""
    if nw.dependencies.is_into_series(given):
        return nw.from_native(given, series_only=True)[rows].to_native()
    if is_frame(given):
        try:
            frame = given if nw.dependencies.is_into_dataframe(given) else pa.table(given)
            return nw.from_native(frame, eager_only=True)[rows].to_native()
        except (nw.exceptions.NarwhalsError, pa.ArrowException) as error:
            raise InputError(str(error)) from error
    if hasattr(given, "tocsr"):
        return given.tocsr()[rows]
    if isinstance(given, (list, tuple)):
        return [given[row] for row in rows.tolist()]
    return given[rows] if hasattr(given, "shape") else np.asarray(given)[rows]


def count_rows(given: Any) -> int:
    """Return how many rows a frame or array has."""
    if not hasattr(given, "shape") and hasattr(given, "__array__"):
        given = np.asarray(given)
    shape = getattr(given, "shape", None)
    if isinstance(shape, tuple) and shape:
        return int(shape[0])
    # Types and arrays without axes have a length only by name.
    if isinstance(given, (str, type)) or not hasattr(given, "__len__") or shape == ():
        msg = f"X must be a table or an array, got {type(given).__name__}"
        raise InputError(msg)
    return len(given)


def is_frame(given: object) -> bool:
    """Tell whether something is a frame rather than an array."""
    return nw.dependencies.is_into_dataframe(given) or hasattr(given, "__arrow_c_stream__")


def _require_content(table: Table) -> None:
    # The first words are scikit-learn's, whose users know them.
    for have, what, kind in ((table.width, "columns", "feature"), (table.rows, "rows", "sample")):
        if not have:
            msg = (
                f"Found array with 0 {kind}(s) (shape=({table.rows}, {table.width})) while a "
                f"minimum of 1 is required: the table has no {what}"
            )
            raise InputError(msg)


def _from_frame(given: Any) -> Table:
    try:
        if not nw.dependencies.is_into_dataframe(given):
            given = pa.table(given)
        frame = nw.from_native(given, eager_only=True)
        names: list[Any] = list(frame.columns)
    except (nw.exceptions.NarwhalsError, pa.ArrowException) as error:
        raise InputError(str(error)) from error
    # Files without a header come with numbers for names: they tell columns apart as well.
    named = any(all(isinstance(name, kind) for name in names) for kind in (str, Integral))
    return Table(frame, tuple(str(name) for name in names) if named else None)


def _as_column(series: nw.Series[Any] | pa.ChunkedArray, label: str) -> Column:
    if isinstance(series, pa.ChunkedArray):
        array = series
    else:
        native = series.to_native()
        if isinstance(getattr(native, "dtype", None), np.dtype) and native.dtype.kind in "biuf":
            # A pandas column of plain numbers is a numpy array already.
            return native.to_numpy()
        try:
            array = series.to_arrow()
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            # A column of mixed Python objects has no Arrow type.
            return as_objects(series.to_list())
    if pa.types.is_nested(array.type):
        msg = f"{label} holds lists or records ({array.type}): drop it or flatten it"
        raise InputError(msg)
    return join_chunks(array)


def join_chunks(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column in one piece: itself where it is, since Arrow would copy it."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    found = column.combine_chunks()
    # Of no chunks, some versions make none.
    return found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)


def as_objects(values: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Return a 1-D object array, whatever the values are."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _from_array(given: object) -> Table:
    if hasattr(given, "tocsr"):
        msg = "Sparse data is not supported: convert it to a dense array with X.toarray()"
        raise InputError(msg)
    if hasattr(given, "collect"):
        msg = f"{type(given).__name__} is lazy: call its collect() first"
        raise InputError(msg)
    return Table(_as_2d(given), None)


def _as_2d(source: object) -> np.ndarray[Any, Any]:
    if isinstance(source, (list, tuple)):
        # Through objects: numpy would turn a mix of numbers and text into text.
        source = _narrow(np.asarray(source, dtype=object))
    if isinstance(source, np.ma.MaskedArray):
        gaps, source = np.ma.getmaskarray(source), source.data.astype(object)
        source[gaps] = None
    try:
        array = np.asarray(source)
    except (TypeError, ValueError) as error:
        msg = f"expected a table, got {type(source).__name__}"
        raise InputError(msg) from error
    if array.dtype.kind == "c":
        msg = "Complex data not supported: give real numbers or categories"
        raise InputError(msg)
    if array.ndim != 2:
        msg = (
            f"Expected 2D array, got {'scalar' if array.ndim == 0 else f'{array.ndim}D'} array "
            f"instead: shape {array.shape}. Reshape your data either using array.reshape(-1, 1) "
            "if it has a single column or array.reshape(1, -1) if it is a single row"
        )
        raise InputError(msg)
    return array


def _narrow(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Give an object array that holds nothing but numbers its plain type back."""
    kinds = {type(value) for value in array.flat}
    if kinds and all(issubclass(kind, (int, float, np.number, bool)) for kind in kinds):
        return np.asarray(array.tolist())
    return array


def list_columns(names: Sequence[str], most: int = 8) -> str:
    """Return the names of some columns in words."""
    if not names:
        return "no column"
    shown = ", ".join(repr(name) for name in names[:most])
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{'columns' if len(names) > 1 else 'column'} {shown}{more}"
