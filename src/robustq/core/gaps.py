"""Gaps: rows with missing cells, which reach several leaves of the trees of a mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .mixtures import NEAR, Straight
from .scale import STEP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from robustq.arrays import Bools, Codes, Floats, Indices

    from .mixtures import MixtureTables
    from .neighbourhoods import Perturbed
    from .quantified import Quantified

__all__ = ["Gaps", "Reached"]

FASTEST = 1e6  # how much weights may change, relative to themselves, where a search begins


class Reached(NamedTuple):
    """What rows reach of the trees of a mixture.

    Attributes
    ----------
    starts : ndarray of shape (rows + 1,)
        Where the leaves of each row begin; trees that are leaves come first.
    leaves : ndarray of shape (entries,)
        Their numbers.
    mass : ndarray of shape (entries,)
        Π p(f_i), divided by some power of two that all leaves of a row share.
    split_starts : ndarray of shape (rows + 1,)
        Where the splits of each row begin; the roots of the other trees come first.
    splits : ndarray of shape (splits, 3)
        Their nodes, parents before children, and of both children which they are among those of
        the row: 1, 2 … for splits, −1, −2 … for leaves, and 0 if it is not reached.
    uneven : ndarray of bool, of shape (rows,)
        Of which rows some leaves have so much less mass than others that it may underflow.
    """

    starts: Indices
    leaves: Codes
    mass: Floats
    split_starts: Indices
    splits: Codes
    uneven: Bools

    @classmethod
    def empty(cls, rows: int, leaves: int, splits: int) -> Reached:
        """Return arrays to be filled, with room for so many leaves and splits."""
        starts, split_starts = np.empty((2, rows + 1), dtype=np.int64)
        return cls(
            *(starts, np.empty(leaves, dtype=np.int32), np.empty(leaves)),
            *(split_starts, np.empty((splits, 3), dtype=np.int32), np.zeros(rows, dtype=np.bool_)),
        )

    def trim(self, rows: int) -> Reached:
        """Return what was filled of some rows; a copy if most of the room was not needed."""
        leaves, splits = int(self.starts[rows]), int(self.split_starts[rows])
        return Reached(
            *(self.starts[: rows + 1], _trim(self.leaves, leaves), _trim(self.mass, leaves)),
            *(self.split_starts[: rows + 1], _trim(self.splits, splits), self.uneven[:rows]),
        )

    @property
    def extent(self) -> tuple[int, int]:
        """How many leaves and how many splits a row reaches at most."""
        return int(np.diff(self.starts).max()), int(np.diff(self.split_starts).max())


def _trim(array: Any, used: int) -> Any:
    return array[:used].copy() if 2 * used < len(array) else array[:used]


def make_lanes(rows: int, lanes: int) -> Floats:
    """Return room for rows of lanes, each within a line of the cache."""
    room = np.empty((rows + 1) * lanes)
    skip = -(room.ctypes.data // room.itemsize) % lanes
    return room[skip : skip + rows * lanes].reshape(rows, lanes)


@dataclass(frozen=True, eq=False)
class Gaps(Straight):
    """Rows with missing cells.

    Attributes
    ----------
    reached : iterable of pairs (slice, Reached)
        What some of the rows after the others reach; it is asked for once for each neighbourhood.
    """

    reached: Iterable[tuple[slice, Reached]]

    def solve(self, perturbed: Perturbed, found: Quantified) -> tuple[Floats, Indices]:
        """Return x and the tipping class of each row; x is NaN where rounding would show."""
        rows = len(found.prediction)
        y, tipping = np.empty(rows), np.empty(rows, dtype=np.int64)
        for block, reached in self.reached:
            self._search(perturbed, reached, found.take(block), (y[block], tipping[block]))
        return self.forget_unclear(perturbed, y), tipping

    def _search(
        self,
        perturbed: Perturbed,
        reached: Reached,
        found: Quantified,
        out: tuple[Floats, Indices],
    ) -> None:
        """Write x and the tipping class of some rows."""
        from . import _gap_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

        made, tables = self.made(perturbed), self.tables
        edges, about, trees = self._measured(perturbed)
        leaves, splits = reached.extent
        kernels.search(
            *(tables.class_probs, about, edges, leaves, trees, *reached),
            *(found.prediction, found.runner_up, made.limit),
            NEAR * (self.factors + tables.depth),
            _make_room(tables.class_probs.shape[1], leaves + splits),
            *out,
        )

    def _measured(self, perturbed: Perturbed) -> tuple[Floats, Floats, tuple[int, int]]:
        """Return the edges as kernels read them, and what is known of the paths to leaves.

        Also how many trees are leaves, and how many are not.
        """
        edges, tables = self.made(perturbed).edges, self.tables

        def measure() -> tuple[Floats, Floats, tuple[int, int]]:
            single = int(np.count_nonzero(tables.parents[tables.leaf_nodes] < 0))
            trees = int(np.count_nonzero(tables.parents < 0))
            about = _measure_paths(edges, tables)
            return _pair_edges(edges, tables), about, (single, trees - single)

        return self.kept.find((perturbed.key, "gaps"), measure)


def _make_room(classes: int, most: int) -> tuple[NDArray[Any], ...]:
    """Return what kernels work in for a row that reaches so many leaves and splits."""
    from . import _gap_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

    lanes = kernels.LANES
    return (
        make_lanes(1, lanes).ravel(),
        make_lanes(len(kernels.SUMS), lanes),
        np.empty(len(kernels.FIRST)),
        np.empty((len(kernels.KNOTS), 3)),
        np.empty(len(kernels.FACTS)),
        make_lanes(2 * (most + 1), lanes).ravel(),
        np.empty((2, lanes)),
        np.empty(lanes, dtype=np.int64),
        np.zeros(classes, dtype=np.int64),
    )


def _pair_edges(edges: Floats, tables: MixtureTables) -> Floats:
    """Return of the edges below each split what `_gap_kernels.EDGES` says."""
    from . import _gap_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

    paired = make_lanes(len(edges), kernels.WIDTH)
    paired[:] = 0.0
    below = np.flatnonzero(tables.parents >= 0)
    # Children stand side by side.
    splits, firsts = np.unique(tables.parents[below], return_index=True)
    for side, shift in ((kernels.LEFT, 0), (kernels.RIGHT, 1)):
        own = edges[below[firsts] + shift]
        paired[splits, side + kernels.W] = own[:, 0]
        paired[splits, side + kernels.FALL] = -own[:, 1]
        paired[splits, side + kernels.RISE] = own[:, 2]
    return paired


def _measure_paths(edges: Floats, tables: MixtureTables) -> Floats:
    """Return what weights on the path to each leaf multiply to, and how fast its bounds change.

    That is relative to it: what the logarithms fall and rise by, (leaves, 3).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        changes = np.fmin(edges[:, 1:3] / edges[:, :1], FASTEST)
    total, at = np.zeros((len(tables.leaf_nodes), 2)), tables.leaf_nodes
    leaves = np.arange(len(at))
    while len(at):
        total[leaves] += changes[at]
        below = tables.parents[at] >= 0
        leaves, at = leaves[below], tables.parents[at[below]].astype(np.intp)
    reach = np.ldexp(tables.reach, STEP * tables.reach_scale)
    return np.column_stack([reach, total])
