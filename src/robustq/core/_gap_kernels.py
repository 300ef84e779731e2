"""Mixtures of trees of which rows reach several leaves, for balls with straight bounds.

Where a split's value is missing a row goes both ways, and the split is a sum of two:

    leaf     V = (p(ĉ) − p(c)) Π p(f_i)
    split    the higher child times its lower bound, max(0, w − x l), and the lower one times its
             upper bound, min(1, w + x u); a child that is not reached is 0

and R_c(x) = Σ V(tree), of which the root is looked for step by step (`_bracket_kernels`).

Rows go through the trees together: a split is looked at once, for all rows that reach it, several
of them side by side. What belongs to them stands in the order of their list (see `gaps.Reached`).
All values are in one array: first those of the splits of one tree, which those of the next tree
take the place of; then what else is known of them, be it their slopes or their values at another
x; then zeros, for the slopes of leaves; and then the values of leaves, which do not depend on x.
"""

import math

import numpy as np
from numba import types

from robustq.kernels import (
    bool_vector,
    code_matrix,
    code_vector,
    count_bits,
    float_matrix,
    float_matrix_out,
    float_vector,
    float_vector_out,
    inner,
    int_vector,
    joined,
    kernel,
)
from robustq.vectors import LANES, choose, expand, fill, gather, load, store, store_some

from ._bracket_kernels import (
    FACTS,
    FARTHEST,
    KNOTS,
    TINY,
    UNDECIDED,
    add_pair,
    add_point,
    advance,
    find_end,
    has_vanished,
    looks_at_two,
    start,
)
from ._scale_kernels import shrink, times
from .gaps import (
    COUNT,
    GROUP,
    LEAF_AT,
    LEAF_START,
    LEAVES_TO,
    LEFT,
    MEMBERS_FROM,
    NODE,
    RIGHT,
    ROOT,
    SPLITS_FROM,
    SPLITS_TO,
    START,
)

__all__ = [
    "ABOUT",
    "EDGES",
    "FACTS",
    "FIRST_EDGE",
    "KNOTS",
    "LANES",
    "SECOND_EDGE",
    "UNDECIDED",
    "WIDTH",
    "clear",
    "look_closer",
    "search",
]

# Of the two edges of a split: the weight, minus what it falls by, and what it rises by.
EDGES = W, FALL, RISE = range(3)
FIRST_EDGE, SECOND_EDGE, WIDTH = 0, 4, 8  # where they stand in a line of the cache
# What a leaf adds to what is known of a row, for each unit of its value: to what is positive at 0,
# as if leaves were trees, and what that loses there; to what is negative, and what that gains; to
# the sizes at two points; and to the values of all that are positive, and negative. It depends on
# the sign; leaves have a line for each.
ABOUT = POSITIVE, FALLS, NEGATIVE, RISES, SIZE, LATER, FOR, AGAINST = range(8)
MAX_STEPS = 120
# After so many steps, when no more than one in some rows is left, others need not be looked at.
FEWEST, HARD = 4, 8
ONE, TWO = np.uint64(1), np.uint64(2)

masks = types.Array(types.uint8, 1, "C", readonly=True)
flags_out = types.Array(types.boolean, 1, "C")
# See `gaps.Reached`.
reaches = (
    *(code_matrix, code_vector, masks, code_matrix, code_vector, float_vector, code_matrix),
    types.int64,
)
SPLITS, MEMBERS, MASKS, LEAVES, LEAF_MEMBERS, MASS, TREES, ROOM = range(8)


# Where values stand


@inner
def _find_zeros(reached):
    return 2 * reached[ROOM]


@inner
def _find_terms(reached, rows):
    return _find_zeros(reached) + rows + LANES


@joined
def _place(terms, position):
    """Return where the values of a child stand; leaves are counted from −1 down."""
    return np.int64(position) if position >= 0 else terms - 1 - np.int64(position)


@joined
def _place_other(room, terms, position):
    """Return where else something is known of a child."""
    return room + np.int64(position) if position >= 0 else terms - 1 - np.int64(position)


