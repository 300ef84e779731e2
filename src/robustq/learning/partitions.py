"""Rows in parts, wherever they are, and what is learned from all of them together.

Whatever has the parts (files, Dask, Spark) does one thing: it hands each part to some work and
merges what comes back, in the order of the parts. Nothing that is learned depends on how the
rows are parted, as long as their order stays and weights are whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from robustq.exceptions import InputError
from robustq.tables import as_numbers
from robustq.tables.table import join_chunks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from robustq.arrays import Floats

__all__ = [
    "LocalPartitions",
    "Partitions",
    "Piece",
    "Reader",
    "Work",
    "add",
]

LARGEST_WEIGHT = 1e100  # sums of them must not overflow
T = TypeVar("T")
Work = Callable[[int, Iterable[pa.Table]], T]


class Partitions(Protocol):
    """Parts of a table, in an order."""

    def run(self, work: Work[T], merge: Callable[[T, T], T]) -> T:
        """Hand each part, with its number, to some work; return what it gives, merged in order.

        Both go to other processes: they can be pickled.
        """

    def spread(self, work: Callable[[Any], T], items: Sequence[Any]) -> list[T]:
        """Return what some work makes of each item, in order."""


@dataclass(frozen=True)
class LocalPartitions:
    """Parts that are read one after the other, in this process.

    Attributes
    ----------
    parts : sequence of callable
        Each yields the tables of a part.
    """

    parts: Sequence[Callable[[], Iterable[pa.Table]]]

    def run(self, work: Work[T], merge: Callable[[T, T], T]) -> T:
        """Do the work, a part at a time."""
        found = work(0, self.parts[0]())
        for index, part in enumerate(self.parts[1:], 1):
            found = merge(found, work(index, part()))
        return found

    def spread(self, work: Callable[[Any], T], items: Sequence[Any]) -> list[T]:
        """Do the work, an item at a time."""
        return [work(item) for item in items]


def add(one: Any, other: Any) -> Any:
    """Return the sum of what two parts gave; None is nothing."""
    if one is None or other is None:
        return other if one is None else one
    return one + other


class Piece(NamedTuple):
    """Some rows that have a label.

    Attributes
    ----------
    X : pyarrow.Table
    y : Arrow array
    weights : ndarray of shape (rows,)
    """

    X: pa.Table
    y: Any
    weights: Floats


@dataclass(frozen=True)
class Reader:
    """How tables are read: which column is the target, and which are features.

    Attributes
    ----------
    target : str
    weight : str, optional
        The column with the weights of the rows; all are 1 by default.
    drop : tuple of str
        Columns to leave out.
    factors : mapping of label to float, optional
        By what weights are multiplied.
    schema : dict of str to type, optional
        What the features are in all parts, once that is known.
    label_type : pyarrow.DataType, optional
        What the labels are in all parts.
    """

    target: str
    weight: str | None = None
    drop: tuple[str, ...] = ()
    factors: Mapping[Any, float] | None = None
    schema: dict[str, pa.DataType] | None = None
    label_type: pa.DataType | None = None

    @classmethod
    def of(cls, target: str, weight: str | None, drop: Iterable[str]) -> Reader:
        """Return one for names that a user gives.

        Raises
        ------
        InputError
            If they are no names.
        """
        several = isinstance(drop, list | tuple | set | frozenset)
        dropped: list[Any] = list(drop) if several else [drop]
        for what, name in [("target", target), *(("drop", name) for name in dropped)]:
            if not isinstance(name, str):
                msg = f"{what} names columns, as in {what}='age', got {type(name).__name__}"
                raise InputError(msg)
        if not (weight is None or isinstance(weight, str)):
            msg = f"sample_weight names a column of weights, got {type(weight).__name__}"
            raise InputError(msg)
        return cls(target, weight, tuple(dropped))

    def read(self, tables: Iterable[pa.Table]) -> Iterator[Piece]:
        """Yield the rows that have a label, a table at a time, where there are any."""
        for table in tables:
            piece = self.read_one(table)
            if len(piece.y):
                yield piece

    def read_one(self, table: pa.Table) -> Piece:
        """Return the rows of a table that have a label."""
        named = [self.target, *(() if self.weight is None else (self.weight,))]
        for name in named:
            if name not in table.column_names:
                have = ", ".join(map(repr, table.column_names[:20]))
                msg = f"there is no column {name!r}; the table has {have}"
                raise InputError(msg)
        y = _as_labels(table[self.target], self.target)
        if y.null_count:
            rows = pc.indices_nonzero(pc.is_valid(y))
            table, y = table.take(rows), y.take(rows)
        left_out = {*named, *self.drop}
        X = table.select([name for name in table.column_names if name not in left_out])
        return self._conform(Piece(X, y, self._read_weights(table)))

    def _read_weights(self, table: pa.Table) -> Floats:
        if self.weight is None:
            return np.ones(table.num_rows)
        weights = as_numbers(join_chunks(table[self.weight]), f"column {self.weight!r}")
        if not np.all((weights >= 0.0) & (weights <= LARGEST_WEIGHT)):
            msg = f"weights, column {self.weight!r}, must be at least 0 and at most 1e100"
            raise InputError(msg)
        return weights

    def _conform(self, piece: Piece) -> Piece:
        X, y, weights = piece
        if self.factors is not None:
            codes = y.dictionary_encode()
            each = np.array([float(self.factors.get(v, 1.0)) for v in codes.dictionary.to_pylist()])
            weights = weights * each[codes.indices.to_numpy()]
        if self.schema is None:
            return Piece(X, y, weights)
        columns = {
            name: _cast(join_chunks(X[name]), kind)
            if name in X.column_names
            else pa.nulls(len(y), kind)
            for name, kind in self.schema.items()
        }
        y = y if self.label_type is None else y.cast(self.label_type)
        return Piece(pa.table(columns), y, weights)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    if pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
    if pa.types.is_dictionary(kind) and not pa.types.is_dictionary(column.type):
        return column.cast(kind.value_type).dictionary_encode().cast(kind)
    return column.cast(kind, safe=False)


def _as_labels(column: pa.ChunkedArray, name: str) -> Any:
    """Return labels: numbers, truth values or text, null where there is none."""
    values = join_chunks(column)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if pa.types.is_floating(kind):
        values = values.cast(pa.float64())
        return pc.if_else(pc.is_finite(values), values, None)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return values
    try:
        return values.cast(pa.string())
    except pa.ArrowException as error:
        msg = f"column {name!r} holds {kind}, and a class is text or a number"
        raise InputError(msg) from error
