"""Mixtures of trees of which rows reach several leaves, for balls with straight bounds.

Where a split's value is missing a row goes both ways, and the split is a sum of two:

    leaf     V = (p(ĉ) − p(c)) Π p(f_i)
    edge     V times max(0, w − x l) if V > 0, or else min(1, w + x u)
    join     the higher child times its lower bound, and the lower one times its upper bound

and R_c(x) = Σ V(tree) = P(x) − N(x), trees of one sign on either side. The root of log P − log N is
kept between two of several x that are looked at together (`_lane_kernels`, `_bracket_kernels`).
Many rows go on together, through one tree after the other: its edges are then at hand.
"""

import math

import numpy as np
from numba import types

from robustq.kernels import (
    bool_vector,
    code_vector,
    float_matrix,
    float_matrix_out,
    float_vector,
    float_vector_out,
    inner,
    int_matrix_out,
    int_vector,
    int_vector_out,
    kernel,
)

from ._bracket_kernels import FACTS, FARTHEST, KNOTS, TINY, UNDECIDED, advance, look_first
from ._lane_kernels import FALL, LANES, SIZE, SUMS, N, P, W, add_up, climb, join, start

__all__ = ["ABOUT", "FACTS", "FIRST", "KNOTS", "LANES", "SUMS", "TOGETHER", "WORK", "search"]

# What is known of leaves: the product of the weights on the path, and how fast its bounds change,
# relative to it.
ABOUT = REACH, FALLS_BY, RISES_BY = (0, 1, 2)
# As if each leaf were a tree: P and N at x = 0, what they lose and gain there, and more than 0 if
# leaves are positive, and negative.
FIRST = POSITIVE, FALLS, NEGATIVE, RISES, FOR, AGAINST = (0, 1, 2, 3, 4, 5)
# Of rows that go together: their rivals, who is still searching, and room for a path.
WORK = RIVAL, ACTIVE, WAITING = (0, 1, 2)
MAX_STEPS = 60
TOGETHER = 256  # rows

cube_out = types.Array(types.float64, 3, "C")


@inner
def _survey(forest, reached, begin, rows, best, work, count, first):
    """Write for active rows what all leaves together are at x = 0; see `FIRST`."""
    class_probs, about = forest[0], forest[1]
    starts, leaves, mass = reached[0], reached[1], reached[3]
    for k in range(count):
        for column in range(len(FIRST)):
            first[work[ACTIVE, k], column] = 0.0
    for tree in range(begin, len(starts) - 1, rows):
        for k in range(count):
            slot = work[ACTIVE, k]
            ahead, behind = np.uint64(best[begin + slot]), np.uint64(work[RIVAL, slot])
            positive, fall, negative, rise = 0.0, 0.0, 0.0, 0.0
            above, below = 0.0, 0.0
            for entry in range(starts[tree + slot], starts[tree + slot + 1]):
                leaf = np.uint64(leaves[entry])
                term = (class_probs[leaf, ahead] - class_probs[leaf, behind]) * mass[entry]
                above, below = max(above, term), min(below, term)
                share = term * about[leaf, REACH]
                gain, loss = max(share, 0.0), min(share, 0.0)
                positive += gain
                fall += gain * about[leaf, FALLS_BY]
                negative -= loss
                rise -= loss * about[leaf, RISES_BY]
            first[slot, POSITIVE] += positive
            first[slot, FALLS] += fall
            first[slot, NEGATIVE] += negative
            first[slot, RISES] += rise
            first[slot, FOR] += above
            first[slot, AGAINST] -= below


@inner
def _put_apart(class_probs, leaf, mass, best, rivals, stack, height):
    """Put the values of a leaf onto the stack that it has for the rival of each lane."""
    for lane in range(LANES):
        value = (class_probs[leaf, best] - class_probs[leaf, rivals[lane]]) * mass
        stack[2 * height, lane], stack[2 * height + 1, lane] = value, abs(value)


@inner
def _evaluate_tree(forest, reached, tree, begin, best, work, count, rivals, xs, stack, sums):
    """Add the value of a tree for each x to the sums of active rows.

    Without a rival a row has one for each lane.
    """
    class_probs, _, edges, path_starts, paths = forest
    starts, leaves, meets, mass = reached
    waiting = work[WAITING]
    for k in range(count):
        slot = work[ACTIVE, k]
        ahead, rival = np.uint64(best[begin + slot]), work[RIVAL, slot]
        # Who waits for a sibling: at which depth they meet.
        height = np.int64(0)
        waiting[0] = -1
        for entry in range(starts[tree + slot], starts[tree + slot + 1]):
            leaf, after, before = np.uint64(leaves[entry]), np.int64(meets[entry]), waiting[height]
            at, end = path_starts[leaf], path_starts[leaf + np.uint64(1)]
            up = end - max(before, after) - 1
            if rival >= 0:
                gap = class_probs[leaf, ahead] - class_probs[leaf, np.uint64(rival)]
                start(stack, height, gap * mass[entry], xs, slot, edges, paths, at, up)
            else:
                _put_apart(class_probs, leaf, mass[entry], ahead, rivals[slot], stack, height)
                climb(stack, height, xs, slot, edges, paths, at, up)
            while before > after:
                # The right one of two has come: they go on together.
                height -= 1
                at, end, before = up + 1, up + 1 + before, waiting[height]
                up = end - max(before, after) - 1
                join(stack, height, xs, slot, edges, paths, at, up)
            if after >= 0:
                height += 1
                waiting[height] = after
        add_up(stack, sums, slot)


