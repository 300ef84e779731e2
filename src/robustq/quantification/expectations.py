"""Asking a ball that anyone may have written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from robustq.exceptions import UnsupportedError

if TYPE_CHECKING:
    from robustq.arrays import Floats
    from robustq.perturbations import Perturbation

__all__ = ["lower_expectations"]


def lower_expectations(ball: Perturbation, q: Floats, f: Floats, delta: Floats) -> Floats:
    """Return the lower expectation for each row and size, if the ball gives as many.

    Raises
    ------
    UnsupportedError
        If it gives another number of them; the message names the ball.
    """
    values = np.asarray(ball.lower_expectation(q, f, delta))
    if values.shape != delta.shape:
        msg = (
            f"{type(ball).__name__}.lower_expectation gave the shape {values.shape} for "
            f"{len(delta)} rows: it must give one number for each"
        )
        raise UnsupportedError(msg)
    return values
