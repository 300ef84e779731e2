"""Mixtures of trees of which rows reach several leaves, for balls with straight bounds.

Where a split's value is missing a row goes both ways, and the split is a sum of two:

    leaf     V = (p(ĉ) − p(c)) Π p(f_i)
    split    the higher child times its lower bound, max(0, w − x l), and the lower one times its
             upper bound, min(1, w + x u); a child that is not reached is 0

and R_c(x) = Σ V(tree) = P(x) − N(x), trees of one sign on either side. The root of log P − log N is
kept between two of several x that are looked at together, a lane for each (`_bracket_kernels`). No
step asks which way it goes: all lanes go together, and nobody must foresee what a row reaches.

Beside each value stands its size: the same without signs. Values stand in one array: leaves before
the middle, the first one next to it, and splits after it; the middle is 0.
"""

import math

import numpy as np
from numba import types

from robustq.kernels import (
    bool_vector,
    code_matrix,
    code_vector,
    float_matrix,
    float_matrix_out,
    float_vector,
    float_vector_out,
    inner,
    int_vector,
    int_vector_out,
    joined,
    kernel,
)
from robustq.vectors import LANES, choose, fill, load, store

from ._bracket_kernels import (
    FACTS,
    FARTHEST,
    KNOTS,
    SIZE,
    SUMS,
    TINY,
    UNDECIDED,
    N,
    P,
    advance,
    has_vanished,
    look_first,
)
from ._scale_kernels import shrink, times

__all__ = [
    "ABOUT",
    "EDGES",
    "FACTS",
    "FIRST",
    "KNOTS",
    "LANES",
    "LEFT",
    "RIGHT",
    "SPLITS",
    "SUMS",
    "WIDTH",
    "search",
]

# What is known of splits: the node, and where the values of its children stand, from the middle on.
SPLITS = NODE, ONE, TWO = range(3)
# Of the two edges of a split: the weight, minus what it falls by, and what it rises by.
EDGES = W, FALL, RISE = range(3)
LEFT, RIGHT, WIDTH = 0, 4, 8  # where they stand in a line of the cache

# What is known of leaves: the product of the weights on the path, and how fast its bounds change,
# relative to it.
ABOUT = REACH, FALLS_BY, RISES_BY = (0, 1, 2)
# As if each leaf were a tree: P and N at x = 0, what they lose and gain there, and more than 0 if
# leaves are positive, and negative.
FIRST = POSITIVE, FALLS, NEGATIVE, RISES, FOR, AGAINST = (0, 1, 2, 3, 4, 5)
MAX_STEPS = 60
PLACE = 2 * LANES  # of a value and its size


@inner
def _put_leaves(forest, reached, row, best, rival, values, first):
    """Write what the leaves of a row are worth, and what all of them are at x = 0; see `FIRST`."""
    class_probs, about, middle = forest[0], forest[1], forest[3]
    starts, leaves, mass = reached[0], reached[1], reached[2]
    positive, fall, negative, rise = 0.0, 0.0, 0.0, 0.0
    above, below = 0.0, 0.0
    at = (middle - 1) * PLACE
    for entry in range(starts[row], starts[row + 1]):
        leaf = np.uint64(leaves[entry])
        term = (class_probs[leaf, best] - class_probs[leaf, rival]) * mass[entry]
        store(values, at, fill(term))
        store(values, at + LANES, fill(abs(term)))
        at -= PLACE
        above, below = max(above, term), min(below, term)
        share = term * about[leaf, REACH]
        gain, loss = max(share, 0.0), min(share, 0.0)
        positive += gain
        fall += gain * about[leaf, FALLS_BY]
        negative -= loss
        rise -= loss * about[leaf, RISES_BY]
    first[POSITIVE], first[FALLS], first[NEGATIVE], first[RISES] = positive, fall, negative, rise
    first[FOR], first[AGAINST] = above, -below


@inner
def _put_apart(forest, reached, row, best, rivals, values):
    """Write what the leaves of a row are worth, for a rival in each lane."""
    class_probs, middle = forest[0], forest[3]
    starts, leaves, mass = reached[0], reached[1], reached[2]
    at = (middle - 1) * PLACE
    for entry in range(starts[row], starts[row + 1]):
        leaf = leaves[entry]
        for lane in range(LANES):
            gap = class_probs[leaf, best] - class_probs[leaf, rivals[lane]]
            values[at + lane] = gap * mass[entry]
            values[at + LANES + lane] = abs(values[at + lane])
        at -= PLACE


@joined
def _bound(x, edges, node, side, falls):
    """Return w + x s, cut to [0, 1], of an edge that falls in some lanes, and rises in others."""
    slope = choose(falls, edges[node, np.uint64(side + FALL)], edges[node, np.uint64(side + RISE)])
    return min(max(x * slope + edges[node, np.uint64(side + W)], 0.0), 1.0)


