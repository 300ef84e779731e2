"""Gaps: rows with missing cells, which reach several leaves of the trees of a mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from .mixtures import NEAR, Straight
from .room import make_floats
from .scale import STEP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robustq.arrays import Bools, Codes, Floats, Indices

    from .mixtures import MixtureTables
    from .neighbourhoods import Perturbed
    from .quantified import Quantified

__all__ = ["Gaps", "Reached", "Spread"]

FASTEST = 1e6  # how much weights may change, relative to themselves, where a search begins
SIZED = 6, 11  # of the points that are looked at first, those where the sizes of leaves are known

# What is known of splits: the node; of the entries below it, where those of the left child begin,
# and those of the right one, and where these end, all within the tree; and where the rows that go
# both ways begin among all of these, and end.
NODE, FIRST, MIDDLE, END, JOINS_FROM, JOINS_TO = range(6)
# And of leaves: their number, and where their entries begin.
LEAF_AT, LEAF_START = range(2)
# And of trees: where their splits, their leaves and their entries begin.
SPLITS_FROM, LEAVES_FROM, ENTRIES_FROM = range(3)
LANES = 8  # how many are looked at at once
AT_ONCE = 4096  # how many rows go together, at least if there are as many

# Of the two edges of a split: the weight, minus what it falls by, and what it rises by.
EDGES = W, FALL, RISE = range(3)
FIRST_EDGE, SECOND_EDGE, WIDTH = 0, 4, 8  # where they stand in a line of the cache
# What a leaf adds to what is known of a row, for each unit of its value: to what is positive at 0,
# as if leaves were trees, and what that loses there; to what is negative, and what that gains; to
# the sizes at two points; and to the values of all that are positive, and negative. It depends on
# the sign; leaves have a line for each.
ABOUT = POSITIVE, FALLS, NEGATIVE, RISES, SIZE, LATER, FOR, AGAINST = range(8)


class Reached(NamedTuple):
    """What rows reach of the trees of a mixture.

    A row has an *entry* at each leaf it reaches. Those of a tree stand in the order of its leaves,
    so that the entries below a node stand side by side.

    Attributes
    ----------
    splits : ndarray of shape (splits, 6)
        Splits that some rows reach, children before parents; see `NODE` and what follows.
    ones, others : ndarray
        Where a row goes both ways: its first entry below the left child, and below the right one.
        There are some more than are told of, to be read and not used; of `members`, too.
    leaves : ndarray of shape (leaves + 1, 2)
        Leaves that some rows reach, see `LEAF_AT`. The last one is the end.
    members : ndarray
        The row of each entry.
    mass : ndarray
        Of each entry Π p(f_i), divided by some power of two that all entries of a row share.
    tops : ndarray of shape (trees, rows)
        The first entry of each row.
    trees : ndarray of shape (trees + 1, 3)
        See `SPLITS_FROM`. The last one is the end.
    uneven : ndarray of bool, of shape (rows,)
        Of which rows some leaves have so much less mass than others that it may underflow.
    """

    splits: Codes
    ones: Codes
    others: Codes
    leaves: Codes
    members: Codes
    mass: Floats
    tops: Codes
    trees: Codes
    uneven: Bools

    @property
    def leafy(self) -> tuple[Any, ...]:
        """All of it that is looked at for rows whose masses are known to be even."""
        return self[:-1]

    @property
    def largest(self) -> int:
        """How many entries a tree has at most."""
        return int(np.diff(self.trees[:, ENTRIES_FROM]).max())


class Spread(Protocol):
    """Rows, and what they reach of a mixture."""

    def __iter__(self) -> Iterator[tuple[slice, Reached]]:
        """Yield what some of the rows after the others reach."""

    def __len__(self) -> int:
        """Return how many rows there are."""

    def among(self, rows: Indices) -> Iterator[tuple[slice, Reached]]:
        """Yield what some of the rows reach, for some positions among them at a time."""


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
        y, tipping = _Search(self, perturbed).run(found)
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
    """Where rows flip."""

    def __init__(self, gaps: Gaps, perturbed: Perturbed) -> None:
        self.spread, tables = gaps.spread, gaps.tables
        self.limit = gaps.made(perturbed).limit
        self.near = NEAR * (gaps.factors + tables.depth)
        self.probs = tables.class_probs
        self.about, self.edges, self.points = gaps.measured(perturbed)

    def run(self, found: Quantified) -> tuple[Floats, Indices]:
        """Return where rows flip, and to which class."""
        best, rival = found.prediction, found.runner_up
        every = np.arange(len(best))
        x = self._find_flips(every, best, rival, np.full(len(best), self.limit))
        tipping = np.where(x == np.inf, -1, rival)
        waiting = self._find_waiting(best, rival, np.fmin(x, self.limit))
        waiting[np.isnan(x)] = False
        # The runner-up was the first: hardly anybody is left.
        while waiting.any():
            rows = np.flatnonzero(waiting.any(axis=1))
            others = waiting[rows].argmax(axis=1)
            waiting[rows, others] = False
            sizes = self._find_flips(rows, best[rows], others, np.minimum(x[rows], self.limit))
            # NaN is for all of them.
            sooner = np.isnan(sizes) | (sizes < x[rows])
            x[rows[sooner]], tipping[rows[sooner]] = sizes[sooner], others[sooner]
            waiting[np.isnan(x)] = False
        return x, tipping

    def _reach(self, rows: Indices) -> Iterator[tuple[Indices, Reached]]:
        """Yield what rows reach, for some positions among them at a time."""
        # It is found again for a few: to look for them among all would take longer.
        blocks = self.spread if len(rows) == len(self.spread) else self.spread.among(rows)
        for block, reached in blocks:
            yield np.arange(block.start, block.stop), reached

    def _find_flips(self, rows: Indices, best: Indices, rival: Indices, lasts: Floats) -> Floats:
        """Return where rows flip to a rival, before their last x."""
        from . import _bracket_kernels as brackets  # noqa: PLC0415 (numba is imported when needed)

        found, state = np.full(len(rows), brackets.UNDECIDED), _begin(len(rows))
        doubts, going, begins = np.empty((2, len(rows))), np.arange(len(rows)), True
        while len(going):
            for some, reached in self._reach(rows[going]):
                who = going[some]
                found[who], doubts[:, who] = self._look(
                    *(reached, best[who], rival[who], lasts[who], begins, who, state)
                )
            # Those that take longer go on together.
            going, begins = np.flatnonzero(found == brackets.UNDECIDED), False
        unsure = np.flatnonzero((doubts < np.inf).any(axis=0))
        if len(unsure):
            pairs = rows[unsure], best[unsure], rival[unsure]
            at = np.minimum(found[unsure], lasts[unsure])
            ends = _find_ends(state[1][unsure])
            found[unsure[self._is_unclear(*pairs, at, ends, doubts[:, unsure])]] = np.nan
        return found

    def _look(
        self,
        reached: Reached,
        best: Indices,
        rival: Indices,
        lasts: Floats,
        begins: bool,
        who: Indices,
        state: tuple[Floats, Floats, Floats],
    ) -> tuple[Floats, Floats]:
        """Return where some rows flip, as far as it is found, and doubts; keep what is known."""
        from . import _bracket_kernels as brackets  # noqa: PLC0415 (numba is imported when needed)
        from . import _gap_kernels as kernels  # noqa: PLC0415

        found, doubts = np.full(len(who), brackets.UNDECIDED), np.empty((2, len(who)))
        xs, sums = np.zeros((2, len(who) + LANES))
        own = state[1][who], state[2][who]
        xs[: len(who)] = state[0][who]
        given = best, rival, lasts, self.limit, self.near, begins
        kernels.search(
            *(*self._find_model(reached), self.points, *reached, *given, *_make_room(reached)),
            *(xs, sums, *own, found, doubts),
        )
        state[0][who], state[1][who], state[2][who] = xs[: len(who)], *own
        return found, doubts

    def _find_model(self, reached: Reached) -> tuple[Floats, Floats, Floats]:
        """Return what is known of classes and leaves, and the edges in the order of splits."""
        # One look after the other goes over them: better side by side than all over the forest.
        splits = reached.splits[: reached.trees[-1, SPLITS_FROM], NODE]
        return self.probs, self.about, self.edges.take(splits, axis=0)

    def _is_unclear(
        self, rows: Indices, best: Indices, rival: Indices, x: Floats, ends: Floats, doubts: Floats
    ) -> Bools:
        """Tell of which rows rounding shows at some x, or something is left that no float tells.

        Rounding does not show between ends that are near to each other where the prediction holds
        at the lower one even if all leaves were a little worse for it, and does not at the upper
        one even if they were better: nothing but the ends needs to be known.
        """
        from . import _bracket_kernels as brackets  # noqa: PLC0415 (numba is imported when needed)
        from . import _gap_kernels as kernels  # noqa: PLC0415

        looks, end = np.empty((4, len(rows))), np.where(doubts[1] < np.inf, doubts[1], x)
        points = np.stack([x, end, *ends])
        for some, reached in self._reach(rows):
            sums, own = np.empty(len(some) + LANES), np.empty((4, len(some)))
            xs = np.zeros((4, len(some) + LANES))
            xs[:, : len(some)] = points[:, some]
            given = *self._find_model(reached), *reached.leafy, best[some], rival[some], xs
            kernels.look_closer(*given, self.near, *_make_room(reached), sums, own)
            looks[:, some] = own
        held = (looks[2] > brackets.TINY) & (looks[3] <= 0.0)
        shows = ~(looks[0] < doubts[0]) & ~held
        return shows | ((doubts[1] < np.inf) & (looks[1] < 0.0))

    def _find_waiting(self, best: Indices, rival: Indices, lasts: Floats) -> Bools:
        """Return which classes rows may flip to before some x, apart from one rival."""
        from . import _gap_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

        rows, classes = len(best), self.probs.shape[1]
        waiting, every = np.zeros((rows, classes), dtype=bool), np.arange(rows)
        if classes == 2:
            return waiting
        for some, reached in self._reach(every):
            room = *_make_room(reached), *np.zeros((2, len(some) + LANES))
            model = *self._find_model(reached), self.points
            for c in range(classes):
                given = best[some], np.full(len(some), c), lasts[some], self.near
                cleared = np.empty(len(some), dtype=bool)
                kernels.clear(*model, *reached.leafy, *given, *room, cleared)
                waiting[some, c] = ~cleared
        waiting[every, best] = waiting[every, rival] = False
        return waiting


def _begin(rows: int) -> tuple[Floats, Floats, Floats]:
    """Return what a search knows of rows, to be filled: where to look, knots and facts."""
    from . import _bracket_kernels as brackets  # noqa: PLC0415 (numba is imported when needed)

    knots = np.empty((rows, len(brackets.KNOTS), len(brackets.KNOWN)))
    return np.empty(rows), knots, np.empty((rows, len(brackets.FACTS)))


def _find_ends(knots: Floats) -> Floats:
    """Return between which two x rows flip, as far as a search knows; NaN where they are apart."""
    from . import _bracket_kernels as brackets  # noqa: PLC0415 (numba is imported when needed)

    ends = knots[:, [brackets.LOW, brackets.HIGH], brackets.X].T
    return np.where(ends[1] - ends[0] <= 4.0 * brackets.ENOUGH * ends[1], ends, np.nan)


def _make_room(reached: Reached) -> tuple[Floats, ...]:
    """Return what kernels work in: see `_climb_kernels.VALUES`; terms; what is known of rows."""
    entries, rows = int(reached.trees[-1, ENTRIES_FROM]), reached.tops.shape[1]
    trees = (np.empty(reached.largest + LANES) for _ in range(3))
    joins = (np.empty(rows + LANES) for _ in range(2))
    return *trees, *joins, np.empty(entries + LANES), make_floats(rows * LANES).reshape(rows, LANES)


def _pair_edges(edges: Floats, tables: MixtureTables) -> Floats:
    """Return of the edges below each split what `_gap_EDGES` says."""
    paired = make_floats(len(edges) * WIDTH).reshape(-1, WIDTH)
    below = np.flatnonzero(tables.parents >= 0)
    # Children stand side by side.
    splits, firsts = np.unique(tables.parents[below], return_index=True)
    for side, shift in ((FIRST_EDGE, 0), (SECOND_EDGE, 1)):
        own = edges[below[firsts] + shift]
        paired[splits, side + W] = own[:, 0]
        paired[splits, side + FALL] = -own[:, 1]
        paired[splits, side + RISE] = own[:, 2]
    return paired


def _measure_paths(edges: Floats, tables: MixtureTables, points: Floats) -> Floats:
    """Return what `_gap_ABOUT` says, for leaves in favour of a class and against it."""
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
    about = make_floats(2 * len(reach) * LANES).reshape(-1, LANES)
    about[:, SIZE], about[:, LATER] = np.repeat(sizes, 2, axis=0).T
    one, other = about[::2], about[1::2]
    one[:, POSITIVE], one[:, FALLS] = reach, reach * total[:, 0]
    other[:, NEGATIVE], other[:, RISES] = reach, reach * total[:, 1]
    one[:, FOR] = other[:, AGAINST] = 1.0
    return about
