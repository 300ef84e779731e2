"""Which features decide a prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from robustq.families.remarks import ignoring_unknown_values
from robustq.scoring import Guest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robustq.families.base import GenerativeClassifier

__all__ = ["list_deciding"]

MOST = 5
MOST_CELLS = 20_000


def list_deciding(
    model: GenerativeClassifier | Guest,
    X: pa.Table,
    predictions: Sequence[Any],
    rivals: Sequence[Any],
    most: int = MOST,
) -> list[list[str]]:
    """Return, for each row, the columns whose value matters most, those first that matter more.

    A value matters by how much the log-odds of the prediction against its rival change where the
    cell is missing.

    Parameters
    ----------
    model : GenerativeClassifier or Guest
        Of the latter nobody knows; the first columns are returned.
    X : pyarrow.Table
        A few rows.
    predictions, rivals : sequences of labels
        A rival may be None: then it is the most probable of the other classes.
    most : int
    """
    names = X.column_names
    if isinstance(model, Guest) or X.num_rows * len(names) > MOST_CELLS:
        return [names[:most] for _ in range(X.num_rows)]
    # One table: the rows as they are, then without the first column, without the second, …
    tables = [X]
    for place, name in enumerate(names):
        gaps = pa.nulls(X.num_rows, X[name].type)
        tables.append(X.set_column(place, name, gaps))
    with ignoring_unknown_values():
        joint = model.predict_joint_log_proba(pa.concat_tables(tables))
    joint = joint.reshape(len(names) + 1, X.num_rows, -1)
    pairs = enumerate(zip(predictions, rivals, strict=True))
    odds = np.stack([_odds(joint[:, row], model.classes_, *pair) for row, pair in pairs])
    with np.errstate(invalid="ignore"):
        change = np.abs(odds[:, :1] - odds[:, 1:])
    # What cannot be said, ∞ − ∞, comes last.
    order = np.argsort(-np.where(np.isnan(change), -1.0, change), axis=1, kind="stable")
    return [[names[place] for place in places[:most]] for places in order.tolist()]


def _odds(joint: Any, classes: Any, prediction: Any, rival: Any) -> Any:
    """Return the log-odds of the prediction, for each table."""
    labels = classes.tolist()
    own = labels.index(prediction)
    others = [labels.index(rival)] if rival is not None else []
    others = others or [place for place in range(len(labels)) if place != own]
    if not others:
        return np.zeros(len(joint))
    with np.errstate(invalid="ignore"):
        return joint[:, own] - joint[:, others].max(axis=1)
