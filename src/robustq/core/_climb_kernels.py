"""What trees are worth to rows that reach several of their leaves, each row at an x of its own.

The entries of a tree, one for each row and leaf that it reaches, stand in the order of the leaves:
those below a node stand side by side, whosever they are. An entry begins as what the leaf is worth.
On the way up, all entries below an edge are multiplied by its bound: by the lower one, max(0, w −
x l), if they are positive, or else by the upper one, min(1, w + x u). Where a row goes both ways
its two values become one, of which the higher child has its lower bound, and the lower child its
upper one; it stands where the left one stood, and nobody looks any more at the right one.
"""

import math

import numpy as np

from robustq.kernels import code_matrix, code_vector, float_vector, inner, joined
from robustq.vectors import LANES, choose, fill, first_lanes, load, pick, store

from ._bracket_kernels import TINY
from ._scale_kernels import shrink, times
from .gaps import (
    END,
    ENTRIES_FROM,
    FALL,
    FIRST,
    FIRST_EDGE,
    JOINS_FROM,
    JOINS_TO,
    MIDDLE,
    RISE,
    SECOND_EDGE,
    SPLITS_FROM,
    W,
)

__all__ = [
    "LEAVES",
    "MASS",
    "MEMBERS",
    "TREES",
    "climb",
    "find_ends",
    "find_rest",
    "reaches",
]

# See `gaps.Reached`.
reaches = (
    *(code_matrix, code_vector, code_vector, code_matrix, code_vector, float_vector),
    *(code_matrix, code_matrix),
)
SPLITS, ONES, OTHERS, LEAVES, MEMBERS, MASS, TOPS, TREES = range(8)
# What is worked in, for one tree after the other: the values of its entries, what else is known of
# them, and their x; and the same of those that are joined.
VALUES, MORE, XS, JOINED, MORE_JOINED = range(5)


# What is where


@inner
def _entries_of(reached, tree):
    trees = reached[TREES]
    return np.int64(trees[tree, ENTRIES_FROM]), np.int64(trees[tree + 1, ENTRIES_FROM])


@inner
def _splits_of(reached, tree):
    trees = reached[TREES]
    return np.int64(trees[tree, SPLITS_FROM]), np.int64(trees[tree + 1, SPLITS_FROM])


@joined
def _region(splits, i, side):
    """Return where the entries below an edge of a split begin and end."""
    if side:
        return np.int64(splits[i, MIDDLE]), np.int64(splits[i, END])
    return np.int64(splits[i, FIRST]), np.int64(splits[i, MIDDLE])


@joined
def _edge(edges, i, side):
    """Return the weight of an edge of a split, minus what it falls by, and what it rises by."""
    at = SECOND_EDGE if side else FIRST_EDGE
    return edges[i, at + W], edges[i, at + FALL], edges[i, at + RISE]


@joined
def _joins_of(splits, i):
    return np.int64(splits[i, JOINS_FROM]), np.int64(splits[i, JOINS_TO])


@joined
def _put(array, at, stop, new, old):
    """Write some entries; those after the last one stay as they were."""
    # However many they are, they are computed in one way: no digit must depend on that.
    if stop - at < LANES:
        new = choose(first_lanes(stop - at), new, old)
    store(array, at, new)


@inner
def _lay_out(reached, terms, tree, xs, room):
    """Write what the entries of a tree begin with, and their x."""
    first, last = _entries_of(reached, tree)
    for at in range(0, last - first, LANES):
        store(room[VALUES], at, load(terms, first + at))
        store(room[XS], at, pick(xs, reached[MEMBERS], first + at))


@inner
def _put_joined(reached, start, stop, values, joined_values):
    """Write what became of those that were joined; nobody looks at the others any more."""
    for k in range(start, stop):
        at = np.uint64(reached[ONES][np.uint64(k)])
        values[at] = joined_values[np.uint64(k - start)]


@inner
def _add_up(reached, tree, rows, values, sums):
    """Add what a tree is worth to each row."""
    tops = reached[TOPS]
    for row in range(rows):
        sums[row] += values[np.uint64(tops[tree, row])]


# What splits are worth


@joined
def _cut(x, falls, edge):
    """Return w + x s, cut to [0, 1], of an edge that falls in some lanes, and rises in others."""
    return min(max(x * choose(falls, edge[1], edge[2]) + edge[0], 0.0), 1.0)


@inner
def _multiply(values, xs, start, stop, edge):
    """Multiply the entries below an edge by its bounds."""
    for at in range(start, stop, LANES):
        value = load(values, at)
        _put(values, at, stop, value * _cut(load(xs, at), value > 0.0, edge), value)


@inner
def _join(reached, i, left, right, room):
    """Write what becomes of the two values of rows that go both ways."""
    values, joined_values = room[VALUES], room[JOINED]
    start, stop = _joins_of(reached[SPLITS], i)
    for k in range(start, stop, LANES):
        x = pick(room[XS], reached[ONES], k)
        a, b = pick(values, reached[ONES], k), pick(values, reached[OTHERS], k)
        higher = a > b
        value = a * _cut(x, higher, left) + b * _cut(x, ~higher, right)
        store(joined_values, k - start, value)


