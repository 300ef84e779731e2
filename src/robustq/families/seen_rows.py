"""Which rows a model has learned from: a sketch of them, small enough for its file.

Rows with their labels get a number of 64 bits each; the sketch keeps
the smallest ones. Of other rows, those whose numbers lie in the same range are an independent
sample: how many of them are in the sketch tells how many of all were there.
"""

from __future__ import annotations

import base64
import binascii
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from robustq.tables import Binned, as_numbers

from .fitted import encode
from .labels import locate_labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from robustq.learning.partitions import Partitions, Reader
    from robustq.tables import Table

    from .base import GenerativeClassifier

__all__ = ["Seen", "find_seen", "sketch_parts", "sketch_rows"]

SIZE = 512
START, STEP = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


class Seen(NamedTuple):
    """How many of some rows are equal to rows that a model learned from.

    Attributes
    ----------
    looked_at : int
        The rows whose numbers lie in the range of the sketch.
    found : int
        Those of them that are in it.
    """

    looked_at: int
    found: int


def sketch_rows(model: GenerativeClassifier, X: Any, y: np.ndarray[Any, Any]) -> str:
    """Return a sketch of the rows that a model was fitted on, as text.

    Parameters
    ----------
    model : GenerativeClassifier
    X : frame or array of shape (rows, features)
    y : ndarray of shape (rows,)
    """
    return _write(_sketch(_number(model, X, y)))


def sketch_parts(model: GenerativeClassifier, parts: Partitions, reader: Reader) -> str:
    """Return the sketch of rows in parts.

    Parameters
    ----------
    model : GenerativeClassifier
    parts : Partitions
    reader : Reader
        That knows the types of all columns.
    """
    return _write(parts.run(partial(_sketch_part, model, reader), _join))


def _sketch_part(
    model: GenerativeClassifier, reader: Reader, _index: int, tables: Iterable[Any]
) -> NDArray[np.uint64]:
    found = np.empty(0, dtype=np.uint64)
    for piece in reader.read(tables):
        y = np.array(piece.y.to_pylist())
        found = _join(found, _sketch(_number(model, piece.X, y)))
    return found


def _join(one: NDArray[np.uint64], other: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return _sketch(np.concatenate([one, other]))


def _sketch(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return np.unique(numbers)[:SIZE]


def _write(smallest: NDArray[np.uint64]) -> str:
    return base64.b64encode(smallest.astype("<u8").tobytes()).decode()


def find_seen(
    model: GenerativeClassifier, X: Any, y: np.ndarray[Any, Any], sketch: object
) -> Seen | None:
    """Return how many rows a sketch knows; None where it is none.

    Parameters
    ----------
    model : GenerativeClassifier
    X : frame or array of shape (rows, features)
    y : ndarray of shape (rows,)
        Labels of the model's.
    sketch : str
        Of `sketch_rows`; out of a file, so it may be anything.
    """
    known = _read(sketch)
    if known is None:
        return None
    numbers = _number(model, X, y)
    if len(known) == SIZE:
        numbers = numbers[numbers <= known[-1]]
    return Seen(len(numbers), int(np.isin(numbers, known).sum()))


def _read(sketch: object) -> NDArray[np.uint64] | None:
    if not isinstance(sketch, str):
        return None
    try:
        content = base64.b64decode(sketch, validate=True)
    except (binascii.Error, ValueError):
        return None
    if not content or len(content) % 8 or len(content) > 8 * SIZE:
        return None
    return np.sort(np.frombuffer(content, dtype="<u8").astype(np.uint64))


def _number(model: GenerativeClassifier, X: Any, y: np.ndarray[Any, Any]) -> NDArray[np.uint64]:
    """Return a number for each row and its label, the same for equal ones."""
    table = model._arrange(X)  # noqa: SLF001 (one house)
    rows = encode(model.encoding_, table, model._threads())  # noqa: SLF001
    found = np.full(table.rows, START)
    for column in (*rows.bits.T, *_list_binned(model, table), locate_labels(y, model.classes_)):
        # Each step of a multiplicative hash mixes one column into what came before.
        found = (found ^ column.astype(np.int64).view(np.uint64)) * STEP
        found ^= found >> np.uint64(31)
    return found


def _list_binned(model: GenerativeClassifier, table: Table) -> Iterator[NDArray[np.int64]]:
    """Yield the bits of numbers that were binned: in one bin, they are not yet equal."""
    for index, column in enumerate(model.encoding_.columns):
        if isinstance(column, Binned):
            numbers = as_numbers(table.column(index), table.label(index))
            # Two zeros are equal, and so are all the numbers that are none.
            yield np.where(np.isnan(numbers), np.nan, numbers + 0.0).view(np.int64)
