"""Whole mixtures: as `mixtures`, but more than the weights on the paths is perturbed.

The roots' weights, the classes and the features at the leaves, each on its own: then the value of a
tree is the lower expectation of 1_ĉ − 1_c at the leaf that is reached, times the lower bounds
of all probabilities that lead there if it is positive, or else the upper ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from .circuits import find_limit, size_of
from .mixtures import NEAR
from .modes import MODES

if TYPE_CHECKING:
    from robustq.arrays import Codes, Floats, Indices

    from .neighbourhoods import Perturbed
    from .quantified import Quantified

__all__ = ["MixtureParts", "WholeMixtures"]

BALLS = ("epsilon", "tv", "chi2")
BLOCK = 1000  # rows that find the leaves of a tree in the cache
FARTHEST = 1e3  # y that are looked at
FAR = 0.9  # of a domain that ends: beyond, what is left loses digits
ROUNDING = 2.0**-52  # of each factor


class MixtureParts(NamedTuple):
    """The positions of the parts of a mixture among all parts of a model."""

    root: int
    weights: int
    classes: int
    features: int


class Gather(Protocol):
    """Writes the factors of some rows."""

    def __call__(
        self,
        rows: slice,
        *,
        weights: bool,
        features: bool,
        room: tuple[Floats, Indices, Floats],
    ) -> None:
        """Write probabilities that are perturbed, how many, and the product of all others."""


@dataclass(frozen=True, eq=False)
class WholeMixtures:
    """Complete rows of a mixture of trees: the leaf each reaches in each tree.

    Attributes
    ----------
    parts : MixtureParts
    class_probs : ndarray of shape (all leaves, classes)
    leaves : ndarray of shape (trees, rows)
    factors : int
        How many probabilities at most lead to a leaf.
    gather : Gather
    """

    parts: MixtureParts
    class_probs: Floats
    leaves: Codes
    factors: int
    gather: Gather

    def fits(self, perturbed: Perturbed) -> bool:
        """Tell whether kernels know a neighbourhood; weights alone are the affair of others."""
        both = {self.parts.weights, self.parts.features}
        # All that speaks of a feature is perturbed already, or it would be one part of a part.
        if perturbed.features and not both.issubset(perturbed.parts):
            return False
        if perturbed.parts == (self.parts.weights,):
            return False
        return perturbed.sizes == "equal" and perturbed.ball.expectation in BALLS

    def solve(self, perturbed: Perturbed, found: Quantified) -> tuple[Floats, Indices]:
        """Return y and the tipping class of each row; y is NaN where rounding would show."""
        rows = self.leaves.shape[1]
        y, tipping = np.empty(rows), np.empty(rows, dtype=np.int64)
        room = self._make_room()
        for start in range(0, rows, BLOCK):
            block = slice(start, min(start + BLOCK, rows))
            self._solve_block(perturbed, found, block, room, y[block], tipping[block])
        return np.where(np.isfinite(y) & (y > FAR * _find_limit(perturbed)), np.nan, y), tipping

    def _solve_block(
        self,
        perturbed: Perturbed,
        found: Quantified,
        block: slice,
        room: tuple[tuple[Floats, Indices, Floats], tuple[Floats | Indices, ...]],
        y: Floats,
        tipping: Indices,
    ) -> None:
        from . import _whole_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

        parts, moved, ball = self.parts, perturbed.parts, str(perturbed.ball.expectation)
        p, counts, still = room[0]
        factors = p[: len(y)], counts[: len(y)], still[: len(y)]
        self.gather(
            block, weights=parts.weights in moved, features=parts.features in moved, room=factors
        )
        several = len(self.leaves) > 1
        kernels.solve(
            (MODES[ball], parts.classes in moved, parts.root in moved and several),
            (_find_limit(perturbed), NEAR * self.factors, ROUNDING * self.factors),
            *(self.class_probs, np.ascontiguousarray(self.leaves[:, block].T)),
            *(found.prediction[block], found.runner_up[block], *factors, *room[1], y, tipping),
        )

    def _make_room(self) -> tuple[tuple[Floats, Indices, Floats], tuple[Floats | Indices, ...]]:
        from . import _whole_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

        trees, most = len(self.leaves), max(self.factors, 1)
        width = -(-trees // kernels.LANES) * kernels.LANES
        work = np.zeros((len(kernels.WORK), trees))
        work[0] = 1.0 / trees
        counts = np.empty((BLOCK, trees), dtype=np.int64)
        factors = np.empty((BLOCK, trees, most)), counts, np.empty((BLOCK, trees))
        return factors, (
            *(np.ones((len(kernels.EDGES), most, width)), np.empty((2, width))),
            *(np.empty((len(kernels.CONTEST), trees)), work, np.empty(trees + 1, dtype=np.int64)),
        )

    def size_of(self, perturbed: Perturbed, y: Floats) -> Floats:
        """Return the sizes that belong to y."""
        if perturbed.ball.expectation != "epsilon":
            return size_of(perturbed, y)
        with np.errstate(invalid="ignore"):
            return size_of(perturbed, np.where(np.isinf(y), y, y / (1.0 - y)))


def _find_limit(perturbed: Perturbed) -> float:
    """Return the largest y that is looked at; of ε, y = x / (1 + x) makes bounds straight lines."""
    limit = find_limit(perturbed)
    if perturbed.ball.expectation == "epsilon":
        return limit / (1.0 + limit) if limit < FARTHEST else 1.0
    return min(limit, FARTHEST)
