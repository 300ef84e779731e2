"""Learning from files, a batch at a time: tables of any size."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from robustq.exceptions import TableWarning
from robustq.families.parted import fit_parts
from robustq.learning.partitions import LocalPartitions, Reader

from .columns import require_columns
from .sniffing import CsvOptions
from .sources import as_path, open_sources
from .streaming import ASKED, find_types, make_parts
from .targets import refuse_classes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from robustq.families.parted import FittedParts
    from robustq.learning.partitions import Partitions

    from .sources import Source
    from .streaming import FilePart

__all__ = ["FittedFiles", "fit_files", "fit_sources"]


class FittedFiles(NamedTuple):
    """What was learned from files.

    Attributes
    ----------
    fitted : FittedParts
    parts : Partitions
    notes : dict of str to str
        What was done in reading, or may be wrong.
    """

    fitted: FittedParts
    parts: Partitions
    notes: dict[str, str]


def fit_files(
    path: str | Path,
    target: str,
    estimator: Any = None,
    *,
    sample_weight: str | None = None,
    drop: Iterable[str] = (),
) -> Any:
    """Fit an estimator on files that need not fit into memory.

    They are read several times, a batch at a time; the model is the one that `estimator.fit` learns
    from `robustq.read(path)`, to the bit (weights being whole numbers).

    Parameters
    ----------
    path : path
        A file, a folder, or a pattern such as "parts/*.parquet".
    target : str
        The column to predict; rows without a label are left out.
    estimator : NaiveBayesClassifier, BayesianNetworkClassifier or GenerativeForestClassifier
        Naive Bayes by default. A forest needs `max_samples`.
    sample_weight : str, optional
        A column with the weights of the rows.
    drop : iterable of str
        Columns to leave out.

    Returns
    -------
    estimator
        Fitted.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for part in range(3):
    ...     sky = ["sunny", "rainy", "sunny"] * 14
    ...     where = ["out", "in", "out", "in", "in", "out"] * 7
    ...     table = pa.table({"sky": sky, "where": where})
    ...     pq.write_table(table, folder / f"{part}.parquet")
    >>> model = fit_files(folder, "where")
    >>> model.training_["rows"], model.predict([["sunny"]]).tolist()
    (126, ['out'])
    """
    sources = open_sources([as_path(path)], CsvOptions())
    reader = Reader.of(target, sample_weight, drop)
    found = fit_sources(estimator, sources, reader, LocalPartitions)
    if found.notes:
        msg = "; ".join(f"{name}: {note}" for name, note in found.notes.items())
        warnings.warn(TableWarning(msg, found.notes), stacklevel=2)
    return found.fitted.estimator


def fit_sources(
    estimator: Any,
    sources: Sequence[Source],
    reader: Reader,
    place: Callable[[list[FilePart]], Partitions],
    *,
    as_text: tuple[str, ...] = (),
) -> FittedFiles:
    """Fit an estimator on files.

    Parameters
    ----------
    estimator : GenerativeClassifier
    sources : sequence of Source
    reader : Reader
    place : callable
        Returns where parts are read: here, or by workers.
    as_text : tuple of str
        Columns to make text of.
    """
    wanted = [reader.target, *([reader.weight] if reader.weight else [])]
    require_columns([*wanted, *reader.drop], sources[0].names(), sources[0].name, ASKED)
    parts = make_parts(sources, wanted)
    typed, notes = find_types(parts, place(parts))
    workers = place([replace(part, as_text=as_text) for part in typed])
    fitted = fit_parts(estimator, workers, reader, check=refuse_classes)
    return FittedFiles(fitted, workers, notes)
