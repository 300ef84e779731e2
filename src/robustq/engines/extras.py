"""What is installed only where somebody wants it."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from robustq.exceptions import UnsupportedError

__all__ = ["require_extra"]


def require_extra(module: str, extra: str) -> Any:
    """Return a module that comes with an extra of robustq.

    Raises
    ------
    UnsupportedError
        If it is not installed; the message says how to.
    """
    if find_spec(module.partition(".")[0]) is None:
        msg = f'{module} is not installed: pip install "robustq[{extra}]"'
        raise UnsupportedError(msg)
    return import_module(module)