@joined
def _place_slope(room, zeros, position):
    """Return where the slopes of a child stand."""
    return room + np.int64(position) if position >= 0 else zeros


@inner
def _unpack(reached, tree):
    """Return where the splits of a tree begin and end, and where their members begin."""
    trees = reached[TREES]
    first, last = np.int64(trees[tree, SPLITS_FROM]), np.int64(trees[tree, SPLITS_TO])
    return first, last, np.int64(trees[tree, MEMBERS_FROM])


@joined
def _open(splits, i, terms):
    """Return the node of a split, where its values begin and end, and those of its children.

    And where masks begin.
    """
    start, one, two = np.int64(splits[i, START]), splits[i, LEFT], splits[i, RIGHT]
    end, group = start + np.int64(splits[i, COUNT]), np.uint64(splits[i, GROUP])
    return np.uint64(splits[i, NODE]), start, end, _place(terms, one), _place(terms, two), group


# What leaves are worth


@inner
def _put_terms(reached, class_probs, about, best, rival, terms, values, known):
    """Write what the leaves of rows are worth, and what is known of rows: see `ABOUT`."""
    leaves, members, mass = reached[LEAVES], reached[LEAF_MEMBERS], reached[MASS]
    for row in range(len(known)):
        store(known, row * LANES, fill(0.0))
    for at in range(reached[TREES][-1, LEAVES_TO]):
        leaf = np.uint64(leaves[at, LEAF_AT])
        line = np.int64(leaf) * 2 * LANES
        above, below = load(about, line), load(about, line + LANES)
        for entry in range(leaves[at, LEAF_START], leaves[at + 1, LEAF_START]):
            who = np.uint64(members[entry])
            gap = class_probs[leaf, np.uint64(best[who])]
            gap -= class_probs[leaf, np.uint64(rival[who])]
            term = gap * mass[entry]
            values[terms + entry] = term
            place = np.int64(who) * LANES
            side = choose(fill(term) > 0.0, above, below)
            store(known, place, load(known, place) + side * abs(term))


# What trees are worth


@joined
def _bound(x, edges, node, side, falls):
    """Return w + x s, cut to [0, 1], of an edge that falls in some lanes, and rises in others."""
    slope = choose(falls, edges[node, side + FALL], edges[node, side + RISE])
    return min(max(x * slope + edges[node, side + W], 0.0), 1.0)


@joined
def _slope(edges, node, side, falls, bound):
    """Return the slope of a bound, 0 where it is cut."""
    slope = choose(falls, edges[node, side + FALL], edges[node, side + RISE])
    return choose((bound > 0.0) & (bound < 1.0), slope, 0.0)


@joined
def _join_children(x, edges, node, left, right):
    """Return the values of splits.

    Of two children the higher one loses what the lower one gains; one of them if they tie.
    """
    higher = left > right
    of_left = _bound(x, edges, node, FIRST_EDGE, higher)
    of_right = _bound(x, edges, node, SECOND_EDGE, ~higher)
    return left * of_left + right * of_right


@inner
def _climb_twice(reached, edges, tree, terms, others, xs, values):
    """Write the values of the splits of a tree, children before parents, at two x of each row."""
    splits, members, masks, room = reached[SPLITS], reached[MEMBERS], reached[MASKS], reached[ROOM]
    first, last, origin = _unpack(reached, tree)
    for i in range(last - 1, first - 1, -1):
        node, start, end, left, right, group = _open(splits, i, terms)
        more = _place_other(room, others, splits[i, LEFT]) - left
        less = _place_other(room, others, splits[i, RIGHT]) - right
        for at in range(start, end, LANES):
            one, two = np.uint64(masks[group]), np.uint64(masks[group + ONE])
            both = one | two
            x = gather(xs[0], members, origin + at, both)
            sides = expand(values, left, one), expand(values, right, two)
            store_some(values, at, _join_children(x, edges, node, *sides), both)
            x = gather(xs[1], members, origin + at, both)
            sides = expand(values, left + more, one), expand(values, right + less, two)
            store_some(values, room + at, _join_children(x, edges, node, *sides), both)
            left += np.int64(count_bits(one))
            right += np.int64(count_bits(two))
            group += TWO


