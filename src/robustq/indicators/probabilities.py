"""The probabilities that any classifier predicts, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from robustq.exceptions import InputError, UnsupportedError
from robustq.families.base import NotFittedError

if TYPE_CHECKING:
    from robustq.arrays import Floats

__all__ = ["predict_probabilities"]


def predict_probabilities(model: Any, X: Any) -> Floats:
    """Return p(c | f), (rows, classes), of any classifier with `predict_proba`."""
    if not hasattr(model, "predict_proba"):
        msg = f"{type(model).__name__} has no predict_proba: take a classifier that has one"
        raise UnsupportedError(msg)
    try:
        probs = np.asarray(model.predict_proba(X), dtype=np.float64)
    except SklearnNotFittedError as error:
        raise NotFittedError(str(error)) from error
    if probs.ndim != 2 or not np.all((probs >= 0.0) & (probs <= 1.0 + 1e-6)):
        msg = f"{type(model).__name__}.predict_proba gave what are no probabilities"
        raise InputError(msg)
    return np.minimum(probs, 1.0)
