"""What is in a column, told by parts of it: summaries that add up to that of the whole.

The sum is the same, however a column is parted, and what is understood from it is what is
understood from the whole column at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from robustq.exceptions import InputError

from .columns import Categorical, as_numbers, learn_categories
from .distinct import Different
from .understanding import Content, Order, name_sort, take_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robustq.arrays import Floats

__all__ = ["ColumnSummary", "unify_types"]

EVERY = 1 << 62  # different numbers


@dataclass(frozen=True)
class ColumnSummary:
    """What is in a part of a column, or in all of it.

    Attributes
    ----------
    kind : pyarrow.DataType
    present : int
        How many values there are.
    values : Arrow array
        The different ones, in the order in which they first came; of numbers, none.
    numbers : Different
        The different numbers; of fractions none, unless they are categories.
    fractions : bool
        Whether there are numbers that are not whole.
    order : Order
        Of the numbers that are there.
    ends : tuple of float
        The first number and the last one, by which the order of two parts is found.
    examples : tuple of float
        The first numbers.
    """

    kind: pa.DataType
    present: int
    values: Any
    numbers: Different
    fractions: bool
    order: Order
    ends: tuple[float, float]
    examples: tuple[float, ...]

    @classmethod
    def of(
        cls, column: Any, label: str, *, keep: bool = False, numeric: bool = False
    ) -> ColumnSummary:
        """Look at an Arrow array.

        Parameters
        ----------
        column : Arrow array
        label : str
            How to speak of it.
        keep : bool
            Whether numbers are categories, of which all are kept.
        numeric : bool
            Whether it is to be taken as numbers, whatever it holds.
        """
        kind = column.type
        if pa.types.is_nested(kind):
            msg = f"{label} holds lists or records ({kind}): drop it or flatten it"
            raise InputError(msg)
        most = EVERY if keep else Different.of(np.empty(0)).most
        nothing = Order(np.inf, -np.inf, strict=True)
        if not _holds_numbers(kind):
            plain = _list_values(column)
            present = len(column) - column.null_count
            none = Different.of(np.empty(0), most)
            order = _find_span(as_numbers(column, label)) if numeric else nothing
            return cls(kind, present, plain, none, False, order, (np.nan, np.nan), ())
        return cls._of_numbers(column, label, most, nothing, keep=keep)

    @classmethod
    def _of_numbers(
        cls, column: Any, label: str, most: int, nothing: Order, *, keep: bool
    ) -> ColumnSummary:
        numbers = as_numbers(column, label)
        found = numbers[~np.isnan(numbers)]
        none = pa.nulls(0)
        if not len(found):
            empty = Different.of(np.empty(0, column.type.to_pandas_dtype()), most)
            return cls(column.type, 0, none, empty, False, nothing, (np.nan, np.nan), ())
        whole = pa.types.is_integer(column.type)
        fractions = not whole and bool(np.any(found != np.floor(found)))
        # Whole numbers of 64 bits are more than floats can tell apart.
        exact = pc.unique(column.drop_null()).to_numpy(zero_copy_only=False) if whole else found
        different = Different.of(exact[:0] if fractions and not keep else exact, most)
        steps = np.diff(found)
        strict = bool(np.all(steps > 0) or np.all(steps < 0))
        order = Order(float(found.min()), float(found.max()), strict)
        ends = float(found[0]), float(found[-1])
        shown = tuple(found[:3].tolist())
        return cls(column.type, len(found), none, different, fractions, order, ends, shown)

    def __add__(self, other: ColumnSummary) -> ColumnSummary:
        """Return what is in both parts, the other one after this one."""
        fractions = self.fractions or other.fractions
        numbers = self.numbers + other.numbers
        if fractions and numbers.most < EVERY:
            numbers = Different.of(numbers.values[:0], numbers.most)
        numeric = not _holds_values(self.kind) and not _holds_values(other.kind)
        return ColumnSummary(
            unify_types([self.kind, other.kind]),
            self.present + other.present,
            self.values if numeric else _join(self, other),
            numbers,
            fractions,
            _join_orders(self, other),
            (
                self.ends[0] if self.order.low <= self.order.high else other.ends[0],
                other.ends[1] if other.order.low <= other.order.high else self.ends[1],
            ),
            (*self.examples, *other.examples)[:3],
        )

    def tell(self, rows: int) -> Content:
        """Return what is in a column of so many rows that this is the summary of."""
        gaps = self.present < rows
        if not _holds_numbers(self.kind):
            texts = self.values
            return Content(
                name_sort(self.kind), len(texts), self.present, lambda: take_texts(texts), gaps
            )
        whole = pa.types.is_integer(self.kind) or (gaps and not self.fractions)
        if whole:
            return Content(
                "whole numbers",
                self.numbers.count,
                self.present,
                gaps=gaps,
                order=lambda: self.order,
            )
        # Of others it matters only whether they differ.
        same = self.present and self.order.low == self.order.high
        return Content("numbers", 1 if same else self.present, self.present)

    def categories(self, name: str, label: str) -> Categorical:
        """Return the categories of a column that this is the summary of."""
        if not _holds_numbers(self.kind):
            values = self.values
            if pa.types.is_dictionary(self.kind):
                values = values.dictionary_encode()
            return learn_categories(values, name, label)
        if not len(self.numbers.values):
            return Categorical(name, ())
        return learn_categories(self.numbers.values, name, label)


def unify_types(kinds: Sequence[pa.DataType]) -> pa.DataType:
    """Return the type that holds the values of all, as tables of these types would be joined."""
    plain = [_decode(kind) for kind in kinds]
    known = [kind for kind in kinds if not pa.types.is_null(kind)]
    schemas = [pa.schema([("", kind)]) for kind in plain]
    joined = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    if known and all(pa.types.is_dictionary(kind) for kind in known):
        return pa.dictionary(pa.int32(), joined)
    return joined


def _find_span(numbers: Floats) -> Order:
    found = numbers[~np.isnan(numbers)]
    low, high = found.min(initial=np.inf), found.max(initial=-np.inf)
    return Order(float(low), float(high), strict=False)


def _decode(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _holds_numbers(kind: pa.DataType) -> bool:
    return pa.types.is_floating(kind) or pa.types.is_integer(kind)


def _holds_values(kind: pa.DataType) -> bool:
    return not _holds_numbers(kind) and not pa.types.is_null(kind)


def _list_values(column: Any) -> Any:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary.take(pc.unique(column.indices.drop_null()))
    try:
        return pc.unique(column.drop_null())
    except pa.ArrowNotImplementedError:
        return column.drop_null()  # of a type that will be refused


def _join(one: ColumnSummary, other: ColumnSummary) -> Any:
    """Return the different values of two parts."""
    kind = _decode(unify_types([one.kind, other.kind]))
    parts = [_as_values(part, kind) for part in (one, other)]
    try:
        return pc.unique(pa.concat_arrays(parts))
    except pa.ArrowNotImplementedError:
        return pa.concat_arrays(parts)


def _as_values(part: ColumnSummary, kind: pa.DataType) -> Any:
    if _holds_numbers(part.kind):
        return pa.array(part.numbers.values).cast(kind)
    return part.values.cast(kind)


def _join_orders(one: ColumnSummary, other: ColumnSummary) -> Order:
    a, b = one.order, other.order
    if a.low > a.high or b.low > b.high:
        return b if a.low > a.high else a
    (first, end), (start, last) = one.ends, other.ends
    # Each part goes one way, and so does the step between them.
    ways = {
        np.sign(step)
        for step, rows in (
            (end - first, one.present),
            (start - end, 2),
            (last - start, other.present),
        )
        if rows > 1
    }
    strict = a.strict and b.strict and len(ways) == 1 and 0.0 not in ways
    return Order(min(a.low, b.low), max(a.high, b.high), strict)
