"""Sets of classes as predictions: how good they are, and how they grow with the size.

Examples
--------
>>> from robustq import credal
>>> found = credal.measure([[True, False], [True, True], [False, True]], [0, 1, 0])
>>> found.determinacy, found.single_accuracy, found.set_accuracy
(0.6666666666666666, 0.5, 1.0)
>>> round(found.u65, 4), round(found.u80, 4)
(0.55, 0.6)
"""

from .curves import CredalCurve, curve
from .measures import (
    Measures,
    by_set_size,
    determinacy,
    discounted_accuracy,
    measure,
    set_accuracy,
    set_size,
    single_accuracy,
    u65,
    u80,
    utility,
)
from .sets import predict_sets, write_sets

__all__ = [
    "CredalCurve",
    "Measures",
    "by_set_size",
    "curve",
    "determinacy",
    "discounted_accuracy",
    "measure",
    "predict_sets",
    "set_accuracy",
    "set_size",
    "single_accuracy",
    "u65",
    "u80",
    "utility",
    "write_sets",
]
