"""Factors: the probabilities that lead complete rows to the leaves where they end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from robustq.arrays import Codes, Floats, Indices
    from robustq.tables import Rows

    from .model import Forest

__all__ = ["Factors", "Paths"]


@dataclass(frozen=True, eq=False)
class Paths:
    """The weights on the path to each leaf, side by side, and what the leaf makes of values.

    Attributes
    ----------
    starts : ndarray of shape (leaves + 1,)
    weights : ndarray
    values : ndarray of shape (leaves, values)
        The probability of each value, negative where a leaf allows no other; empty if there would
        be too many, or not all features are narrow.
    """

    starts: Indices
    weights: Floats
    values: Floats

    @classmethod
    def of(cls, forest: Forest) -> Paths:
        """Follow the paths of a forest from their leaves up, all at once."""
        node, leaf = forest.leaf_nodes, np.arange(forest.leaves)
        levels: list[tuple[Indices, Floats]] = []
        while len(leaf):
            below = forest.parents[node] >= 0
            node, leaf = node[below], leaf[below]
            levels.append((leaf, forest.weights[node]))
            node = forest.parents[node].astype(np.intp)
        leaves = np.concatenate([leaf for leaf, _ in levels])
        order = np.argsort(leaves, kind="stable")
        starts = np.zeros(forest.leaves + 1, dtype=np.int64)
        np.cumsum(np.bincount(leaves, minlength=forest.leaves), out=starts[1:])
        weights = np.concatenate([weights for _, weights in levels])[order]
        return cls(starts, weights, _unfold(forest))


def _unfold(forest: Forest) -> Floats:
    """Return the probability of each value at each leaf, with a sign for those without others."""
    if not forest.is_narrow or forest.dense.factors is None:
        return np.empty((0, 0))
    values = forest.dense.factors[:, :-1] * (forest.base if len(forest.base) else 1.0)
    alone = np.repeat(forest.allowed <= 1, forest.sizes, axis=1)
    np.minimum(values, 1.0, out=values)  # rounding may go beyond
    return np.where(alone, -values, values)


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
        self,
        rows: slice,
        *,
        weights: bool,
        features: bool,
        room: tuple[Floats, Indices, Floats],
    ) -> None:
        """Write what of some rows is perturbed; see `core.whole_mixtures.Gather`."""
        from . import _factor_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        forest, paths, some = self.forest, self.forest.paths, self.rows[rows]
        _factor_kernels.gather(
            *(forest.kinds, forest.slots, *forest.arrays.contents, forest.base),
            *(forest.base_starts, forest.allowed, paths.values, paths.starts, paths.weights),
            *(weights, features, np.ascontiguousarray(some.codes)),
            *(np.ascontiguousarray(some.numbers), np.ascontiguousarray(self.leaves[:, rows])),
            *room,
        )