@inner
def _evaluate(forest, reached, begin, rows, best, work, count, room):
    """Write P, N, and what all leaves have, whatever their sign, for each x of active rows.

    Rounding is of the size of the last.
    """
    xs, sums, stack, rivals = room[0], room[1], room[5], room[7]
    for k in range(count):
        for row in range(len(SUMS)):
            for lane in range(LANES):
                sums[work[ACTIVE, k], row, lane] = 0.0
    for tree in range(begin, len(reached[0]) - 1, rows):
        _evaluate_tree(forest, reached, tree, begin, best, work, count, rivals, xs, stack, sums)


@inner
def _vanishing(edges, node):
    """Return where the lower bound of an edge's weight becomes 0."""
    if edges[node, W] == 0.0:
        return 0.0
    return edges[node, W] / -edges[node, FALL] if edges[node, FALL] < 0.0 else math.inf


@inner
def _find_end(forest, reached, first, last, best, rival, stack, waiting):
    """Return where the value of a tree vanishes, no leaf being negative.

    Of a join whose children vanish at a ≤ b there is something left up to a, and beyond, as long as
    the other child has something and a weight.
    """
    class_probs, _, edges, path_starts, paths = forest
    leaves, meets, mass = reached[1], reached[2], reached[3]
    height = np.int64(0)
    waiting[0] = -1
    for entry in range(first, last):
        leaf, after = np.int64(leaves[entry]), np.int64(meets[entry])
        at, depth = path_starts[leaf], path_starts[leaf + 1] - path_starts[leaf]
        value = (class_probs[leaf, best] - class_probs[leaf, rival]) * mass[entry]
        vanishes = math.inf if value > 0.0 else 0.0
        while True:
            before = waiting[height]
            length = depth - max(before, after) - 1
            for step in range(at, at + length):
                vanishes = min(vanishes, _vanishing(edges, np.int64(paths[step])))
            at += length
            if before <= after:
                break
            height -= 1
            node, one = np.int64(paths[at]), stack[height, 0]
            if one <= vanishes:
                vanishes = max(one, min(vanishes, _vanishing(edges, node)))
            else:
                vanishes = max(vanishes, min(one, _vanishing(edges, node - 1)))
            at, depth = at + 1, before
        stack[height, 0] = vanishes
        if after >= 0:
            height += 1
            waiting[height] = after
    return stack[0, 0]


@inner
def _settle(x, row, rival, found, tipping):
    """Keep what was found for a rival; NaN is for all of them."""
    if math.isnan(x) or x < found[row]:
        found[row], tipping[row] = x, rival


@inner
def _take_up(forest, reached, begin, rows, best, limit, near, work, count, room, found, tipping):
    """Begin the search for active rows, or end it where leaves agree; return how many are left."""
    xs, first, knots, facts, stack = room[0], room[2], room[3], room[4], room[5]
    left = 0
    for k in range(count):
        slot = work[ACTIVE, k]
        row, rival = begin + slot, work[RIVAL, slot]
        positive, negative = first[slot, POSITIVE], first[slot, NEGATIVE]
        x = math.nan
        if first[slot, AGAINST] > 0.0:
            if positive - negative > near * (positive + negative) and negative > TINY:
                x = UNDECIDED
                below = min(limit, found[row])
                look_first(below, first[slot], slot, xs, knots, facts)
                work[ACTIVE, left] = slot
                left += 1
        elif first[slot, FOR] > 0.0:
            x = 0.0
            for tree in range(row, len(reached[0]) - 1, rows):
                ends = reached[0][tree], reached[0][tree + 1]
                end = _find_end(
                    *(forest, reached, ends[0], ends[1], best[row], rival, stack, work[WAITING])
                )
                x = max(x, end)
            x = x if x <= limit else math.inf
        if x != UNDECIDED:
            _settle(x, row, rival, found, tipping)
    return left


