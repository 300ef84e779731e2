from . import credal, datasets, indicators, perturbations, rejection
from .core.assessment import Assessment
from .exceptions import (
    DomainError,
    FileError,
    InputError,
    NoGuaranteeWarning,
    OtherPredictionWarning,
    RigidModelWarning,
    RobustqError,
    TableWarning,
    UnknownNameError,
    UnknownValueWarning,
    UnsupportedError,
)
from .families.circuit.classifier import CircuitClassifier
from .families.files import load
from .families.forest.classifier import GenerativeForestClassifier, GenerativeTreeClassifier
from .families.functions import (
    assess,
    counterfactuals,
    credal_predict,
    explain,
    is_robust,
    posterior_bounds,
    posterior_robustness,
    robustness,
    witness,
)
from .families.naive_bayes.classifier import NaiveBayesClassifier
from .families.network.classifier import BayesianNetworkClassifier
from .io.reading import read
from .io.training import fit_files
from .selection.selective import SelectiveClassifier

__all__ = [
    "Assessment",
    "BayesianNetworkClassifier",
    "CircuitClassifier",
    "DomainError",
    "FileError",
    "GenerativeForestClassifier",
    "GenerativeTreeClassifier",
    "InputError",
    "NaiveBayesClassifier",
    "NoGuaranteeWarning",
    "OtherPredictionWarning",
    "RigidModelWarning",
    "RobustqError",
    "SelectiveClassifier",
    "TableWarning",
    "UnknownNameError",
    "UnknownValueWarning",
    "UnsupportedError",
    "assess",
    "counterfactuals",
    "credal",
    "credal_predict",
    "datasets",
    "explain",
    "fit_files",
    "indicators",
    "is_robust",
    "load",
    "perturbations",
    "posterior_bounds",
    "posterior_robustness",
    "read",
    "rejection",
    "robustness",
    "witness",
]

__version__: str
