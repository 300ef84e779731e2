"""The adult data, as integer codes: what the forests are timed on."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from robustq.arrays import Indices

__all__ = ["load_adult", "shuffle_columns"]

CATEGORICAL = (1, 3, 5, 6, 7, 8, 9, 13)
TARGET = 14


def load_adult() -> tuple[Indices, Indices]:
    """Return the complete rows of adult.data, its categorical columns as codes, and labels.

    The file is looked for in the folder that the variable ROBUSTQ_DATA names; without it, rows of
    the same shape are made up.
    """
    path = Path(os.environ.get("ROBUSTQ_DATA", "")) / "adult.data"
    if not path.is_file():
        return _make_up()
    with path.open(newline="") as file:
        table = [[cell.strip() for cell in row] for row in csv.reader(file) if len(row) > TARGET]
    rows = [row for row in table if "?" not in row]
    columns = [np.unique([row[i] for row in rows], return_inverse=True)[1] for i in CATEGORICAL]
    y = np.unique([row[TARGET] for row in rows], return_inverse=True)[1]
    return np.stack(columns, axis=1).astype(np.int64), y


def _make_up(rows: int = 30_162) -> tuple[Indices, Indices]:
    rng = np.random.default_rng(0)
    sizes = (7, 16, 7, 14, 6, 5, 2, 41)
    columns = [rng.choice(k, rows, p=rng.dirichlet(np.full(k, 0.5))) for k in sizes]
    X = np.stack(columns, axis=1)
    chance = 1 / (1 + np.exp(-(rng.normal(size=(41, 8))[X, np.arange(8)].sum(axis=1) - 1.5)))
    return X, (rng.random(rows) < chance).astype(np.int64)


def shuffle_columns(X: Indices, rows: int) -> Indices:
    """Return so many rows, each column shuffled on its own: hardly any two are equal."""
    rng = np.random.default_rng(0)
    return np.stack([rng.permutation(np.resize(column, rows)) for column in X.T], axis=1)
