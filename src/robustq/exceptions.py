"""What robustq raises.

::

    RobustqError
    ├── InputError (ValueError)         something given is not what is allowed
    │   ├── DomainError                 a perturbation size outside its domain
    │   ├── PositionError (IndexError)  a row that is not there
    │   └── UnknownNameError            a name nobody registered
    ├── FileError (OSError)             a file cannot be had, read or written
    └── UnsupportedError (ValueError)   an object cannot do what is asked of it

Beside them stand ``UnknownValueWarning`` and ``NoGuaranteeWarning``, and scikit-learn's
``NotFittedError`` has a twin that is a ``RobustqError`` too.
"""

__all__ = [
    "DomainError",
    "FileError",
    "InputError",
    "NoGuaranteeWarning",
    "PositionError",
    "RobustqError",
    "UnknownNameError",
    "UnknownValueWarning",
    "UnsupportedError",
]


class RobustqError(Exception):
    """The base of every error robustq raises."""


class InputError(RobustqError, ValueError):
    """Something given is not what is allowed."""


class DomainError(InputError):
    """A perturbation size outside the perturbation's domain."""


class PositionError(InputError, IndexError):
    """A row that is not there."""


class FileError(RobustqError, OSError):
    """A file cannot be had, read or written."""


class UnknownNameError(InputError):
    """A name nobody registered."""


class NoGuaranteeWarning(UserWarning):
    """No threshold can give the guarantee that was asked for."""


class UnknownValueWarning(UserWarning):
    """A table holds values that were never seen in training.

    Attributes
    ----------
    counts : dict of str to int
        How many, column by column.
    """

    def __init__(self, message: str = "", counts: dict[str, int] | None = None) -> None:
        super().__init__(message)
        self.counts = counts or {}


class UnsupportedError(RobustqError, ValueError):
    """An object cannot do what is asked of it."""
