"""What is known of each prediction, as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.tables.frames import as_arrow, as_pandas, as_polars

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from robustq.arrays import Floats

__all__ = ["Assessment"]

SHOWN = 10


@dataclass(frozen=True, repr=False)
class Assessment:
    """One row per prediction: how sure, how robust, and against whom.

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
    """

    prediction: np.ndarray[Any, Any]
    probability: Floats
    runner_up: np.ndarray[Any, Any]
    robustness: dict[str, Floats]
    tipping_class: dict[str, np.ndarray[Any, Any]]

    def __len__(self) -> int:
        return len(self.prediction)

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
        """Return a pyarrow table."""
        return as_arrow(self.to_dict())

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas frame."""
        return as_pandas(self.to_dict())

    def to_polars(self) -> pl.DataFrame:
        """Return a polars frame."""
        return as_polars(self.to_dict())

    def __repr__(self) -> str:
        columns = {name: [_show(v) for v in c[:SHOWN]] for name, c in self.to_dict().items()}
        widths = {name: max(map(len, [name, *cells])) for name, cells in columns.items()}
        lines = ["  ".join(name.rjust(widths[name]) for name in columns)]
        lines += [
            "  ".join(cells[row].rjust(widths[name]) for name, cells in columns.items())
            for row in range(min(SHOWN, len(self)))
        ]
        count = f"Assessment of {len(self):,} prediction{'' if len(self) == 1 else 's'}"
        more = f"\n… {len(self) - SHOWN:,} more" if len(self) > SHOWN else ""
        return "\n".join([count, *lines]) + more


def _show(value: object) -> str:
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}"
    return "–" if value is None else str(value)
