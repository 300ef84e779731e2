"""Rows with missing cells: which leaves they reach, and how likely they are there.

Rows go down a tree together, both ways where a value is missing: each split that some of them reach
has a list of them, of which it makes one for each child. See `core.gaps.Reached`.
"""

import math

import numpy as np
from numba import types

from robustq.core._scale_kernels import shrink, times
from robustq.core.gaps import (
    END,
    ENTRIES_FROM,
    FIRST,
    JOINS_FROM,
    JOINS_TO,
    LANES,
    LEAF_AT,
    LEAF_START,
    LEAVES_FROM,
    MIDDLE,
    NODE,
    SPLITS_FROM,
)
from robustq.core.scale import LOWEST, NOTHING
from robustq.kernels import (
    code_matrix,
    code_matrix_out,
    code_vector,
    code_vector_out,
    float_matrix,
    float_matrix_out,
    float_vector_out,
    inner,
    int_matrix_out,
    int_vector,
    int_vector_out,
    joined,
    kernel,
    prefetch,
)

from ._mass_kernels import (
    add_leaf,
    contents,
    multiply_sets,
    reaches,
    take_logarithms,
    weigh_leaf,
)
from ._route_kernels import goes_right, routes
from .nodes import CHILD, FEATURE, LEAF

__all__ = ["FRAME", "NO_VALUE", "spread", "weigh_reached"]

NO_VALUE = 255  # as a byte; others are below 64
SMALL = 1e-100  # how much less mass leaves may have than others
# Of a split on the way: the node, where lists after its own begin, how many of its sides are done
# or under way, where entries below it begin, and those of its right child; and where the lists
# begin and end of those that go left, those that go right, and those that do both.
FRAME = (
    *(AT, FREE, SIDE, BEGIN, BETWEEN, LEFT_FROM, LEFT_TO, RIGHT_FROM, RIGHT_TO, BOTH_FROM, BOTH_TO),
) = tuple(range(11))
flags_out = types.Array(types.boolean, 1, "C")
byte_vector = types.Array(types.uint8, 1, "C", readonly=True)


@joined
def _sort(row, left, right, lists, at):
    """Write a row to those that go left, to those that go right, and to those that do both."""
    lists[np.uint64(at[0])] = lists[np.uint64(at[1])] = lists[np.uint64(at[2])] = row
    return at[0] + left, at[1] + right, at[2] + (left & right)


@inner
def _part_narrow(values, first, chosen, lists, start, stop, at):
    """Write who of a list goes left, who goes right, and who does both; return where they end."""
    for k in range(start, stop):
        row = lists[np.uint64(k)]
        value = np.uint64(values[np.uint64(first + row)])
        gone = value >> np.uint64(7)
        left = np.int64(((chosen >> (value & np.uint64(63))) | gone) & np.uint64(1))
        right = np.int64(((~chosen >> (value & np.uint64(63))) | gone) & np.uint64(1))
        at = _sort(row, left, right, lists, at)
    return at


@inner
def _part_any(route, node, codes, numbers, lists, start, stop, at):
    """As `_part_narrow`, whatever the feature is."""
    nodes, kinds, slots = route[0], route[4], route[5]
    feature = nodes[node, FEATURE]
    for k in range(start, stop):
        row = lists[k]
        code = codes[row, feature]
        left = right = np.int64(1)
        if code >= 0:
            kind, slot = kinds[feature], slots[feature]
            right = goes_right(*route[:4], kind, slot, node, code, numbers, row)
            left = 1 - right
        at = _sort(row, left, right, lists, at)
    return at


@inner
def _end_at(entry, origin, lists, start, stop, slot, members):
    """Write the entries of the rows that reach a leaf; return the end."""
    for k in range(start, stop):
        row = lists[np.uint64(k)]
        members[np.uint64(entry)], slot[np.uint64(row)] = row, entry - origin
        entry += 1
    return entry


@inner
def _note_left(frame, lists, slot):
    """Write where those that also go right have their first entries on the left."""
    shift = frame[LEFT_FROM] - frame[BOTH_FROM]
    for k in range(frame[BOTH_FROM], frame[BOTH_TO]):
        lists[np.uint64(k + shift)] = slot[np.uint64(lists[np.uint64(k)])]


@inner
def _join_sides(frame, lists, slot, join, ones, others):
    """Write the first entries, on either side, of those that go both ways; return the end."""
    shift = frame[LEFT_FROM] - frame[BOTH_FROM]
    for k in range(frame[BOTH_FROM], frame[BOTH_TO]):
        row, one = np.uint64(lists[np.uint64(k)]), lists[np.uint64(k + shift)]
        ones[np.uint64(join)], others[np.uint64(join)] = one, slot[row]
        slot[row] = one
        join += 1
    return join


@inner
def _pad(places, end):
    """Write places after the last one: who reads eight of them at once may read these."""
    for lane in range(LANES):
        places[end + lane] = 0


