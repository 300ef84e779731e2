"""Tables as rows that a model can read: one code, or one number, for each column."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
import pyarrow as pa

from robustq.exceptions import InputError

from .codes import MISSING
from .columns import (
    Binned,
    Categorical,
    Numeric,
    as_numbers,
    learn_bins,
    learn_categories,
)
from .understanding import Verdict, understand

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robustq.arrays import Bools, Codes, Floats, Indices

    from .table import Column, Table

__all__ = ["Encoding", "Rows", "find_positions"]

EncodedColumn: TypeAlias = Categorical | Binned | Numeric


@dataclass(frozen=True)
class Rows:
    """Rows as a model reads them.

    Attributes
    ----------
    codes : ndarray of shape (rows, columns)
        Negative where there is no value; 0 beside a number.
    numbers : ndarray of shape (rows, numeric columns)
        The numbers that are taken as they are, NaN where there is none.
    """

    codes: Codes
    numbers: Floats

    @classmethod
    def empty(cls, rows: int, columns: int, numeric: int) -> Rows:
        """Return room for so many rows."""
        return cls(np.empty((rows, columns), dtype=np.int32), np.empty((rows, numeric)))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Indices | Bools | slice) -> Rows:
        return Rows(self.codes[rows], self.numbers[rows])

    @property
    def bits(self) -> Codes:
        """Codes and numbers in one matrix of integers; equal rows have equal bits."""
        if not self.numbers.shape[1]:
            return self.codes
        # Two zeros are equal, and so are all the numbers that are none.
        numbers = np.where(np.isnan(self.numbers), np.nan, self.numbers + 0.0)
        return np.hstack([self.codes, numbers.view(np.int32)])

    def fill(self, block: slice, part: Rows) -> None:
        """Write a block of rows."""
        self.codes[block] = part.codes
        self.numbers[block] = part.numbers


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become codes.

    Attributes
    ----------
    columns : tuple of Categorical, Binned or Numeric
    named : bool
        Whether the table it was learned from had names.
    verdicts : tuple of Verdict
        Why each column was taken as what it is, with remarks; empty where nobody knows any more.
    """

    columns: tuple[EncodedColumn, ...]
    named: bool
    verdicts: tuple[Verdict, ...] = field(default=(), compare=False)

    @classmethod
    def learn(
        cls,
        table: Table,
        weights: Floats,
        *,
        bins: int | None,
        tails: bool = False,
        categorical: Sequence[str | int] = (),
        numeric: Sequence[str | int] = (),
        labels: Indices | None = None,
        remarks: bool = True,
    ) -> Encoding:
        """Learn categories, bins and kinds of columns from a table.

        Parameters
        ----------
        table : Table
        weights : ndarray of shape (rows,)
            Rows of weight 0 teach nothing.
        bins : int
            How many bins a numeric column is cut into, at most; None leaves numbers as they are.
        tails : bool
            Whether there are two more bins, for numbers far outside.
        categorical, numeric : sequence of str or int
            Columns, by name or position, whose kind is not to be inferred.
        labels : ndarray of int, optional
            The classes of the rows: columns that give them away are remarked on.
        remarks : bool
            Whether to look for mistakes in columns.
        """
        kinds = find_positions(table.names, table.width, categorical, numeric)
        columns: list[EncodedColumn] = []
        verdicts: list[Verdict] = []
        counted = np.flatnonzero(weights)
        labels = None if labels is None else labels[counted]
        for index in range(table.width):
            column, label = _take(table.column(index), counted), table.label(index)
            name = table.names[index] if table.names else str(index)
            given = kinds.get(index)
            verdict = understand(column, name, label, given=given, labels=labels, remarks=remarks)
            verdicts.append(verdict)
            if not verdict.numeric:
                columns.append(learn_categories(column, name, label))
            elif (bins is None or tails) and np.isnan(as_numbers(column, label)).all():
                # Nothing was ever seen here: whatever comes later is unknown.
                columns.append(Categorical(name, ()))
            elif bins is not None:
                columns.append(learn_bins(column, name, label, bins, weights[counted], tails=tails))
            else:
                columns.append(Numeric(name))
        return cls(tuple(columns), table.names is not None, tuple(verdicts))

    @property
    def remarks(self) -> dict[str, str]:
        """What a user may want to change, column by column."""
        found = zip(self.columns, self.verdicts, strict=False)
        return {column.name: verdict.remark for column, verdict in found if verdict.remark}

    def __repr__(self) -> str:
        """Return in words how the table was understood."""
        lines = self.describe()
        widths = [max((len(line[i]) for line in lines), default=0) for i in range(2)]
        shown = [
            f"{name:{widths[0]}}  {kind:{widths[1]}}  {why}".rstrip() for name, kind, why in lines
        ]
        remarks = [f"{name} {remark}" for name, remark in self.remarks.items()]
        return "\n".join([f"How {len(lines)} columns are understood", *shown, *remarks])

    def describe(self) -> list[tuple[str, str, str]]:
        """Return for each column its name, what it is taken as, and why, in words."""
        reasons = [verdict.why for verdict in self.verdicts] or [""] * len(self.columns)
        return [
            (column.name, _name_kind(column), why)
            for column, why in zip(self.columns, reasons, strict=True)
        ]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def repeating(self) -> frozenset[str]:
        """The names of the columns of categories."""
        return frozenset(c.name for c in self.columns if isinstance(c, Categorical))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many codes each column has; 0 where it holds numbers."""
        return tuple(
            0 if isinstance(column, Numeric) else len(column.categories) for column in self.columns
        )

    @cached_property
    def numeric(self) -> tuple[int, ...]:
        """The positions of the columns whose numbers are taken as they are."""
        return tuple(i for i, column in enumerate(self.columns) if isinstance(column, Numeric))

    @cached_property
    def _slots(self) -> dict[int, int]:
        """Where the numbers of a column stand among those of all."""
        return {index: slot for slot, index in enumerate(self.numeric)}

    def arrange(self, table: Table, model: str) -> Table:
        """Return the table with the columns this was learned from, in their order.

        They are matched by name where both sides have names; columns beyond them are
        ignored. Otherwise the numbers of columns must agree.
        """
        if self.named and table.names is not None:
            return table.select(self.names)
        if table.width != len(self.columns):
            msg = (
                f"X has {table.width} features, but {model} is expecting {len(self.columns)} "
                "features as input"
            )
            raise InputError(msg)
        return table

    def encode(self, table: Table) -> Rows:
        """Return the rows of an arranged table."""
        rows = Rows.empty(table.rows, len(self.columns), len(self.numeric))
        if table.holds_int64 and self._joint_lookup is not None:
            from . import _kernels  # noqa: PLC0415 (numba is imported when it is needed)

            _kernels.look_up(table.source, *self._joint_lookup, rows.codes)
            return rows
        for index, column in enumerate(self.columns):
            texts = table.find_texts(index) if isinstance(column, Categorical) else None
            values = table.column(index) if texts is None else texts
            label = table.label(index)
            if isinstance(column, Numeric):
                numbers = column.read(values, label)
                rows.numbers[:, self._slots[index]] = numbers
                rows.codes[:, index] = np.where(np.isnan(numbers), MISSING, 0)
            elif isinstance(column, Categorical):
                column.write(values, label, rows.codes[:, index])
            else:
                rows.codes[:, index] = column.encode(values, label)
        return rows

    @cached_property
    def _joint_lookup(self) -> tuple[Indices, Indices, Codes] | None:
        """The lookup tables of all columns in one, where every column has one."""
        lookups = [getattr(column, "lookup", None) for column in self.columns]
        found = [lookup for lookup in lookups if lookup is not None]
        if len(found) < len(lookups):
            return None
        starts = np.array([start for start, _ in found], dtype=np.int64)
        offsets = np.cumsum([0, *(len(table) for _, table in found)], dtype=np.int64)
        return starts, offsets, np.concatenate([table for _, table in found])

    def decode(self, rows: Rows) -> Any:
        """Return the table that rows stand for: an Arrow table if there are names, or an array."""
        columns = [
            rows.numbers[:, self._slots[index]]
            if isinstance(column, Numeric)
            else column.decode(rows.codes[:, index])
            for index, column in enumerate(self.columns)
        ]
        if self.named:
            return pa.table([_as_arrow(values) for values in columns], names=list(self.names))
        kinds = {values.dtype.kind for values in columns}
        # Numbers of one kind fit an array; a mixture, or text, needs objects.
        if len(kinds) > 1 or kinds - set("ifb"):
            columns = [values.astype(object) for values in columns]
        return np.column_stack(columns)

    def refuse_unknown(self, table: Table, unknown: Bools, first_row: int) -> NoReturn:
        """Raise for the first value never seen in training."""
        row, index = (int(i) for i in np.argwhere(unknown)[0])
        column = table.column(index)
        value = column[row].as_py() if isinstance(column, pa.Array) else column.tolist()[row]
        categories = getattr(self.columns[index], "categories", ())
        known = [repr(category) for category in categories[:10]]
        more = ", …" if len(categories) > len(known) else ""
        msg = (
            f"{table.label(index)} holds {value!r} in row {first_row + row}, which was never seen "
            f"in training (known: {', '.join(known)}{more}); to take such values as missing, set "
            'handle_unknown="missing"'
        )
        raise InputError(msg)

    def grow(self, table: Table, weights: Floats) -> Encoding:
        """Return an encoding that knows the categories of this table too.

        Rows of weight 0 teach nothing. New categories come after the old ones, whose codes stay;
        bins stay.
        """
        columns: list[EncodedColumn] = []
        for index, column in enumerate(self.columns):
            if isinstance(column, Categorical):
                label = table.label(index)
                values = _take(table.column(index), np.flatnonzero(weights))
                seen = learn_categories(values, column.name, label).categories
                new = tuple(c for c in seen if c not in column.positions)
                columns.append(Categorical(column.name, column.categories + new))
            else:
                columns.append(column)
        return Encoding(tuple(columns), self.named, self.verdicts)


def _name_kind(column: EncodedColumn) -> str:
    if isinstance(column, Numeric):
        return "numbers"
    count = len(column.categories)
    if isinstance(column, Binned):
        return f"numbers, {count} {'bin' if count == 1 else 'bins'}"
    return f"{count:,} {'category' if count == 1 else 'categories'}"


def _as_arrow(values: np.ndarray[Any, Any]) -> Any:
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # A column of several types has none in Arrow: it becomes text.
        return pa.array([None if v is None else ascii(v).strip("'") for v in values.tolist()])


def _take(column: Column, rows: Indices) -> Column:
    if len(rows) < len(column):
        return column.take(rows)
    # Columns of an array lie apart: whoever reads one reads all of it, and it is read many times.
    return np.ascontiguousarray(column) if isinstance(column, np.ndarray) else column


def find_positions(
    names: tuple[str, ...] | None,
    width: int,
    categorical: Sequence[str | int],
    numeric: Sequence[str | int],
) -> dict[int, bool]:
    """Return which columns a user says are numeric, and which are not, by position."""
    as_category = _positions(names, width, categorical, "categorical")
    as_number = _positions(names, width, numeric, "numeric")
    if both := as_category & as_number:
        column = f"column {names[min(both)]!r}" if names else f"column {min(both)}"
        msg = f"{column} is in both categorical and numeric: name it once"
        raise InputError(msg)
    return dict.fromkeys(as_category, False) | dict.fromkeys(as_number, True)


def _positions(
    names: tuple[str, ...] | None, width: int, columns: Sequence[str | int], option: str
) -> set[int]:
    if isinstance(columns, str) or not hasattr(columns, "__iter__"):
        msg = f"{option} must be a list of columns, got {columns!r}"
        raise InputError(msg)
    found, position = set(), {name: index for index, name in enumerate(names or ())}
    for column in columns:
        if isinstance(column, str) and column in position:
            found.add(position[column])
        elif isinstance(column, Integral) and 0 <= column < width:
            found.add(int(column))
        else:
            msg = f"{option} names {column!r}, which is no column of the table"
            raise InputError(msg)
    return found
