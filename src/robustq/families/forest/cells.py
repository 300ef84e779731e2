"""Cells: what the path to a node allows, feature by feature."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from .nodes import CHILD, FEATURE, FIRST, LEAF, LENGTH, NARROW, NARROW_SIZE, NUMERIC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robustq.arrays import Bools, Codes

    from .model import Forest

__all__ = [
    "Cell",
    "allowed_values",
    "cell_of",
    "cut",
    "left_values",
    "pack_split",
    "walk",
    "whole_cell",
]

# For each feature which values are allowed, or between which numbers.
Cell: TypeAlias = "tuple[Bools | tuple[float, float], ...]"


def whole_cell(sizes: tuple[int, ...], numeric: tuple[int, ...]) -> Cell:
    """Return the cell of a root: everything."""
    return tuple(
        (-np.inf, np.inf) if feature in numeric else np.ones(size, dtype=bool)
        for feature, size in enumerate(sizes)
    )


def cut(cell: Cell, feature: int, split: Bools | float, side: int) -> Cell:
    """Return the cell of a child: 0 is the left one.

    Parameters
    ----------
    cell : Cell
    feature : int
    split : ndarray of bool, or float
        Which values go left, or the threshold.
    side : {0, 1}
    """
    part = cell[feature]
    if isinstance(part, tuple):
        threshold = float(split)
        low, high = part
        new = (max(low, threshold), high) if side else (low, min(high, threshold))
    else:
        new = part & ~np.asarray(split) if side else part & np.asarray(split)
    return (*cell[:feature], new, *cell[feature + 1 :])


def left_values(forest: Forest, node: int) -> Bools:
    """Return which values of its feature a node sends left."""
    feature = int(forest.nodes[node, FEATURE])
    values = np.arange(forest.sizes[feature])
    if forest.kinds[feature] == NARROW:
        return (forest.arrays.sets[node, 1] >> values.astype(np.uint64)) & np.uint64(1) == 1
    first, length = (int(x) for x in forest.nodes[node, [FIRST, LENGTH]])
    listed = np.isin(values, forest.lists[first : first + (length if length >= 0 else ~length)])
    return ~listed if length >= 0 else listed


def pack_split(node: Codes, split: Bools | float, kind: int, lists: list[int]) -> None:
    """Write a split into the last two columns of a node; a list goes to the end of `lists`."""
    if kind == NUMERIC:
        node.view(np.float64)[1] = split
    elif kind == NARROW:
        padded = np.zeros(NARROW_SIZE, dtype=bool)
        padded[: len(np.asarray(split))] = split
        node.view(np.uint64)[1] = np.packbits(padded, bitorder="little").view(np.uint64)[0]
    else:
        right = np.flatnonzero(~np.asarray(split))
        left = np.flatnonzero(split)
        node[FIRST] = len(lists)
        node[LENGTH] = len(right) if len(right) <= len(left) else ~len(left)
        lists += (right if len(right) <= len(left) else left).tolist()


def walk(forest: Forest, tree: int) -> Iterator[tuple[int, Cell]]:
    """Yield the nodes of a tree with their cells, parents before children."""
    waiting = [(int(forest.roots[tree]), whole_cell(forest.sizes, forest.numeric))]
    while waiting:
        node, cell = waiting.pop()
        yield node, cell
        feature, child = (int(x) for x in forest.nodes[node, [FEATURE, CHILD]])
        if feature != LEAF:
            split = read_split(forest, node)
            waiting += [(child + side, cut(cell, feature, split, side)) for side in (1, 0)]


def read_split(forest: Forest, node: int) -> Bools | float:
    """Return which values a node sends left, or its threshold."""
    if forest.kinds[forest.nodes[node, FEATURE]] == NUMERIC:
        return float(forest.arrays.thresholds[node, 1])
    return left_values(forest, node)


def cell_of(forest: Forest, node: int) -> tuple[Cell, set[int]]:
    """Return the cell of a node, and the features that are split on the way to it."""
    way = [node]
    while (parent := int(forest.parents[way[-1]])) >= 0:
        way.append(parent)
    cell, split = whole_cell(forest.sizes, forest.numeric), set()
    for child, parent in zip(way[-2::-1], way[:0:-1], strict=True):
        feature, left = (int(x) for x in forest.nodes[parent, [FEATURE, CHILD]])
        cell = cut(cell, feature, read_split(forest, parent), int(child != left))
        split.add(feature)
    return cell, split


def allowed_values(forest: Forest, leaf: int, feature: int) -> Codes:
    """Return the values of a categorical feature that the path to a leaf allows."""
    allowed = np.ones(forest.sizes[feature], dtype=bool)
    node = int(forest.leaf_nodes[leaf])
    while (parent := int(forest.parents[node])) >= 0:
        if forest.nodes[parent, FEATURE] == feature:
            left = left_values(forest, parent)
            allowed &= left if node == forest.nodes[parent, CHILD] else ~left
        node = parent
    return np.flatnonzero(allowed).astype(np.int32)
