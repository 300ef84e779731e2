"""How a training table was understood: which columns are numbers, which are categories."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from robustq.tables import Binned, Categorical, as_numbers

from .columns import NUMBER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robustq.tables import Encoding

__all__ = ["Understanding", "describe_columns", "find_numbers"]

MANY = 50  # more different whole numbers than this are taken as numbers


@dataclass(frozen=True)
class Understanding:
    """How a column was understood.

    Attributes
    ----------
    name : str
    kind : str
    values : str
        How many there are, or between what they lie.
    missing : int
    examples : str
    remark : str
        What a user may want to change.
    """

    name: str
    kind: str
    values: str
    missing: int
    examples: str
    remark: str


def find_numbers(table: pa.Table, given: Sequence[str], categorical: Sequence[str]) -> list[str]:
    """Return the columns to take as numbers: those given, and whole numbers with many values."""
    told = {*given, *categorical}
    many = [
        name
        for name, column in zip(table.column_names, table.columns, strict=True)
        if _is_whole(column) and name not in told and pc.count_distinct(column).as_py() > MANY
    ]
    return [*given, *many]


def _is_whole(column: pa.ChunkedArray) -> bool:
    """Tell whether a column holds whole numbers, also those that are floats because of gaps."""
    if pa.types.is_floating(column.type):
        return bool(pc.all(pc.equal(column, pc.round(column))).as_py())
    return bool(pa.types.is_integer(column.type))


def describe_columns(encoding: Encoding, table: pa.Table) -> list[Understanding]:
    """Return how the columns of a training table were understood."""
    return [_describe(column, table[column.name], column.name) for column in encoding.columns]


def _is_infinite(category: Any) -> bool:
    return isinstance(category, str) and category.lower().lstrip("+-") in {"inf", "infinity"}


def _describe(column: Any, values: pa.ChunkedArray, name: str) -> Understanding:
    missing = values.null_count
    if not isinstance(column, Categorical):
        numbers = as_numbers(values.combine_chunks(), name)
        found = numbers[np.isfinite(numbers)]
        span = f"{found.min():g} to {found.max():g}" if len(found) else "none"
        bins = f", {len(column.categories)} bins" if isinstance(column, Binned) else ""
        examples = ", ".join(f"{value:g}" for value in found[:3])
        return Understanding(name, f"numbers{bins}", span, missing, examples, "")
    count = len(column.categories)
    present = len(values) - missing
    remark = ""
    infinite = [category for category in column.categories if _is_infinite(category)]
    if infinite and any(re.fullmatch(NUMBER, str(c)) for c in column.categories):
        remark = f"holds {infinite[0]!r} among numbers: empty it to have numbers"
    elif count <= 1:
        remark = "nothing to learn from"
    elif count > 20 and count > 0.9 * present:
        remark = f"looks like an id: --drop {name}?"
    shown = ", ".join(map(str, column.categories[:4])) + (", …" if count > 4 else "")
    return Understanding(name, "categories", f"{count:,}", missing, shown, remark)
