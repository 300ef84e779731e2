"""Columns as codes: what is a category, what is a number, and which code each value has.

A code is the position of a value in the column's categories, or of the bin a number
falls into; `MISSING` where there is no value, `UNKNOWN` where it was never seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from robustq.exceptions import InputError

from .codes import MISSING, UNKNOWN
from .table import as_objects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robustq.arrays import Bools, Codes, Floats, Indices

    from .table import Column, Table

__all__ = ["Binned", "Categorical", "Category", "Encoding", "is_missing"]

# Integers that span at most this much are looked up in a table, others are searched for.
LOOKUP_SPAN = 1 << 16

Category = str | int | float | bool


@dataclass(frozen=True)
class Categorical:
    """A column of categories; the code of a value is its position among them."""

    name: str
    categories: tuple[Category, ...]

    def encode(self, column: Column, label: str) -> Codes:
        """Return the code of each value."""
        values = _plain(column, label)
        if isinstance(values, pa.DictionaryArray):
            return self._encode_dictionary(values)
        if values.dtype == object:
            return self._encode_objects(values)
        if values.dtype == np.uint64 or self._has_wide_integers:
            # Where 64 bits with a sign do not hold everything, Python's integers do.
            return self._encode_objects(values.astype(object))
        return self._encode_numbers(values)

    @cached_property
    def _has_wide_integers(self) -> bool:
        return any(isinstance(c, int) and not -(2**63) <= c < 2**63 for c in self.categories)

    def _encode_dictionary(self, values: pa.DictionaryArray) -> Codes:
        lookup = self._encode_objects(as_objects(values.dictionary.to_pylist()))
        # One more entry at the end, for the index −1 that stands for a null.
        lookup = np.append(lookup, np.int32(MISSING))
        indices = pc.fill_null(values.indices.cast(pa.int64()), -1)
        return lookup[indices.to_numpy(zero_copy_only=False)]

    def _encode_objects(self, values: np.ndarray[Any, Any]) -> Codes:
        code = self.positions
        found = (
            MISSING if is_missing(value) else code.get(_canonical(value), UNKNOWN)
            for value in values
        )
        return np.fromiter(found, dtype=np.int32, count=len(values))

    def _encode_numbers(self, values: np.ndarray[Any, Any]) -> Codes:
        if values.dtype.kind in "biu" and self.lookup is not None:
            start, table = self.lookup
            values = values.astype(np.int64, copy=False)
            # The table has a border of unknowns on both sides, for all that lies outside.
            position = np.clip(values, start, start + len(table) - 1) - start
            return table[position]
        numbers, codes = self._sorted_numbers
        if not len(numbers):
            return np.where(_missing_numbers(values), MISSING, UNKNOWN).astype(np.int32)
        position = np.minimum(np.searchsorted(numbers, values), len(numbers) - 1)
        found = np.where(numbers[position] == values, codes[position], UNKNOWN)
        return np.where(_missing_numbers(values), MISSING, found).astype(np.int32)

    @cached_property
    def positions(self) -> dict[Category, int]:
        """The code of each category."""
        return {_canonical(category): code for code, category in enumerate(self.categories)}

    @cached_property
    def _sorted_numbers(self) -> tuple[np.ndarray[Any, Any], Codes]:
        pairs = [(c, i) for i, c in enumerate(self.categories) if not isinstance(c, str)]
        numbers = np.array([c for c, _ in pairs])
        order = np.argsort(numbers, kind="stable")
        codes = np.array([i for _, i in pairs], dtype=np.int32)
        return numbers[order], codes[order]

    @cached_property
    def lookup(self) -> tuple[int, Codes] | None:
        """The first integer and the codes of it and its successors, if that fits a table."""
        numbers, codes = self._sorted_numbers
        if not len(numbers) or numbers.dtype.kind == "f":
            return None
        low, high = int(numbers[0]), int(numbers[-1])
        if high - low > LOOKUP_SPAN or abs(low) > 2**62 or abs(high) > 2**62:
            return None
        table = np.full(high - low + 3, UNKNOWN, dtype=np.int32)
        table[numbers.astype(np.int64) - low + 1] = codes
        return low - 1, table


@dataclass(frozen=True)
class Binned:
    """A column of numbers, cut into bins at `edges`; bin i ends at edge i, inclusive."""

    name: str
    edges: tuple[float, ...]

    @property
    def categories(self) -> tuple[Category, ...]:
        """The bins, as text."""
        ends = [repr(edge) for edge in self.edges]
        starts, stops = ["-inf", *ends], [*ends, "inf"]
        return tuple(
            f"({a}, {b}{')' if b == 'inf' else ']'}" for a, b in zip(starts, stops, strict=True)
        )

    def encode(self, column: Column, label: str) -> Codes:
        """Return the bin of each number."""
        numbers = as_numbers(column, label)
        bins = np.searchsorted(np.asarray(self.edges), numbers).astype(np.int32)
        return np.where(np.isnan(numbers), np.int32(MISSING), bins)


def learn_categories(column: Column, name: str, label: str) -> Categorical:
    """Return the categories of a column: its values, sorted, numbers before text."""
    values = _plain(column, label)
    if isinstance(values, pa.DictionaryArray):
        used = values.dictionary.take(pc.unique(values.indices.drop_null()))
        values = as_objects(used.to_pylist())
    if values.dtype == object:
        found = {_canonical(value, label) for value in values if not is_missing(value)}
        return Categorical(name, tuple(sorted(found, key=_sort_key)))
    return Categorical(name, tuple(_unique_numbers(values, label)))


def learn_bins(column: Column, name: str, label: str, bins: int, weights: Floats) -> Binned:
    """Return bins that hold equal shares of the weights, as far as ties allow."""
    numbers = as_numbers(column, label)
    present = ~np.isnan(numbers)
    numbers, weights = numbers[present], weights[present]
    if not len(numbers):
        return Binned(name, ())
    shares = np.linspace(0, 1, bins + 1)[1:-1]
    # The one method that knows weights; it picks values of the column itself.
    edges = np.unique(np.quantile(numbers, shares, method="inverted_cdf", weights=weights))
    # The last edge must leave something above it.
    return Binned(name, tuple(edges[edges < numbers.max()].tolist()))


def is_numeric(column: Column, label: str) -> bool:
    """Tell whether a column holds numbers rather than categories.

    Floats are numbers, unless all of them are whole and some are missing: those were
    integers before the gaps made floats of them.
    """
    if isinstance(column, pa.Array):
        if not pa.types.is_floating(column.type):
            return False
    elif column.dtype == object:
        return _objects_are_numeric(column)
    elif column.dtype.kind != "f":
        return False
    numbers = as_numbers(column, label)
    missing = np.isnan(numbers)
    present = numbers[~missing]
    return not (missing.any() and bool(np.all(present == np.floor(present))))


def as_numbers(column: Column, label: str) -> Floats:
    """Return a column as float64 with NaN for missing values, or raise."""
    try:
        if isinstance(column, pa.Array):
            numbers = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        elif column.dtype == object:
            numbers = np.array([np.nan if is_missing(v) else float(v) for v in column])
        else:
            numbers = column.astype(np.float64)
    except (pa.ArrowException, TypeError, ValueError) as error:
        msg = f"{label} is numeric, but holds values that are no numbers: {error}"
        raise InputError(msg) from error
    infinite = np.isinf(numbers)
    if infinite.any():
        value = numbers[infinite][0]
        msg = f"Input contains infinity: {label} holds {value}; make it missing or clip it"
        raise InputError(msg)
    return numbers


def _objects_are_numeric(column: np.ndarray[Any, Any]) -> bool:
    present = [value for value in column if not is_missing(value)]
    if not any(isinstance(value, (float, np.floating)) for value in present):
        return False
    if not all(isinstance(value, (int, float, np.number)) for value in present):
        return False
    gaps = len(present) < len(column)
    return not (gaps and all(float(value).is_integer() for value in present))


def _plain(column: Column, label: str) -> Any:
    """Return a dictionary, or a numpy array of numbers or of objects."""
    if isinstance(column, np.ndarray):
        if column.dtype.kind in "biuf":
            return column
        if column.dtype.kind in "OU":
            return column.astype(object)
        raise InputError(_no_category(label, column.dtype))
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if pa.types.is_dictionary(kind):
        return column
    whole = pa.types.is_boolean(kind) or pa.types.is_integer(kind)
    if pa.types.is_floating(kind) or (whole and not column.null_count):
        return column.to_numpy(zero_copy_only=False)
    # Gaps do not fit into an integer array; a dictionary keeps all 64 bits.
    if whole or _is_text(kind):
        return column.dictionary_encode()
    raise InputError(_no_category(label, kind))


def _is_text(kind: Any) -> bool:
    return (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _no_category(label: str, kind: object) -> str:
    return f"{label} is of type {kind}: make it text, integers or floats, or drop it"


def is_missing(value: object) -> bool:
    """Tell whether a value stands for none: None, NaN, NaT or pandas' NA."""
    # NaN, NaT and pandas' NA differ from themselves, or will not say.
    if value is None:
        return True
    try:
        return bool(value != value)  # noqa: PLR0124
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"


