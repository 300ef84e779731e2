"""The rivals of a prediction, and which of them catches up first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .roots import smallest_roots

if TYPE_CHECKING:
    from collections.abc import Callable

    from robustq.arrays import Floats, Indices
    from robustq.perturbations import Domain

__all__ = ["find_first_flips", "list_rivals"]


def list_rivals(prediction: Indices, classes: int) -> Indices:
    """Return for each row all classes but the predicted one, (rows, classes − 1)."""
    every = np.arange(classes - 1)
    return every + (every >= prediction[:, None])


def find_first_flips(
    margin_of_each: Callable[[Indices, Floats], Floats], domain: Domain, rivals: Indices
) -> tuple[Floats, Indices]:
    """Return the smallest size at which some rival catches up, and that rival.

    Parameters
    ----------
    margin_of_each : callable
        Takes rows and as many sizes; returns the margins over each rival, (rows, rivals).
    domain : Domain
    rivals : ndarray of shape (rows, rivals)

    Returns
    -------
    robustness : ndarray of shape (rows,)
        Infinite where no size does it.
    tipping : ndarray of shape (rows,)
        −1 where nobody catches up.
    """
    robustness = smallest_roots(
        lambda which, delta: margin_of_each(which, delta).min(axis=1), domain, len(rivals)
    )
    tipping = np.full(len(rivals), -1, dtype=np.int64)
    flips = np.flatnonzero(np.isfinite(robustness))
    first = margin_of_each(flips, robustness[flips]).argmin(axis=1)
    tipping[flips] = rivals[flips, first]
    return robustness, tipping
