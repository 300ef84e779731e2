"""Training from a table as people have it: what its columns are, and how good the model is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sklearn.base import clone

from robustq import indicators, rejection
from robustq.families.base import ignoring_unknown_values
from robustq.exceptions import InputError
from robustq.selection.thresholds import calibrate
from robustq.tables import Binned, Categorical, as_numbers
from robustq.tables.table import take_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robustq.arrays import Indices
    from robustq.families.base import GenerativeClassifier
    from robustq.perturbations import Perturbation

__all__ = [
    "Holdout",
    "Promise",
    "Understanding",
    "describe_columns",
    "evaluate_holdout",
    "find_numbers",
    "read_labels",
    "split_rows",
    "train",
]

MANY = 50  # more different whole numbers than this are taken as numbers


@dataclass(frozen=True)
class Understanding:
    """How a column was understood.

    Attributes
    ----------
    name : str
    kind : str
    values : str
        How many there are, or between what they lie.
    missing : int
    examples : str
    remark : str
        What a user may want to change.
    """

    name: str
    kind: str
    values: str
    missing: int
    examples: str
    remark: str


def read_labels(column: pa.ChunkedArray, name: str) -> np.ndarray[Any, Any]:
    """Return labels: numbers, truth values or text; what is something else becomes text."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    try:
        values = column if plain else column.cast(pa.string())
    except pa.ArrowException as error:
        msg = f"column {name!r} holds {kind}, and a class is text or a number"
        raise InputError(msg) from error
    return np.array(values.to_pylist())


def find_numbers(table: pa.Table, given: Sequence[str], categorical: Sequence[str]) -> list[str]:
    """Return the columns to take as numbers: those given, and whole numbers with many values."""
    many = [
        name
        for name, column in zip(table.column_names, table.columns, strict=True)
        if _is_whole(column)
        and name not in (*given, *categorical)
        and pc.count_distinct(column).as_py() > MANY
    ]
    return [*given, *many]


def _is_whole(column: pa.ChunkedArray) -> bool:
    """Tell whether a column holds whole numbers, also those that are floats because of gaps."""
    if pa.types.is_floating(column.type):
        return bool(pc.all(pc.equal(column, pc.round(column))).as_py())
    return bool(pa.types.is_integer(column.type))


def describe_columns(model: GenerativeClassifier, table: pa.Table) -> list[Understanding]:
    """Return how a fitted model understood the columns of its training table."""
    return [
        _describe(column, table[column.name], column.name) for column in model.encoding_.columns
    ]


def _describe(column: Any, values: pa.ChunkedArray, name: str) -> Understanding:
    missing = values.null_count
    if not isinstance(column, Categorical):
        numbers = as_numbers(values.combine_chunks(), name)
        found = numbers[np.isfinite(numbers)]
        span = f"{found.min():g} to {found.max():g}" if len(found) else "none"
        bins = f", {len(column.categories)} bins" if isinstance(column, Binned) else ""
        examples = ", ".join(f"{value:g}" for value in found[:3])
        return Understanding(name, f"numbers{bins}", span, missing, examples, "")
    count = len(column.categories)
    present = len(values) - missing
    remark = ""
    if count <= 1:
        remark = "nothing to learn from"
    elif count > 20 and count > 0.9 * present:
        remark = f"looks like an id: --drop {name}?"
    shown = ", ".join(map(str, column.categories[:4])) + (", …" if count > 4 else "")
    return Understanding(name, "categories", f"{count:,}", missing, shown, remark)


@dataclass(frozen=True)
class Holdout:
    """How good a model is on rows it did not learn from.

    Attributes
    ----------
    rows : int
    accuracy : float
    frequent : float
        The accuracy of always saying the most frequent class.
    areas : dict of str to float
        AU-ARC by indicator.
    """

    rows: int
    accuracy: float
    frequent: float
    areas: dict[str, float]


def split_rows(rows: int, share: float, seed: int) -> tuple[Indices, Indices]:
    """Return the rows to learn from and those held out, at random."""
    held = min(rows - 1, max(1, round(share * rows)))
    shuffled = np.random.RandomState(seed).permutation(rows)
    return np.sort(shuffled[held:]), np.sort(shuffled[:held])