@inner
def _join_children(edges, splits, first, last, x, middle, values):
    """Write the values and sizes of splits, children before parents.

    Of two children the higher one loses what the lower one gains; one of them if they tie.
    """
    at = (middle + last - first) * PLACE
    i = np.uint64(last)
    while i > np.uint64(first):
        i -= np.uint64(1)
        node = np.uint64(splits[i, NODE])
        one = (middle + np.int64(splits[i, ONE])) * PLACE
        two = (middle + np.int64(splits[i, TWO])) * PLACE
        left, right = load(values, one), load(values, two)
        higher = left > right
        of_left = _bound(x, edges, node, LEFT, higher)
        of_right = _bound(x, edges, node, RIGHT, ~higher)
        store(values, at, left * of_left + right * of_right)
        sizes = load(values, one + LANES) * of_left + load(values, two + LANES) * of_right
        store(values, at + LANES, sizes)
        at -= PLACE


@inner
def _add_up(values, first, last, sums):
    """Add values, and their sizes, to what is summed over trees."""
    positive, negative, size = (
        load(sums, P * LANES),
        load(sums, N * LANES),
        load(sums, SIZE * LANES),
    )
    for at in range(first * PLACE, last * PLACE, PLACE):
        value = load(values, at)
        positive += max(value, 0.0)
        negative -= min(value, 0.0)
        size += load(values, at + LANES)
    store(sums, P * LANES, positive)
    store(sums, N * LANES, negative)
    store(sums, SIZE * LANES, size)


@inner
def _evaluate(forest, reached, row, xs, values, sums):
    """Write P, N, and what all leaves have, whatever their sign, for each x.

    Rounding is of the size of the last.
    """
    edges, middle, trees = forest[2], forest[3], forest[4]
    split_starts, splits = reached[3], reached[4]
    first, last = split_starts[row], split_starts[row + 1]
    _join_children(edges, splits, first, last, load(xs, 0), middle, values)
    for lane in range(LANES):
        sums[P, lane] = sums[N, lane] = sums[SIZE, lane] = 0.0
    # Those that are not split, and the others.
    _add_up(values, middle - trees[0], middle, sums)
    _add_up(values, middle + 1, middle + 1 + trees[1], sums)


@inner
def _vanishing(edges, node, side):
    """Return where the lower bound of an edge's weight becomes 0."""
    weight, slope = edges[node, side + W], edges[node, side + FALL]
    if weight == 0.0:
        return 0.0
    return weight / -slope if slope < 0.0 else math.inf


@inner
def _find_end(forest, reached, row, values):
    """Return where the values of all trees have vanished, no leaf being negative.

    Of a split whose children vanish at a ≤ b there is something left up to a, and beyond, as long
    as the other child has something and a weight. Where they do is written in place of sizes.
    """
    edges, middle, trees = forest[2], forest[3], forest[4]
    starts, split_starts, splits = reached[0], reached[3], reached[4]
    values = values[LANES:]
    for leaf in range(1, starts[row + 1] - starts[row] + 1):
        at = (middle - leaf) * PLACE
        values[at] = math.inf if values[at] > 0.0 else 0.0
    first, last = split_starts[row], split_starts[row + 1]
    for i in range(last - 1, first - 1, -1):
        node = splits[i, NODE]
        left = values[(middle + splits[i, ONE]) * PLACE]
        right = values[(middle + splits[i, TWO]) * PLACE]
        if left <= right:
            end = max(left, min(right, _vanishing(edges, node, RIGHT)))
        else:
            end = max(right, min(left, _vanishing(edges, node, LEFT)))
        values[(middle + 1 + i - first) * PLACE] = end
    end = 0.0
    for tree in range(-trees[0], trees[1] + 1):
        end = max(end, values[(middle + tree) * PLACE])
    return end


@inner
def _cut(x, edges, node, side, falls):
    """Return w + x s, cut to [0, 1]."""
    slope = edges[node, side + FALL] if falls else edges[node, side + RISE]
    return min(max(edges[node, side + W] + x * slope, 0.0), 1.0)


@inner
def _scaled(value, scale, factor):
    """Multiply a number that has a sign and a scale."""
    part, scale = times(abs(value), scale, factor)
    return part if value > 0.0 else -part, scale


@inner
def _vanish(forest, reached, row, x, values):
    """Tell whether all trees have the value 0, and none of them one too small for a float.

    Values have scales, which are written in place of sizes.
    """
    edges, middle, trees = forest[2], forest[3], forest[4]
    starts, split_starts, splits = reached[0], reached[3], reached[4]
    for leaf in range(1, starts[row + 1] - starts[row] + 1):
        values[(middle - leaf) * PLACE + LANES] = 0.0
    first, last = split_starts[row], split_starts[row + 1]
    for i in range(last - 1, first - 1, -1):
        node, at = splits[i, NODE], (middle + 1 + i - first) * PLACE
        one, two = (middle + splits[i, ONE]) * PLACE, (middle + splits[i, TWO]) * PLACE
        # Of two with one sign something is left, whichever is said to be higher.
        higher = values[one] > values[two]
        left, scale = _scaled(
            values[one], np.int64(values[one + LANES]), _cut(x, edges, node, LEFT, higher)
        )
        right, other = _scaled(
            values[two], np.int64(values[two + LANES]), _cut(x, edges, node, RIGHT, not higher)
        )
        if left == 0.0 or (right != 0.0 and other > scale):
            left, scale, right, other = right, other, left, scale
        values[at] = left + right * shrink(scale - other)
        values[at + LANES] = scale
    most = 0.0
    for tree in range(-trees[0], trees[1] + 1):
        most = max(most, abs(values[(middle + tree) * PLACE]))
    return most == 0.0


