"""The probabilities that any classifier predicts, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from sklearn.utils.validation import check_is_fitted

from robustq.exceptions import InputError, RobustqError, UnsupportedError

from .fitted import NotFittedError

if TYPE_CHECKING:
    from robustq.arrays import Floats

__all__ = ["check_probabilities", "predict_probabilities", "require_probabilities"]

# How far a sum of probabilities may be from 1: many models work in 32 bits, or less.
NEAR = 1e-3


def require_probabilities(model: Any) -> None:
    """Raise if something is no classifier with `predict_proba`; the message says what to do."""
    name = type(model).__name__
    if isinstance(model, type):
        msg = f"{model.__name__} is a class: give a fitted classifier, as in its fit(X, y)"
        raise UnsupportedError(msg)
    if not hasattr(model, "predict_proba"):
        msg = f"{name} has no predict_proba: take a classifier that has one"
        if hasattr(model, "decision_function"):
            msg += ", or make one of it with sklearn.calibration.CalibratedClassifierCV"
        if getattr(model, "voting", None) == "hard":
            msg += ', as with voting="soft"'
        raise UnsupportedError(msg)
    if not hasattr(model, "classes_") and hasattr(model, "fit"):
        try:
            check_is_fitted(model)
        except SklearnNotFittedError as error:
            raise NotFittedError(str(error)) from error


def predict_probabilities(model: Any, X: Any) -> Floats:
    """Return p(c | f), (rows, classes), of any classifier with `predict_proba`."""
    require_probabilities(model)
    name = type(model).__name__
    try:
        probs = model.predict_proba(X)
    except SklearnNotFittedError as error:
        raise NotFittedError(str(error)) from error
    except (RobustqError, MemoryError):
        raise
    # Whatever somebody else's classifier raises is about that classifier and this table.
    except Exception as error:
        msg = f"{name}.predict_proba did not take this table ({type(error).__name__}: {error})"
        raise InputError(msg) from error
    if isinstance(probs, list):
        msg = f"{name} predicts {len(probs)} targets at once: judge a classifier of one target"
        raise UnsupportedError(msg)
    return check_probabilities(probs, f"{name}.predict_proba")


def check_probabilities(given: Any, where: str = "proba") -> Floats:
    """Return probabilities of classes, (rows, classes), that sum to 1.

    Raises
    ------
    InputError
        If they are none; the message names the row.
    """
    try:
        probs = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = f"{where} must be numbers, (rows, classes), got {type(given).__name__}"
        raise InputError(msg) from error
    if probs.ndim != 2 or not probs.shape[1]:
        remedy = ": of two classes give both, np.column_stack([1 - p, p])" * (probs.ndim == 1)
        msg = f"{where} must have the shape (rows, classes), got {probs.shape}{remedy}"
        raise InputError(msg)
    wrong = ~((probs >= 0.0) & (probs <= 1.0 + NEAR))
    if wrong.any():
        row, column = np.argwhere(wrong)[0].tolist()
        msg = f"{where} holds {probs[row, column]} in row {row}, which is no probability"
        raise InputError(msg)
    sums = probs.sum(axis=1)
    far = np.flatnonzero(np.abs(sums - 1.0) > NEAR)
    if len(far):
        msg = (
            f"{where} sums to {sums[far[0]]:.6g} in row {far[0]}, and must sum to 1 over the "
            "classes: several labels for a row cannot be judged at once"
        )
        raise InputError(msg)
    return probs / np.where(np.abs(sums - 1.0) > 1e-12, sums, 1.0)[:, None]