@inner
def _spread_tree(route, root, narrow, values, codes, numbers, room, ends, out):
    """Write what rows reach of a tree; return whether there was room for it.

    The splits on the way to where we are have a frame each.
    """
    (lists, frames, slot), (splits, ones, others, leaves, members) = room, out
    nodes, rows, split, join = route[0], len(codes), ends[0], ends[1]
    leaf, entry, origin = ends[2], ends[3], ends[3]
    for row in range(rows):
        lists[row] = row
    node, start, stop = np.int64(root), np.int64(0), rows
    free, depth = np.int64(rows), np.int64(-1)
    while True:
        goes_down = nodes[node, FEATURE] != LEAF
        if goes_down:
            count, depth = stop - start, depth + 1
            frame, at = frames[depth], (free, free + count, free + 2 * count)
            if narrow:
                place = np.int64(nodes[node, FEATURE]) * rows
                at = _part_narrow(values, place, route[1][node, 1], lists, start, stop, at)
            else:
                at = _part_any(route, node, codes, numbers, lists, start, stop, at)
            frame[AT], frame[FREE], frame[SIDE], frame[BEGIN] = node, free, 0, entry - origin
            frame[LEFT_FROM], frame[LEFT_TO] = free, at[0]
            frame[RIGHT_FROM], frame[RIGHT_TO] = free + count, at[1]
            frame[BOTH_FROM], frame[BOTH_TO] = free + 2 * count, at[2]
            free += 3 * count
        else:
            if entry + rows + LANES > len(members) or leaf + 2 > len(leaves):
                return False
            leaves[leaf, LEAF_AT], leaves[leaf, LEAF_START] = nodes[node, CHILD], entry
            leaf, entry = leaf + 1, _end_at(entry, origin, lists, start, stop, slot, members)
        # To the next node that some rows reach, or up where both sides are done.
        while depth >= 0:
            frame = frames[depth]
            side, child = frame[SIDE], np.int64(nodes[frame[AT], CHILD])
            if side == 2:
                if join + rows + LANES > len(ones) or split >= len(splits):
                    return False
                splits[split, NODE], splits[split, FIRST] = frame[AT], frame[BEGIN]
                splits[split, MIDDLE], splits[split, END] = frame[BETWEEN], entry - origin
                splits[split, JOINS_FROM] = join
                join = _join_sides(frame, lists, slot, join, ones, others)
                splits[split, JOINS_TO] = join
                split, free, depth = split + 1, frame[FREE], depth - 1
                continue
            if side == 1:
                frame[BETWEEN] = entry - origin
                _note_left(frame, lists, slot)
            frame[SIDE] += 1
            start = frame[RIGHT_FROM] if side else frame[LEFT_FROM]
            stop = frame[RIGHT_TO] if side else frame[LEFT_TO]
            if start < stop:
                node = child + side
                break
        if depth < 0:
            break
    ends[0], ends[1], ends[2], ends[3] = split, join, leaf, entry
    return True


@kernel(
    types.int64(
        *(
            types.boolean,
            *routes,
            byte_vector,
            code_matrix,
            float_matrix,
            types.int64,
            int_vector_out,
        ),
        *(code_vector_out, int_matrix_out, code_vector_out, code_matrix_out, code_vector_out),
        *(code_vector_out, code_matrix_out, code_vector_out, code_matrix_out, code_matrix_out),
    )
)
def spread(
    narrow,
    nodes,
    sets,
    thresholds,
    lists,
    kinds,
    slots,
    roots,
    values,
    codes,
    numbers,
    tree,
    ends,
    stack,
    frames,
    slot,
    splits,
    ones,
    others,
    leaves,
    members,
    tops,
    trees,
):
    """Write what rows reach of trees, see `gaps.Reached`; return before which tree room ran out.

    Parameters
    ----------
    narrow : whether all features are
    nodes … roots : of the forest
    values : of each feature and row a byte, its value, or `NO_VALUE`
    codes, numbers : of the rows
    tree : where to go on
    ends : (4,), how much is filled of splits, joins, leaves and entries; written
    stack, frames, slot : to work in: lists of rows, see `FRAME`, and the first entry of each row
    splits … trees : written
    """
    route, room = (nodes, sets, thresholds, lists, kinds, slots), (stack, frames, slot)
    out = splits, ones, others, leaves, members
    for at in range(tree, len(roots) - 1):
        trees[at, SPLITS_FROM], trees[at, LEAVES_FROM] = ends[0], ends[2]
        trees[at, ENTRIES_FROM] = ends[3]
        if not _spread_tree(route, roots[at], narrow, values, codes, numbers, room, ends, out):
            return at
        for row in range(len(codes)):
            tops[at, row] = slot[row]
    last = len(roots) - 1
    trees[last, SPLITS_FROM], trees[last, LEAVES_FROM] = ends[0], ends[2]
    trees[last, ENTRIES_FROM] = leaves[ends[2], LEAF_START] = ends[3]
    _pad(ones, ends[1])
    _pad(others, ends[1])
    _pad(members, ends[3])
    return last


