"""Perturbations and other objects of one's own, by their place: `module:Class`."""

from __future__ import annotations

import importlib
import sys
from operator import attrgetter
from pathlib import Path
from typing import Any

from robustq.exceptions import InputError

from .base import Perturbation
from .registry import get

__all__ = ["find_ball", "import_object"]


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
    made = import_object(name, "module:Class", None)
    if isinstance(made, type) and issubclass(made, Perturbation):
        try:
            made = made()
        # Whatever a user's class raises is about that class.
        except Exception as error:
            msg = f"{name} cannot be made without arguments ({error}): give them defaults"
            raise InputError(msg) from error
    if not isinstance(made, Perturbation):
        module, _, attribute = name.partition(":")
        what = f"{module} has no {attribute!r}" if made is None else f"{name} is no Perturbation"
        msg = f"{what}: name a subclass of robustq.perturbations.Perturbation"
        raise InputError(msg)
    return made


def import_object(name: str, what: str, *default: Any) -> Any:
    """Return what `module:object` names; the module is imported, and its code runs.

    Parameters
    ----------
    name : str
    what : str
        What should have been named, in words.
    default : Any
        What to return where the module has no such object.

    Raises
    ------
    InputError
        If there is no such module, or object.
    """
    module, _, attribute = name.partition(":")
    try:
        return attrgetter(attribute)(_import(module, name, what))
    except AttributeError as error:
        if default:
            return default[0]
        msg = f"{module} has no {attribute!r}: write {what}"
        raise InputError(msg) from error


def _import(module: str, name: str, what: str) -> object:
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        return importlib.import_module(module)
    # Whatever a user's module raises while it is imported is about that module; scripts exit.
    except (Exception, SystemExit) as error:
        msg = f"{name} cannot be imported ({type(error).__name__}: {error}): write {what}"
        raise InputError(msg) from error
    finally:
        sys.path.remove(here)
