"""Whole mixtures: as `mixtures`, but more than the weights on the paths is perturbed.

The roots' weights, the classes and the features at the leaves, each on its own: then the value of a
tree is the lower expectation of 1_ĉ − 1_c at the leaf that is reached, times the lower bounds
of all probabilities that lead there if it is positive, or else the upper ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from .circuits import find_limit, size_of
from .mixtures import NEAR
from .modes import MODES
from .room import make_floats, make_indices

if TYPE_CHECKING:
    from robustq.arrays import Codes, Floats, Indices

    from .neighbourhoods import Perturbed
    from .quantified import Quantified

__all__ = ["MixtureParts", "PathWeights", "WholeMixtures"]

BALLS = ("epsilon", "tv", "chi2")
BLOCK = 1000  # rows that find the leaves of a tree in the cache
FARTHEST = 1e3  # y that are looked at; what is beyond is left to the recursion
FAR = 0.9  # of a domain that ends: beyond, what is left loses digits
ROUNDING = 2.0**-52  # of each factor


class MixtureParts(NamedTuple):
    """The positions of the parts of a mixture among all parts of a model."""

    root: int
    weights: int
    classes: int
    features: int


class PathWeights(NamedTuple):
    """The weights above each leaf of a mixture.

    Attributes
    ----------
    spans : ndarray of shape (leaves, 2)
        Where they start, and how many there are.
    weights : ndarray
        Each path is filled up to whole lanes, with `FILLING`; one that is empty comes last.
    """

    spans: Indices
    weights: Floats

    @property
    def longest(self) -> int:
        """How many weights there are at most."""
        return int(self.spans[:, 1].max(initial=0))


class Gather(Protocol):
    """Writes the factors of some rows."""

    def __call__(
        self, rows: slice, *, weights: bool, features: bool, room: tuple[Floats, Floats]
    ) -> None:
        """Write probabilities of features, `FILLING` where they are not perturbed, and the others.

        Of all that is not perturbed, weights included, the product.
        """


@dataclass(frozen=True, eq=False)
class WholeMixtures:
    """Complete rows of a mixture of trees: the leaf each reaches in each tree.

    Attributes
    ----------
    parts : MixtureParts
    class_probs : ndarray of shape (all leaves, classes)
    leaves : ndarray of shape (trees, rows)
    paths : PathWeights
    features : int
        How many other factors each tree has.
    gather : Gather
    """

    parts: MixtureParts
    class_probs: Floats
    leaves: Codes
    paths: PathWeights
    features: int
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
        room: tuple[tuple[Floats, Floats], tuple[Floats | Indices, ...]],
        y: Floats,
        tipping: Indices,
    ) -> None:
        from . import _whole_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

        parts, moved, ball = self.parts, perturbed.parts, str(perturbed.ball.expectation)
        factors = room[0][0][: len(y)], room[0][1][: len(y)]
        weights, features = parts.weights in moved, parts.features in moved
        self.gather(block, weights=weights, features=features, room=factors)
        limit = _find_limit(perturbed)
        several, most = len(self.leaves) > 1, self.features + self.paths.longest
        spans = self.paths.spans if weights else np.zeros_like(self.paths.spans)
        kernels.solve(
            (MODES[ball], parts.classes in moved, parts.root in moved and several),
            *((limit, NEAR * most, ROUNDING * most), limit >= FARTHEST, self.class_probs),
            np.ascontiguousarray(self.leaves[:, block].T),
            *((spans, self.paths.weights), self.features if features else 0, *factors),
            *(found.prediction[block], found.runner_up[block], room[1], y, tipping),
        )

    def _make_room(self) -> tuple[tuple[Floats, Floats], tuple[Floats | Indices, ...]]:
        from . import _whole_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

        trees, lanes = len(self.leaves), kernels.LANES
        groups, wide = -(-trees // lanes), -(-self.features // lanes) * lanes
        # What is turned is turned in whole lanes, and paths come before features.
        shape = len(kernels.EDGES), groups, self.paths.longest + wide + lanes, lanes
        work = make_floats(len(kernels.WORK) * groups * lanes).reshape(len(kernels.WORK), -1)
        work[kernels.W, :trees] = 1.0 / trees
        factors = make_floats(BLOCK * trees * wide).reshape(BLOCK, trees, wide)
        return (factors, np.empty((BLOCK, trees))), (
            make_floats(math.prod(shape)).reshape(shape),
            *(make_indices(groups), make_indices(lanes), work, make_indices(trees + 1)),
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
