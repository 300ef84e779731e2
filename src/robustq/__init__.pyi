from . import perturbations
from .classifiers.forest import GenerativeForestClassifier, GenerativeTreeClassifier
from .classifiers.functions import assess, credal_predict, is_robust, robustness
from .classifiers.naive_bayes import NaiveBayesClassifier
from .exceptions import (
    DomainError,
    InputError,
    RobustqError,
    UnknownNameError,
    UnknownValueWarning,
    UnsupportedError,
)
from .quantification.assessment import Assessment

__all__ = [
    "Assessment",
    "DomainError",
    "GenerativeForestClassifier",
    "GenerativeTreeClassifier",
    "InputError",
    "NaiveBayesClassifier",
    "RobustqError",
    "UnknownNameError",
    "UnknownValueWarning",
    "UnsupportedError",
    "assess",
    "credal_predict",
    "is_robust",
    "perturbations",
    "robustness",
]

__version__: str
