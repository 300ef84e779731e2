"""Mixtures of trees of which rows reach several leaves, for balls with straight bounds.

Where a split's value is missing a row goes both ways, and the split is a sum of two:

    leaf     V = (p(ĉ) − p(c)) Π p(f_i)
    split    the higher child times its lower bound, max(0, w − x l), and the lower one times its
             upper bound, min(1, w + x u); a child that is not reached is 0

and R_c(x) = Σ V(tree) (`_climb_kernels`), of which the root is looked for step by step
(`_bracket_kernels`).
"""

import math

import numpy as np
from numba import types

from robustq.kernels import (
    bool_vector,
    float_matrix,
    float_matrix_out,
    float_vector,
    float_vector_out,
    inner,
    int_vector,
    kernel,
)
from robustq.vectors import LANES, fill, load, store

from ._bracket_kernels import (
    FARTHEST,
    TINY,
    UNDECIDED,
    add_point,
    advance,
    find_end,
    has_vanished,
    start,
)
from ._climb_kernels import (
    LEAVES,
    MASS,
    MEMBERS,
    TREES,
    climb,
    find_ends,
    find_rest,
    reaches,
)
from .gaps import (
    AGAINST,
    ENTRIES_FROM,
    FALLS,
    FOR,
    LATER,
    LEAF_AT,
    LEAF_START,
    NEGATIVE,
    POSITIVE,
    RISES,
    SIZE,
)

__all__ = ["clear", "look_closer", "search"]

MAX_STEPS = 120
HARD = 5  # when no more than one in so many rows is left, the others need not be looked at

flags_out = types.Array(types.boolean, 1, "C")
# What is worked in, see `_climb_kernels.VALUES`.
rooms = (float_vector_out,) * 5


# What leaves are worth


@inner
def _put_terms(reached, class_probs, about, best, rival, terms, known):
    """Write what the leaves of rows are worth, and what is known of rows: see `gaps.ABOUT`."""
    leaves, members, mass = reached[LEAVES], reached[MEMBERS], reached[MASS]
    for row in range(len(known)):
        store(known, row * LANES, fill(0.0))
    for at in range(len(leaves) - 1):
        leaf = np.uint64(leaves[at, LEAF_AT])
        line = np.int64(leaf) * 2 * LANES
        above, below = load(about, line), load(about, line + LANES)
        for entry in range(np.int64(leaves[at, LEAF_START]), np.int64(leaves[at + 1, LEAF_START])):
            who = np.uint64(members[np.uint64(entry)])
            gap = class_probs[leaf, np.uint64(best[who])]
            gap -= class_probs[leaf, np.uint64(rival[who])]
            term = gap * mass[np.uint64(entry)]
            terms[np.uint64(entry)] = term
            place = np.int64(who) * LANES
            more = above * max(term, 0.0) + below * max(-term, 0.0)
            store(known, place, load(known, place) + more)


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
    guess = max(guess, lead / (fall + rise))
    return UNDECIDED, start(guess, top, positive, negative, knots, facts)


@inner
def _begin_all(known, uneven, lasts, near, xs, knots, facts, found):
    """Write what is found at once, and where to look first; return how many may never flip."""
    ending = np.int64(0)
    for row in range(len(found)):
        found[row], x = _begin(known, row, lasts[row], near, knots[row], facts[row])
        xs[row] = x
        if uneven[row]:
            found[row] = math.nan
        ending += found[row] == math.inf
    return ending


@inner
def _go_on(x, lead, beyond, knots, facts):
    """Return what is found after a step, or `UNDECIDED`, and where to look next."""
    if 0.0 < abs(lead) < TINY:
        return math.nan, 0.0
    add_point(knots, x, lead)
    return advance(x, beyond, facts, knots)