@inner
def climb(reached, edges, terms, xs, room, sums):
    """Write R of all rows."""
    splits, values, rows = reached[SPLITS], room[VALUES], len(sums) - LANES
    for row in range(rows):
        sums[row] = 0.0
    for tree in range(len(reached[TREES]) - 1):
        _lay_out(reached, terms, tree, xs, room)
        begin, end = _splits_of(reached, tree)
        for i in range(begin, end):
            left, right = _edge(edges, i, False), _edge(edges, i, True)
            _join(reached, i, left, right, room)
            _multiply(values, room[XS], *_region(splits, i, False), left)
            _multiply(values, room[XS], *_region(splits, i, True), right)
            _put_joined(reached, *_joins_of(splits, i), values, room[JOINED])
        _add_up(reached, tree, rows, values, sums)


# Where they vanish


@inner
def _vanishing(edge):
    """Return where the lower bound of an edge's weight becomes 0."""
    if edge[0] == 0.0:
        return 0.0
    return edge[0] / -edge[1] if edge[1] < 0.0 else math.inf


@inner
def _lower_ends(values, start, stop, end):
    """Let nothing below an edge last longer than the edge."""
    for at in range(start, stop, LANES):
        value = load(values, at)
        _put(values, at, stop, min(value, end), value)


@inner
def _join_ends(reached, i, left, right, room):
    """Write where rows that go both ways have nothing left."""
    values, joined_values = room[VALUES], room[JOINED]
    start, stop = _joins_of(reached[SPLITS], i)
    for k in range(start, stop, LANES):
        a, b = pick(values, reached[ONES], k), pick(values, reached[OTHERS], k)
        end = choose(a > b, max(b, min(a, left)), max(a, min(b, right)))
        store(joined_values, k - start, end)


@inner
def find_ends(reached, edges, terms, room, ends):
    """Write where the values of all trees have vanished, of rows that have no negative leaf.

    Of a split whose children vanish at a ≤ b there is something left up to a, and beyond, as long
    as the other child has something and a weight. Leaves never vanish, if they are worth something.
    """
    splits, values, rows = reached[SPLITS], room[VALUES], len(ends) - LANES
    for row in range(rows):
        ends[row] = 0.0
    for tree in range(len(reached[TREES]) - 1):
        first, last = _entries_of(reached, tree)
        for at in range(0, last - first, LANES):
            store(values, at, choose(load(terms, first + at) > 0.0, math.inf, 0.0))
        begin, end = _splits_of(reached, tree)
        for i in range(begin, end):
            left = fill(_vanishing(_edge(edges, i, False)))
            right = fill(_vanishing(_edge(edges, i, True)))
            _join_ends(reached, i, left, right, room)
            _lower_ends(values, *_region(splits, i, False), left)
            _lower_ends(values, *_region(splits, i, True), right)
            _put_joined(reached, *_joins_of(splits, i), values, room[JOINED])
        for row in range(rows):
            ends[row] = max(ends[row], values[reached[TOPS][tree, row]])


# What is left where floats end


@inner
def _times(value, scale, x, edge, falls):
    """Multiply a number that has a sign and a scale by a bound."""
    factor = min(max(edge[0] + x * (edge[1] if falls else edge[2]), 0.0), 1.0)
    part, scale = times(abs(value), np.int64(scale), factor)
    return part if value > 0.0 else -part, scale


@inner
def _sum_children(x, left, right, a, scale, b, other):
    """Return the value of a split that a row leaves both ways, with a sign and a scale."""
    # Of two with one sign something is left, whichever is said to be higher.
    higher = a > b
    a, scale = _times(a, scale, x, left, higher)
    b, other = _times(b, other, x, right, not higher)
    if a == 0.0 or (b != 0.0 and other > scale):
        a, scale, b, other = b, other, a, scale
    return a + b * shrink(scale - other), scale


@inner
def _multiply_scaled(room, start, stop, edge):
    values, scales, xs = room[VALUES], room[MORE], room[XS]
    for k in range(start, stop):
        value = values[k]
        values[k], scales[k] = _times(value, scales[k], xs[k], edge, value > 0.0)


@inner
def _climb_scaled(reached, edges, i, room):
    """Write the values of the entries below a split, and their scales."""
    splits, ones, others = reached[SPLITS], reached[ONES], reached[OTHERS]
    values, scales = room[VALUES], room[MORE]
    left, right = _edge(edges, i, False), _edge(edges, i, True)
    start, stop = _joins_of(splits, i)
    for k in range(start, stop):
        a, b = ones[k], others[k]
        room[JOINED][k - start], room[MORE_JOINED][k - start] = _sum_children(
            room[XS][a], left, right, values[a], scales[a], values[b], scales[b]
        )
    _multiply_scaled(room, *_region(splits, i, False), left)
    _multiply_scaled(room, *_region(splits, i, True), right)
    _put_joined(reached, start, stop, values, room[JOINED])
    _put_joined(reached, start, stop, scales, room[MORE_JOINED])


@inner
def find_rest(reached, edges, terms, xs, room, largest):
    """Write how much is left of the largest tree of rows; less than 0 if no float could tell."""
    rows = len(largest)
    for row in range(rows):
        largest[row] = 0.0
    for tree in range(len(reached[TREES]) - 1):
        _lay_out(reached, terms, tree, xs, room)
        first, last = _entries_of(reached, tree)
        for k in range(last - first):
            room[MORE][k] = 0.0
        begin, end = _splits_of(reached, tree)
        for i in range(begin, end):
            _climb_scaled(reached, edges, i, room)
        for row in range(rows):
            top = reached[TOPS][tree, row]
            value = abs(room[VALUES][top]) * shrink(-np.int64(room[MORE][top]))
            if value >= TINY:
                largest[row] = max(largest[row], value)
            elif largest[row] == 0.0 and room[VALUES][top] != 0.0:
                largest[row] = -1.0
