"""What robustq raises.

::

    RobustqError
    ├── InputError (ValueError)         something given is not what is allowed
    │   ├── DomainError                 a perturbation size outside its domain
    │   └── UnknownNameError            a name nobody registered
    └── UnsupportedError (ValueError)   an object cannot do what is asked of it
"""

__all__ = [
    "DomainError",
    "InputError",
    "RobustqError",
    "UnknownNameError",
    "UnsupportedError",
]


class RobustqError(Exception):
    """The base of every error robustq raises."""


class InputError(RobustqError, ValueError):
    """Something given is not what is allowed."""


class DomainError(InputError):
    """A perturbation size outside the perturbation's domain."""


class UnknownNameError(InputError):
    """A name nobody registered."""


class UnsupportedError(RobustqError, ValueError):
    """An object cannot do what is asked of it."""
