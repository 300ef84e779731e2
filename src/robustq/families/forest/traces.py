"""Traces: where complete rows end in each tree, and how likely they are there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .nodes import CHILD, FEATURE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from robustq.arrays import Bools, Codes, Floats, Indices
    from robustq.tables import Rows

    from .model import Forest

__all__ = ["Dense", "Trace", "add_base", "fit_memory", "follow"]

MOST_FACTORS = 2**23  # 64 MB
MOST_CELLS = 2**20  # of a table that are looked up at once
MANY = 1000  # rows that are worth to make sets of leaves for
# How many complete rows are traced at once, and leaves of theirs, or classes: each time the whole
# forest is read, which is more than a core's own cache holds.
MOST_ROWS, MOST_TRACED = 2**16, 2**21
# Rows with gaps reach more than one leaf of a tree, which is kept.
MOST_WITH_GAPS = 2**13


class Trace(NamedTuple):
    """Where complete rows end.

    Attributes
    ----------
    leaves : ndarray of shape (trees, rows)
    mass, scale : ndarray of shape (trees, rows)
        Π p(f_i) at the leaf divided by the base, as mantissa and scale.
    joint : ndarray of shape (rows, classes)
        log p(c, f)
    """

    leaves: Codes
    mass: Floats
    scale: Codes
    joint: Floats


@dataclass(frozen=True, eq=False)
class Dense:
    """A forest whose features are all narrow, laid out for rows side by side.

    Attributes
    ----------
    walk : ndarray of shape (nodes, 4)
        The nodes, but leaves split some feature such that all values go to themselves.
    factors : ndarray of shape (leaves, values + 1), optional
        The probability of each value of each feature, divided by its base, and then 1; None if
        there would be too many, or products of them could overflow.
    places : ndarray of shape (features,)
        Where the values of each feature begin.
    base_logs : ndarray of shape (values,)
    """

    walk: Codes
    factors: Floats | None
    places: Indices
    base_logs: Floats

    @classmethod
    def of(cls, forest: Forest) -> Dense:
        """Lay out a forest."""
        values = sum(forest.sizes)
        fits = forest.is_plain and forest.leaves * values <= MOST_FACTORS
        return cls(
            _let_leaves_stay(forest),
            _unfold(forest) if fits else None,
            forest.base_starts[:-1],
            np.log(forest.base) if len(forest.base) else np.zeros(values),
        )


def _let_leaves_stay(forest: Forest) -> Codes:
    walk, leaves = forest.nodes.copy(), forest.leaf_nodes
    walk[leaves, FEATURE], walk[leaves, CHILD] = 0, leaves
    walk.view(np.uint64)[leaves, 1] = ~np.uint64(0)
    walk.setflags(write=False)
    return walk


def _unfold(forest: Forest) -> Floats:
    """Return the entry of each value at each leaf."""
    shape = forest.leaves, len(forest.sizes)
    seen, starts = forest.seen.reshape(shape), forest.starts[:-1].reshape(shape)
    # Values one after the other: numpy is slow along rows as short as theirs.
    at = np.empty((sum(forest.sizes), forest.leaves), dtype=np.int32)
    for feature, (size, place) in enumerate(zip(forest.sizes, forest.base_starts, strict=False)):
        bits, first = seen[:, feature].copy(), starts[:, feature].copy()
        before = np.zeros(forest.leaves, dtype=np.int32)
        for value in range(size):
            own = ((bits >> np.uint64(value)) & np.uint64(1)).astype(np.int32)
            before += own
            at[place + value] = first + before * own
    factors = np.ones((forest.leaves, len(at) + 1))
    factors[:, :-1] = forest.entry_probs[at].T
    factors.setflags(write=False)
    return factors


def fit_memory(trees: int, classes: int, rows: Rows) -> int:
    """Return how many of some rows to look at at once, few enough for what is kept of them."""
    gaps = int(np.count_nonzero(rows.codes.min(axis=1, initial=0) < 0))
    most = max(MOST_WITH_GAPS, min(MOST_ROWS, MOST_TRACED // trees))
    if gaps:
        most = min(most, MOST_WITH_GAPS * len(rows) // gaps)
    return max(1, min(most, MOST_TRACED // classes))


def follow(forest: Forest, rows: Rows) -> Trace:
    """Return where complete rows end, and how likely they are there."""
    shape = forest.trees, len(rows)
    found = Trace(
        np.empty(shape, dtype=np.int32),
        np.empty(shape),
        np.zeros(shape, dtype=np.int32),
        np.zeros((len(rows), forest.class_probs.shape[1])),
    )
    if forest.is_narrow:
        codes = _route_narrow(forest, rows, found.leaves)
        if forest.dense.factors is not None:
            tiny = _mix_dense(forest, codes, found)
            if tiny.any():
                _mix_some(forest, rows, np.flatnonzero(tiny), found)
            return found
    else:
        _route(forest, rows, found.leaves)
    _mix(forest, rows, found)
    return found


def _route_narrow(forest: Forest, rows: Rows, leaves: Codes) -> NDArray[np.uint8]:
    """Write where rows end; return their codes, a byte each."""
    from . import _narrow_kernels as kernels  # noqa: PLC0415 (numba, when it is needed)

    codes = np.zeros((len(rows) + kernels.LANES, rows.codes.shape[1]), dtype=np.uint8)
    codes[: len(rows)] = rows.codes
    if len(rows) >= MANY and forest.leaf_sets is not None:
        forest.leaf_sets.route(codes, leaves)
        return codes
    walk, lanes = forest.dense.walk, np.empty(kernels.LANES, dtype=np.int64)
    kernels.route_narrow(
        walk, walk.view(np.uint64), forest.nodes, forest.roots, codes, lanes, leaves
    )
    return codes


def _mix_dense(forest: Forest, codes: NDArray[np.uint8], found: Trace) -> Bools:
    """Write masses and log p(c, f); return for which rows products may have underflowed."""
    from . import _narrow_kernels as kernels  # noqa: PLC0415 (numba, when it is needed)

    dense, a = forest.dense, forest.arrays
    tiny = np.zeros(len(found.joint), dtype=bool)
    kernels.mix_dense(
        *(dense.factors, dense.places, dense.base_logs, a.reach, a.reach_scale),
        *(forest.class_probs, codes, found.leaves, found.mass, tiny, found.joint),
    )
    return tiny


def _route(forest: Forest, rows: Rows, leaves: Codes) -> None:
    from . import _route_kernels as kernels  # noqa: PLC0415 (numba, when it is needed)

    codes, numbers = np.ascontiguousarray(rows.codes), np.ascontiguousarray(rows.numbers)
    kernels.route(*forest.arrays.routes, codes, numbers, leaves)


def _mix(forest: Forest, rows: Rows, found: Trace) -> None:
    """Write masses and log p(c, f), whatever the features are; log p is 0 before."""
    from . import _mass_kernels as kernels  # noqa: PLC0415 (numba, when it is needed)

    codes, numbers = np.ascontiguousarray(rows.codes), np.ascontiguousarray(rows.numbers)
    a, joint = forest.arrays, found.joint
    kernels.weigh(
        *(forest.is_plain, np.arange(codes.shape[1], dtype=np.int32)),
        *(a.kinds, a.slots, *a.contents, codes, numbers, *found[:3]),
    )
    kernels.mix(a.reach, a.reach_scale, forest.class_probs, *found[:3], joint)
    add_base(forest, rows, joint)


def _mix_some(forest: Forest, rows: Rows, some: Indices, found: Trace) -> None:
    """Write masses and log p(c, f) of some rows anew."""
    part = Trace(
        np.ascontiguousarray(found.leaves[:, some]),
        np.empty((forest.trees, len(some))),
        np.empty((forest.trees, len(some)), dtype=np.int32),
        np.zeros((len(some), found.joint.shape[1])),
    )
    _mix(forest, rows[some], part)
    found.mass[:, some], found.scale[:, some], found.joint[some] = part[1:]


def add_base(forest: Forest, rows: Rows, joint: Floats) -> None:
    """Add the logarithm of the base of the values of rows; of what is missing it is 0."""
    if not len(forest.base):
        return
    logs, codes = np.append(np.log(forest.base), 0.0), rows.codes[:, forest.categorical]
    step = max(1, MOST_CELLS // codes.shape[1])
    for start in range(0, len(codes), step):
        some = codes[start : start + step]
        places = np.where(some < 0, len(logs) - 1, forest.base_starts[:-1] + some)
        # One after the other: the same digits for a row among any others.
        joint[start : start + step] += np.cumsum(logs[places], axis=1)[:, -1:]
