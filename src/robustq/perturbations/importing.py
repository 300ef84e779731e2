"""A perturbation of one's own, by the place of its class: `module:Class`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from robustq.exceptions import InputError

from .base import Perturbation
from .registry import get

__all__ = ["find_ball"]


def find_ball(name: str) -> Perturbation:
    """Return the perturbation of a name, or of `module:Class`.

    The module is looked for where Python looks, and in the folder one is in.

    Raises
    ------
    InputError
        If there is no such module, class, or perturbation.
    """
    if ":" not in name:
        return get(name)
    module, _, attribute = name.partition(":")
    made = getattr(_import(module, name), attribute, None)
    if isinstance(made, type) and issubclass(made, Perturbation):
        try:
            made = made()
        # Whatever a user's class raises is about that class.
        except Exception as error:
            msg = f"{name} cannot be made without arguments ({error}): give them defaults"
            raise InputError(msg) from error
    if not isinstance(made, Perturbation):
        what = f"{module} has no {attribute!r}" if made is None else f"{name} is no Perturbation"
        msg = f"{what}: name a subclass of robustq.perturbations.Perturbation"
        raise InputError(msg)
    return made


def _import(module: str, name: str) -> object:
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        return importlib.import_module(module)
    # Whatever a user's module raises while it is imported is about that module.
    except Exception as error:
        msg = f"{name} cannot be imported ({type(error).__name__}: {error}): write module:Class"
        raise InputError(msg) from error
    finally:
        sys.path.remove(here)
