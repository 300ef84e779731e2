"""The adult data, as integer codes: what the forests are timed on."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from robustq.arrays import Indices

__all__ = ["Adult", "load_adult", "shuffle_columns", "take_distinct"]

AGE, TARGET = 0, 14
CATEGORICAL = (1, 3, 5, 6, 7, 8, 9, 13)
GROUPS = 5


@dataclass(frozen=True)
class Adult:
    """Categorical columns as codes, and two labels."""

    name: str
    X: Indices
    income: Indices  # of two classes
    age: Indices  # of five, about equally many in each


def load_adult() -> Adult:
    """Return the complete rows of adult.data.

    The file is looked for in the folder that the variable ROBUSTQ_DATA names; without it, rows of
    the same shape are made up.
    """
    path = Path(os.environ.get("ROBUSTQ_DATA", "")) / "adult.data"
    if not path.is_file():
        return _make_up()
    with path.open(newline="") as file:
        table = [[cell.strip() for cell in row] for row in csv.reader(file) if len(row) > TARGET]
    rows = [row for row in table if "?" not in row]
    columns = [_encode([row[i] for row in rows]) for i in CATEGORICAL]
    income = _encode([row[TARGET] for row in rows])
    age = np.array([float(row[AGE]) for row in rows])
    return Adult("adult", np.stack(columns, axis=1), income, _group(age))


def _encode(cells: list[str]) -> Indices:
    return np.unique(cells, return_inverse=True)[1].astype(np.int64)


def _group(numbers: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Indices:
    edges = np.quantile(numbers, np.arange(1, GROUPS) / GROUPS)
    return np.searchsorted(edges, numbers)


def _make_up(rows: int = 30_162) -> Adult:
    rng = np.random.default_rng(0)
    sizes = (7, 16, 7, 14, 6, 5, 2, 41)
    columns = [rng.choice(k, rows, p=rng.dirichlet(np.full(k, 0.5))) for k in sizes]
    X = np.stack(columns, axis=1)
    lean = rng.normal(size=(41, 8))[X, np.arange(8)].sum(axis=1) - 1.5
    income = (rng.random(rows) < 1 / (1 + np.exp(-lean))).astype(np.int64)
    return Adult("rows made up like adult's", X, income, _group(lean + rng.logistic(size=rows)))


def shuffle_columns(X: Indices, rows: int) -> Indices:
    """Return so many rows, each column shuffled on its own; of 300,000, a fifth differ."""
    rng = np.random.default_rng(0)
    return np.stack([rng.permutation(np.resize(column, rows)) for column in X.T], axis=1)


def take_distinct(X: Indices) -> Indices:
    """Return each row once, in the order in which they come first."""
    _, first = np.unique(X, axis=0, return_index=True)
    return X[np.sort(first)]
