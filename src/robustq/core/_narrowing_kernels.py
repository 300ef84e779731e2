"""What some of the rows reach, out of what all of them reach: see `gaps.Reached`."""

import numpy as np
from numba import types

from robustq.kernels import (
    code_matrix_out,
    code_vector,
    code_vector_out,
    float_vector_out,
    inner,
    int_vector_out,
    kernel,
)
from robustq.vectors import LANES

from ._climb_kernels import LEAVES, MASS, MEMBERS, ONES, OTHERS, SPLITS, TREES, reaches
from .gaps import (
    END,
    ENTRIES_FROM,
    FIRST,
    JOINS_FROM,
    JOINS_TO,
    LEAF_AT,
    LEAF_START,
    LEAVES_FROM,
    MIDDLE,
    NODE,
    SPLITS_FROM,
)

__all__ = ["narrow", "pad"]


@inner
def pad(places, end):
    """Write places after the last one: whoever reads eight of them at once may read these."""
    for lane in range(LANES):
        places[end + lane] = 0


@inner
def _narrow_entries(reached, tree, number, entry, where, members, mass):
    """Write the entries of rows that are asked for, and where each went; return the end."""
    origin, first = np.int64(reached[TREES][tree, ENTRIES_FROM]), entry
    count = np.int64(reached[TREES][tree + 1, ENTRIES_FROM]) - origin
    for k in range(count):
        who = number[reached[MEMBERS][origin + k]]
        where[k] = entry - first
        members[entry], mass[entry] = who, reached[MASS][origin + k]
        entry += who >= 0
    where[count] = entry - first
    return entry


@inner
def _narrow_leaves(reached, tree, first, where, leaf, leaves):
    """Write the leaves that are still reached; return the end."""
    trees, old = reached[TREES], reached[LEAVES]
    origin = np.int64(trees[tree, ENTRIES_FROM])
    for at in range(trees[tree, LEAVES_FROM], trees[tree + 1, LEAVES_FROM]):
        start = where[old[at, LEAF_START] - origin]
        leaves[leaf, LEAF_AT], leaves[leaf, LEAF_START] = old[at, LEAF_AT], first + start
        leaf += where[old[at + 1, LEAF_START] - origin] > start
    return leaf


@inner
def _narrow_joins(reached, origin, i, number, where, join, ones, others):
    """Write where rows that are asked for go both ways; return the end."""
    for k in range(reached[SPLITS][i, JOINS_FROM], reached[SPLITS][i, JOINS_TO]):
        one = reached[ONES][k]
        ones[join], others[join] = where[one], where[reached[OTHERS][k]]
        join += number[reached[MEMBERS][origin + one]] >= 0
    return join


@kernel(
    types.void(
        *(code_vector, *reaches, code_vector_out, int_vector_out, code_matrix_out),
        *(code_vector_out, code_vector_out, code_matrix_out, code_vector_out),
        *(float_vector_out, code_matrix_out, code_matrix_out),
    )
)
def narrow(
    number,
    splits,
    ones,
    others,
    leaves,
    members,
    mass,
    tops,
    trees,
    where,
    ends,
    new_splits,
    new_ones,
    new_others,
    new_leaves,
    new_members,
    new_mass,
    new_tops,
    new_trees,
):
    """Write what some rows reach.

    Parameters
    ----------
    number : (rows,), which one of those asked for a row is, −1 if it is none
    splits … trees : what all rows reach
    where : to work in, for all entries of a tree, and one more
    ends : (4,), how much is filled of splits, joins, leaves and entries; written
    new_splits … new_trees : written
    """
    reached = splits, ones, others, leaves, members, mass, tops, trees
    split = join = leaf = entry = np.int64(0)
    for tree in range(len(trees) - 1):
        new_trees[tree, SPLITS_FROM], new_trees[tree, ENTRIES_FROM] = split, entry
        new_trees[tree, LEAVES_FROM], first = leaf, entry
        entry = _narrow_entries(reached, tree, number, entry, where, new_members, new_mass)
        leaf = _narrow_leaves(reached, tree, first, where, leaf, new_leaves)
        for i in range(trees[tree, SPLITS_FROM], trees[tree + 1, SPLITS_FROM]):
            start, stop = where[splits[i, FIRST]], where[splits[i, END]]
            if start == stop:
                continue
            new_splits[split, NODE], new_splits[split, FIRST] = splits[i, NODE], start
            new_splits[split, MIDDLE] = where[splits[i, MIDDLE]]
            new_splits[split, END], new_splits[split, JOINS_FROM] = stop, join
            origin = np.int64(trees[tree, ENTRIES_FROM])
            join = _narrow_joins(reached, origin, i, number, where, join, new_ones, new_others)
            new_splits[split, JOINS_TO] = join
            split += 1
        for row in range(len(number)):
            if number[row] >= 0:
                new_tops[tree, number[row]] = where[tops[tree, row]]
    last = len(trees) - 1
    new_trees[last, SPLITS_FROM], new_trees[last, ENTRIES_FROM] = split, entry
    new_trees[last, LEAVES_FROM], new_leaves[leaf, LEAF_START] = leaf, entry
    pad(new_ones, join)
    pad(new_others, join)
    pad(new_members, entry)
    ends[0], ends[1], ends[2], ends[3] = split, join, leaf, entry
