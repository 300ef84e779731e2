"""Whether arrays from outside are what they should be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from robustq.exceptions import InputError

if TYPE_CHECKING:
    from robustq.arrays import Floats

__all__ = ["SUM_TOLERANCE", "check_shape", "check_sums", "refuse"]

SUM_TOLERANCE = 1e-9


def check_shape(name: str, array: np.ndarray[Any, Any], shape: tuple[int, ...]) -> None:
    """Raise unless an array has a shape."""
    if array.shape != shape:
        refuse(f"{name} has shape {array.shape}, expected {shape}")


def check_sums(probs: Floats, what: str) -> None:
    """Raise unless these are probabilities that sum to 1 over the last axis."""
    if not np.all((probs >= 0.0) & (probs <= 1.0)):
        refuse(f"{what} must hold probabilities, from 0 to 1")
    if np.any(np.abs(probs.sum(axis=-1) - 1.0) > SUM_TOLERANCE):
        refuse(f"{what} must sum to 1")


def refuse(what: str) -> NoReturn:
    """Raise because of what is wrong with a model.

    Raises
    ------
    InputError
    """
    msg = f"not a model: {what}"
    raise InputError(msg)
