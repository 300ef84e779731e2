"""What robustq raises.

::

    RobustqError
    ├── InputError (ValueError)         something given is not what is allowed
    │   ├── DomainError                 a perturbation size outside its domain
    │   └── UnknownNameError            a name nobody registered
    ├── FileError (OSError)             a file cannot be had, read or written
    └── UnsupportedError (ValueError)   an object cannot do what is asked of it

Beside them stand ``UnknownValueWarning`` and ``NoGuaranteeWarning``, and scikit-learn's
``NotFittedError`` has a twin that is a ``RobustqError`` too.
"""

from robustq.texts import shorten

__all__ = [
    "DomainError",
    "FileError",
    "InputError",
    "NoGuaranteeWarning",
    "RobustqError",
    "UnknownNameError",
    "UnknownValueWarning",
    "UnsupportedError",
]


class RobustqError(Exception):
    """The base of every error robustq raises; its message is never too long to be read."""

    def __str__(self) -> str:
        return shorten(super().__str__())


class InputError(RobustqError, ValueError):
    """Something given is not what is allowed."""


class DomainError(InputError):
    """A perturbation size outside the perturbation's domain."""


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
