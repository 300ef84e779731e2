"""What the text in a column means: numbers, categories, nothing."""

from __future__ import annotations

import difflib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from robustq.exceptions import InputError
from robustq.tables.texts import (
    NUMBER,
    WHOLE,
    all_match,
    are_written_out,
    is_text,
    mark_gaps,
    undress,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["infer_types", "require_columns"]

# As many columns as a person reads through to find the right one.
MOST_NAMES = 60


def require_columns(
    wanted: Sequence[str], have: Sequence[str], where: str, why: str, notes: str = ""
) -> None:
    """Raise if a column is not there.

    Parameters
    ----------
    wanted, have : sequence of str
    where : str
        What to call the table.
    why : str
        What the columns are wanted for.
    notes : str
        What may have gone wrong in reading.
    """
    there = set(have)
    missing = [name for name in wanted if name not in there]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        near = _find_near(missing[0], have)
        hint = "" if near is None else f"did you mean {near!r}? "
        hint += f"{notes} " if notes else ""
        msg = f"{where} has no column {missing[0]!r}{more}, {why}; {hint}it has {_list(have)}"
        raise InputError(msg)


def _find_near(name: str, have: Sequence[str]) -> str | None:
    folded = {other.strip().casefold(): other for other in reversed(have)}
    near = difflib.get_close_matches(name.strip().casefold(), folded, n=1, cutoff=0.75)
    return folded[near[0]] if near else None


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(
        repr(name if len(name) <= 60 else name[:59] + "…") for name in names[:MOST_NAMES]
    )
    return shown + (f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else "")


def infer_types(table: pa.Table) -> tuple[pa.Table, dict[str, str]]:
    """Return a table with text as whole numbers, numbers or text, and gaps where none is.

    Returns
    -------
    table : pyarrow.Table
    notes : dict of str to str
        What was done that is not plain to see, column by column.
    """
    columns, notes = {}, {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        columns[name], note = _infer(column)
        if note:
            notes[name] = note
    return pa.table(columns), notes


def _infer(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, str]:
    if pa.types.is_floating(column.type):
        return pc.if_else(pc.is_nan(column), None, column), ""
    if not is_text(column.type):
        return column, ""
    values = mark_gaps(column)
    plain = _parse(values)
    if plain is not None:
        return plain, ""
    if are_written_out(values):
        numbers = _parse(undress(values))
        if numbers is not None:
            first = next(i for i, text in enumerate(values) if text.is_valid)
            return numbers, f"{values[first].as_py()!r} was read as {numbers[first].as_py()}"
    return values, ""


def _parse(values: Any) -> Any | None:
    """Return text as whole numbers, or as numbers; None if it is neither."""
    for pattern, kind in ((WHOLE, pa.int64()), (NUMBER, pa.float64())):
        if all_match(values, pattern):
            with suppress(pa.ArrowInvalid):  # beyond 64 bits
                return pc.utf8_ltrim(values, "+").cast(kind)
    return None
