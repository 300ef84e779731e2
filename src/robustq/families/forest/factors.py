"""Factors: the probabilities that lead complete rows to the leaves where they end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from robustq.core.room import make_floats
from robustq.core.scale import FILLING
from robustq.core.whole_mixtures import PathWeights

if TYPE_CHECKING:
    from robustq.arrays import Codes, Floats, Indices
    from robustq.tables import Rows

    from .model import Forest

__all__ = ["Factors", "follow_paths", "unfold_values"]


def follow_paths(forest: Forest) -> PathWeights:
    """Return the weights above each leaf: all paths at once, from their leaves up."""
    from robustq.vectors import LANES  # noqa: PLC0415 (numba is imported when it is needed)

    node, leaf = forest.leaf_nodes, np.arange(forest.leaves)
    levels: list[tuple[Indices, Floats]] = []
    spans = np.zeros((forest.leaves, 2), dtype=np.int64)
    while True:
        below = forest.parents[node] >= 0
        node, leaf = node[below], leaf[below]
        if not len(leaf):
            break
        levels.append((leaf, forest.weights[node]))
        spans[leaf, 1] += 1
        node = forest.parents[node].astype(np.intp)
    lengths = -(-spans[:, 1] // LANES) * LANES
    spans[1:, 0] = np.cumsum(lengths)[:-1]
    weights = make_floats(int(lengths.sum()) + LANES)
    weights[:] = FILLING
    for level, (leaf, above) in enumerate(levels):
        weights[spans[leaf, 0] + level] = above
    spans.setflags(write=False)
    weights.setflags(write=False)
    return PathWeights(spans, weights)


def unfold_values(forest: Forest) -> Floats:
    """Return the probability of each value at each leaf, negative where it allows no other.

    And then 1, for a feature that is none. Empty if there would be too many, or not all features
    are split by sets.
    """
    if not forest.is_narrow or forest.dense.factors is None:
        return np.empty((0, 0))
    values = forest.dense.factors.copy()
    if len(forest.base):
        values[:, :-1] *= forest.base
    np.minimum(values, 1.0, out=values)  # rounding may go beyond
    alone = np.repeat(forest.allowed <= 1, forest.sizes, axis=1)
    np.negative(values[:, :-1], out=values[:, :-1], where=alone)
    return values


@dataclass(frozen=True, eq=False)
class Factors:
    """Complete rows and the leaves where they end.

    Attributes
    ----------
    forest : Forest
    rows : Rows
    leaves : ndarray of shape (trees, rows)
    """

    forest: Forest
    rows: Rows
    leaves: Codes

    def __call__(
        self, rows: slice, *, weights: bool, features: bool, room: tuple[Floats, Floats]
    ) -> None:
        """Write what of some rows is perturbed; see `core.whole_mixtures.Gather`."""
        from . import _factor_kernels as kernels  # noqa: PLC0415 (numba, when it is needed)

        forest, some = self.forest, self.rows[rows]
        leaves = np.ascontiguousarray(self.leaves[:, rows])
        if len(forest.leaf_values):
            places = np.full(
                (len(some), room[0].shape[2]), forest.leaf_values.shape[1] - 1, dtype=np.int32
            )
            places[:, : some.codes.shape[1]] = some.codes + forest.base_starts[:-1]
            kernels.gather_dense(
                *(forest.leaf_values, forest.arrays.reach, forest.arrays.reach_scale),
                *(weights, features, places, leaves, *room),
            )
            return
        kernels.gather(
            *(forest.kinds, forest.slots, *forest.arrays.contents, forest.base),
            *(forest.base_starts, forest.allowed, forest.arrays.reach, forest.arrays.reach_scale),
            *(weights, features, np.ascontiguousarray(some.codes)),
            *(np.ascontiguousarray(some.numbers), leaves, *room),
        )