@inner
def _climb_once(reached, edges, tree, terms, zeros, xs, values):
    """Write the values of the splits of a tree, children before parents, and their slopes."""
    splits, members, masks, room = reached[SPLITS], reached[MEMBERS], reached[MASKS], reached[ROOM]
    first, last, origin = _unpack(reached, tree)
    for i in range(last - 1, first - 1, -1):
        node, start, end, left, right, group = _open(splits, i, terms)
        more = _place_slope(room, zeros, splits[i, LEFT]) - left
        less = _place_slope(room, zeros, splits[i, RIGHT]) - right
        for at in range(start, end, LANES):
            one, two = np.uint64(masks[group]), np.uint64(masks[group + ONE])
            both = one | two
            x = gather(xs[0], members, origin + at, both)
            a, b = expand(values, left, one), expand(values, right, two)
            higher = a > b
            of_a = _bound(x, edges, node, FIRST_EDGE, higher)
            of_b = _bound(x, edges, node, SECOND_EDGE, ~higher)
            slope = a * _slope(edges, node, FIRST_EDGE, higher, of_a)
            slope += b * _slope(edges, node, SECOND_EDGE, ~higher, of_b)
            slope += expand(values, left + more, one) * of_a
            slope += expand(values, right + less, two) * of_b
            store_some(values, at, a * of_a + b * of_b, both)
            store_some(values, room + at, slope, both)
            left += np.int64(count_bits(one))
            right += np.int64(count_bits(two))
            group += TWO


@inner
def _add_up(reached, tree, terms, others, rows, values, sums):
    """Add the values of a tree, and what else is known of it, to those of the others."""
    root, room = reached[TREES][tree, ROOT], reached[ROOM]
    one, two = _place(terms, root), _place_other(room, others, root)
    for row in range(0, rows, LANES):
        store(sums, row, load(sums, row) + load(values, one + row))
        at = sums.shape[1] + row
        store(sums, at, load(sums, at) + load(values, two + row))


@inner
def _evaluate(reached, edges, rows, twice, shift, xs, values, sums):
    """Write R of all rows, and its slope; or R at two x, the second for leaves that stand later."""
    terms, zeros = _find_terms(reached, rows), _find_zeros(reached)
    for k in range(2):
        for row in range(rows):
            sums[k, row] = 0.0
    for tree in range(len(reached[TREES])):
        if twice:
            _climb_twice(reached, edges, tree, terms, terms + shift, xs, values)
        else:
            _climb_once(reached, edges, tree, terms, zeros, xs, values)
        # A tree that is a leaf has no slope; zeros are read as if they were of leaves.
        root = np.int64(reached[TREES][tree, ROOT])
        others = terms + shift if twice else zeros + 1 + root
        _add_up(reached, tree, terms, others, rows, values, sums)


# Where they vanish


@inner
def _vanishing(edges, node, side):
    """Return where the lower bound of an edge's weight becomes 0."""
    weight, slope = edges[node, side + W], edges[node, side + FALL]
    if weight == 0.0:
        return 0.0
    return weight / -slope if slope < 0.0 else math.inf


@joined
def _end_of(values, place, mask, position):
    """Return where children vanish: leaves never do, if they are worth something."""
    end = expand(values, place, mask)
    return end if position >= 0 else choose(end > 0.0, fill(math.inf), 0.0)


