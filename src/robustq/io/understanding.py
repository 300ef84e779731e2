"""How a training table was understood: which columns are numbers, which are categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.tables import Binned, Categorical, as_numbers

from .adapting import adapt_numbers

if TYPE_CHECKING:
    import pyarrow as pa

    from robustq.tables import Encoding

__all__ = ["Understanding", "describe_columns"]


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


def describe_columns(encoding: Encoding, table: pa.Table) -> list[Understanding]:
    """Return how the columns of a training table were understood."""
    remarks = encoding.remarks
    return [
        _describe(column, table[column.name], remarks.get(column.name, ""))
        for column in encoding.columns
    ]


def _describe(column: Any, values: pa.ChunkedArray, remark: str) -> Understanding:
    name, missing = column.name, values.null_count
    if not isinstance(column, Categorical):
        numbers = as_numbers(adapt_numbers(values, name), name)
        found = numbers[np.isfinite(numbers)]
        span = f"{found.min():.8g} to {found.max():.8g}" if len(found) else "none"
        bins = f", {len(column.categories)} bins" if isinstance(column, Binned) else ""
        examples = ", ".join(f"{value:.8g}" for value in found[:3])
        return Understanding(name, f"numbers{bins}", span, missing, examples, remark)
    count = len(column.categories)
    if not remark and count <= 1:
        remark = "has a single value: nothing to learn from"
    shown = ", ".join(map(str, column.categories[:4])) + (", …" if count > 4 else "")
    return Understanding(name, "categories", f"{count:,}", missing, shown, remark)
