"""Rows with missing cells, which reach several leaves of each tree of a forest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.core.gaps import AT_ONCE, LANES, Reached

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from robustq.arrays import Codes, Floats, Indices

    from .model import Forest

__all__ = ["SpreadRows", "Spreader"]

MOST_REACHED = 2**24  # how many entries are kept for a block of rows (some 500 MB)
MOST = 2**22  # how many entries rows that go together may have; a row alone has what it has
# For how many entries there is room, for each row and tree, and in all; it grows where there are
# more.
ENTRIES, LEAST = 12, 2**16
NODES = 8  # where there are more of a forest for each row, more rows go together


@dataclass(frozen=True, eq=False)
class Spreader:
    """Finds what rows with missing cells reach of a forest."""

    forest: Forest

    def read(self, codes: Codes, numbers: Floats) -> tuple[Floats, SpreadRows]:
        """Return log p(c, f) of rows with any evidence, and what they reach.

        That is kept up to a limit, and then found again when it is needed.
        """
        joint = np.empty((len(codes), self.forest.class_probs.shape[1]))
        kept, room = [], MOST_REACHED
        for block, logs, reached in self.spread(codes, numbers):
            joint[block] = logs
            room -= len(reached.mass)
            if room >= 0:
                kept.append((block, reached))
        return joint, SpreadRows(self, codes, numbers, tuple(kept))

    def spread(self, codes: Codes, numbers: Floats) -> Iterator[tuple[slice, Floats, Reached]]:
        """Yield log p(c, f) of rows with any evidence, and what they reach, some at a time."""
        # Every split costs its share once for all rows that go together.
        start, some = 0, max(AT_ONCE, len(self.forest.nodes) // NODES)
        while start < len(codes):
            block = slice(start, min(start + some, len(codes)))
            reached = self._find_leaves(codes[block], numbers[block])
            if reached is None:
                some = (block.stop - block.start) // 2
                continue
            yield block, self._weigh(codes[block], numbers[block], reached), reached
            start = block.stop

    def _find_leaves(self, codes: Codes, numbers: Floats) -> Reached | None:
        """Return what rows reach, but for their mass there; nothing if it is too much at once."""
        from . import _spread_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

        forest, rows = self.forest, len(codes)
        out, ends, done = self._make_room(rows), np.zeros(4, dtype=np.int64), 0
        tops = np.empty((forest.trees, rows), dtype=np.int32)
        trees = np.empty((forest.trees + 1, 3), dtype=np.int32)
        # A split has three lists, and they have as many rows as its own, at most.
        room = (
            np.empty((3 * forest.depth + 4) * rows, dtype=np.int32),
            np.empty((forest.depth + 1, len(kernels.FRAME)), dtype=np.int64),
            np.empty(rows, dtype=np.int32),
        )
        values = np.empty(0, dtype=np.uint8)
        if forest.is_narrow:
            values = np.where(codes.T < 0, kernels.NO_VALUE, codes.T).astype(np.uint8).ravel()
        while done < forest.trees:
            done = kernels.spread(
                *(forest.is_narrow, *forest.arrays.routes, values, codes, numbers, done, ends),
                *(*room, *out, tops, trees),
            )
            if done < forest.trees:
                if rows > 1 and ends[3] > MOST:
                    return None
                out = [np.concatenate([each, np.empty_like(each)]) for each in out]
        splits, ones, others, leaves, members = out
        return Reached(
            *(splits, ones, others, leaves[: int(ends[2]) + 1], members, np.empty(int(ends[3]))),
            *(tops, trees, np.empty(rows, dtype=np.bool_)),
        )

    def _make_room(self, rows: int) -> list[NDArray[Any]]:
        """Return what splits, ones, others, leaves and members are written to."""
        nodes, trees = len(self.forest.nodes), self.forest.trees
        more = trees + rows + LANES + 2
        entries = min(rows * nodes, max(ENTRIES * rows * trees, LEAST)) + more
        nodes = min(nodes, entries) + more
        return [
            np.empty((nodes, 6), dtype=np.int32),
            np.empty(entries, dtype=np.int32),
            np.empty(entries, dtype=np.int32),
            np.empty((nodes, 2), dtype=np.int32),
            np.empty(entries, dtype=np.int32),
        ]

    @cached_property
    def _places(self) -> Indices:
        """Where the values of each feature begin, numbers having none."""
        return np.concatenate([[0], np.cumsum(self.forest.sizes)])

    def _weigh(self, codes: Codes, numbers: Floats, reached: Reached) -> Floats:
        """Return log p(c, f) of rows; write their mass at the leaves they reach."""
        from . import _spread_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        forest, rows = self.forest, len(codes)
        a, there = forest.arrays, codes >= 0
        dense = forest.dense.factors if forest.is_narrow else None
        if dense is not None:
            cells = np.where(there, codes + self._places[:-1], self._places[-1]).astype(np.int32)
            # Those that are missing come last, of which no row need have more than another.
            cells = np.sort(cells, axis=1)[:, : there.sum(axis=1).max(initial=0)].copy()
            factors, known, some = dense, codes[:0], np.empty(0, dtype=np.int64)
        else:
            factors, cells = np.empty((0, 0)), codes[:0]
            known = np.argsort(~there, axis=1, kind="stable").astype(np.int32)
            some = there.sum(axis=1)
        out = np.zeros((rows, forest.class_probs.shape[1]))
        _spread_kernels.weigh_reached(
            *(forest.trees, forest.is_plain, a.kinds, a.slots, a.reach, a.reach_scale),
            *(*a.contents, forest.class_probs, factors, cells, codes, numbers, known, some, out),
            *(len(reached.leaves) - 1, reached.leaves, reached.members),
            *(reached.mass, np.zeros(len(reached.mass), dtype=np.int32)),
            *(np.empty(rows, dtype=np.int64), np.empty((2, rows)), reached.uneven),
        )
        return out


@dataclass(frozen=True, eq=False)
class SpreadRows:
    """Rows, and what they reach; what could not be kept is found each time it is asked for."""

    spreader: Spreader
    codes: Codes
    numbers: Floats
    kept: tuple[tuple[slice, Reached], ...]

    def __iter__(self) -> Iterator[tuple[slice, Reached]]:
        """Yield what rows reach, for some at a time."""
        yield from self.kept
        start = self.kept[-1][0].stop if self.kept else 0
        for block, _, reached in self.spreader.spread(self.codes[start:], self.numbers[start:]):
            yield slice(start + block.start, start + block.stop), reached

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self.codes)

    def among(self, rows: Indices) -> Iterator[tuple[slice, Reached]]:
        """Yield what some of the rows reach, for some positions among them at a time."""
        for block, _, reached in self.spreader.spread(self.codes[rows], self.numbers[rows]):
            yield block, reached