def _missing_numbers(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)


def _canonical(value: Any, label: str = "a column") -> Category:
    """Return the plain value that stands for all its equals: 2 for 2.0 and numpy's 2."""
    if isinstance(value, (str, bool, int)) and not isinstance(value, np.generic):
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, (str, bool, int)) or (isinstance(value, float) and np.isfinite(value)):
        return value
    msg = f"{label}: argument must be a string or a number to be a category, got {value!r}"
    raise InputError(msg)


def _sort_key(category: Category) -> tuple[bool, Any]:
    return isinstance(category, str), category


def _unique_numbers(values: np.ndarray[Any, Any], label: str) -> Sequence[Category]:
    if values.dtype.kind == "f":
        present = np.unique(values[~np.isnan(values)])
        return [_canonical(value, label) for value in present]
    if values.dtype.kind == "b":
        return np.unique(values).tolist()
    low, high = int(values.min()), int(values.max())
    if high - low > LOOKUP_SPAN or not -(2**62) < low <= high < 2**62:
        return np.unique(values).tolist()
    seen = np.zeros(high - low + 1, dtype=bool)
    seen[values - low] = True
    return (np.flatnonzero(seen) + low).tolist()


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become codes.

    Attributes
    ----------
    columns : tuple of Categorical or Binned
    named : bool
        Whether the table it was learned from had names.
    """

    columns: tuple[Categorical | Binned, ...]
    named: bool

    @classmethod
    def learn(
        cls,
        table: Table,
        weights: Floats,
        *,
        bins: int,
        categorical: Sequence[str | int] = (),
        numeric: Sequence[str | int] = (),
    ) -> Encoding:
        """Learn categories and bins from a table.

        Parameters
        ----------
        table : Table
        weights : ndarray of shape (rows,)
            Rows of weight 0 teach nothing.
        bins : int
            How many bins a numeric column is cut into, at most.
        categorical, numeric : sequence of str or int
            Columns, by name or position, whose kind is not to be inferred.
        """
        as_category = _positions(table, categorical, "categorical")
        as_number = _positions(table, numeric, "numeric")
        if both := as_category & as_number:
            msg = f"{table.label(min(both))} is in both categorical and numeric: name it once"
            raise InputError(msg)
        columns: list[Categorical | Binned] = []
        counted = np.flatnonzero(weights)
        for index in range(table.width):
            column, label = _take(table.column(index), counted), table.label(index)
            name = table.names[index] if table.names else str(index)
            inferred = index not in as_category and is_numeric(column, label)
            if index in as_number or inferred:
                columns.append(learn_bins(column, name, label, bins, weights[counted]))
            else:
                columns.append(learn_categories(column, name, label))
        return cls(tuple(columns), named=table.names is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many codes each column has."""
        return tuple(len(column.categories) for column in self.columns)

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

    def encode(self, table: Table) -> Codes:
        """Return the codes of an arranged table, (rows, columns)."""
        codes = np.empty((table.rows, len(self.columns)), dtype=np.int32)
        if table.holds_int64 and self._joint_lookup is not None:
            from . import _kernels  # noqa: PLC0415 (numba is imported when it is needed)

            _kernels.look_up(table.source, *self._joint_lookup, codes)
            return codes
        for index, column in enumerate(self.columns):
            codes[:, index] = column.encode(table.column(index), table.label(index))
        return codes

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

    def refuse_unknown(self, table: Table, unknown: Bools, first_row: int) -> NoReturn:
        """Raise for the first cell that holds a value never seen in training."""
        row, index = (int(i) for i in np.argwhere(unknown)[0])
        column = table.column(index)
        value = column[row].as_py() if isinstance(column, pa.Array) else column.tolist()[row]
        known = [repr(category) for category in self.columns[index].categories[:10]]
        more = ", …" if len(self.columns[index].categories) > len(known) else ""
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
        columns: list[Categorical | Binned] = []
        for index, column in enumerate(self.columns):
            if isinstance(column, Categorical):
                label = table.label(index)
                values = _take(table.column(index), np.flatnonzero(weights))
                seen = learn_categories(values, column.name, label).categories
                new = tuple(c for c in seen if c not in column.positions)
                columns.append(Categorical(column.name, column.categories + new))
            else:
                columns.append(column)
        return Encoding(tuple(columns), self.named)


def _take(column: Column, rows: Indices) -> Column:
    return column if len(rows) == len(column) else column.take(rows)


def _positions(table: Table, columns: Sequence[str | int], option: str) -> set[int]:
    if isinstance(columns, str) or not hasattr(columns, "__iter__"):
        msg = f"{option} must be a list of columns, got {columns!r}"
        raise InputError(msg)
    found = set()
    for column in columns:
        if isinstance(column, str) and table.names and column in table.names:
            found.add(table.names.index(column))
        elif isinstance(column, Integral) and 0 <= column < table.width:
            found.add(int(column))
        else:
            msg = f"{option} names {column!r}, which is no column of the table"
            raise InputError(msg)
    return found
