"""Sets of leaves: for each value, the leaves of a tree whose cells allow it.

A complete row ends in the one leaf that all its values have in common. Values of several features
are joined, so that few sets must be compared.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .nodes import CHILD, FEATURE, LEAF

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from robustq.arrays import Codes, Indices

    from .model import Forest

__all__ = ["LeafSets"]

GROUPS = 4  # as many as the kernel compares
MOST_VALUES = 256  # of a group
MOST_LEAVES = 4096  # of a tree
LANES = 4  # words that are compared at once


@dataclass(frozen=True, eq=False)
class LeafSets:
    """The leaves of all trees, as bits of words.

    Attributes
    ----------
    leaves : ndarray of shape (leaves,)
        The leaves of one tree after the other.
    firsts : ndarray of shape (trees + 1,)
        Where those of each tree begin, and the end.
    sets : ndarray of uint64
        For each tree and each value of each group, which of the leaves allow it.
    starts : ndarray of shape (trees + 1,)
        Where the sets of each tree begin, and the end.
    strides : ndarray of shape (groups, features)
        What a code counts for in the value of each group.
    offsets : ndarray of shape (groups,)
        Where the values of each group begin.
    """

    leaves: Codes
    firsts: Indices
    sets: NDArray[np.uint64]
    starts: Indices
    strides: Indices
    offsets: Indices

    @classmethod
    def of(cls, forest: Forest) -> LeafSets | None:
        """Return the sets of a forest of narrow features; None if they were too large."""
        groups = _join(forest.sizes)
        nodes = np.flatnonzero(forest.nodes[:, FEATURE] == LEAF)
        firsts = np.searchsorted(nodes, forest.roots).astype(np.int64)
        sizes = [math.prod(forest.sizes[i] for i in group) for group in groups]
        if max(sizes) > MOST_VALUES or np.diff(firsts).max() > MOST_LEAVES:
            return None
        strides = np.zeros((GROUPS, len(forest.sizes)), dtype=np.int64)
        for row, group in zip(strides, groups, strict=True):
            # The last feature of a group counts by one.
            own = [forest.sizes[i] for i in group]
            row[group] = np.cumprod([1, *own[:0:-1]])[::-1][: len(own)]
        sets = [
            _meet(one, groups, forest.base_starts) for one in _mark_leaves(forest, nodes, firsts)
        ]
        starts = np.cumsum([0, *(one.size for one in sets)], dtype=np.int64)
        offsets = np.cumsum([0, *sizes[:-1]], dtype=np.int64)
        leaves = np.ascontiguousarray(forest.nodes[nodes, CHILD])
        return cls(leaves, firsts, np.concatenate(sets), starts, strides, offsets)

    def route(self, codes: NDArray[np.uint8], leaves: Codes) -> None:
        """Write the leaf where each row ends in each tree, (trees, rows)."""
        from . import _narrow_kernels as kernels  # noqa: PLC0415 (numba, when it is needed)

        values = np.empty((GROUPS, leaves.shape[1]), dtype=np.int64)
        kernels.route_sets(
            *(self.leaves, self.firsts, self.sets, self.starts, self.strides, self.offsets),
            *(codes, values, leaves),
        )


def _join(sizes: tuple[int, ...]) -> list[list[int]]:
    """Return groups of features such that none has many values."""
    groups: list[list[int]] = [[] for _ in range(GROUPS)]
    values = [1] * GROUPS
    for feature in np.argsort(sizes, kind="stable")[::-1].tolist():
        least = values.index(min(values))
        groups[least].append(feature)
        values[least] *= sizes[feature]
    return groups


def _mark_leaves(forest: Forest, nodes: Indices, firsts: Indices) -> list[NDArray[np.uint64]]:
    """Return for each tree which leaves allow each value of each feature, (values, words)."""
    from . import _narrow_kernels as kernels  # noqa: PLC0415 (numba, when it is needed)

    cells = np.empty((len(nodes), len(forest.sizes)), dtype=np.uint64)
    kernels.find_cells(forest.nodes, forest.arrays.sets, forest.parents, nodes, cells)
    marked = []
    for first, last in itertools.pairwise(firsts):
        width = -(-(last - first) // (64 * LANES)) * LANES
        bits = np.zeros((sum(forest.sizes), width * 64), dtype=bool)
        for feature, size in enumerate(forest.sizes):
            values = np.arange(size, dtype=np.uint64)[:, None]
            start = forest.base_starts[feature]
            own = (cells[first:last, feature] >> values) & np.uint64(1)
            bits[start : start + size, : last - first] = own
        marked.append(np.packbits(bits, axis=1, bitorder="little").view(np.uint64))
    return marked


def _meet(
    marked: NDArray[np.uint64], groups: list[list[int]], starts: Indices
) -> NDArray[np.uint64]:
    """Return the sets of the values of all groups, one after the other."""
    found = []
    for group in groups:
        sets = np.full((1, marked.shape[1]), ~np.uint64(0))
        for feature in group:
            own = marked[starts[feature] : starts[feature + 1]]
            sets = (sets[:, None] & own).reshape(-1, marked.shape[1])
        found.append(sets.ravel())
    return np.concatenate(found)
