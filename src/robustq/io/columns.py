"""What the text in a column means: numbers, categories, nothing."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from robustq.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "MISSING",
    "NUMBER",
    "infer_types",
    "is_text",
    "mark_gaps",
    "require_columns",
    "trim",
    "without_plus",
]

# What people write where there is no value.
MISSING = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "#N/A", "<NA>")
# No leading zeros: 007 is a name, not a number.
WHOLE = r"^[+-]?(0|[1-9][0-9]{0,18})$"
NUMBER = r"^[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def require_columns(wanted: Sequence[str], have: Sequence[str], where: str, why: str) -> None:
    """Raise if a column is not there.

    Parameters
    ----------
    wanted, have : sequence of str
    where : str
        What to call the table.
    why : str
        What the columns are wanted for.
    """
    known = set(have)
    missing = [name for name in wanted if name not in known]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        shown = ", ".join(map(repr, have[:8])) + (", …" if len(have) > 8 else "")
        msg = f"{where} has no column {missing[0]!r}{more}, {why}; it has {shown}"
        raise InputError(msg)


def infer_types(table: pa.Table) -> pa.Table:
    """Return a table with text as whole numbers, numbers or text, and gaps where none is."""
    columns = [_infer(column) for column in table.columns]
    return pa.table(dict(zip(table.column_names, columns, strict=True)))


def _infer(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_floating(column.type):
        return pc.if_else(pc.is_nan(column), None, column)
    if not is_text(column.type):
        return column
    values = mark_gaps(column)
    for pattern, kind in ((WHOLE, pa.int64()), (NUMBER, pa.float64())):
        if len(values) > values.null_count and _all_match(values, pattern):
            with suppress(pa.ArrowInvalid):  # beyond 64 bits
                return without_plus(values).cast(kind)
    return values


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a type is text."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def trim(values: Any) -> Any:
    """Return text without white space around it."""
    return pc.utf8_trim_whitespace(values)


def _all_match(values: Any, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(values, pattern)).as_py())


def without_plus(values: Any) -> Any:
    """Return numbers as text, without a plus before them."""
    return pc.utf8_ltrim(values, "+")


def mark_gaps(values: Any) -> Any:
    """Return text without white space around it, null where it stands for no value."""
    trimmed = trim(values)
    return pc.if_else(pc.is_in(trimmed, pa.array(MISSING, trimmed.type)), None, trimmed)
