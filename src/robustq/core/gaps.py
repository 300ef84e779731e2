"""Gaps: rows with missing cells, which reach several leaves of the trees of a mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .mixtures import NEAR, Straight
from .scale import STEP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from robustq.arrays import Bools, Codes, Floats, Indices

    from .mixtures import MixtureTables
    from .neighbourhoods import Perturbed
    from .quantified import Quantified

__all__ = ["Ends", "Gaps", "Reached"]

FASTEST = 1e6  # how much weights may change, relative to themselves, where a search begins


class Reached(NamedTuple):
    """What rows reach of the trees of a mixture: leaves, from left to right.

    Attributes
    ----------
    starts : ndarray of shape (trees · rows + 1,)
        Where the leaves of each row in each tree begin: tree by tree.
    leaves : ndarray of shape (entries,)
        Their numbers.
    meets : ndarray of shape (entries,)
        The depth of the node where the path to each leaf meets that to the next one; −1 for the
        last of a tree.
    mass : ndarray of shape (entries,)
        Π p(f_i), divided by some power of two that all leaves of a row share.
    uneven : ndarray of bool, of shape (rows,)
        Of which rows some leaves have so much less mass than others that it may underflow.
    """

    starts: Indices
    leaves: Codes
    meets: Codes
    mass: Floats
    uneven: Bools

    @classmethod
    def empty(cls, trees: int, rows: int, room: int) -> Reached:
        """Return arrays to be filled, with room for so many leaves."""
        starts = np.empty(trees * rows + 1, dtype=np.int64)
        leaves, meets = np.empty((2, room), dtype=np.int32)
        return cls(starts, leaves, meets, np.empty(room), np.zeros(rows, dtype=np.bool_))

    def trim(self) -> Reached:
        """Return what was filled; a copy if most of the room was not needed."""
        entries = self.starts[-1]
        used = [array[:entries] for array in self[1:4]]
        if 2 * entries < len(self.leaves):
            used = [array.copy() for array in used]
        return Reached._make([self.starts, *used, self.uneven])


class Ends(NamedTuple):
    """The paths to the leaves of a mixture.

    Attributes
    ----------
    starts : ndarray of shape (leaves + 1,)
        Where the path of each leaf begins.
    paths : ndarray
        The nodes on paths, from the leaf upward; the root is left out.
    """

    starts: Indices
    paths: Codes

    @classmethod
    def of(cls, nodes: Indices, parents: Codes, depths: Codes) -> Ends:
        """Go up from the nodes of leaves."""
        starts = np.concatenate([[0], np.cumsum(depths[nodes])])
        paths = np.empty(starts[-1], dtype=np.int32)
        at: NDArray[np.integer] = nodes
        place = starts[:-1]
        for _ in range(int(depths.max(initial=0))):
            below = parents[at] >= 0
            at, place = at[below], place[below]
            paths[place] = at
            at, place = parents[at], place + 1
        return cls(starts, paths)


def make_lanes(rows: int, lanes: int) -> Floats:
    """Return room for rows of lanes, each within a line of the cache."""
    room = np.empty((rows + 1) * lanes)
    skip = -(room.ctypes.data // room.itemsize) % lanes
    return room[skip : skip + rows * lanes].reshape(rows, lanes)


@dataclass(frozen=True, eq=False)
class Gaps(Straight):
    """Rows with missing cells."""

    ends: Ends
    reached: Reached

    def solve(self, perturbed: Perturbed, found: Quantified) -> tuple[Floats, Indices]:
        """Return x and the tipping class of each row; x is NaN where rounding would show."""
        from . import _gap_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

        made, tables, reached = self.made(perturbed), self.tables, self.reached
        rows = len(found.prediction)
        y, tipping = np.empty(rows), np.empty(rows, dtype=np.int64)
        edges, about = self._measured(perturbed)
        kernels.search(
            *(tables.class_probs, about, edges, *self.ends, *reached),
            *(found.prediction, found.runner_up, made.limit),
            NEAR * (self.factors + tables.depth),
            *_make_room(min(rows, kernels.TOGETHER), tables.class_probs.shape[1], tables.depth),
            *(y, tipping),
        )
        return self.forget_unclear(perturbed, y), tipping

    def _measured(self, perturbed: Perturbed) -> tuple[Floats, Floats]:
        """Return the edges as kernels read them, and what is known of the paths to leaves."""
        edges = self.made(perturbed).edges
        return self.kept.find(
            (perturbed.key, "gaps"),
            lambda: (_turn_edges(edges), _measure_paths(edges, self.tables, self.ends)),
        )


def _make_room(rows: int, classes: int, depth: int) -> tuple[Indices, tuple[NDArray[Any], ...]]:
    """Return what kernels work in for rows that go together."""
    from . import _gap_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

    lanes = kernels.LANES
    room = (
        make_lanes(rows, lanes),
        make_lanes(rows * len(kernels.SUMS), lanes).reshape(rows, -1, lanes),
        np.empty((rows, len(kernels.FIRST))),
        np.empty((rows, len(kernels.KNOTS), 3)),
        np.empty((rows, len(kernels.FACTS))),
        make_lanes(2 * (depth + 2), lanes),
        np.empty((2, lanes)),
        np.empty((rows, lanes), dtype=np.int64),
        np.zeros((rows, classes), dtype=np.int64),
    )
    return np.empty((len(kernels.WORK), max(rows, depth + 2)), dtype=np.int64), room


def _turn_edges(edges: Floats) -> Floats:
    """Return weights, minus what they fall by, and what they rise by; see `_lane_kernels`."""
    from . import _lane_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

    turned = make_lanes(len(edges), kernels.WIDTH)
    turned[:, kernels.W], turned[:, kernels.FALL] = edges[:, 0], -edges[:, 1]
    turned[:, kernels.RISE] = edges[:, 2]
    return turned


def _measure_paths(edges: Floats, tables: MixtureTables, ends: Ends) -> Floats:
    """Return what weights on the path to each leaf multiply to, and how fast its bounds change.

    That is relative to it: what the logarithms fall and rise by, (leaves, 3).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        changes = np.fmin(edges[:, 1:3] / edges[:, :1], FASTEST)
    total = np.zeros((len(ends.paths) + 1, 2))
    np.cumsum(changes[ends.paths], axis=0, out=total[1:])
    reach = np.ldexp(tables.reach, STEP * tables.reach_scale)
    return np.column_stack([reach, np.diff(total[ends.starts], axis=0)])
