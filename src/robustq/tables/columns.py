"""Columns as codes: what is a category, what is a number, and which code each value has.

A code is the position of a value in the column's categories, or of the bin a number
falls into; `MISSING` where there is no value, `UNKNOWN` where it was never seen.
A number that is taken as it is has the code 0 beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from robustq.exceptions import InputError

from .codes import MISSING, UNKNOWN
from .table import FEW_ROWS, as_objects
from .texts import is_date, is_text, say_dates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robustq.arrays import Codes, Floats

    from .table import Column

__all__ = [
    "Binned",
    "Categorical",
    "Category",
    "Numeric",
    "as_numbers",
    "cut",
    "is_missing",
    "learn_bins",
    "learn_categories",
    "share_out",
]

# Integers that span at most this much are looked up in a table, others are searched for.
LOOKUP_SPAN = 1 << 16
# Beyond this a number has no square.
LARGEST_NUMBER = 1e150

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

    def write(self, column: Column, label: str, codes: Codes) -> None:
        """Write the code of each value where it belongs, as `encode` tells it."""
        values = _plain(column, label) if len(column) > FEW_ROWS else column
        if isinstance(values, pa.DictionaryArray) and _can_point(values):
            from . import _kernels  # noqa: PLC0415 (numba is imported when it is needed)

            lookup = self._encode_objects(as_objects(values.dictionary.to_pylist()))
            _kernels.recode(values.indices.to_numpy(), lookup, codes)
        elif _holds_int64(values) and self.lookup is not None and not self._has_wide_integers:
            from . import _kernels  # noqa: PLC0415

            _kernels.look_up_column(values, *self.lookup, codes)
        else:
            codes[:] = self.encode(values, label)

    @cached_property
    def _has_wide_integers(self) -> bool:
        return any(isinstance(c, int) and not -(2**63) <= c < 2**63 for c in self.categories)

    def _encode_dictionary(self, values: pa.DictionaryArray) -> Codes:
        lookup = self._encode_objects(as_objects(values.dictionary.to_pylist()))
        indices = values.indices
        if indices.null_count or not len(lookup):
            # One more entry at the end, for the index that stands for a null.
            indices = pc.fill_null(indices.cast(pa.int64()), len(lookup))
            lookup = np.append(lookup, np.int32(MISSING))
        return lookup.take(indices.to_numpy(), mode="clip")

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
            # The table has a border of unknowns on both sides, for all that lies outside; what is
            # too far away for 64 bits comes out on the other side, and far away there.
            return table.take(values - start, mode="clip")
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

    def decode(self, codes: Codes) -> np.ndarray[Any, Any]:
        """Return the categories of codes, None where there is none."""
        return _decode(self.categories, codes)


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

    def decode(self, codes: Codes) -> np.ndarray[Any, Any]:
        """Return a number in the bin of each code, mostly its middle; NaN if missing."""
        edges = np.asarray(self.edges)
        if not len(edges):
            inside = np.zeros(1)
        else:
            # Halves first: their sum does not overflow. A bin ends at its edge, inclusive.
            middle = np.minimum(edges[:-1] / 2 + edges[1:] / 2, edges[1:])
            inside = np.concatenate([edges[:1], middle, [np.nextafter(edges[-1], np.inf)]])
        return np.append(inside, np.nan)[codes]


@dataclass(frozen=True)
class Numeric:
    """A column of numbers that are taken as they are."""

    name: str

    def read(self, column: Column, label: str) -> Floats:
        """Return the numbers, NaN where there is none."""
        numbers = as_numbers(column, label)
        large = np.abs(numbers) > LARGEST_NUMBER
        if large.any():
            msg = (
                f"{label} holds {numbers[large][0]}; numbers must not exceed {LARGEST_NUMBER:g}: "
                "rescale the column"
            )
            raise InputError(msg)
        return numbers


def _can_point(values: pa.DictionaryArray) -> bool:
    """Tell whether all indices of a dictionary are there, and plain."""
    plain = values.indices.type == pa.int32() and len(values.dictionary) > 0
    return plain and not values.indices.null_count


def _holds_int64(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype == np.int64 and values.flags.c_contiguous


def _decode(categories: tuple[Category, ...], codes: Codes) -> np.ndarray[Any, Any]:
    values = np.append(as_objects(categories), [None])[codes]
    kinds = {type(category) for category in categories}
    if len(kinds) == 1 and kinds <= {int, bool, float} and np.all(codes >= 0):
        return np.asarray(values.tolist())
    return values


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


def learn_bins(
    column: Column, name: str, label: str, bins: int, weights: Floats, *, tails: bool = False
) -> Binned:
    """Return bins that hold equal shares of the weights, as far as ties allow.

    With tails, there are two more for what lies farther out than half of the range.
    """
    numbers = as_numbers(column, label)
    present = ~np.isnan(numbers)
    numbers, weights = numbers[present], weights[present]
    if not len(numbers):
        return Binned(name, ())
    # The one method that knows weights; it picks values of the column itself.
    edges = np.quantile(numbers, share_out(bins), method="inverted_cdf", weights=weights)
    return cut(name, edges, numbers.min(), numbers.max(), tails=tails)


def share_out(bins: int) -> Floats:
    """Return the shares at whose quantiles so many bins end, all but the last."""
    return np.linspace(0, 1, bins + 1)[1:-1]


def cut(name: str, edges: Floats, low: float, high: float, *, tails: bool) -> Binned:
    """Return bins that end at edges, of numbers that lie between two; see `learn_bins`."""
    # Of two zeros, one; the last edge must leave something above it.
    edges = np.unique(edges + 0.0)
    edges = edges[edges < high]
    return Binned(name, tuple((_add_tails(edges, low, high) if tails else edges).tolist()))


def _add_tails(edges: Floats, low: float, high: float) -> Floats:
    if low == high:
        # Of one value, there is nothing to tell apart.
        return edges
    largest, margin = np.finfo(np.float64).max, high / 2 - low / 2
    with np.errstate(over="ignore"):
        first, last = low - margin, high + margin
    # A bin ends at its edge, inclusive; all that was seen lies between the tails.
    first = min(max(first, -largest), np.nextafter(low, -np.inf))
    return np.unique(np.clip([first, *edges, last], -largest, largest))


def as_numbers(column: Column, label: str) -> Floats:
    """Return a column as float64 with NaN for missing values, or raise."""
    try:
        if isinstance(column, pa.Array):
            numbers = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        elif column.dtype == object:
            numbers = np.array([np.nan if is_missing(v) else float(v) for v in column])
        else:
            numbers = column.astype(np.float64)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        msg = f"{label} is numeric, but holds values that are no numbers: {error}"
        raise InputError(msg) from error
    infinite = np.isinf(numbers)
    if infinite.any():
        value = numbers[infinite][0]
        msg = f"Input contains infinity: {label} holds {value}; make it missing or clip it"
        raise InputError(msg)
    return numbers


def _plain(column: Column, label: str) -> Any:
    """Return a dictionary, or a numpy array of numbers or of objects."""
    if isinstance(column, np.ndarray):
        if column.dtype.kind in "biufOU":
            return column.astype(object) if column.dtype.kind in "OU" else column
        if column.dtype.kind != "M":
            raise InputError(_no_category(label, column.dtype))
        column = pa.array(column)
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if pa.types.is_dictionary(kind):
        return column
    whole = pa.types.is_boolean(kind) or pa.types.is_integer(kind)
    if pa.types.is_floating(kind) or (whole and not column.null_count):
        return column.to_numpy(zero_copy_only=False)
    if is_date(kind):
        column = say_dates(column)
    # Gaps do not fit into an integer array; a dictionary keeps all 64 bits.
    if whole or is_text(column.type):
        return column.dictionary_encode()
    raise InputError(_no_category(label, kind))


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
