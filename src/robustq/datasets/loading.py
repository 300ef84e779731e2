"""A data set, ready to learn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from robustq.exceptions import InputError

from . import shipping
from .parsing import Record, parse
from .places import Place, find
from .sources import Source, get

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from robustq.arrays import Indices

__all__ = ["DataSet", "load"]


@dataclass(frozen=True, eq=False)
class DataSet:
    """A data set.

    Attributes
    ----------
    source : Source
        What is known about it: title, citation, files, notes.
    X : pyarrow.Table
        One column for each feature, whole numbers or text, all of them categories.
    y : ndarray of shape (rows,)
        The labels.
    split : pair of arrays, optional
        The rows to learn from and the rows to test on, where UCI fixed them.
    place : str
        Where it was found.

    Notes
    -----
    Copies of one data set differ in the order of their rows. Here it depends on the rows alone:
    sorted, then shuffled with a fixed seed. So every copy gives the same splits.
    """

    source: Source
    X: pa.Table
    y: np.ndarray[Any, Any]
    split: tuple[Indices, Indices] | None
    place: str

    def in_words(self) -> tuple[pa.Table, np.ndarray[Any, Any]]:
        """Return X and y with words in place of codes, where UCI gives some.

        Examples
        --------
        >>> X, y = load("german").in_words()
        >>> sorted(X["housing"].unique().to_pylist())
        ['free', 'owned', 'rented']
        >>> sorted(set(y.tolist()))
        ['bad', 'good']
        """
        columns = {}
        for name in self.X.column_names:
            words = self.source.words.get(name, {})
            columns[name] = [words.get(value, value) for value in self.X[name].to_pylist()]
        labels = [self.source.meanings.get(label, label) for label in self.y.tolist()]
        return pa.table(columns), np.array(labels)

    def __repr__(self) -> str:
        classes = len(np.unique(self.y))
        return (
            f"<DataSet {self.source.name}: {len(self.y):,} rows, {classes} classes, "
            f"{self.X.num_columns} features, from {self.place}>"
        )


def load(
    name: str,
    data_dir: str | Path | None = None,
    *,
    download: bool = True,
    progress: bool = False,
) -> DataSet:
    """Return one of the paper's data sets.

    It is looked for in the folder given, in the folder that the environment variable
    `ROBUSTQ_DATA` names, in the user's cache, in the package itself, and then at UCI.

    Parameters
    ----------
    name : str
        See `names`; or the number in the paper, as in "D5".
    data_dir : path, optional
        A folder with UCI's own files, or with its archives.
    download : bool, default True
        Whether to fetch it from UCI if it is nowhere here.
    progress : bool, default False
        Whether to show a progress bar while it is fetched.

    Returns
    -------
    DataSet

    Examples
    --------
    >>> german = load("german")
    >>> german.X.num_columns, len(german.y), german.split
    (13, 1000, None)
    """
    source = get(name)
    place = find(source, data_dir, download=download, progress=progress)
    records = _read(source, place)
    ordered = _arrange(source, records)
    if len(ordered) != source.rows:
        msg = (
            f"{source.name} from {place.where} has {len(ordered):,} usable rows where "
            f"{source.rows:,} were expected: take the files in {source.url}"
        )
        raise InputError(msg)
    _check_classes(source, place, ordered)
    return DataSet(
        source, _as_table(source, ordered), _as_labels(ordered), _split(source), str(place)
    )


def _check_classes(source: Source, place: Place, records: Sequence[Record]) -> None:
    found = sorted({record.label for record in records})
    if len(found) != source.classes:
        msg = (
            f"{source.name} from {place} has the classes {', '.join(found[:5])} where "
            f"{source.classes} were expected: take the files in {source.url}"
        )
        raise InputError(msg)


def _read(source: Source, place: Place) -> list[Record]:
    if place.where == shipping.HERE:
        return shipping.read(source)
    try:
        return [record for file in source.files for record in parse(source, file, place.read(file))]
    except InputError as error:
        msg = f"{error} (it was found in {place})"
        raise InputError(msg) from error


def _arrange(source: Source, records: Sequence[Record]) -> list[Record]:
    """Put the rows into an order that depends on nothing but the rows, and take those used."""
    ordered = sorted(records)
    # RandomState: its stream is frozen, so that numpy's versions agree.
    shuffled = [ordered[i] for i in np.random.RandomState(0).permutation(len(ordered))]
    if source.split:
        return sorted(shuffled, key=lambda record: record.file)
    return shuffled[: source.rows]


def _split(source: Source) -> tuple[Indices, Indices] | None:
    if not source.split:
        return None
    first = next(iter(source.files.values()))
    return np.arange(first), np.arange(first, source.rows)


def _as_table(source: Source, records: Sequence[Record]) -> pa.Table:
    columns = zip(*(record.features for record in records), strict=True)
    return pa.table(
        {name: _narrow(list(column)) for name, column in zip(source.features, columns, strict=True)}
    )


def _as_labels(records: Sequence[Record]) -> np.ndarray[Any, Any]:
    return np.array(_narrow([record.label for record in records]))


def _narrow(values: list[str]) -> list[str] | list[int]:
    """Return whole numbers as numbers, if all are."""
    try:
        return [int(value) for value in values]
    except ValueError:
        return values