def evaluate_holdout(
    model: GenerativeClassifier, X: pa.Table, y: np.ndarray[Any, Any], share: float, seed: int
) -> tuple[GenerativeClassifier, Holdout, Indices]:
    """Fit a copy of a model on part of the rows, and try it on the others.

    Returns
    -------
    GenerativeClassifier, Holdout, ndarray
        The copy, how good it is, and the rows held out.
    """
    train, test = split_rows(len(y), share, seed)
    copy = clone(model).fit(take_rows(X, train), y[train])
    X_test = take_rows(X, test)
    with ignoring_unknown_values():
        correct = copy.predict(X_test) == y[test]
        scores = indicators.compute(copy, X_test, ["r_epsilon", "r_tv", "r_chi2", "u_max"])
    labels, counts = np.unique(y[train], return_counts=True)
    frequent = float(np.mean(y[test] == labels[counts.argmax()]))
    areas = {name: rejection.auc(correct, score) for name, score in scores.items()}
    return copy, Holdout(len(test), float(correct.mean()), frequent, areas), test


@dataclass(frozen=True)
class Promise:
    """What a gate is to promise.

    Attributes
    ----------
    ball : Perturbation
        In which robustness predictions are accepted.
    max_error, confidence : float
    """

    ball: Perturbation
    max_error: float
    confidence: float

    def __post_init__(self) -> None:
        for name, value in (("--max-error", self.max_error), ("--confidence", self.confidence)):
            if not 0.0 < value < 1.0:
                msg = f"{name} must lie between 0 and 1, got {value}"
                raise InputError(msg)


def train(
    model: GenerativeClassifier,
    X: pa.Table,
    y: np.ndarray[Any, Any],
    *,
    holdout: float | None,
    seed: int,
    promise: Promise | None = None,
) -> tuple[GenerativeClassifier, Holdout | None]:
    """Return the model, fitted, and how good a copy of it was on rows held out.

    With a promise, the model is the copy: a gate holds for the very model it was calibrated for.

    Parameters
    ----------
    model : GenerativeClassifier
    X : pyarrow.Table
    y : ndarray of shape (rows,)
    holdout : float, optional
        The share of the rows held out; None holds out none.
    seed : int
    promise : Promise, optional
    """
    if holdout is None:
        if promise is not None:
            msg = "--max-error needs rows to calibrate with: leave --no-holdout out"
            raise InputError(msg)
        return model.fit(X, y), None
    if not 0.0 < holdout < 1.0:
        msg = f"--holdout must lie between 0 and 1, got {holdout}"
        raise InputError(msg)
    if len(y) < 2:
        msg = "there is a single row with a label: give more, or --no-holdout"
        raise InputError(msg)
    copy, found, held = evaluate_holdout(model, X, y, holdout, seed)
    facts: dict[str, Any] = {
        "holdout": {"rows": found.rows, "accuracy": found.accuracy, "au_arc": found.areas}
    }
    if promise is not None:
        facts["gate"] = calibrate_gate(copy, take_rows(X, held), y[held], promise)
    fitted = copy if promise is not None else model.fit(X, y)
    fitted.training_ |= facts
    return fitted, found


def calibrate_gate(
    model: GenerativeClassifier, X: pa.Table, y: np.ndarray[Any, Any], promise: Promise
) -> dict[str, Any]:
    """Return the loosest threshold of a robustness whose error is bounded, as plain data.

    The rows must not be those the model learned from. The guarantee holds for rows that are
    drawn as these were.
    """
    with ignoring_unknown_values():
        correct = model.predict(X) == y
        robustness = model.robustness(X, promise.ball)
    found = calibrate(correct, robustness, promise.confidence)
    picked = found.pick(promise.max_error)
    gate = {
        "ball": promise.ball.name,
        "max_error": promise.max_error,
        "confidence": promise.confidence,
        "rows": len(y),
    }
    if picked is None:
        return gate | {"above": None, "accepted": 0.0, "bound": None}
    return gate | {
        # Every robustness is above −1.
        "above": max(float(found.thresholds[picked]), -1.0),
        "accepted": float(found.accepted[picked] / len(y)),
        "bound": float(found.bounds[picked]),
    }