@inner
def _search_together(forest, reached, begin, rows, best, limit, near, work, count, room, out):
    """Find where active rows flip to their rivals."""
    xs, sums, first, knots, facts, scratch = room[0], room[1], room[2], room[3], room[4], room[6]
    found, tipping = out
    _survey(forest, reached, begin, rows, best, work, count, first)
    count = _take_up(
        *(forest, reached, begin, rows, best, limit, near, work, count, room, found, tipping)
    )
    for _ in range(MAX_STEPS):
        if count == 0:
            return
        _evaluate(forest, reached, begin, rows, best, work, count, room)
        left = 0
        for k in range(count):
            slot = work[ACTIVE, k]
            row = begin + slot
            beyond = min(limit, found[row]) >= FARTHEST
            x = advance(near, beyond, facts[slot], xs[slot], sums[slot], knots[slot], scratch)
            if x == UNDECIDED:
                work[ACTIVE, left] = slot
                left += 1
            else:
                _settle(x, row, work[RIVAL, slot], found, tipping)
        count = left
    for k in range(count):
        slot = work[ACTIVE, k]
        _settle(math.nan, begin + slot, work[RIVAL, slot], found, tipping)


@inner
def _clear_rivals(forest, reached, begin, rows, best, limit, near, work, count, room, found):
    """Find out which classes rows still beat at the flip that was found: theirs comes later.

    Each lane has a class of its own.
    """
    xs, sums, rivals, cleared = room[0], room[1], room[7], room[8]
    active, classes = 0, cleared.shape[1]
    for slot in range(count):
        top = min(limit, found[begin + slot])
        for c in range(classes):
            cleared[slot, c] = 0
        if top < FARTHEST:
            work[RIVAL, slot], work[ACTIVE, active] = -1, slot
            active += 1
            for lane in range(LANES):
                xs[slot, lane] = top
    for group in range(0, classes, LANES):
        some = min(LANES, classes - group)
        for k in range(active):
            slot = work[ACTIVE, k]
            for lane in range(LANES):
                rivals[slot, lane] = group + lane if lane < some else best[begin + slot]
        _evaluate(forest, reached, begin, rows, best, work, active, room)
        for k in range(active):
            slot = work[ACTIVE, k]
            for lane in range(some):
                positive, negative = sums[slot, P, lane], sums[slot, N, lane]
                if positive - negative > max(near * sums[slot, SIZE, lane], TINY):
                    cleared[slot, group + lane] = 1


@inner
def _choose(turn, begin, count, best, runner_up, found, cleared, work):
    """Let those rows be active that have a rival in some turn; return how many they are."""
    active = 0
    for slot in range(count):
        row = begin + slot
        # The runner-up is the first: who comes after is mostly cleared.
        rival = runner_up[row] if turn == 0 else np.int64(turn - 1)
        if rival == best[row] or rival < 0:
            continue
        if turn > 0 and (rival == runner_up[row] or cleared[slot, rival]):
            continue
        if not math.isnan(found[row]):
            work[RIVAL, slot], work[ACTIVE, active] = rival, slot
            active += 1
    return active


@kernel(
    types.void(
        *(float_matrix, float_matrix, float_matrix, int_vector, code_vector),
        *(int_vector, code_vector, code_vector, float_vector, bool_vector),
        *(int_vector, int_vector, types.float64, types.float64, int_matrix_out),
        types.Tuple(
            (
                *(float_matrix_out, cube_out, float_matrix_out, cube_out),
                *(float_matrix_out, float_matrix_out, float_matrix_out, int_matrix_out),
                int_matrix_out,
            )
        ),
        *(float_vector_out, int_vector_out),
    )
)
def search(
    class_probs,
    about,
    edges,
    path_starts,
    paths,
    starts,
    leaves,
    meets,
    mass,
    uneven,
    prediction,
    runner_up,
    limit,
    near,
    work,
    room,
    found,
    tipping,
):
    """Write the x where each prediction flips, infinity where none does, and the tipping class.

    NaN where rounding would show.

    Parameters
    ----------
    class_probs, path_starts, paths : of the leaves
    about : (leaves, 3), where paths begin, and how fast they change
    edges : (nodes, 4), the weight of the edge to each node, and its slopes
    starts … uneven : what rows reach, see `gaps.Reached`
    prediction, runner_up : (rows,)
    limit : where x ends
    near : how near, relative, is too near
    work, room : to work in, see `gaps`
    found, tipping : (rows,), written
    """
    forest = class_probs, about, edges, path_starts, paths
    reached, rows = (starts, leaves, meets, mass), len(found)
    classes = class_probs.shape[1]
    for row in range(rows):
        found[row], tipping[row] = math.nan if uneven[row] else math.inf, -1
    for begin in range(0, rows, TOGETHER):
        count = min(TOGETHER, rows - begin)
        for turn in range(classes + 1):
            if turn == 1 and classes > 2:
                _clear_rivals(
                    *(forest, reached, begin, rows, prediction, limit, near, work, count),
                    *(room, found),
                )
            active = _choose(turn, begin, count, prediction, runner_up, found, room[8], work)
            if active > 0:
                _search_together(
                    *(forest, reached, begin, rows, prediction, limit, near, work, active),
                    *(room, (found, tipping)),
                )