@inner
def _find_ends(reached, edges, rows, values, ends):
    """Write where the values of all trees have vanished, of rows that have no negative leaf.

    Of a split whose children vanish at a ≤ b there is something left up to a, and beyond, as long
    as the other child has something and a weight.
    """
    splits, masks, trees = reached[SPLITS], reached[MASKS], reached[TREES]
    terms = _find_terms(reached, rows)
    for row in range(rows):
        ends[row] = 0.0
    for tree in range(len(trees)):
        begin, last, _ = _unpack(reached, tree)
        for i in range(last - 1, begin - 1, -1):
            node, start, stop, left, right, group = _open(splits, i, terms)
            first, second = (
                _vanishing(edges, node, FIRST_EDGE),
                _vanishing(edges, node, SECOND_EDGE),
            )
            for at in range(start, stop, LANES):
                one, two = np.uint64(masks[group]), np.uint64(masks[group + ONE])
                a = _end_of(values, left, one, splits[i, LEFT])
                b = _end_of(values, right, two, splits[i, RIGHT])
                end = choose(a > b, max(b, min(a, first)), max(a, min(b, second)))
                store_some(values, at, end, one | two)
                left += np.int64(count_bits(one))
                right += np.int64(count_bits(two))
                group += TWO
        root = trees[tree, ROOT]
        for row in range(rows):
            end = values[_place(terms, root) + row]
            if root < 0:
                end = math.inf if end > 0.0 else 0.0
            ends[row] = max(ends[row], end)


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
def _sum_children(x, edges, node, left, scale, right, other):
    """Return the value of a split, as a number that has a sign and a scale."""
    # Of two with one sign something is left, whichever is said to be higher.
    higher = left > right
    left, scale = _scaled(left, scale, _cut(x, edges, node, FIRST_EDGE, higher))
    right, other = _scaled(right, other, _cut(x, edges, node, SECOND_EDGE, not higher))
    if left == 0.0 or (right != 0.0 and other > scale):
        left, scale, right, other = right, other, left, scale
    return left + right * shrink(scale - other), scale


@inner
def _child(values, room, terms, position, passed, goes):
    """Return the value of a child, and its scale; 0 where it is not reached."""
    if not goes:
        return 0.0, np.int64(0)
    place = _place(terms, position) + passed
    return values[place], np.int64(values[room + place]) if position >= 0 else np.int64(0)


@inner
def _find_rest(reached, edges, rows, xs, values, largest):
    """Write how much is left of the largest tree of rows; less than 0 if no float could tell."""
    splits, members, masks, room = reached[SPLITS], reached[MEMBERS], reached[MASKS], reached[ROOM]
    trees, terms = reached[TREES], _find_terms(reached, rows)
    for row in range(rows):
        largest[row] = 0.0
    for tree in range(len(trees)):
        begin, last, origin = _unpack(reached, tree)
        for i in range(last - 1, begin - 1, -1):
            node, start = np.int64(splits[i, NODE]), np.int64(splits[i, START])
            left, right = np.int64(0), np.int64(0)
            for k in range(np.int64(splits[i, COUNT])):
                lane, group = np.uint8(k & (LANES - 1)), splits[i, GROUP] + k // LANES * 2
                one = np.int64(masks[group] >> lane) & 1
                two = np.int64(masks[group + 1] >> lane) & 1
                x = xs[members[origin + start + k]]
                values[start + k], scale = _sum_children(
                    *(x, edges, node, *_child(values, room, terms, splits[i, LEFT], left, one)),
                    *_child(values, room, terms, splits[i, RIGHT], right, two),
                )
                values[room + start + k] = scale
                left, right = left + one, right + two
        root = trees[tree, ROOT]
        for row in range(rows):
            value, scale = _child(values, room, terms, root, row, 1)
            value = abs(value) * shrink(-scale)
            if value >= TINY:
                largest[row] = max(largest[row], value)
            elif largest[row] == 0.0 and values[_place(terms, root) + row] != 0.0:
                largest[row] = -1.0


# The search


@inner
def _size_at(known, row, points, x):
    """Return what all leaves of a row have at x, whatever their sign, or more than that."""
    if x <= points[0]:
        return known[row, SIZE]
    return known[row, LATER] if x <= points[1] else known[row, FOR] + known[row, AGAINST]


