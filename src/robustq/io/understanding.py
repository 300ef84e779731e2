"""How a training table was understood: which columns are numbers, which are categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.tables import Binned, Categorical, as_numbers

from .adapting import adapt_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from robustq.learning.surveys import Survey
    from robustq.tables import Encoding

__all__ = ["Understanding", "describe_columns", "describe_parts"]


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


def describe_parts(encoding: Encoding, survey: Survey) -> list[Understanding]:
    """Return how the columns of a training table in parts were understood."""
    remarks, found = encoding.remarks, []
    for column in encoding.columns:
        seen, remark = survey.columns[column.name], remarks.get(column.name, "")
        missing = survey.total - seen.present
        if isinstance(column, Categorical):
            found.append(_describe_categories(column, missing, remark))
            continue
        low, high, _ = seen.order
        found.append(_describe_numbers(column, low, high, seen.examples, missing, remark))
    return found


def _describe(column: Any, values: pa.ChunkedArray, remark: str) -> Understanding:
    name, missing = column.name, values.null_count
    if not isinstance(column, Categorical):
        numbers = as_numbers(adapt_numbers(values, name), name)
        found = numbers[np.isfinite(numbers)]
        ends = found.min(initial=np.inf), found.max(initial=-np.inf)
        return _describe_numbers(column, *ends, found[:3], missing, remark)
    return _describe_categories(column, missing, remark)


def _describe_numbers(
    column: Any, low: float, high: float, first: Iterable[float], missing: int, remark: str
) -> Understanding:
    span = f"{low:.8g} to {high:.8g}" if low <= high else "none"
    bins = f", {len(column.categories)} bins" if isinstance(column, Binned) else ""
    examples = ", ".join(f"{value:.8g}" for value in first)
    return Understanding(column.name, f"numbers{bins}", span, missing, examples, remark)


def _describe_categories(column: Categorical, missing: int, remark: str) -> Understanding:
    count = len(column.categories)
    if not remark and count <= 1:
        remark = "has a single value: nothing to learn from"
    shown = ", ".join(map(str, column.categories[:4])) + (", …" if count > 4 else "")
    return Understanding(column.name, "categories", f"{count:,}", missing, shown, remark)
