"""How good predictions are that are sets of classes.

A set of one class is *determinate*. What a larger one Y is worth, if it holds the truth, is a
matter of taste: 1/|Y| if guessing among them is all one can do (discounted accuracy); more if one
would rather know that nothing is known, A/|Y| − (A − 1)/|Y|² with A = 1.6 (u65: a set of two is
worth 0.65) or A = 2.2 (u80). Zaffalon, Corani and Mauá (2012).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.exceptions import InputError
from robustq.tables.frames import as_arrow, as_pandas, as_polars

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from numpy.typing import ArrayLike

    from robustq.arrays import Bools, Indices

__all__ = [
    "Framed",
    "Measures",
    "by_set_size",
    "determinacy",
    "discounted_accuracy",
    "measure",
    "set_accuracy",
    "set_size",
    "single_accuracy",
    "u65",
    "u80",
    "utility",
]

A65, A80 = 1.6, 2.2


@dataclass(frozen=True)
class Measures:
    """What sets are worth.

    Attributes
    ----------
    determinacy : float
        The share of sets with one class.
    single_accuracy : float
        The share of those that are right; NaN where there are none.
    set_accuracy : float
        Of the larger sets, the share that holds the truth; NaN where there are none.
    set_size : float
        The mean size of the larger sets; NaN where there are none.
    discounted_accuracy, u65, u80 : float
        The mean worth of a set.
    """

    determinacy: float
    single_accuracy: float
    set_accuracy: float
    set_size: float
    discounted_accuracy: float
    u65: float
    u80: float


class Framed:
    """What has columns, and gives them as a frame."""

    def to_dict(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the columns by name."""
        raise NotImplementedError

    def to_arrow(self) -> pa.Table:
        """Return a pyarrow table."""
        return as_arrow(self.to_dict())

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas frame."""
        return as_pandas(self.to_dict())

    def to_polars(self) -> pl.DataFrame:
        """Return a polars frame."""
        return as_polars(self.to_dict())


def measure(sets: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Measures:
    """Return all measures of some sets.

    Parameters
    ----------
    sets : array_like of bool, of shape (rows, classes)
        As `robustq.credal_predict` gives them.
    y : array_like of shape (rows,)
        The true labels; without `classes`, positions of classes.
    classes : array_like, optional
        The labels, in the order of the columns: a model's `classes_`.

    Returns
    -------
    Measures
    """
    size, holds = _read(sets, y, classes)
    single = size == 1
    return Measures(
        determinacy=float(single.mean()),
        single_accuracy=_mean(holds[single]),
        set_accuracy=_mean(holds[~single]),
        set_size=_mean(size[~single]),
        discounted_accuracy=_worth(size, holds, 1.0),
        u65=_worth(size, holds, A65),
        u80=_worth(size, holds, A80),
    )


def by_set_size(
    sets: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None
) -> dict[int, dict[str, float]]:
    """Return for each size of a set that occurs how many there are, and which share is right.

    Parameters
    ----------
    sets, y, classes
        As in `measure`.

    Examples
    --------
    >>> by_set_size([[True, False], [True, True], [True, False]], [0, 0, 1])
    {1: {'rows': 2, 'accuracy': 0.5}, 2: {'rows': 1, 'accuracy': 1.0}}
    """
    size, holds = _read(sets, y, classes)
    return {
        int(k): {"rows": int((size == k).sum()), "accuracy": float(holds[size == k].mean())}
        for k in np.unique(size)
    }


def determinacy(sets: ArrayLike) -> float:
    """Return the share of sets with one class."""
    return float((_read_sets(sets).sum(axis=1) == 1).mean())


def set_size(sets: ArrayLike) -> float:
    """Return the mean size of the sets with more than one class; NaN where there are none."""
    size = _read_sets(sets).sum(axis=1)
    return _mean(size[size > 1])


def single_accuracy(sets: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> float:
    """Return which share of the sets with one class is right; NaN where there are none."""
    return measure(sets, y, classes).single_accuracy


def set_accuracy(sets: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> float:
    """Return which share of the larger sets holds the truth; NaN where there are none."""
    return measure(sets, y, classes).set_accuracy


def discounted_accuracy(sets: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> float:
    """Return the mean of 1/|Y|, 0 where the set does not hold the truth."""
    return utility(sets, y, classes, a=1.0)


def u65(sets: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> float:
    """Return the mean utility where a set of two that holds the truth is worth 0.65."""
    return utility(sets, y, classes, a=A65)


def u80(sets: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> float:
    """Return the mean utility where a set of two that holds the truth is worth 0.80."""
    return utility(sets, y, classes, a=A80)


def utility(sets: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, *, a: float) -> float:
    """Return the mean of a/|Y| − (a − 1)/|Y|², 0 where the set does not hold the truth."""
    return _worth(*_read(sets, y, classes), a)


def _worth(size: Indices, holds: Bools, a: float) -> float:
    return float(np.where(holds, a / size - (a - 1.0) / size**2, 0.0).mean())


def _mean(values: np.ndarray[Any, Any]) -> float:
    return float(values.mean()) if len(values) else np.nan


def _read(sets: ArrayLike, y: ArrayLike, classes: ArrayLike | None) -> tuple[Indices, Bools]:
    """Return the sizes of sets, and whether they hold the truth."""
    given = _read_sets(sets)
    truth = np.asarray(y)
    if truth.shape != given.shape[:1]:
        msg = f"y has shape {truth.shape} for {len(given)} sets: give one label for each"
        raise InputError(msg)
    at = _locate(truth, given.shape[1], classes)
    return given.sum(axis=1), np.asarray(given[np.arange(len(given)), at] & (at >= 0))


def _locate(truth: np.ndarray[Any, Any], width: int, classes: ArrayLike | None) -> Indices:
    """Return the positions of labels, −1 of those that no set can hold."""
    if classes is None:
        if truth.dtype.kind not in "iu" or (
            len(truth) and (truth.min() < 0 or truth.max() >= width)
        ):
            msg = f"y must hold positions of classes, below {width}; or give the labels as classes="
            raise InputError(msg)
        return truth.astype(np.int64)
    labels = np.asarray(classes)
    if labels.shape != (width,):
        msg = f"classes has shape {labels.shape} for sets of {width} classes"
        raise InputError(msg)
    position = {label: index for index, label in enumerate(labels.tolist())}
    return np.array([position.get(label, -1) for label in truth.tolist()], dtype=np.int64)


def _read_sets(sets: ArrayLike) -> Bools:
    given = np.asarray(sets)
    if given.ndim != 2 or given.dtype != bool or not len(given):
        msg = (
            "sets must be booleans of shape (rows, classes), at least one row, as credal_predict "
            f"gives them; got {given.dtype} of shape {given.shape}"
        )
        raise InputError(msg)
    empty = np.flatnonzero(~given.any(axis=1))
    if len(empty):
        msg = f"row {empty[0]} of sets holds no class: a set has one at least"
        raise InputError(msg)
    return given


def as_columns(found: list[Measures]) -> dict[str, np.ndarray[Any, Any]]:
    """Return several measures as columns."""
    rows = [asdict(one) for one in found]
    return {name: np.array([row[name] for row in rows]) for name in Measures.__dataclass_fields__}
