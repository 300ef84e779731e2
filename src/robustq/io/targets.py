"""The column to predict: labels apart from features, of a table to learn from or to test on."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from robustq.exceptions import InputError
from robustq.tables import as_numbers, remark_on_labels
from robustq.tables.texts import is_text
from robustq.tables.understanding import are_quantities

from .adapting import adapt_labels, adapt_numbers
from .columns import require_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robustq.arrays import Floats, Indices

__all__ = [
    "Labelled",
    "cut_target",
    "find_edges",
    "name_bins",
    "name_classes",
    "refuse_classes",
    "separate_known",
    "separate_target",
]


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
    y = _read_labels(known[target], target)
    refuse_classes(np.unique(y), len(y), target, y[0])
    return Labelled(X, y, rows)


def refuse_classes(
    classes: np.ndarray[Any, Any], rows: int, target: str, one: object = None
) -> None:
    """Raise if the different labels of so many rows hardly repeat, or are quantities.

    Parameters
    ----------
    classes : ndarray
        Sorted.
    rows : int
    target : str
    one : label, optional
        To show; the first class by default.
    """
    one = classes[0] if one is None else one
    if are_quantities(classes, rows):
        msg = (
            f"column {target!r} holds {len(classes):,} different numbers, such as {one}: a "
            "classifier predicts classes. Make classes of them with --target-bins N (as many "
            "rows in each) or --target-threshold T (below T or not); if they are names of "
            f"classes, say --categorical {target}"
        )
        raise InputError(msg)
    remark = remark_on_labels(classes, rows)
    if remark:
        msg = (
            f"column {target!r} holds {len(classes):,} different texts in {rows:,} rows, "
            f"such as {one!s}, and a class needs several rows. It {remark}"
        )
        raise InputError(msg)


def name_classes(table: pa.Table, target: str) -> pa.Table:
    """Return a table whose target is text: the names of classes, though they are numbers."""
    column = pa.array(_read_labels(table[target], target).tolist())
    return _replace(table, target, column.cast(pa.string()))


def find_edges(
    table: pa.Table, target: str, bins: int | None, threshold: float | None
) -> list[float]:
    """Return where to cut a target of numbers into classes; a class begins at each.

    Parameters
    ----------
    table : pyarrow.Table
    target : str
    bins : int, optional
        How many classes, of as many rows each as ties allow.
    threshold : float, optional
        Where the second of two classes begins.

    Raises
    ------
    InputError
        If the target holds no numbers, or they cannot be cut so.
    """
    if threshold is not None and bins is not None:
        msg = "--target-bins and --target-threshold say the same thing: give one of them"
        raise InputError(msg)
    if bins is not None and bins < 2:
        msg = f"--target-bins must be a whole number from 2, got {bins}"
        raise InputError(msg)
    numbers = _read_numbers(table[target], target)
    numbers = numbers[~np.isnan(numbers)]
    if not len(numbers):
        msg = f"no row has a value in column {target!r}: there is nothing to learn from"
        raise InputError(msg)
    if threshold is not None:
        wanted = np.array([threshold])
    else:
        shares = np.linspace(0, 1, bins or 2, endpoint=False)[1:]
        wanted = np.unique(np.quantile(numbers, shares, method="higher"))
    edges = wanted[(wanted > numbers.min()) & (wanted <= numbers.max())]
    if not len(edges):
        span = f"{numbers.min():g} to {numbers.max():g}"
        msg = f"column {target!r} holds {span}: cut so, all rows are of one class"
        raise InputError(msg)
    return edges.tolist()


def cut_target(table: pa.Table, target: str, edges: Sequence[float]) -> pa.Table:
    """Return a table whose target is classes, which begin at edges; its numbers are gone."""
    names = name_bins(edges)
    column = table[target]
    if is_text(column.type) and pc.all(pc.is_in(column.drop_null(), pa.array(names))).as_py():
        return table  # cut already
    numbers = _read_numbers(column, target)
    places = np.searchsorted(np.asarray(edges), numbers, side="right")
    labels = pa.array(np.array(names)[places], pa.string(), mask=np.isnan(numbers))
    return _replace(table, target, labels)


def name_bins(edges: Sequence[float]) -> list[str]:
    """Return what classes of numbers are called.

    Examples
    --------
    >>> name_bins([10.0, 20.5])
    ['< 10', '10 to < 20.5', '>= 20.5']
    """
    ends = [str(int(edge)) if float(edge).is_integer() else repr(float(edge)) for edge in edges]
    inner = [f"{low} to < {high}" for low, high in itertools.pairwise(ends)]
    return [f"< {ends[0]}", *inner, f">= {ends[-1]}"]


def _read_numbers(column: pa.ChunkedArray, target: str) -> Floats:
    return as_numbers(adapt_numbers(column, target), f"column {target!r}")


def _replace(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)


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
