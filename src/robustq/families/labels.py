"""Labels of any type, as positions of classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import narwhals as nw
import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from robustq.exceptions import InputError, RobustqError
from robustq.tables import Table, is_continuous, is_missing

from .parameters import is_between

if TYPE_CHECKING:
    from robustq.arrays import Floats, Indices

__all__ = [
    "Scoring",
    "Training",
    "find_class_factors",
    "find_classes",
    "locate_labels",
    "read_labels",
    "read_prior",
    "read_weights",
    "refuse_quantities",
    "weigh_classes",
]

LARGEST_WEIGHT = 1e100  # sums of them must not overflow


class Training(NamedTuple):
    """Rows to learn from.

    Attributes
    ----------
    table : Table
    classes : ndarray
        Sorted.
    labels : ndarray of int, of shape (rows,)
        The position of each row's class.
    weights : ndarray of shape (rows,)
    """

    table: Table
    classes: np.ndarray[Any, Any]
    labels: Indices
    weights: Floats

    @classmethod
    def read(cls, X: Any, y: object, sample_weight: Any, class_weight: Any) -> Training:
        """Return what a user gives to `fit`, checked."""
        table = Table.read(X)
        classes, labels = find_classes(read_labels(y, table.rows))
        weights = read_weights(sample_weight, table.rows)
        return cls(table, classes, labels, weigh_classes(class_weight, classes, labels, weights))


def read_labels(y: object, rows: int | None = None) -> np.ndarray[Any, Any]:
    """Return labels as a 1-D array, none missing, and one for each row if rows are given."""
    if y is None:
        msg = "requires y to be passed, but the target y is None"
        raise InputError(msg)
    try:
        series = nw.from_native(y, series_only=True, pass_through=True)
        labels = series.to_numpy() if isinstance(series, nw.Series) else np.asarray(y)
        labels = column_or_1d(labels, warn=True)
        _refuse_gaps(labels)
        _refuse_mixtures(labels)
        _refuse_quantities(labels)
        check_classification_targets(labels)
    except (TypeError, ValueError) as error:
        raise error if isinstance(error, InputError) else InputError(str(error)) from error
    if not len(labels):
        msg = "there must be at least one label"
        raise InputError(msg)
    if rows is not None and len(labels) != rows:
        msg = f"y has {len(labels)} labels for {rows} rows of X: they must be as many"
        raise InputError(msg)
    return labels


def find_classes(labels: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], Indices]:
    """Return the classes, sorted, and the position of each label among them."""
    classes, positions = np.unique(labels, return_inverse=True)
    return classes, positions.astype(np.int64)


def locate_labels(labels: np.ndarray[Any, Any], classes: np.ndarray[Any, Any]) -> Indices:
    """Return the position of each label among known classes."""
    position = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    wrong = classes[position] != labels
    if np.any(wrong):
        msg = (
            f"y holds {labels[wrong].tolist()[0]!r}, which is none of the classes "
            f"{classes.tolist()!r}: name all classes in the first call"
        )
        raise InputError(msg)
    return position.astype(np.int64)


def read_weights(sample_weight: object, rows: int) -> Floats:
    """Return the weights of the rows, 1 by default."""
    if sample_weight is None:
        return np.ones(rows)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = f"sample_weight must be numbers, got {type(sample_weight).__name__}"
        raise InputError(msg) from error
    if weights.ndim == 0:
        weights = np.full(rows, weights)
    if weights.shape != (rows,):
        msg = f"sample_weight.shape == {weights.shape}, expected {(rows,)}: one for each row"
        raise InputError(msg)
    if not np.all((weights >= 0.0) & (weights <= LARGEST_WEIGHT)):
        msg = f"sample_weight must be at least 0 and at most {LARGEST_WEIGHT:g}"
        raise InputError(msg)
    if not weights.any():
        msg = "sample_weight is zero for every row: there is nothing to learn from"
        raise InputError(msg)
    return weights


def weigh_classes(
    class_weight: Any, classes: np.ndarray[Any, Any], labels: Indices, weights: Floats
) -> Floats:
    """Return the weights of the rows, each times the weight of its class.

    Parameters
    ----------
    class_weight : None, "balanced" or dict of label to weight
        As in scikit-learn: "balanced" gives all classes the same weight in sum, a label that a
        dictionary does not name has weight 1.
    classes : ndarray
    labels : ndarray of int, of shape (rows,)
        Positions of classes.
    weights : ndarray of shape (rows,)
    """
    if class_weight is None:
        return weights
    sums = np.bincount(labels, weights, minlength=len(classes)).astype(np.float64)
    found: Floats = weights * find_class_factors(class_weight, classes, sums)[labels]
    if not found.any():
        msg = "class_weight is zero for every class there is: there is nothing to learn from"
        raise InputError(msg)
    return found


def find_class_factors(class_weight: Any, classes: np.ndarray[Any, Any], sums: Floats) -> Floats:
    """Return by what the weights of the rows of each class are multiplied.

    Parameters
    ----------
    class_weight, classes
        See `weigh_classes`.
    sums : ndarray of shape (classes,)
        The weights of the rows of each class together.
    """
    if isinstance(class_weight, str) and class_weight == "balanced":
        present = sums > 0.0
        return np.divide(sums.sum() / present.sum(), sums, where=present, out=np.ones(len(sums)))
    return _read_class_weights(class_weight, classes)


def _read_class_weights(given: Any, classes: np.ndarray[Any, Any]) -> Floats:
    if not isinstance(given, Mapping):
        msg = f'class_weight must be None, "balanced" or a dictionary of labels, got {given!r}'
        raise InputError(msg)
    for label, weight in given.items():
        if not is_between(weight, 0.0, LARGEST_WEIGHT, low_included=True):
            msg = f"class_weight of {label!r} must be a number of at least 0, got {weight!r}"
            raise InputError(msg)
    known = classes.tolist()
    strange = [label for label in given if label not in known]
    # A class may be absent from some of the rows, but a slip of the pen leaves others without.
    if strange and len(given) - len(strange) < len(known):
        msg = f"class_weight names {strange[0]!r}, which is none of the classes {known!r}"
        raise InputError(msg)
    return np.array([float(given.get(label, 1.0)) for label in known])


def read_prior(given: object, classes: int) -> Floats | None:
    """Return the probabilities of the classes that were given, if there are any."""
    if given is None:
        return None
    try:
        prior = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = f"class_prior must be numbers, got {given!r}"
        raise InputError(msg) from error
    if prior.shape != (classes,):
        msg = f"class_prior has shape {prior.shape} for {classes} classes: give one for each"
        raise InputError(msg)
    if not np.all(prior >= 0.0) or abs(prior.sum() - 1.0) > 1e-9:
        msg = f"class_prior must be probabilities that sum to 1, got {prior.tolist()}"
        raise InputError(msg)
    return prior


def _refuse_mixtures(labels: np.ndarray[Any, Any]) -> None:
    if labels.dtype == object:
        kinds = {type(label) for label in labels}
        if len(kinds) > 1 and any(issubclass(kind, str) for kind in kinds):
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            msg = f"y mixes labels of different types ({names}): make them all text"
            raise InputError(msg)


def _refuse_quantities(labels: np.ndarray[Any, Any]) -> None:
    if is_continuous(labels):
        refuse_quantities(np.unique(labels), len(labels), labels[0])


def refuse_quantities(different: np.ndarray[Any, Any], rows: int, one: Any) -> NoReturn:
    """Raise: the different labels of so many rows are quantities."""
    # The first words are scikit-learn's, whose users know them.
    msg = (
        f"Unknown label type: continuous. y holds {len(different):,} different numbers "
        f"in {rows:,} rows, such as {one}: cut them into classes (y >= threshold, "
        "or np.digitize), or make text of them if they are names of classes"
    )
    raise InputError(msg)


def _refuse_gaps(labels: np.ndarray[Any, Any]) -> None:
    if labels.dtype.kind == "f":
        wrong = ~np.isfinite(labels)
    elif labels.dtype == object:
        wrong = np.array([is_missing(label) for label in labels], dtype=bool)
    else:
        return
    if np.any(wrong):
        row = int(np.flatnonzero(wrong)[0])
        msg = f"Input y contains NaN or infinity: row {row} has no label; drop such rows"
        raise InputError(msg)


class Scoring:
    """The accuracy, as scikit-learn has it; labels that are none are told so."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of right predictions.

        Parameters
        ----------
        X : table
        y : array_like of shape (rows,)
        sample_weight : array_like of shape (rows,), optional
        """
        try:
            return float(super().score(X, y, sample_weight))  # type: ignore[misc]
        except (TypeError, ValueError) as error:
            if isinstance(error, RobustqError):
                raise
            msg = f"y must be labels, one for each row of X: {error}"
            raise InputError(msg) from error
