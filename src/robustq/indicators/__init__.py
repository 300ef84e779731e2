"""Trust indicators: robustness, and the uncertainty measures it competes with.

Examples
--------
>>> from robustq import NaiveBayesClassifier, indicators
>>> X = [["sunny", "mild"], ["rainy", "cold"], ["sunny", "warm"], ["rainy", "mild"]]
>>> model = NaiveBayesClassifier(smoothing=1).fit(X, ["out", "in", "out", "in"])
>>> scores = indicators.compute(model, X[:2], ["r_tv", "u_max"])
>>> {name: score.round(3).tolist() for name, score in scores.items()}
{'r_tv': [0.079, 0.114], 'u_max': [-0.25, -0.143]}
"""

from .ensemble import BootstrapEnsemble
from .scores import compute, measure
from .table import Indicator, get, names

__all__ = ["BootstrapEnsemble", "Indicator", "compute", "get", "measure", "names"]
