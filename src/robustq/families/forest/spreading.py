"""Rows with missing cells, which reach several leaves of each tree of a forest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from robustq.core.gaps import Reached

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from robustq.arrays import Codes, Floats, Indices

    from .model import Forest

__all__ = ["Again", "Spreader"]

# How many rows go together, and how many splits that they reach are kept for a block of rows (some
# 100 MB).
ROWS_AT_ONCE, MOST_REACHED = 1024, 2**22
# For how many leaves and splits of each tree there is room; of rows with more there go fewer.
LEAVES, SPLITS = 12, 48


@dataclass(frozen=True, eq=False)
class Spreader:
    """Finds what rows with missing cells reach of a forest."""

    forest: Forest

    def read(
        self, codes: Codes, numbers: Floats
    ) -> Iterator[tuple[slice, Floats, Iterable[tuple[slice, Reached]]]]:
        """As `spread`; what rows reach is kept up to a limit, and then found again when needed."""
        room = MOST_REACHED
        for block, joint, reached in self.spread(codes, numbers):
            room -= len(reached.splits)
            kept = [(slice(0, len(joint)), reached)]
            yield block, joint, kept if room >= 0 else Again(self, codes[block], numbers[block])

    def spread(self, codes: Codes, numbers: Floats) -> Iterator[tuple[slice, Floats, Reached]]:
        """Yield log p(c, f) of rows with any evidence, and what they reach, for a few at a time."""
        forest, start = self.forest, 0
        most = forest.leaves + forest.trees
        while start < len(codes):
            left = min(ROWS_AT_ONCE, len(codes) - start)
            trees, block = left * forest.trees, slice(start, start + left)
            reached = Reached.empty(left, LEAVES * trees + most, SPLITS * trees + most)
            count = self._find_leaves(most, codes[block], numbers[block], reached)
            reached, block = reached.trim(count), slice(start, start + count)
            yield block, self._weigh(codes[block], numbers[block], reached), reached
            start = block.stop

    @cached_property
    def _turns(self) -> NDArray[np.uint64]:
        """What splits are; see `_spread_kernels.TURNS`."""
        from . import _spread_kernels as kernels  # noqa: PLC0415 (numba, when it is needed)
        from .model import CHILD, FEATURE, LEAF  # noqa: PLC0415 (it makes spreaders)

        nodes = self.forest.nodes
        splits = np.flatnonzero(nodes[:, FEATURE] != LEAF)
        child, feature = nodes[splits, CHILD].astype(np.int64), nodes[splits, FEATURE]
        ends = [(nodes[child + side, FEATURE] == LEAF).astype(np.int64) << side for side in (0, 1)]
        ways = child << kernels.CHILD_AT | feature << kernels.FEATURE_AT | ends[0] | ends[1]
        turns = np.zeros((len(nodes), len(kernels.TURNS)), dtype=np.uint64)
        turns[:, kernels.SET] = self.forest.arrays.sets[:, 1]
        turns[splits, kernels.WAYS] = ways.astype(np.uint64)
        return turns.ravel()

    @cached_property
    def _places(self) -> Indices:
        """Where the values of each feature begin, numbers having none."""
        return np.concatenate([[0], np.cumsum(self.forest.sizes)])

    def _find_leaves(self, most: int, codes: Codes, numbers: Floats, reached: Reached) -> int:
        """Write what rows reach, but for their mass there; return of how many there was room."""
        from . import _spread_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        return int(
            _spread_kernels.spread(
                *(self.forest.is_narrow, *self.forest.arrays.routes, self._turns, most),
                *(codes, numbers, np.empty(2 * codes.shape[1], dtype=np.uint64), reached.starts),
                *(reached.leaves, reached.split_starts, reached.splits.ravel()),
            )
        )

    def _weigh(self, codes: Codes, numbers: Floats, reached: Reached) -> Floats:
        """Return log p(c, f) of rows; write their mass at the leaves they reach."""
        from . import _spread_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        forest = self.forest
        a = forest.arrays
        factors = forest.dense.factors if forest.is_narrow else None
        out = np.zeros((len(codes), forest.class_probs.shape[1]))
        _spread_kernels.weigh_reached(
            *(forest.trees, forest.is_plain, a.nodes, a.kinds, a.slots, a.reach, a.reach_scale),
            *(*a.contents, forest.class_probs, np.empty((0, 0)) if factors is None else factors),
            *(self._places, codes, numbers, np.empty(2 * codes.shape[1], dtype=np.int32)),
            *(out, reached.starts, reached.leaves, reached.mass),
            *(np.zeros(len(reached.leaves), dtype=np.int32), reached.uneven),
        )
        return out


@dataclass(frozen=True, eq=False)
class Again:
    """What rows reach, found each time it is asked for: more than could be kept."""

    spreader: Spreader
    codes: Codes
    numbers: Floats

    def __iter__(self) -> Iterator[tuple[slice, Reached]]:
        """Yield what rows reach, for a few at a time."""
        for block, _, reached in self.spreader.spread(self.codes, self.numbers):
            yield block, reached
