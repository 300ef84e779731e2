from . import perturbations
from .exceptions import DomainError, InputError, RobustqError, UnknownNameError, UnsupportedError

__all__ = [
    "DomainError",
    "InputError",
    "RobustqError",
    "UnknownNameError",
    "UnsupportedError",
    "perturbations",
]

__version__: str
