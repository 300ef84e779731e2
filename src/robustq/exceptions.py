"""What robustq raises.

::

    RobustqError
    ├── InputError (ValueError)         something given is not what is allowed
    │   ├── DomainError                 a perturbation size outside its domain
    │   ├── ParameterError              a parameter that is not what is allowed
    │   ├── PositionError (IndexError)  a row that is not there
    │   └── UnknownNameError            a name nobody registered
    ├── FileError (OSError)             a file cannot be had, read or written
    └── UnsupportedError (ValueError)   an object cannot do what is asked of it

Beside them stand ``UnknownValueWarning``, ``TableWarning``, ``RigidModelWarning``,
``NoGuaranteeWarning`` and ``OtherPredictionWarning``, and scikit-learn's ``NotFittedError`` has a
twin that is a ``RobustqError`` too.
"""

import sys
import warnings

from robustq.texts import shorten

__all__ = [
    "DomainError",
    "FileError",
    "InputError",
    "NoGuaranteeWarning",
    "OtherPredictionWarning",
    "ParameterError",
    "PositionError",
    "RigidModelWarning",
    "RobustqError",
    "TableWarning",
    "UnknownNameError",
    "UnknownValueWarning",
    "UnsupportedError",
    "warn_caller",
]


class RobustqError(Exception):
    """The base of every error robustq raises; its message is never too long to be read."""

    def __str__(self) -> str:
        return shorten(super().__str__())


class InputError(RobustqError, ValueError):
    """Something given is not what is allowed."""


class DomainError(InputError):
    """A perturbation size outside the perturbation's domain."""


class ParameterError(InputError):
    """A parameter is not what is allowed.

    Attributes
    ----------
    name : str
        Of the parameter.
    problem : str
        What is said of it, as in "must be at least 1, got 0".
    """

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(name, problem)
        self.name, self.problem = name, problem

    def __str__(self) -> str:
        return f"{self.name} {self.problem}"


class PositionError(InputError, IndexError):
    """A row that is not there."""


class FileError(RobustqError, OSError):
    """A file cannot be had, read or written."""


class UnknownNameError(InputError):
    """A name nobody registered."""


class NoGuaranteeWarning(UserWarning):
    """No threshold can give the guarantee that was asked for."""


class OtherPredictionWarning(UserWarning):
    """A classifier predicts other classes than those it holds for the most probable.

    Attributes
    ----------
    count : int
        In how many rows.
    """

    def __init__(self, message: str = "", count: int = 0) -> None:
        super().__init__(message)
        self.count = count


class TableWarning(UserWarning):
    """A table that is learned from, or was read, has columns to look at: ids, dates, giveaways.

    Attributes
    ----------
    remarks : dict of str to str
        What is to be said, column by column.
    """

    def __init__(self, message: str = "", remarks: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.remarks = remarks or {}


class RigidModelWarning(UserWarning):
    """A model was learned whose predictions nothing flips: how robust they are tells nothing."""


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


def warn_caller(warning: Warning) -> None:
    """Warn, and name the line that called robustq: none of its own or of scikit-learn's."""
    level, frame = 2, sys._getframe(1)  # noqa: SLF001 (what warnings go by)
    while frame.f_back is not None and _is_within(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


def _is_within(module: str) -> bool:
    return module.partition(".")[0] in {"robustq", "sklearn"}
