"""Gaps: rows with missing cells, which reach several leaves of the trees of a mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from .mixtures import NEAR, Straight
from .scale import STEP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from robustq.arrays import Bools, Codes, Floats, Indices

    from .mixtures import MixtureTables
    from .neighbourhoods import Perturbed
    from .quantified import Quantified

__all__ = ["Gaps", "Reached", "Spread"]

FASTEST = 1e6  # how much weights may change, relative to themselves, where a search begins
SIZED = 6, 11  # of the points that are looked at first, those where the sizes of leaves are known

# What is known of splits: the node; of the rows that reach it, where they begin among the members
# of their tree, and how many they are; where the values of the children stand; and where masks
# begin.
NODE, START, COUNT, LEFT, RIGHT, GROUP = range(6)
# And of leaves: their number, and where the rows begin that reach them.
LEAF_AT, LEAF_START = range(2)
# And of trees: where their splits begin and end, where the values of the root stand, where the
# members of the splits begin; and where the leaves end.
SPLITS_FROM, SPLITS_TO, ROOT, MEMBERS_FROM, LEAVES_TO = range(5)


class Reached(NamedTuple):
    """What rows reach of the trees of a mixture, node by node.

    Attributes
    ----------
    splits : ndarray of shape (splits, 6)
        Splits that some rows reach, parents before children; see `NODE` and what follows. Children
        stand where they begin among the members of their tree, or, for leaves, among theirs,
        counted from −1 down.
    members : ndarray
        The rows that reach each split, one list after the other, each in order.
    masks : ndarray
        Of each eight members of a list, who goes left, and then who goes right, as bits.
    leaves : ndarray of shape (leaves + 1, 2)
        Leaves that some rows reach; see `LEAF_AT`. The last one is the end.
    leaf_members : ndarray
        The rows that reach each leaf.
    mass : ndarray
        Like `leaf_members`: Π p(f_i), divided by some power of two that all leaves of a row share.
    trees : ndarray of shape (trees, 5)
        See `SPLITS_FROM`.
    room : int
        How many members the splits of a tree have, at most.
    uneven : ndarray of bool, of shape (rows,)
        Of which rows some leaves have so much less mass than others that it may underflow.
    entries : int
        How many members leaves have.
    """

    splits: Codes
    members: Codes
    masks: NDArray[np.uint8]
    leaves: Codes
    leaf_members: Codes
    mass: Floats
    trees: Codes
    room: int
    uneven: Bools
    entries: int

    @property
    def leafy(self) -> tuple[Any, ...]:
        """All of it that is looked at for rows whose masses are known to be even."""
        return *self[:-2], self.entries


class Spread(Protocol):
    """Rows, and what they reach of a mixture."""

    def __iter__(self) -> Iterator[tuple[slice, Reached]]:
        """Yield what some of the rows after the others reach."""

    def take(self, rows: Indices) -> Reached:
        """Return what some of the rows reach."""


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
    spread : Spread
        What they reach; it is asked for once for each neighbourhood.
    """

    spread: Spread

    def solve(self, perturbed: Perturbed, found: Quantified) -> tuple[Floats, Indices]:
        """Return x and the tipping class of each row; x is NaN where rounding would show."""
        rows = len(found.prediction)
        y, tipping = np.empty(rows), np.empty(rows, dtype=np.int64)
        for block, reached in self.spread:
            search = _Search(self, perturbed, block.start)
            y[block], tipping[block] = search.run(reached, found.take(block))
        return self.forget_unclear(perturbed, y), tipping

    def measured(self, perturbed: Perturbed) -> tuple[Floats, Floats, Floats]:
        """Return what is known of the paths to leaves, edges as kernels read them, and points."""
        made, tables = self.made(perturbed), self.tables

        def measure() -> tuple[Floats, Floats, Floats]:
            points = made.looks[2][list(SIZED)]
            about = _measure_paths(made.edges, tables, points)
            return about.ravel(), _pair_edges(made.edges, tables), points

        return self.kept.find((perturbed.key, "gaps"), measure)


