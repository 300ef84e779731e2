"""Columns that are carried over, in the type that was announced."""

from __future__ import annotations

import pyarrow as pa

from robustq.exceptions import InputError

__all__ = ["cast_kept"]


def cast_kept(column: pa.ChunkedArray, kind: pa.DataType | None, name: str) -> pa.ChunkedArray:
    """Return a column in a type; as it is where none is asked for.

    Raises
    ------
    InputError
        If its values do not fit.
    """
    if kind is None or column.type.equals(kind):
        return column
    try:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if not pa.types.is_dictionary(kind):
            return column.cast(kind)
        words = column.cast(kind.value_type).combine_chunks().dictionary_encode()
        codes = words.indices.cast(kind.index_type)
        made = pa.DictionaryArray.from_arrays(codes, words.dictionary, ordered=kind.ordered)
        return pa.chunked_array([made])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        msg = (
            f"column {name!r} is {kind} in one part of the table and {column.type} in another, "
            f"which does not fit ({error}): give it one type, or keep others"
        )
        raise InputError(msg) from error
