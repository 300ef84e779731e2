from . import datasets, indicators, perturbations, rejection
from .core.assessment import Assessment
from .exceptions import (
    DomainError,
    FileError,
    InputError,
    NoGuaranteeWarning,
    RobustqError,
    UnknownNameError,
    UnknownValueWarning,
    UnsupportedError,
)
from .families.files import load
from .families.forest.classifier import GenerativeForestClassifier, GenerativeTreeClassifier
from .families.functions import assess, credal_predict, is_robust, robustness
from .families.naive_bayes import NaiveBayesClassifier
from .families.network.classifier import BayesianNetworkClassifier
from .selection.selective import SelectiveClassifier

__all__ = [
    "Assessment",
    "BayesianNetworkClassifier",
    "DomainError",
    "FileError",
    "GenerativeForestClassifier",
    "GenerativeTreeClassifier",
    "InputError",
    "NaiveBayesClassifier",
    "NoGuaranteeWarning",
    "RobustqError",
    "SelectiveClassifier",
    "UnknownNameError",
    "UnknownValueWarning",
    "UnsupportedError",
    "assess",
    "credal_predict",
    "datasets",
    "indicators",
    "is_robust",
    "load",
    "perturbations",
    "rejection",
    "robustness",
]

__version__: str