@inner
def _multiply_cells(factors, leaf, cells, row):
    """Return the mass of a row at a leaf, by what its values have there."""
    mass = 1.0
    for feature in range(cells.shape[1]):
        mass *= factors[leaf, np.uint64(cells[row, feature])]
    return mass


@inner
def _even_out(leaves, count, leaf_members, scale, largest, mass, most, least):
    """Divide the masses of each row by one power of two; write the largest and the least."""
    for row in range(len(most)):
        most[row], least[row] = 0.0, math.inf
    for entry in range(np.int64(leaves[count, LEAF_START])):
        if mass[entry] != 0.0:
            row = leaf_members[entry]
            mass[entry] *= shrink(largest[row] - np.int64(scale[entry]))
            most[row], least[row] = max(most[row], mass[entry]), min(least[row], mass[entry])


@kernel(
    types.void(
        *(types.int64, types.boolean, code_vector, code_vector, *reaches, *contents),
        *(float_matrix, float_matrix, code_matrix, code_matrix, float_matrix, code_matrix),
        *(int_vector, float_matrix_out, types.int64, code_matrix, code_vector, float_vector_out),
        *(code_vector_out, int_vector_out, float_matrix_out, flags_out),
    )
)
def weigh_reached(
    trees,
    plain,
    kinds,
    slots,
    reach,
    reach_scale,
    seen,
    entry_starts,
    entry_codes,
    entry_probs,
    normals,
    class_probs,
    factors,
    cells,
    codes,
    numbers,
    known,
    some,
    out,
    count,
    leaves,
    leaf_members,
    mass,
    scale,
    exponents,
    extremes,
    uneven,
):
    """Write log p(c, f) for rows with any evidence, and their mass at the leaves they reach.

    Parameters
    ----------
    trees : how many there are
    plain : whether all features are narrow
    kinds … class_probs : of the forest
    factors, cells : (leaves, values + 1), the probability of each value, and then 1; and where
        those of each row stand, (rows, features); empty where they are too many
    codes, numbers : of the rows
    known, some : (rows, features) and (rows,), which features are there, and how many
    out : (rows, classes), 0 before
    count, leaves, leaf_members : what rows reach
    mass, uneven : written, see `gaps.Reached`
    scale : room, one for each entry, 0 before
    exponents, extremes : (rows,) and (2, rows), room
    """
    features, scaled, most, least = codes.shape[1], np.int64(0), extremes[0], extremes[1]
    for row in range(len(codes)):
        exponents[row], most[row], least[row] = NOTHING, 0.0, math.inf
    for at in range(count):
        leaf = np.uint64(leaves[at, LEAF_AT])
        first, last = np.int64(leaves[at, LEAF_START]), np.int64(leaves[at + 1, LEAF_START])
        share, whole = reach[leaf], reach_scale[leaf] == 0
        if len(factors):
            # There is no room for all leaves in the nearer caches.
            after = np.int64(leaves[min(at + 1, count - 1), LEAF_AT]) * factors.shape[1]
            for place in range(0, factors.shape[1], LANES):
                prefetch(factors, after + place)
        for entry in range(first, last):
            who = np.uint64(leaf_members[entry])
            weight = 0.0
            if len(factors):
                weight = _multiply_cells(factors, leaf, cells, who)
            elif plain:
                weight = multiply_sets(
                    *(seen, entry_starts, entry_probs, np.int64(leaf), features),
                    *(known[who], some[who], codes, who),
                )
            part = weight * share
            if part >= LOWEST and exponents[who] == 0 and whole:
                for c in range(out.shape[1]):
                    out[who, c] += part * class_probs[leaf, c]
            else:
                steps = np.int64(0)
                if weight < LOWEST:
                    weight, steps = weigh_leaf(
                        *(1.0, steps, kinds, slots, seen, entry_starts, entry_codes),
                        *(entry_probs, normals, np.int64(leaf), codes, numbers, who),
                    )
                    scale[entry] = np.int32(steps)
                    scaled |= steps
                steps += np.int64(reach_scale[leaf])
                part, steps = times(weight, steps, share)
                exponents[who] = add_leaf(out, who, exponents[who], class_probs, leaf, part, steps)
            mass[entry] = weight
            most[who] = max(most[who], weight)
            least[who] = min(least[who], weight if weight > 0.0 else math.inf)
    for row in range(len(codes)):
        take_logarithms(out, row, exponents[row], trees)
        exponents[row] = NOTHING
    if scaled:
        for entry in range(np.int64(leaves[count, LEAF_START])):
            if mass[entry] != 0.0:
                who = np.uint64(leaf_members[entry])
                exponents[who] = max(exponents[who], np.int64(scale[entry]))
        _even_out(leaves, count, leaf_members, scale, exponents, mass, most, least)
    for row in range(len(codes)):
        # What is so small might vanish on its way up, and yet decide after the others are gone.
        uneven[row] = not least[row] > SMALL * most[row]
