"""A single row where a table is asked for: what people hand over when they want one prediction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from robustq.exceptions import InputError

if TYPE_CHECKING:
    from .encoding import Encoding

__all__ = ["refuse_single_row"]

# The first words are scikit-learn's, whose users know them.
GOT = "Expected 2D array, got 1D array instead: X is a single row"


def refuse_single_row(given: Any, encoding: Encoding) -> None:
    """Raise if something is one row of the table that a model knows, and say how to give it.

    Parameters
    ----------
    given : frame, array or anything else
    encoding : Encoding
    """
    remedy = _find_remedy(given, encoding)
    if remedy:
        msg = f"{GOT}. Reshape your data into a table of one row, as in {remedy}"
        raise InputError(msg)


def _find_remedy(given: Any, encoding: Encoding) -> str:
    width = len(encoding.columns)
    if nw.dependencies.is_pandas_like_series(given):
        # A row of a frame has the frame's columns as its index.
        labels = {str(label) for label in given.index}
        is_row = labels.issuperset(encoding.names) if encoding.named else len(given) == width
        return "frame.iloc[[0]] (two brackets)" if is_row else ""
    if isinstance(given, Mapping):
        values = list(given.values())
        if values and not any(_is_several(value) for value in values):
            return "pandas.DataFrame([row])"
        return ""
    if isinstance(given, np.ndarray):
        return "row.reshape(1, -1)" if given.shape == (width,) and width > 1 else ""
    if isinstance(given, (list, tuple)) and len(given) == width and width > 1:
        return "" if any(_is_several(value) for value in given) else "[row]"
    return ""


def _is_several(value: object) -> bool:
    return not isinstance(value, (str, bytes)) and hasattr(value, "__len__")
