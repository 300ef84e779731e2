"""What is said about tables: what looks like a mistake, and what was never seen in training."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.exceptions import OtherPredictionWarning, TableWarning, UnknownValueWarning
from robustq.tables import Encoding, Table, remark_on_classes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from robustq.arrays import Indices

__all__ = [
    "describe_endless",
    "describe_unknown",
    "ignoring_unknown_values",
    "learning_quietly",
    "looks_for_mistakes",
    "name_counts",
    "warn_of_remarks",
]

_remarking: ContextVar[bool] = ContextVar("_remarking", default=True)


def warn_of_remarks(
    encoding: Encoding,
    classes: np.ndarray[Any, Any] | None,
    rows: Indices | None,
    stacklevel: int,
) -> None:
    """Warn of columns, and of classes of so many rows, that look like a mistake."""
    remarks = dict(encoding.remarks)
    if classes is not None and rows is not None and (remark := remark_on_classes(classes, rows)):
        remarks["y"] = remark
    if remarks:
        warnings.warn(TableWarning(_say_remarks(remarks), remarks), stacklevel=stacklevel)


def _say_remarks(remarks: dict[str, str], most: int = 5) -> str:
    shown = [f"{name!r} {remark}" for name, remark in list(remarks.items())[:most]]
    more = len(remarks) - len(shown)
    return "columns to look at: " + ". ".join(shown) + (f". … and {more:,} more" if more else "")


def name_counts(table: Table, counts: Indices) -> dict[str, int]:
    """Return how often something was found in each column where it was."""
    return {table.label(i): int(counts[i]) for i in np.flatnonzero(counts).tolist()}


def describe_unknown(counts: Mapping[str, int], most: int = 10) -> str:
    """Return in words how many values of each column were never seen in training."""
    shown = [f"{count:,} in {label}" for label, count in list(counts.items())[:most]]
    more = f", … and more in {len(counts) - most:,} columns" if len(counts) > most else ""
    return f"values never seen in training, taken as missing: {', '.join(shown)}{more}"


def describe_endless(names: Iterable[str], rows: int) -> str:
    """Return in words in which neighbourhoods nothing flips any of some rows."""
    return (
        f"nothing flips any of the {rows:,} predictions in {', '.join(names)}: robustness is "
        "infinite there, and tells none of them from the others"
    )


@contextmanager
def ignoring_unknown_values() -> Iterator[None]:
    """Say nothing about values and predictions that were spoken of already, or need not be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownValueWarning)
        warnings.simplefilter("ignore", OtherPredictionWarning)
        yield


def looks_for_mistakes() -> bool:
    """Tell whether mistakes are looked for in the tables that are learned from."""
    return _remarking.get()


@contextmanager
def learning_quietly() -> Iterator[None]:
    """Look for no mistakes in the tables that are learned from: they were spoken of already."""
    token = _remarking.set(False)
    try:
        yield
    finally:
        _remarking.reset(token)
