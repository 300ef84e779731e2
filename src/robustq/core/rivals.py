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

APART = 1e-10  # what flips no earlier than this, relatively, flips at the same size


def list_rivals(prediction: Indices, runner_up: Indices, joint: Floats) -> Indices:
    """Return for each row all classes but the predicted one, the runner-up first."""
    nearness = joint.copy()
    nearness[np.arange(len(joint)), runner_up] = np.inf
    order = np.argsort(-nearness, axis=1, kind="stable")
    return order[order != prediction[:, None]].reshape(len(joint), -1)


def find_first_flips(
    margin: Callable[[Indices, Indices, Floats], Floats], domain: Domain, rivals: Indices
) -> tuple[Floats, Indices]:
    """Return the smallest size at which some rival catches up, and that rival.

    Of rivals that catch up at once, the first counts. Most of the others are still behind where
    the first one flips, and need one look.

    Parameters
    ----------
    margin : callable
        Takes rows, a rival of each and as many sizes; returns the margins over these.
    domain : Domain
    rivals : ndarray of shape (rows, rivals)

    Returns
    -------
    robustness : ndarray of shape (rows,)
        Infinite where no size does it.
    tipping : ndarray of shape (rows,)
        −1 where nobody catches up.
    """
    robustness = np.full(len(rivals), np.inf)
    tipping = np.full(len(rivals), -1, dtype=np.int64)
    for rival in rivals.T:

        def over(which: Indices, delta: Floats, rival: Indices = rival) -> Floats:
            return margin(which, rival[which], delta)

        found = smallest_roots(over, domain, len(rivals), robustness * (1.0 - APART))
        earlier = found < robustness
        robustness[earlier], tipping[earlier] = found[earlier], rival[earlier]
    return robustness, tipping
