"""Gaps: rows with missing cells, which reach several leaves of the trees of a mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .mixtures import NEAR, Straight

if TYPE_CHECKING:
    from robustq.arrays import Codes, Floats, Indices

    from .neighbourhoods import Perturbed
    from .quantified import Quantified

__all__ = ["Gaps", "Reached"]


class Reached(NamedTuple):
    """What rows reach of the trees of a mixture: entries, parents before children.

    Attributes
    ----------
    starts, chain_starts : ndarray of shape (trees · rows + 1,)
        Where the entries of each row in each tree begin, and the edges: tree by tree.
    what : ndarray of shape (entries,)
        The number of a leaf; or −1, a join of two entries that come after it.
    lengths : ndarray of shape (entries,)
        How many edges lead down there from a child of a join; or ~length, from a root.
    mass, scale : ndarray of shape (entries,)
        Π p(f_i) at a leaf, as mantissa and scale.
    chain : ndarray of shape (edges,)
        The nodes below the edges: those that lead down, then for a join the two of its children.
    """

    starts: Indices
    chain_starts: Indices
    what: Codes
    lengths: Codes
    mass: Floats
    scale: Codes
    chain: Codes

    @classmethod
    def empty(cls, trees: int, rows: int, room: int) -> Reached:
        """Return arrays to be filled, with room for so many entries."""
        starts, chain_starts = np.empty((2, trees * rows + 1), dtype=np.int64)
        what, lengths, scale = np.empty((3, room), dtype=np.int32)
        chain = np.empty(3 * room, dtype=np.int32)
        return cls(starts, chain_starts, what, lengths, np.empty(room), scale, chain)

    def trim(self) -> Reached:
        """Return what was filled; a copy if most of the room was not needed."""
        entries, edges = self.starts[-1], self.chain_starts[-1]
        used: dict[str, Any] = {
            "what": self.what[:entries],
            "lengths": self.lengths[:entries],
            "mass": self.mass[:entries],
            "scale": self.scale[:entries],
            "chain": self.chain[:edges],
        }
        if 2 * entries < len(self.what):
            used = {name: array.copy() for name, array in used.items()}
        return self._replace(**used)


@dataclass(frozen=True, eq=False)
class Gaps(Straight):
    """Rows with missing cells."""

    reached: Reached

    def solve(self, perturbed: Perturbed, found: Quantified) -> tuple[Floats, Indices]:
        """Return x and the tipping class of each row; x is NaN where rounding would show."""
        from . import _gap_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

        made, tables, reached = self.made(perturbed), self.tables, self.reached
        rows = len(found.prediction)
        y, tipping = np.empty(rows), np.empty(rows, dtype=np.int64)
        longest, edges = (
            int(np.diff(starts).reshape(-1, rows).sum(axis=0).max(initial=0))
            for starts in (reached.starts, reached.chain_starts)
        )
        kernels.search(
            *(tables.class_probs, made.edges, *reached),
            *(found.prediction, found.runner_up, made.limit),
            NEAR * (self.factors + tables.depth),
            np.empty((longest, 2), dtype=np.int64),
            *(np.empty(longest), np.empty(longest), np.empty((edges, 3))),
            np.empty((longest, len(kernels.SLOTS))),
            *(y, tipping),
        )
        return self.forget_unclear(perturbed, y), tipping
