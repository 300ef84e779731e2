"""What is known of each prediction, as a table."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.exceptions import InputError, PositionError, UnknownNameError
from robustq.tables.display import as_html, as_text, show_value
from robustq.tables.frames import as_arrow, as_pandas, as_polars

from .quantified import Quantified

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from robustq.arrays import Floats, Indices

__all__ = ["Assessment"]

SHOWN = 10
MADE = "an Assessment is made by model.assess, of arrays and of dictionaries of them"


@dataclass(frozen=True, repr=False, eq=False)
class Assessment:
    """One row per prediction: how sure, how robust, and against whom.

    A slice, a mask of truth values or a list of positions in brackets gives the assessment of some
    of the rows; `least` gives those to look at first.

    Attributes
    ----------
    prediction : ndarray of shape (rows,)
        The predicted labels.
    probability : ndarray of shape (rows,)
        The probability of the predicted class given the features.
    runner_up : ndarray of shape (rows,)
        The second most probable label; None if there is one class only.
    robustness : dict of str to ndarray of shape (rows,)
        For each perturbation, the size that flips the prediction: 0 is a tie, infinite
        means that no size does.
    tipping_class : dict of str to ndarray of shape (rows,)
        For each perturbation, the label that first catches up; None where nothing does.
    index : pandas.Index or ndarray of shape (rows,)
        The index of the frame that was assessed; of a table without one, the positions of the rows.
    unknown : dict of str to int
        How many values of each column were never seen in training, in the whole table assessed.
    others : int
        In how many rows of that table `predict` says another class than the most probable one,
        which is what is judged. Only classifiers that are none of robustq's do so.

    Examples
    --------
    >>> from robustq import NaiveBayesClassifier
    >>> X, y = [["a"], ["a"], ["b"], ["b"], ["b"]], [0, 0, 1, 1, 0]
    >>> assessment = NaiveBayesClassifier(1.0).fit(X, y).assess(X, ["tv"])
    >>> assessment.least(2)
    Assessment of 2 predictions
       prediction  probability  runner_up  robustness_tv  tipping_class_tv
    2           1       0.5556          0        0.02791                 0
    3           1       0.5556          0        0.02791                 0
    >>> len(assessment[assessment.robustness["tv"] > 0.1])
    2
    """

    prediction: np.ndarray[Any, Any]
    probability: Floats
    runner_up: np.ndarray[Any, Any]
    robustness: dict[str, Floats]
    tipping_class: dict[str, np.ndarray[Any, Any]]
    index: Any = field(default_factory=lambda: None)
    unknown: dict[str, int] = field(default_factory=dict)
    others: int = 0

    @classmethod
    def of(
        cls, found: Quantified, names: Sequence[str], classes: np.ndarray[Any, Any], **more: Any
    ) -> Assessment:
        """Return what was found in neighbourhoods of these names, with labels.

        Parameters
        ----------
        found : Quantified
        names : sequence of str
        classes : ndarray
        more : Any
            `index`, `unknown` and `others`.
        """
        if not isinstance(found, Quantified):
            raise InputError(MADE)
        return cls(
            prediction=classes[found.prediction],
            probability=found.probability,
            runner_up=_labels_or_none(classes, found.runner_up),
            robustness=dict(zip(names, found.robustness, strict=True)),
            tipping_class={
                name: _labels_or_none(classes, tipping)
                for name, tipping in zip(names, found.tipping, strict=True)
            },
            **more,
        )

    def __post_init__(self) -> None:
        arrays = (self.prediction, self.probability, self.runner_up)
        tables = (self.robustness, self.tipping_class)
        if not all(isinstance(array, np.ndarray) for array in arrays) or not all(
            isinstance(table, dict) for table in tables
        ):
            raise InputError(MADE)
        if self.index is None:
            object.__delattr__(self, "index")

    def __getattr__(self, name: str) -> Any:
        """Count the rows of a table without an index, when they are asked for."""
        if name != "index":
            msg = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(msg, name=name, obj=self)
        object.__setattr__(self, name, np.arange(len(self)))
        return self.index

    def __len__(self) -> int:
        return len(self.prediction)

    # Some of the rows

    def __getitem__(self, rows: Any) -> Assessment:
        """Return the assessment of one row, a slice, those of a mask, or a list of positions."""
        positions = self._locate(rows)
        return replace(
            self,
            prediction=self.prediction[positions],
            probability=self.probability[positions],
            runner_up=self.runner_up[positions],
            robustness={name: sizes[positions] for name, sizes in self.robustness.items()},
            tipping_class={name: rivals[positions] for name, rivals in self.tipping_class.items()},
            index=self.index[positions],
        )

    def __iter__(self) -> Iterator[Assessment]:
        return (self[row] for row in range(len(self)))

    def least(self, n: int = 10, by: str | None = None) -> Assessment:
        """Return the n least robust predictions, the least robust one first.

        Parameters
        ----------
        n : int, default 10
        by : str, optional
            The perturbation whose robustness counts; by default the first one.
        """
        if not isinstance(n, Integral) or isinstance(n, bool) or n < 0:
            msg = f"n must be a whole number of at least 0, got {n!r}"
            raise InputError(msg)
        if by is None:
            by = next(iter(self.robustness), None)
        if not isinstance(by, str) or by not in self.robustness:
            msg = f"nothing was assessed by {by!r}: there is {', '.join(self.robustness) or 'none'}"
            raise UnknownNameError(msg)
        return self[np.argsort(self.robustness[by], kind="stable")[: int(n)]]

    def _locate(self, rows: Any) -> Indices:
        """Return the positions that something in brackets means."""
        every = np.arange(len(self))
        if isinstance(rows, slice):
            return every[rows]
        if isinstance(rows, Integral) and not isinstance(rows, bool):
            rows = [rows]
        try:
            given = np.asarray(rows)
        except ValueError:
            given = np.asarray(None)
        if given.dtype == bool and given.shape == every.shape:
            self._require_same_index(rows)
            return every[given]
        if given.ndim != 1 or (len(given) and given.dtype.kind not in "iu"):
            msg = (
                f"rows are a position, a slice, {len(self):,} truth values or a list of positions, "
                f"got {type(rows).__name__} of {given.dtype} and shape {given.shape}"
            )
            raise InputError(msg)
        outside = (given < -len(self)) | (given >= len(self))
        if outside.any():
            msg = f"there is no row {given[outside][0]}: {len(self):,} rows were assessed"
            raise PositionError(msg)
        return every[given.astype(np.int64)]

    def _require_same_index(self, mask: Any) -> None:
        """Raise if a mask is a series of other rows, or of the same in another order."""
        labels: Any = getattr(mask, "index", None)
        if hasattr(labels, "equals") and hasattr(self.index, "equals"):
            if labels.equals(self.index):
                return
            msg = "the mask's index is not that of the rows assessed: align it, as by mask[index]"
            raise InputError(msg)

    # Tables

    def to_dict(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the columns by name."""
        columns: dict[str, np.ndarray[Any, Any]] = {
            "prediction": self.prediction,
            "probability": self.probability,
            "runner_up": self.runner_up,
        }
        for name, robustness in self.robustness.items():
            columns[f"robustness_{name}"] = robustness
            columns[f"tipping_class_{name}"] = self.tipping_class[name]
        return columns

    def to_arrow(self) -> pa.Table:
        """Return a pyarrow table; it has no index."""
        return as_arrow(self.to_dict())

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas frame, with the index of the frame that was assessed."""
        return as_pandas(self.to_dict(), None if self._is_counted() else self.index)

    def to_polars(self) -> pl.DataFrame:
        """Return a polars frame; it has no index."""
        return as_polars(self.to_dict())

    def _is_counted(self) -> bool:
        """Tell whether the index says nothing more than the order of the rows."""
        return isinstance(self.index, np.ndarray) and np.array_equal(
            self.index, np.arange(len(self))
        )

    # To be looked at

    @property
    def _title(self) -> str:
        return f"Assessment of {len(self):,} prediction{'' if len(self) == 1 else 's'}"

    @property
    def _more(self) -> str:
        return f"… {len(self) - SHOWN:,} more" if len(self) > SHOWN else ""

    def _cells(self, *, counted: bool) -> dict[str, list[str]]:
        """Return the first rows as text; with an index where it tells more, or where asked for."""
        columns: dict[str, Any] = self.to_dict()
        if counted or not np.array_equal(self.index, np.arange(len(self))):
            columns = {"": self.index, **columns}
        return {name: list(map(show_value, cells[:SHOWN])) for name, cells in columns.items()}

    def __repr__(self) -> str:
        lines = [self._title, as_text(self._cells(counted=False)), self._more]
        return "\n".join(filter(None, lines))

    def _repr_html_(self) -> str:
        return as_html(self._title, self._cells(counted=True), self._more)


def _labels_or_none(classes: np.ndarray[Any, Any], positions: Indices) -> np.ndarray[Any, Any]:
    if len(positions) and positions.min() >= 0:
        return classes[positions]
    labels = np.append(classes.astype(object), [None])
    return labels[positions]