@inner
def _find_flip(forest, reached, row, limit, near, room):
    """Return where a row flips to the rival whose leaves are put, below a limit."""
    xs, sums, first, knots, facts, values, scratch = room[:7]
    positive, negative = first[POSITIVE], first[NEGATIVE]
    if first[AGAINST] <= 0.0:
        if first[FOR] <= 0.0:
            return math.nan
        end = _find_end(forest, reached, row, values)
        return end if end <= limit else math.inf
    if not (positive - negative > near * (positive + negative) and negative > TINY):
        return math.nan
    look_first(limit, first, xs, knots, facts)
    for _ in range(MAX_STEPS):
        _evaluate(forest, reached, row, xs, values, sums)
        x = advance(near, limit >= FARTHEST, facts, xs, sums, knots, scratch)
        if x != UNDECIDED:
            end = has_vanished(knots) if x < math.inf else math.inf
            sure = end == math.inf or _vanish(forest, reached, row, end, values)
            return x if sure else math.nan
    return math.nan


@inner
def _clear_rivals(forest, reached, row, best, top, near, room):
    """Find out which classes a row still beats at the flip that was found: theirs comes later.

    Each lane has a class of its own.
    """
    xs, sums, values, rivals, cleared = room[0], room[1], room[5], room[7], room[8]
    classes = len(cleared)
    for c in range(classes):
        cleared[c] = 0
    if not top < FARTHEST:
        return
    for lane in range(LANES):
        xs[lane] = top
    for group in range(0, classes, LANES):
        some = min(LANES, classes - group)
        for lane in range(LANES):
            rivals[lane] = group + lane if lane < some else best
        _put_apart(forest, reached, row, best, rivals, values)
        _evaluate(forest, reached, row, xs, values, sums)
        for lane in range(some):
            positive, negative = sums[P, lane], sums[N, lane]
            if positive - negative > max(near * sums[SIZE, lane], TINY):
                cleared[group + lane] = 1


@kernel(
    types.void(
        *(float_matrix, float_matrix, float_matrix, types.int64, types.UniTuple(types.int64, 2)),
        *(int_vector, code_vector, float_vector, int_vector, code_matrix, bool_vector),
        *(int_vector, int_vector, types.float64, types.float64),
        types.Tuple(
            (
                *(float_vector_out, float_matrix_out, float_vector_out, float_matrix_out),
                *(float_vector_out, float_vector_out, float_matrix_out, int_vector_out),
                int_vector_out,
            )
        ),
        *(float_vector_out, int_vector_out),
    )
)
def search(
    class_probs,
    about,
    edges,
    middle,
    trees,
    starts,
    leaves,
    mass,
    split_starts,
    splits,
    uneven,
    prediction,
    runner_up,
    limit,
    near,
    room,
    found,
    tipping,
):
    """Write the x where each prediction flips, infinity where none does, and the tipping class.

    NaN where rounding would show.

    Parameters
    ----------
    class_probs : of the leaves
    about : (leaves, 3), where paths begin, and how fast they change
    edges : (nodes, 8), the weights of the edges below each node, and their slopes
    middle : of the values of a row
    trees : how many are leaves, and how many are not
    starts … uneven : what rows reach, see `gaps.Reached`
    prediction, runner_up : (rows,)
    limit : where x ends
    near : how near, relative, is too near
    room : to work in, see `gaps`
    found, tipping : (rows,), written
    """
    forest = class_probs, about, edges, middle, trees
    reached, classes = (starts, leaves, mass, split_starts, splits), class_probs.shape[1]
    values, first, cleared = room[5], room[2], room[8]
    for lane in range(PLACE):
        values[middle * PLACE + lane] = 0.0
    for row in range(len(found)):
        best = prediction[row]
        found[row], tipping[row] = math.nan if uneven[row] else math.inf, -1
        for turn in range(classes + 1):
            if turn == 1 and classes > 2:
                top = min(limit, found[row])
                _clear_rivals(forest, reached, row, best, top, near, room)
            # The runner-up is the first: who comes after is mostly cleared.
            rival = runner_up[row] if turn == 0 else np.int64(turn - 1)
            if rival == best or rival < 0 or math.isnan(found[row]):
                continue
            if turn > 0 and (rival == runner_up[row] or cleared[rival]):
                continue
            _put_leaves(forest, reached, row, best, rival, values, first)
            x = _find_flip(forest, reached, row, min(limit, found[row]), near, room)
            # NaN is for all of them.
            if math.isnan(x) or x < found[row]:
                found[row], tipping[row] = x, rival
