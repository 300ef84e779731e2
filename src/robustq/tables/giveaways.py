"""Columns that give the target away: alone they tell almost every label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from .columns import as_numbers, is_missing

if TYPE_CHECKING:
    from robustq.arrays import Indices

    from .table import Column

__all__ = ["place_looks", "tell_labels"]

LARGEST_ERROR = 0.01
SHARE_OF_GUESSING = 0.1  # of the errors that the most frequent label makes
LOOKED_AT = 10_000  # rows


def place_looks(rows: int) -> Indices:
    """Return which of so many rows are looked at: all, or some at even distances."""
    return np.linspace(0, rows - 1, min(rows, LOOKED_AT)).astype(np.int64)


def tell_labels(column: Column, label: str, labels: Indices, *, numeric: bool) -> float | None:
    """Return the share of the labels that a column tells, if it gives them away.

    A category tells the label that most of its rows have, if it has two rows or more; numbers tell
    labels as long as few thresholds do. That a value is missing tells something too.

    Parameters
    ----------
    column : Arrow or numpy array
        Of the rows to look at, and so are the labels.
    label : str
        How to speak of it.
    labels : ndarray of int, of shape (rows,)
    numeric : bool
        Whether the column holds numbers.
    """
    guessed = np.bincount(labels).max()
    groups = _group(column, label, numeric=numeric)
    right, best = _count_right(groups, labels)
    if numeric:
        # Neighbours of different labels need a threshold between them.
        told = right.sum() - np.count_nonzero(np.diff(best))
    else:
        sizes = np.bincount(groups)
        told = right[sizes[sizes > 0] > 1].sum()
    error = 1.0 - told / len(labels)
    guessing = 1.0 - guessed / len(labels)
    gives_away = error <= min(LARGEST_ERROR, SHARE_OF_GUESSING * guessing) and guessing > 0.0
    return 1.0 - error if gives_away else None


def _group(column: Column, label: str, *, numeric: bool) -> Indices:
    """Return which of the different values each row has; gaps are one, and numbers in order."""
    if numeric:
        return np.unique(as_numbers(column, label), return_inverse=True)[1]
    values: Any = column
    if isinstance(column, np.ndarray):
        if column.dtype != object:
            return np.unique(column, return_inverse=True)[1]
        found = [None if is_missing(value) else value for value in column.tolist()]
        codes: dict[Any, int] = {}
        return np.array([codes.setdefault(value, len(codes)) for value in found], dtype=np.int64)
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    indices = values.indices.cast(pa.int64()).fill_null(len(values.dictionary))
    return np.asarray(indices.to_numpy(zero_copy_only=False))


def _count_right(groups: Indices, labels: Indices) -> tuple[Indices, Indices]:
    """Return for each group how many rows have its most frequent label, and which label that is."""
    classes = int(labels.max()) + 1
    pairs, counts = np.unique(groups * classes + labels, return_counts=True)
    order = np.lexsort((counts, pairs // classes))
    # The last of each group is its most frequent label.
    last = np.flatnonzero(np.diff(pairs[order] // classes, append=-1))
    return counts[order][last], pairs[order][last] % classes
