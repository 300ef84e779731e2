from . import datasets, indicators, perturbations, rejection
from .core.assessment import Assessment
from .exceptions import (
    DomainError,
    FileError,
    InputError,
    NoGuaranteeWarning,
    RobustqError,
    TableWarning,
    UnknownNameError,
    UnknownValueWarning,
    UnsupportedError,
)
from .families.files import load
from .families.forest.classifier import GenerativeForestClassifier, GenerativeTreeClassifier
from .families.functions import (
    assess,
    counterfactuals,
    credal_predict,
    explain,
    is_robust,
    robustness,
    witness,
)
from .families.naive_bayes import NaiveBayesClassifier
from .io.reading import read
from .selection.selective import SelectiveClassifier

__all__ = [
    "Assessment",
    "DomainError",
    "FileError",
    "GenerativeForestClassifier",
    "GenerativeTreeClassifier",
    "InputError",
    "NaiveBayesClassifier",
    "NoGuaranteeWarning",
    "RobustqError",
    "SelectiveClassifier",
    "TableWarning",
    "UnknownNameError",
    "UnknownValueWarning",
    "UnsupportedError",
    "assess",
    "counterfactuals",
    "credal_predict",
    "datasets",
    "explain",
    "indicators",
    "is_robust",
    "load",
    "perturbations",
    "read",
    "rejection",
    "robustness",
    "witness",
]

__version__: str
