"""The column to predict: labels apart from features, of a table to learn from or to test on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from robustq.exceptions import InputError

from .adapting import adapt_labels
from .columns import require_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robustq.arrays import Indices

__all__ = ["Labelled", "separate_known", "separate_target"]


class Labelled(NamedTuple):
    """The rows of a table that have a label.

    Attributes
    ----------
    X : pyarrow.Table
    y : ndarray of shape (rows,)
    rows : ndarray of int, of shape (rows,)
        Which rows of the table these are.
    """

    X: pa.Table
    y: np.ndarray[Any, Any]
    rows: Indices


def separate_target(table: pa.Table, target: str, dropped: Sequence[str] = ()) -> Labelled:
    """Return features and labels to learn from, without the columns dropped.

    Raises
    ------
    InputError
        If there is no label, no other column, or the labels are no classes.
    """
    rows = _find_labelled(table[target])
    if not len(rows):
        msg = f"no row has a value in column {target!r}: there is nothing to learn from"
        raise InputError(msg)
    known = _take(table, rows)
    X = known.drop_columns(list(dict.fromkeys([target, *dropped])))
    if not X.num_columns:
        msg = f"there is no column but {target!r}: there is nothing to learn from"
        raise InputError(msg)
    labels = known[target]
    if pa.types.is_floating(labels.type) and not pc.all(pc.equal(labels, pc.round(labels))).as_py():
        msg = (
            f"column {target!r} holds numbers such as {labels[0].as_py()}: a classifier predicts "
            "classes; choose another target, or make classes of it"
        )
        raise InputError(msg)
    return Labelled(X, _read_labels(labels, target), rows)


def separate_known(
    table: pa.Table, target: str, classes: np.ndarray[Any, Any], where: str
) -> Labelled:
    """Return all columns and the labels to test on, labels as a model knows them.

    Raises
    ------
    InputError
        If there is no label, or one that is none of the classes.
    """
    require_columns([target], table.column_names, where, "the labels (--target)")
    labels = adapt_labels(table[target], classes, target)
    if pa.types.is_floating(labels.type):
        labels = pc.if_else(pc.is_nan(labels), None, labels)
    rows = _find_labelled(labels)
    if not len(rows):
        msg = f"{where} has no row with a label in column {target!r}"
        raise InputError(msg)
    y = _read_labels(pa.chunked_array([labels.take(pa.array(rows))]), target)
    strange = y[~np.isin(y, classes)]
    if len(strange):
        shown = ", ".join(map(str, classes[:6].tolist()))
        what = f"{strange[0]!s}, which the model does not know"
        msg = f"column {target!r} holds {what}; it knows {shown}"
        raise InputError(msg)
    return Labelled(_take(table, rows), y.astype(classes.dtype), rows)


def _take(table: pa.Table, rows: Indices) -> pa.Table:
    return table if len(rows) == table.num_rows else table.take(pa.array(rows))


def _find_labelled(labels: Any) -> Indices:
    return np.flatnonzero(pc.is_valid(labels).to_numpy(zero_copy_only=False))


def _read_labels(column: pa.ChunkedArray, name: str) -> np.ndarray[Any, Any]:
    """Return labels: numbers, truth values or text; what is something else becomes text."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    try:
        values = column if plain else column.cast(pa.string())
    except pa.ArrowException as error:
        msg = f"column {name!r} holds {kind}, and a class is text or a number"
        raise InputError(msg) from error
    return np.array(values.to_pylist())