class _Search:
    """Where rows of one block flip."""

    def __init__(self, gaps: Gaps, perturbed: Perturbed, start: int) -> None:
        self.spread, self.start, tables = gaps.spread, start, gaps.tables
        self.limit = gaps.made(perturbed).limit
        self.near = NEAR * (gaps.factors + tables.depth)
        self.model = tables.class_probs, *gaps.measured(perturbed)

    def run(self, reached: Reached, found: Quantified) -> tuple[Floats, Indices]:
        """Return where rows flip, and to which class."""
        best, rival = found.prediction, found.runner_up
        every = np.arange(len(best))
        x = self._find_flips(reached, every, best, rival, np.full(len(best), self.limit))
        tipping = np.where(x == np.inf, -1, rival)
        waiting = self._find_waiting(reached, best, rival, np.fmin(x, self.limit))
        waiting[np.isnan(x)] = False
        # The runner-up was the first: hardly anybody is left.
        while waiting.any():
            rows = np.flatnonzero(waiting.any(axis=1))
            others = waiting[rows].argmax(axis=1)
            waiting[rows, others] = False
            tops = np.minimum(x[rows], self.limit)
            sizes = self._find_flips(self._take(rows), rows, best[rows], others, tops)
            # NaN is for all of them.
            sooner = np.isnan(sizes) | (sizes < x[rows])
            x[rows[sooner]], tipping[rows[sooner]] = sizes[sooner], others[sooner]
            waiting[np.isnan(x)] = False
        return x, tipping

    def _take(self, rows: Indices) -> Reached:
        return self.spread.take(self.start + rows)

    def _find_flips(
        self, reached: Reached, rows: Indices, best: Indices, rival: Indices, tops: Floats
    ) -> Floats:
        """Return where rows flip to a rival, below their tops."""
        from . import _gap_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

        state = _begin(len(rows))
        found, some, step = np.empty(len(rows)), np.arange(len(rows)), 0
        while True:
            ours, doubts = np.full(len(some), kernels.UNDECIDED), np.empty((2, len(some)))
            step = kernels.search(
                *(*self.model, *reached[:-1], best[some], rival[some], tops[some]),
                *(
                    self.limit,
                    self.near,
                    step,
                    *_make_room(reached, len(some)),
                    *state,
                    ours,
                    doubts,
                ),
            )
            found[some] = ours
            unsure = np.flatnonzero((doubts < np.inf).any(axis=0))
            if len(unsure):
                who = some[unsure]
                at = np.minimum(ours[unsure], tops[who])
                pairs = rows[who], best[who], rival[who]
                found[who[self._is_unclear(*pairs, at, doubts[:, unsure])]] = np.nan
            if step == 0:
                return found
            # Those that take longer go on by themselves.
            going = np.flatnonzero(ours == kernels.UNDECIDED)
            some = some[going]
            reached = self._take(rows[some])
            state = _go_on(state, going)

    def _is_unclear(
        self, rows: Indices, best: Indices, rival: Indices, x: Floats, doubts: Floats
    ) -> Bools:
        """Tell of which rows rounding shows at some x, or something is left that no float tells."""
        from . import _gap_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

        reached, xs = self._take(rows), np.zeros((2, len(rows) + kernels.LANES))
        xs[0, : len(rows)], xs[1, : len(rows)] = x, np.where(np.isfinite(doubts[1]), doubts[1], x)
        sums, looks = np.empty_like(xs), np.empty((2, len(rows)))
        room = _make_room(reached, len(rows))
        given = *self.model[:3], *reached.leafy, best, rival, xs
        kernels.look_closer(*given, *room, sums, looks)
        return ~(looks[0] < doubts[0]) | ((doubts[1] < np.inf) & (looks[1] < 0.0))

    def _find_waiting(self, reached: Reached, best: Indices, rival: Indices, tops: Floats) -> Bools:
        """Return which classes rows may flip to before some x, apart from one rival."""
        from . import _gap_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

        rows, classes = len(best), self.model[0].shape[1]
        if classes == 2:
            return np.zeros((rows, classes), dtype=bool)
        cleared = np.empty((classes + classes % 2, rows), dtype=bool)
        xs, sums = _begin(rows)[:2]
        room = _make_room(reached, rows, both=True)
        for c in range(0, classes, 2):
            pair = (np.full(rows, min(c + side, classes - 1)) for side in (0, 1))
            kernels.clear(
                *(*self.model, *reached.leafy, best, *pair, tops, self.near, *room, xs, sums),
                *(np.empty_like(xs), cleared[c], cleared[c + 1]),
            )
        waiting = ~cleared[:classes].T
        every = np.arange(rows)
        waiting[every, best] = waiting[every, rival] = False
        return waiting


