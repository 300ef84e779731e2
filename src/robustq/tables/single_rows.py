"""A single row where a table is asked for: what people hand over when they want one prediction.

A dictionary {column: value} is taken as it is; of others one is told how to make them a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from robustq.exceptions import InputError

from .table import Table, as_objects, list_columns

if TYPE_CHECKING:
    from .encoding import Encoding

__all__ = ["read_single_row"]

# The first words are scikit-learn's, whose users know them.
GOT = "Expected 2D array, got 1D array instead: X is a single row"


def read_single_row(given: Any, encoding: Encoding) -> Table | None:
    """Return the table of a dictionary {column: value}; None if something is no single row.

    Parameters
    ----------
    given : frame, array or anything else
    encoding : Encoding

    Raises
    ------
    InputError
        If it is one row of the table that a model knows in another form, and how to give it; or
        if columns are missing, and which.
    """
    if isinstance(given, Mapping):
        return _read_mapping(given, encoding)
    remedy = _find_remedy(given, encoding)
    if remedy:
        msg = f"{GOT}. Reshape your data into a table of one row, as in {remedy}"
        raise InputError(msg)
    return None


def _read_mapping(given: Mapping[Any, Any], encoding: Encoding) -> Table:
    names = encoding.names
    values = {str(name): value for name, value in given.items()}
    if missing := [name for name in names if name not in values]:
        msg = (
            f"the row lacks {list_columns(missing)}, which the model was fitted with; "
            f"it has {list_columns(list(values))}; give None where a value is not known"
        )
        raise InputError(msg)
    if several := [name for name in names if _is_several(values[name])]:
        msg = (
            f"column {several[0]!r} holds {type(values[several[0]]).__name__}: a dictionary is a "
            "single row, {column: value}; make a table of several, as in pandas.DataFrame(X)"
        )
        raise InputError(msg)
    row = as_objects([values[name] for name in names])
    return Table(row.reshape(1, -1), names)


def _find_remedy(given: Any, encoding: Encoding) -> str:
    width = len(encoding.columns)
    if nw.dependencies.is_pandas_like_series(given):
        # A row of a frame has the frame's columns as its index.
        labels = {str(label) for label in given.index}
        is_row = labels.issuperset(encoding.names) if encoding.named else len(given) == width
        return "frame.iloc[[0]] (two brackets)" if is_row else ""
    if isinstance(given, np.ndarray):
        return "row.reshape(1, -1)" if given.shape == (width,) and width > 1 else ""
    if isinstance(given, (list, tuple)) and len(given) == width and width > 1:
        return "" if any(_is_several(value) for value in given) else "[row]"
    return ""


def _is_several(value: object) -> bool:
    return not isinstance(value, (str, bytes)) and hasattr(value, "__len__")