@inner
def _begin(known, row, top, near, knots, facts):
    """Return where to look first; and before that what is found at once, or `UNDECIDED`."""
    positive, negative = known[row, POSITIVE], known[row, NEGATIVE]
    if known[row, AGAINST] <= 0.0:
        # Somewhere all leaves vanish, or nothing is known.
        return math.inf if known[row, FOR] > 0.0 else math.nan, 0.0
    if not (positive - negative > near * (positive + negative) and negative > TINY):
        return math.nan, 0.0
    fall, rise, lead = known[row, FALLS], known[row, RISES], positive - negative
    # As if leaves were trees, and logarithms were straight, or they themselves.
    guess = math.log(positive / negative) / (fall / positive + rise / negative)
    return UNDECIDED, start(max(guess, lead / (fall + rise)), top, lead, knots, facts)


@inner
def _begin_all(known, uneven, tops, near, xs, knots, facts, found):
    """Write what is found at once, and where to look first; return how many may never flip."""
    ending = np.int64(0)
    for row in range(len(found)):
        found[row], x = _begin(known, row, tops[row], near, knots[row], facts[row])
        xs[0, row] = xs[1, row] = x
        if uneven[row]:
            found[row] = math.nan
        ending += found[row] == math.inf
    return ending


@inner
def _go_on(step, row, beyond, sums, xs, knots, facts):
    """Return what is found after a step, or `UNDECIDED`, and where to look next."""
    lead, other = sums[0, row], sums[1, row]
    both = looks_at_two(step)
    if 0.0 < abs(lead) < TINY or (both and 0.0 < abs(other) < TINY):
        return math.nan, 0.0, 0.0
    if both:
        add_pair(knots, xs[0, row], xs[1, row], lead, other)
    else:
        add_point(knots, xs[0, row], lead, other)
    return advance(step + 1, beyond, facts, knots)