def _begin(rows: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return what a search knows of rows, to be filled; some more than there are."""
    from . import _gap_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

    more = rows + kernels.LANES
    return (
        *(np.zeros((2, more)), np.zeros((2, more))),
        *(np.zeros((rows, len(kernels.KNOTS), 3)), np.zeros((rows, len(kernels.FACTS)))),
    )


def _go_on(
    state: tuple[Floats, Floats, Floats, Floats], rows: Indices
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return what a search knows of some of the rows."""
    xs, sums, knots, facts = _begin(len(rows))
    xs[:, : len(rows)], knots[:], facts[:] = state[0][:, rows], state[2][rows], state[3][rows]
    return xs, sums, knots, facts


def _make_room(reached: Reached, rows: int, *, both: bool = False) -> tuple[Floats, Floats]:
    """Return what kernels work in: see `_gap_kernels` for values; and what is known of rows."""
    from . import _gap_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

    zeros = rows + kernels.LANES
    terms = (reached.entries + kernels.LANES) * (2 if both else 1)
    values = np.empty(2 * reached.room + zeros + terms)
    values[2 * reached.room : 2 * reached.room + zeros] = 0.0
    return values, make_lanes(rows, kernels.WIDTH)


def _pair_edges(edges: Floats, tables: MixtureTables) -> Floats:
    """Return of the edges below each split what `_gap_kernels.EDGES` says."""
    from . import _gap_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

    paired = make_lanes(len(edges), kernels.WIDTH)
    paired[:] = 0.0
    below = np.flatnonzero(tables.parents >= 0)
    # Children stand side by side.
    splits, firsts = np.unique(tables.parents[below], return_index=True)
    for side, shift in ((kernels.FIRST_EDGE, 0), (kernels.SECOND_EDGE, 1)):
        own = edges[below[firsts] + shift]
        paired[splits, side + kernels.W] = own[:, 0]
        paired[splits, side + kernels.FALL] = -own[:, 1]
        paired[splits, side + kernels.RISE] = own[:, 2]
    return paired


def _measure_paths(edges: Floats, tables: MixtureTables, points: Floats) -> Floats:
    """Return what `_gap_kernels.ABOUT` says, for leaves in favour of a class and against it."""
    from . import _gap_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

    with np.errstate(divide="ignore", invalid="ignore"):
        changes = np.fmin(edges[:, 1:3] / edges[:, :1], FASTEST)
    upper = np.minimum(edges[:, :1] + points * edges[:, 2:3], 1.0)
    total, at = np.zeros((len(tables.leaf_nodes), 2)), tables.leaf_nodes
    sizes, leaves = np.ones((len(at), len(points))), np.arange(len(at))
    while len(at):
        total[leaves] += changes[at]
        sizes[leaves] *= upper[at]
        below = tables.parents[at] >= 0
        leaves, at = leaves[below], tables.parents[at[below]].astype(np.intp)
    reach = np.ldexp(tables.reach, STEP * tables.reach_scale)
    about = make_lanes(2 * len(reach), kernels.LANES)
    about[:] = 0.0
    about[:, kernels.SIZE], about[:, kernels.LATER] = np.repeat(sizes, 2, axis=0).T
    one, other = about[::2], about[1::2]
    one[:, kernels.POSITIVE], one[:, kernels.FALLS] = reach, reach * total[:, 0]
    other[:, kernels.NEGATIVE], other[:, kernels.RISES] = reach, reach * total[:, 1]
    one[:, kernels.FOR] = other[:, kernels.AGAINST] = 1.0
    return about