@kernel(
    types.void(
        *(float_matrix, float_vector, float_matrix, float_vector, *reaches, bool_vector),
        *(int_vector, int_vector, float_vector, types.float64, types.float64, types.boolean),
        *(*rooms, float_vector_out, float_matrix_out, float_vector_out, float_vector_out),
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
    ones,
    others,
    leaves,
    members,
    mass,
    tops,
    trees,
    uneven,
    best,
    rival,
    lasts,
    limit,
    near,
    begins,
    values,
    more,
    own_xs,
    joined_values,
    more_joined,
    terms,
    known,
    xs,
    sums,
    knots,
    facts,
    found,
    doubts,
):
    """Write the x where each row flips to a rival, infinity where it does not below its last one.

    NaN where rounding would show; where it may, `doubts` tell. `UNDECIDED` where a row is left over
    because most others are done.

    Parameters
    ----------
    class_probs : of the leaves
    about : (leaves · 16,), see `gaps.ABOUT`
    edges : (splits, 8), see `gaps.EDGES`
    points : where sizes are known
    splits … uneven : what rows reach, see `gaps.Reached`
    best, rival : (rows,)
    lasts : (rows,), where x ends
    limit : where it would end if nobody else had flipped
    near : how near, relative, is too near
    begins : whether the search begins, or goes on with rows that were left over
    values … more_joined : to work in, see `_climb_kernels.VALUES`
    terms : one for each entry, to work in
    known : (rows, 8), to work in
    xs, sums : (rows + 8,), where to look, and to work in
    knots, facts : what is known so far, see `_bracket_kernels`
    found : (rows,), written
    doubts : (2, rows), written: what the size of leaves must be below, or rounding would show, and
        where nothing seems to be left of a row; infinity where nobody needs to look
    """
    reached = splits, ones, others, leaves, members, mass, tops, trees
    room, rows = (values, more, own_xs, joined_values, more_joined), len(best)
    beyond = limit >= FARTHEST
    _put_terms(reached, class_probs, about, best, rival, terms, known)
    if begins and _begin_all(known, uneven, lasts, near, xs, knots, facts, found):
        find_ends(reached, edges, terms, room, sums)
        for row in range(rows):
            if found[row] == math.inf:
                found[row] = sums[row] if sums[row] <= lasts[row] else math.inf
    going = step = np.int64(0)
    for row in range(rows):
        going += found[row] == UNDECIDED
        doubts[0, row] = doubts[1, row] = math.inf
    while going > 0 and step < MAX_STEPS and going > rows // HARD:
        climb(reached, edges, terms, xs, room, sums)
        for row in range(rows):
            if found[row] == UNDECIDED:
                found[row], xs[row] = _go_on(xs[row], sums[row], beyond, knots[row], facts[row])
                if found[row] != UNDECIDED:
                    going -= 1
                    end, lead = find_end(knots[row], facts[row])
                    small = lead > near * _size_at(known, row, points, end)
                    doubts[0, row] = lead / near if not small else math.inf
                    doubts[1, row] = has_vanished(knots[row]) if found[row] < math.inf else math.inf
        step += 1
    for row in range(rows):
        if found[row] == UNDECIDED and step == MAX_STEPS:
            found[row] = math.nan


@inner
def _look_leaning(share, reached, edges, terms, xs, room, sums, looks):
    """Write R of rows if what speaks for a class were more by a share, and what does not less."""
    for entry in range(reached[TREES][-1, ENTRIES_FROM]):
        terms[entry] += share * abs(terms[entry])
    climb(reached, edges, terms, xs, room, sums)
    for row in range(len(looks)):
        looks[row] = sums[row]


@kernel(
    types.void(
        *(float_matrix, float_vector, float_matrix, *reaches, int_vector, int_vector),
        *(float_matrix, types.float64, *rooms, float_vector_out, float_matrix_out),
        *(float_vector_out, float_matrix_out),
    )
)
def look_closer(
    class_probs,
    about,
    edges,
    splits,
    ones,
    others,
    leaves,
    members,
    mass,
    tops,
    trees,
    best,
    rival,
    xs,
    near,
    values,
    more,
    own_xs,
    joined_values,
    more_joined,
    terms,
    known,
    sums,
    looks,
):
    """Write of rows how large all leaves are at one x, and how much is left at another.

    And R at a third if all leaves were worse for the prediction by a share `near`, and at a fourth
    if they were better.

    Parameters as of `search`; sizes are not below the true ones, and what is left is less than 0
    if no float could tell. The lowest mean of what leaves are worth as losses is the most that
    they can be together.
    """
    reached = splits, ones, others, leaves, members, mass, tops, trees
    room = values, more, own_xs, joined_values, more_joined
    _put_terms(reached, class_probs, about, best, rival, terms, known)
    find_rest(reached, edges, terms, xs[1], room, looks[1])
    _look_leaning(-near, reached, edges, terms, xs[2], room, sums, looks[2])
    _put_terms(reached, class_probs, about, best, rival, terms, known)
    _look_leaning(near, reached, edges, terms, xs[3], room, sums, looks[3])
    _put_terms(reached, class_probs, about, best, rival, terms, known)
    for entry in range(trees[-1, ENTRIES_FROM]):
        terms[entry] = -abs(terms[entry])
    climb(reached, edges, terms, xs[0], room, sums)
    for row in range(len(best)):
        looks[0, row] = -sums[row]


@kernel(
    types.void(
        *(float_matrix, float_vector, float_matrix, float_vector, *reaches),
        *(int_vector, int_vector, float_vector, types.float64),
        *(*rooms, float_vector_out, float_matrix_out, float_vector_out),
        *(float_vector_out, flags_out),
    )
)
def clear(
    class_probs,
    about,
    edges,
    points,
    splits,
    ones,
    others,
    leaves,
    members,
    mass,
    tops,
    trees,
    best,
    rival,
    lasts,
    near,
    values,
    more,
    own_xs,
    joined_values,
    more_joined,
    terms,
    known,
    xs,
    sums,
    cleared,
):
    """Write whether rows still beat a rival at some x: they flip to it later, if at all.

    Parameters as of `search`.
    """
    reached = splits, ones, others, leaves, members, mass, tops, trees
    room = values, more, own_xs, joined_values, more_joined
    _put_terms(reached, class_probs, about, best, rival, terms, known)
    for row in range(len(best)):
        xs[row] = lasts[row] if lasts[row] < FARTHEST else 0.0
    climb(reached, edges, terms, xs, room, sums)
    for row in range(len(best)):
        size = _size_at(known, row, points, lasts[row])
        cleared[row] = lasts[row] < FARTHEST and sums[row] > max(near * size, TINY)
