"""Rows with missing cells, which reach several leaves of each tree of a forest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from robustq.core.gaps import Ends, Reached

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from robustq.arrays import Codes, Floats, Indices

    from .model import Forest

__all__ = ["MOST_REACHED", "Spreader"]

# How many rows go through a tree before the next one, and how many leaves that they reach are kept
# for a block of rows (some 100 MB).
ROWS_AT_ONCE, MOST_REACHED = 1024, 2**22
# Where the sets of a row have more words than this, or all have, rows go down the trees instead.
MOST_WORDS, MOST_IN_ALL = 2**14, 2**24


class Layout(NamedTuple):
    """Of each node, how many leaves it has and which is the first, its path, and its depth."""

    counts: Codes
    firsts: Codes
    paths: NDArray[np.uint64]
    depths: Codes


class LeafSets(NamedTuple):
    """Which leaves values may reach; see `_spread_kernels.intersect`."""

    bits: NDArray[np.uint64]
    starts: Indices
    values: Indices
    tree_firsts: Indices
    order: Codes
    paths: NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Spreader:
    """Finds what rows with missing cells reach of a forest."""

    forest: Forest

    def spread(self, codes: Codes, numbers: Floats) -> Iterator[tuple[slice, Floats, Reached]]:
        """Yield log p(c, f) of rows with any evidence, and what they reach, for a few at a time."""
        forest = self.forest
        start, count = 0, min(ROWS_AT_ONCE, len(codes))
        room = count * forest.trees * (forest.depth + 1) + self._largest
        while start < len(codes):
            count = min(count, len(codes) - start)
            block = slice(start, start + count)
            reached = Reached.empty(forest.trees, count, room)
            if self._find_leaves(codes[block], numbers[block], reached):
                reached = reached.trim()
                yield block, self._weigh(codes[block], numbers[block], reached), reached
                start = block.stop
            elif count == 1 or 2 * room <= MOST_REACHED:
                room *= 2
            else:
                count //= 2

    @property
    def _largest(self) -> int:
        """How many leaves the largest tree has."""
        return int(np.diff(self._tree_firsts).max())

    @cached_property
    def ends(self) -> Ends:
        """The paths to the leaves."""
        return Ends.of(self.forest.leaf_nodes, self.forest.parents, self._layout.depths)

    @cached_property
    def _layout(self) -> Layout:
        from . import _spread_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        forest = self.forest
        counts, firsts, depths = np.empty((3, len(forest.nodes)), dtype=np.int32)
        paths = np.empty(len(forest.nodes), dtype=np.uint64)
        layout = Layout(counts, firsts, paths, depths)
        _spread_kernels.lay_out(forest.nodes, forest.roots, *layout)
        return layout

    @cached_property
    def _tree_firsts(self) -> Indices:
        leaves = self._layout.counts[self.forest.roots[:-1]]
        return np.concatenate([[0], np.cumsum(leaves)])

    @cached_property
    def _places(self) -> Indices:
        """Where the values of each feature begin, numbers having none."""
        return np.concatenate([[0], np.cumsum(self.forest.sizes)])

    @cached_property
    def _leaf_sets(self) -> LeafSets | None:
        """The sets; None where they would be larger, or rows slower, than the trees."""
        from . import _spread_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        forest, layout = self.forest, self._layout
        values = self._places
        words = (np.diff(self._tree_firsts) + 63) // 64
        starts = np.concatenate([[0], np.cumsum(words * (values[-1] + 1))])
        slow = words.sum() * len(forest.sizes) > MOST_WORDS or starts[-1] > MOST_IN_ALL
        if slow or not forest.is_narrow or forest.depth > _spread_kernels.LONGEST:
            return None
        bits = np.full(starts[-1], ~np.uint64(0))
        _spread_kernels.fill_sets(
            *(forest.nodes, forest.arrays.sets, forest.roots),
            *(layout.counts, layout.firsts, values, starts, bits),
        )
        nodes = forest.leaf_nodes
        places = np.argsort(layout.firsts[nodes])
        order, paths = places.astype(np.int32), layout.paths[nodes[places]]
        return LeafSets(bits, starts, values, self._tree_firsts, order, paths)

    def _find_leaves(self, codes: Codes, numbers: Floats, reached: Reached) -> bool:
        """Write what rows reach, but for their mass there; tell whether there was room enough."""
        from . import _spread_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        sets, forest = self._leaf_sets, self.forest
        if sets is not None:
            found = np.empty((self._largest + 63) // 64, dtype=np.uint64)
            return bool(_spread_kernels.intersect(*sets, codes, found, *reached[:3]))
        stack = np.empty(forest.depth + 2, dtype=np.int64)
        routes = forest.arrays.routes
        return bool(
            _spread_kernels.walk(*routes, self._layout.depths, stack, codes, numbers, *reached[:3])
        )

    def _weigh(self, codes: Codes, numbers: Floats, reached: Reached) -> Floats:
        """Return log p(c, f) of rows; write their mass at the leaves they reach."""
        from . import _spread_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        forest, rows = self.forest, len(codes)
        a = forest.arrays
        factors = forest.dense.factors if forest.is_narrow else None
        out = np.zeros((rows, forest.class_probs.shape[1]))
        _spread_kernels.weigh_reached(
            *(forest.is_plain, a.kinds, a.slots, a.reach, a.reach_scale, *a.contents),
            *(forest.class_probs, np.empty((0, 0)) if factors is None else factors),
            *(self._places, codes, numbers, np.empty((rows, 2 * codes.shape[1]), dtype=np.int32)),
            np.empty((rows, len(_spread_kernels.FACTS)), dtype=np.int64),
            np.empty((rows, len(_spread_kernels.EXTENTS))),
            *(out, reached.starts, reached.leaves, reached.mass),
            *(np.zeros(len(reached.leaves), dtype=np.int32), reached.uneven),
        )
        return out
