"""Rows with missing cells: which leaves they reach, and how likely they are there.

Rows go down a tree together, both ways where a value is missing: each split that some of them reach
has a list of them, of which it makes one for each child. See `core.gaps.Reached`.
"""

import math

import numpy as np
from numba import types

from robustq.core._scale_kernels import shrink, times
from robustq.core.gaps import (
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
from robustq.core.scale import LOWEST
from robustq.kernels import (
    code_matrix,
    code_matrix_out,
    code_vector,
    code_vector_out,
    count_bits,
    float_matrix,
    float_matrix_out,
    float_vector_out,
    inner,
    int_vector,
    int_vector_out,
    kernel,
)
from robustq.vectors import LANES, divide

from ._mass_kernels import (
    NOTHING,
    add_leaf,
    contents,
    multiply_sets,
    reaches,
    take_logarithms,
    weigh_leaf,
)
from ._route_kernels import goes_right, routes
from .nodes import CHILD, FEATURE, LEAF

__all__ = ["spread", "weigh_reached"]

SMALL = 1e-100  # how much less mass leaves may have than others
ALL = np.uint64((1 << LANES) - 1)
flags_out = types.Array(types.boolean, 1, "C")
words = types.Array(types.uint64, 1, "C", readonly=True)
masks_out = types.Array(types.uint8, 1, "C")


@inner
def _part(bits, first, chosen, members, start, count, masks, group, ones, one, others):
    """Write who of a list goes left, and who goes right; return how many they are."""
    left, right = np.int64(0), np.int64(0)
    for k in range(0, count, LANES):
        valid = ALL if count - k >= LANES else (np.uint64(1) << np.uint64(count - k)) - np.uint64(1)
        goes_left, others_go = divide(
            *(bits, first, members, start + k, valid, chosen),
            *(ones, one + left, others, right),
        )
        masks[group], masks[group + 1] = goes_left, others_go
        left += np.int64(count_bits(goes_left))
        right += np.int64(count_bits(others_go))
        group += 2
    return left, right


@inner
def _part_one(bits, first, chosen, members, start, masks, group, ones, one, others):
    """As `_part`, of a list of one: what was just written need not be read as part of a vector."""
    row = members[start]
    word = bits[np.uint64(first + row)]
    left, right = np.int64((word & chosen) != 0), np.int64((word & ~chosen) != 0)
    masks[group], masks[group + 1] = left, right
    ones[one] = others[0] = row
    return left, right


@inner
def _part_any(route, node, codes, numbers, members, start, count, masks, group, ones, one, others):
    """As `_part`, whatever the feature is."""
    nodes, kinds, slots = route[0], route[4], route[5]
    feature = nodes[node, FEATURE]
    left, right = np.int64(0), np.int64(0)
    for k in range(count):
        lane = np.uint8(1 << (k & (LANES - 1)))
        at = group + k // LANES * 2
        if k & (LANES - 1) == 0:
            masks[at] = masks[at + 1] = np.uint8(0)
        row = members[start + k]
        code = codes[row, feature]
        side = np.int64(2)
        if code >= 0:
            side = goes_right(*route[:4], kinds[feature], slots[feature], node, code, numbers, row)
        if side != 1:
            ones[one + left] = row
            masks[at] |= lane
            left += 1
        if side != 0:
            others[right] = row
            masks[at + 1] |= lane
            right += 1
    return left, right


@kernel(
    types.int64(
        *(types.boolean, *routes, words, code_matrix, float_matrix, types.int64, int_vector_out),
        *(code_vector_out, code_matrix_out, code_vector_out, masks_out),
        *(code_matrix_out, code_vector_out, code_matrix_out),
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
    bits,
    codes,
    numbers,
    tree,
    ends,
    spare,
    splits,
    members,
    masks,
    leaves,
    leaf_members,
    trees,
):
    """Write what rows reach of trees, see `gaps.Reached`; return before which tree room ran out.

    Parameters
    ----------
    narrow : whether all features are
    nodes … roots : of the forest
    bits : of each feature and row the bit of its value, or all where it is missing
    codes, numbers : of the rows
    tree : where to go on
    ends : (6,), how much is filled of splits, members, masks, leaves and their members, and how
        many members a tree has at most; written
    spare : room for all rows, and some more
    splits … trees : written
    """
    route, rows = (nodes, sets, thresholds, lists, kinds, slots), len(codes)
    for at in range(tree, len(roots) - 1):
        split, member, group, leaf, entry = ends[0], ends[1], ends[2], ends[3], ends[4]
        if member + rows > len(members) or entry + rows > len(leaf_members):
            return at
        if split + 1 > len(splits) or leaf + 2 > len(leaves):
            return at
        first, origin, root = split, member, np.int64(roots[at])
        trees[at, SPLITS_FROM], trees[at, MEMBERS_FROM] = split, member
        trees[at, ROOT] = 0
        if nodes[root, FEATURE] == LEAF:
            for row in range(rows):
                leaf_members[entry + row] = row
            leaves[leaf, LEAF_AT], leaves[leaf, LEAF_START] = nodes[root, CHILD], entry
            trees[at, ROOT] = -1 - entry
            leaf, entry = leaf + 1, entry + rows
        else:
            for row in range(rows):
                members[member + row] = row
            splits[split, NODE], splits[split, START], splits[split, COUNT] = root, 0, rows
            split, member = split + 1, member + rows
        while first < split:
            node, count = np.int64(splits[first, NODE]), np.int64(splits[first, COUNT])
            start = origin + np.int64(splits[first, START])
            groups = (count + LANES - 1) // LANES * 2
            room = 2 * count + LANES
            if member + room > len(members) or entry + room > len(leaf_members):
                return at
            if split + 2 > len(splits) or leaf + 3 > len(leaves) or group + groups > len(masks):
                return at
            child = np.int64(nodes[node, CHILD])
            ends_left = nodes[child, FEATURE] == LEAF
            ones = leaf_members if ends_left else members
            one = entry if ends_left else member
            place = np.int64(nodes[node, FEATURE]) * rows
            if narrow and count == 1:
                left, right = _part_one(
                    *(bits, place, sets[node, 1], members, start),
                    *(masks, group, ones, one, spare),
                )
            elif narrow:
                left, right = _part(
                    *(bits, place, sets[node, 1], members, start, count),
                    *(masks, group, ones, one, spare),
                )
            else:
                left, right = _part_any(
                    *(route, node, codes, numbers, members, start, count),
                    *(masks, group, ones, one, spare),
                )
            splits[first, GROUP] = group
            splits[first, LEFT] = splits[first, RIGHT] = 0
            for side in range(2):
                some = right if side else left
                if some == 0:
                    continue
                below = child + side
                if nodes[below, FEATURE] == LEAF:
                    if side:
                        for k in range(some):
                            leaf_members[entry + k] = spare[k]
                    leaves[leaf, LEAF_AT], leaves[leaf, LEAF_START] = nodes[below, CHILD], entry
                    splits[first, LEFT + side] = -1 - entry
                    leaf, entry = leaf + 1, entry + some
                else:
                    if side:
                        for k in range(some):
                            members[member + k] = spare[k]
                    splits[split, NODE], splits[split, COUNT] = below, some
                    splits[split, START] = splits[first, LEFT + side] = member - origin
                    split, member = split + 1, member + some
            group += groups
            first += 1
        trees[at, SPLITS_TO], trees[at, LEAVES_TO] = split, leaf
        ends[0], ends[1], ends[2], ends[3], ends[4] = split, member, group, leaf, entry
        ends[5] = max(ends[5], member - origin)
        leaves[leaf, LEAF_START] = entry
    return len(roots) - 1


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