@kernel(
    types.int64(
        *(float_matrix, float_vector, float_matrix, float_vector, *reaches, bool_vector),
        *(int_vector, int_vector, float_vector, types.float64, types.float64, types.int64),
        *(float_vector_out, float_matrix_out, float_matrix_out, float_matrix_out),
        *(types.Array(types.float64, 3, "C"), float_matrix_out, float_vector_out),
        float_matrix_out,
    )
)
def search(
    class_probs,
    about,
    edges,
    points,
    splits,
    members,
    masks,
    leaves,
    leaf_members,
    mass,
    trees,
    room,
    uneven,
    best,
    rival,
    tops,
    limit,
    near,
    step,
    values,
    known,
    xs,
    sums,
    knots,
    facts,
    found,
    doubts,
):
    """Write the x where each row flips to a rival, infinity where it does not below its top.

    NaN where rounding would show; where it may, `doubts` tell. `UNDECIDED` where a row is left over
    because most others are done; return how many steps these have taken, or 0 if there are none.

    Parameters
    ----------
    class_probs : of the leaves
    about : (leaves · 16,), see `ABOUT`
    edges : (nodes, 8), the weights of the edges below each node, and their slopes
    points : where sizes are known
    splits … uneven : what rows reach, see `gaps.Reached`
    best, rival : (rows,)
    tops : (rows,), where x ends
    limit : where it would end if nobody else had flipped
    near : how near, relative, is too near
    step : how many steps rows have taken that were left over; 0 if the search begins
    values : to work in, zeros where zeros are to be, see above
    known : (rows, 8), to work in
    xs, sums, knots, facts : what is known so far, see `gaps`
    found : (rows,), written
    doubts : (2, rows), written: what the size of leaves must be below, or rounding would show, and
        where nothing seems to be left of a row; infinity where nobody needs to look
    """
    reached, rows = (splits, members, masks, leaves, leaf_members, mass, trees, room), len(best)
    terms, beyond = _find_terms(reached, rows), limit >= FARTHEST
    _put_terms(reached, class_probs, about, best, rival, terms, values, known)
    if step == 0 and _begin_all(known, uneven, tops, near, xs, knots, facts, found):
        _find_ends(reached, edges, rows, values, sums[0])
        for row in range(rows):
            if found[row] == math.inf:
                found[row] = sums[0, row] if sums[0, row] <= tops[row] else math.inf
    going, few = np.int64(0), step + FEWEST
    for row in range(rows):
        going += found[row] == UNDECIDED
        doubts[0, row] = doubts[1, row] = math.inf
    while going > 0 and step < MAX_STEPS and (step < few or going > rows // HARD):
        _evaluate(reached, edges, rows, looks_at_two(step), 0, xs, values, sums)
        for row in range(rows):
            if found[row] == UNDECIDED:
                found[row], xs[0, row], xs[1, row] = _go_on(
                    step, row, beyond, sums, xs, knots[row], facts[row]
                )
                if found[row] != UNDECIDED:
                    going -= 1
                    end, lead = find_end(knots[row], facts[row])
                    small = lead > near * _size_at(known, row, points, end)
                    doubts[0, row] = lead / near if not small else math.inf
                    doubts[1, row] = has_vanished(knots[row]) if found[row] < math.inf else math.inf
        step += 1
    if step < MAX_STEPS:
        return step if going > 0 else 0
    for row in range(rows):
        if found[row] == UNDECIDED:
            found[row] = math.nan
    return 0


@kernel(
    types.void(
        *(float_matrix, float_vector, float_matrix, *reaches, types.int64),
        *(int_vector, int_vector, float_matrix, float_vector_out, float_matrix_out),
        *(float_matrix_out, float_matrix_out),
    )
)
def look_closer(
    class_probs,
    about,
    edges,
    splits,
    members,
    masks,
    leaves,
    leaf_members,
    mass,
    trees,
    room,
    entries,
    best,
    rival,
    xs,
    values,
    known,
    sums,
    looks,
):
    """Write how large all leaves of rows are at one x, and how much is left at another.

    Parameters as of `search`; sizes are not below the true ones, and what is left is less than 0
    if no float could tell. The lowest mean of what leaves are worth as losses is the most that
    they can be together.
    """
    reached, rows = (splits, members, masks, leaves, leaf_members, mass, trees, room), len(best)
    terms = _find_terms(reached, rows)
    _put_terms(reached, class_probs, about, best, rival, terms, values, known)
    _find_rest(reached, edges, rows, xs[1], values, looks[1])
    for entry in range(terms, terms + entries):
        values[entry] = -abs(values[entry])
    _evaluate(reached, edges, rows, False, 0, xs, values, sums)
    for row in range(rows):
        looks[0, row] = -sums[0, row]


@kernel(
    types.void(
        *(float_matrix, float_vector, float_matrix, float_vector, *reaches, types.int64),
        *(int_vector, int_vector, int_vector, float_vector, types.float64),
        *(float_vector_out, float_matrix_out, float_matrix_out, float_matrix_out),
        *(float_matrix_out, flags_out, flags_out),
    )
)
def clear(
    class_probs,
    about,
    edges,
    points,
    splits,
    members,
    masks,
    leaves,
    leaf_members,
    mass,
    trees,
    room,
    entries,
    best,
    rival,
    other,
    tops,
    near,
    values,
    known,
    xs,
    sums,
    sizes,
    cleared,
    also,
):
    """Write whether rows still beat two rivals at some x: they flip to them later, if at all.

    Parameters as of `search`; there are so many entries, `values` have room for those of both,
    `sizes` are as long as `xs`, to work in, `cleared` is of the rival, and `also` of the other one.
    """
    reached, rows = (splits, members, masks, leaves, leaf_members, mass, trees, room), len(best)
    for lane in range(2):
        terms, who = _find_terms(reached, rows) + lane * entries, other if lane else rival
        _put_terms(reached, class_probs, about, best, who, terms, values, known)
        for row in range(rows):
            xs[lane, row] = tops[row] if tops[row] < FARTHEST else 0.0
            sizes[lane, row] = _size_at(known, row, points, tops[row])
    _evaluate(reached, edges, rows, True, entries, xs, values, sums)
    for lane in range(2):
        out = also if lane else cleared
        for row in range(rows):
            clear = sums[lane, row] > max(near * sizes[lane, row], TINY)
            out[row] = tops[row] < FARTHEST and clear
