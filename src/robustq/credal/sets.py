"""Sets of classes at a size, where it is known already which predictions are robust."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.families.functions import credal_predict
from robustq.families.remarks import ignoring_unknown_values
from robustq.tables.table import take_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from robustq.arrays import Bools, Floats, Indices
    from robustq.core.neighbourhoods import Neighbourhood

__all__ = ["predict_sets", "write_sets"]

BETWEEN = "|"


def predict_sets(
    model: Any,
    X: Any,
    neighbourhood: Neighbourhood,
    delta: float,
    prediction: Indices,
    robustness: Floats,
) -> Bools:
    """Return the classes that no other beats for certain, as `credal_predict` does.

    A robust prediction stands alone, and of two classes none is left out else; only what remains
    is looked at. Nothing is said about unknown values.

    Parameters
    ----------
    model : GenerativeClassifier or Pipeline
    X : frame or array of shape (rows, features)
    neighbourhood : Neighbourhood
    delta : float
    prediction : ndarray of shape (rows,)
        Positions of the predicted classes.
    robustness : ndarray of shape (rows,)
        In this neighbourhood.

    Returns
    -------
    ndarray of bool, of shape (rows, classes)
    """
    classes = len(model.classes_)
    sets = np.arange(classes) == prediction[:, None]
    open_ = np.flatnonzero(robustness <= delta)
    if classes <= 2:
        sets[open_] = True
    elif len(open_):
        with ignoring_unknown_values():
            sets[open_] = credal_predict(model, take_rows(X, open_), neighbourhood, delta)
    return sets


def write_sets(sets: Bools, classes: ArrayLike) -> np.ndarray[Any, Any]:
    r"""Return sets as text, labels in their order with | between them, as in "bad|good".

    A | or \ within a label has a \ before it.

    Examples
    --------
    >>> write_sets(np.array([[True, True], [False, True]]), ["bad", "good"]).tolist()
    ['bad|good', 'good']
    """
    names = [
        str(label).replace("\\", "\\\\").replace(BETWEEN, "\\" + BETWEEN)
        for label in np.asarray(classes).tolist()
    ]
    different, place = np.unique(sets, axis=0, return_inverse=True)
    words = [
        BETWEEN.join(name for name, inside in zip(names, one, strict=True) if inside)
        for one in different
    ]
    return np.array(words, dtype=object)[place.ravel()]
