"""Accuracy-rejection curves, which tell whether a score knows which predictions to trust.

Examples
--------
>>> from robustq import rejection
>>> curve = rejection.accuracy_rejection_curve([True, True, False, True], [0.9, 0.4, 0.1, 0.4])
>>> curve.rates.tolist(), curve.accuracy.round(2).tolist(), round(curve.auc, 4)
([0.0, 0.25, 0.5, 0.75], [0.75, 1.0, 1.0, 1.0], 0.9375)
"""

from .averages import AverageCurve, average_curves
from .bands import Band, confidence_band
from .comparison import Comparison, compare
from .curves import (
    Curve,
    accuracy_rejection_curve,
    auc,
    aurc,
    best_curve,
    excess_aurc,
    random_curve,
)
from .plots import plot_curves, plot_robustness

__all__ = [
    "AverageCurve",
    "Band",
    "Comparison",
    "Curve",
    "accuracy_rejection_curve",
    "auc",
    "aurc",
    "average_curves",
    "best_curve",
    "compare",
    "confidence_band",
    "excess_aurc",
    "plot_curves",
    "plot_robustness",
    "random_curve",
]
