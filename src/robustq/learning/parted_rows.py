"""Encoded rows in parts: counts of all of them, and how well others predict them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from robustq.exceptions import InputError
from robustq.tables import Table

from .folds import FOLDS, draw_folds
from .partitions import add
from .smoothing import pick, score_fold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from robustq.arrays import Codes, Floats, Indices
    from robustq.tables import Encoding, Rows

    from .partitions import Partitions, Reader
    from .surveys import Survey

__all__ = ["PartedRows", "read_rows"]


@dataclass(frozen=True)
class PartedRows:
    """Rows of a table in parts, as a model reads them.

    Attributes
    ----------
    parts : Partitions
    reader : Reader
        That knows the types of all columns.
    survey : Survey
        What was found in them before.
    encoding : Encoding
    classes : ndarray
        Sorted.
    """

    parts: Partitions
    reader: Reader
    survey: Survey
    encoding: Encoding
    classes: np.ndarray[Any, Any]

    def map(self, work: Callable[[Rows, Indices, Floats, int], Any]) -> Any:
        """Return the sum of what some work makes of rows, labels, weights, and the first's number.

        Parameters
        ----------
        work : callable
            It can be pickled, and what it returns can be added.
        """
        offsets, rows = self.survey.offsets(), self.survey.rows
        places = {index: (first, first + rows[index]) for index, first in offsets.items()}
        task = partial(_map, work, self.reader, places, self.encoding, self.classes)
        return self.parts.run(task, add)

    def spread(self, work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Return what some work makes of each item, done where the rows are."""
        return self.parts.spread(work, items)

    def count(self, count: Callable[[Codes, Indices, Floats], Any]) -> Any:
        """Return the counts of all rows."""
        return self.map(partial(_count, count))

    def choose_smoothing(
        self,
        seed: int,
        count: Callable[[Codes, Indices, Floats], Any],
        log_joint: Callable[[Any, float, Codes], Floats],
        grid: Sequence[float],
    ) -> tuple[Any, float]:
        """Return the counts of all rows, and what `choose_smoothing` finds for many rows."""
        each = self.map(partial(_count_folds, seed, count)).parts
        found = [fold for fold in each if fold is not None]
        total = found[0]
        for fold in found[1:]:
            total = total + fold
        rests = [None if fold is None else total - fold for fold in each]
        scores = self.map(partial(_score, seed, rests, log_joint, grid))
        return total, pick(scores, grid)


class _Folds:
    """Counts of each fold; None where it has no row."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts

    def __add__(self, other: _Folds) -> _Folds:
        return _Folds([add(*pair) for pair in zip(self.parts, other.parts, strict=True)])


def _count(
    count: Callable[..., Any], rows: Rows, labels: Indices, weights: Floats, _first: int
) -> Any:
    return count(rows.codes, labels, weights)


def _list_folds(
    seed: int, rows: Rows, labels: Indices, weights: Floats, first: int
) -> Iterator[tuple[Codes, Indices, Floats]]:
    folds = draw_folds(seed, first, len(labels))
    for fold in range(FOLDS):
        held_out = np.flatnonzero((folds == fold) & (weights > 0.0))
        yield rows.codes[held_out], labels[held_out], weights[held_out]


def _count_folds(seed: int, count: Callable[..., Any], *rows: Any) -> _Folds:
    return _Folds([count(*fold) if len(fold[1]) else None for fold in _list_folds(seed, *rows)])


def _score(
    seed: int,
    rests: list[Any],
    log_joint: Callable[..., Floats],
    grid: Sequence[float],
    *rows: Any,
) -> Floats:
    scores = np.zeros((len(grid), 2))
    for rest, fold in zip(rests, _list_folds(seed, *rows), strict=True):
        if len(fold[1]):
            scores += score_fold(rest, *fold, log_joint, grid)
    return scores


def _map(
    work: Callable[..., Any],
    reader: Reader,
    places: dict[int, tuple[int, int]],
    encoding: Encoding,
    classes: np.ndarray[Any, Any],
    index: int,
    tables: Iterable[pa.Table],
) -> Any:
    found = None
    first, last = places.get(index, (0, 0))
    for rows, labels, weights in read_rows(reader, encoding, classes, tables):
        found = add(found, work(rows, labels, weights, first))
        first += len(labels)
    if first != last:
        msg = (
            f"part {index} of the table had other rows when it was looked at first: keep the table "
            "as it is while it is learned from (write it to files, or persist it)"
        )
        raise InputError(msg)
    return found


def read_rows(
    reader: Reader,
    encoding: Encoding,
    classes: np.ndarray[Any, Any],
    tables: Iterable[pa.Table],
) -> Iterator[tuple[Rows, Indices, Floats]]:
    """Yield encoded rows, the positions of their classes and their weights."""
    known = pa.array(classes.tolist())
    for X, y, weights in reader.read(tables):
        labels = pc.index_in(y, known.cast(y.type)).to_numpy().astype(np.int64)
        yield encoding.encode(Table.read(X)), labels, weights
