"""scikit-learn's forests as generative forests: same trees, other leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.ensemble._forest import BaseForest
from sklearn.tree import BaseDecisionTree

from robustq.exceptions import InputError, UnsupportedError
from robustq.families.labels import locate_labels
from robustq.tables import Categorical, Encoding, Rows, Table
from robustq.tables.columns import as_numbers

from .cells import Cell, cut, pack_split, whole_cell
from .model import split_kinds
from .nodes import CHILD, FEATURE, LEAF
from .planting import Features, Sample, Structure, assemble, plant

if TYPE_CHECKING:
    from robustq.arrays import Bools, Floats, Indices

    from .model import Forest
    from .planting import Tree

__all__ = ["arrange", "convert", "locate", "read"]


def read(forest: Any) -> tuple[list[Any], np.ndarray[Any, Any]]:
    """Return the trees of a fitted forest, or of a single tree, and the classes."""
    if not isinstance(forest, (BaseForest, BaseDecisionTree)) or not is_classifier(forest):
        msg = (
            f"expected a RandomForestClassifier, an ExtraTreesClassifier or a single tree of "
            f"scikit-learn, got {type(forest).__name__}"
        )
        raise InputError(msg)
    if not hasattr(forest, "classes_"):
        msg = f"the {type(forest).__name__} is not fitted: call its fit first"
        raise InputError(msg)
    if forest.n_outputs_ != 1:
        msg = f"the {type(forest).__name__} predicts {forest.n_outputs_} targets: one is allowed"
        raise InputError(msg)
    trees = getattr(forest, "estimators_", [forest])
    return [tree.tree_ for tree in trees], forest.classes_


def arrange(forest: Any, table: Table) -> Table:
    """Return the table with the columns that the forest was fitted with, if both have names."""
    names = getattr(forest, "feature_names_in_", None)
    if names is None or table.names is None:
        return table
    return table.select([str(name) for name in names])


def locate(labels: np.ndarray[Any, Any], classes: np.ndarray[Any, Any]) -> Indices:
    """Return the positions of labels among the classes of the forest."""
    unknown = ~np.isin(labels, classes)
    if unknown.any():
        msg = (
            f"y holds {labels[unknown].tolist()[0]!r}, which is none of the forest's classes "
            f"{classes.tolist()!r}"
        )
        raise InputError(msg)
    return locate_labels(labels, classes)


def convert(
    trees: list[Any],
    table: Table,
    rows: Rows,
    labels: Indices,
    weights: Floats,
    encoding: Encoding,
    classes: int,
    features: Features,
) -> Forest:
    """Return the generative forest with these trees, estimated on these rows."""
    if trees[0].n_features != table.width:
        msg = f"X has {table.width} columns, and the forest was fitted with {trees[0].n_features}"
        raise InputError(msg)
    numbers = np.column_stack(
        [as_numbers(table.column(i), table.label(i)) for i in range(table.width)]
    ).astype(np.float32)
    sample = Sample(rows, labels.astype(np.int32), weights, weights, classes)
    features = features.with_base(sample)
    planted: list[Tree | None] = []
    for tree in trees:
        structure = _convert_tree(tree, tree.apply(numbers), weights, encoding, features)
        planted.append(plant(structure, sample, features, len(trees)))
    return assemble(planted, features)


def _convert_tree(
    tree: Any, ends: Indices, weights: Floats, encoding: Encoding, features: Features
) -> Structure:
    """Return a tree without the splits that no row passes one way, and its rows by leaf."""
    counted = np.flatnonzero(weights)
    busy = _count_rows(tree, ends[counted]) > 0
    kinds = split_kinds(features.sizes, features.numeric)
    nodes, lists = np.zeros((tree.node_count, 4), dtype=np.int32), list[int]()
    leaf_of = np.full(tree.node_count, -1)
    waiting, used, leaves = [(0, 0, whole_cell(features.sizes, features.numeric))], 1, 0
    while waiting:
        theirs, ours, cell = waiting.pop()
        left, right = tree.children_left, tree.children_right
        while left[theirs] >= 0 and not (busy[left[theirs]] and busy[right[theirs]]):
            theirs = left[theirs] if busy[left[theirs]] else right[theirs]
        if left[theirs] < 0:
            nodes[ours, FEATURE], nodes[ours, CHILD] = LEAF, leaves
            leaf_of[theirs] = leaves
            leaves += 1
            continue
        feature = int(tree.feature[theirs])
        nodes[ours, FEATURE], nodes[ours, CHILD] = feature, used
        split = _read_split(encoding, feature, float(tree.threshold[theirs]))
        pack_split(nodes[ours], split, kinds[feature], lists)
        cells = [cut(cell, feature, split, side) for side in (0, 1)]
        _require_values(cells, feature, split)
        waiting += [(right[theirs], used + 1, cells[1]), (left[theirs], used, cells[0])]
        used += 2
    leaf = leaf_of[ends[counted]]
    order = np.argsort(leaf, kind="stable")
    leaf_starts = np.searchsorted(leaf[order], np.arange(leaves + 1))
    return Structure(
        nodes[:used].copy(),
        np.array(lists, dtype=np.int32),
        counted[order].astype(np.int32),
        leaf_starts.astype(np.int64),
    )


def _require_values(cells: list[Cell], feature: int, split: Bools | float) -> None:
    """Raise if a split tells missing values from all others: no distribution can express that."""
    sides = [cell[feature] for cell in cells]
    empty = any(not isinstance(side, tuple) and not side.any() for side in sides)
    if empty or (isinstance(split, float) and not np.isfinite(split)):
        msg = (
            f"the forest has a split that tells missing values of column {feature} from all "
            "others: fit it on data without missing values"
        )
        raise UnsupportedError(msg)


def _count_rows(tree: Any, ends: Indices) -> Indices:
    """Return how many rows pass each node; children stand after their parents."""
    count = np.bincount(ends, minlength=tree.node_count)
    for node in range(tree.node_count - 1, -1, -1):
        if tree.children_left[node] >= 0:
            count[node] = count[tree.children_left[node]] + count[tree.children_right[node]]
    return count


def _read_split(encoding: Encoding, feature: int, threshold: float) -> Bools | float:
    """Return which categories go left, or the threshold for numbers."""
    column = encoding.columns[feature]
    if isinstance(column, Categorical):
        values = np.array(column.categories, dtype=np.float64).astype(np.float32)
        # In 64 bits: comparing with a Python number would round the threshold, too.
        return np.asarray(values.astype(np.float64) <= threshold)
    return _widen(threshold)


def _widen(threshold: float) -> float:
    """Return the largest float64 that, rounded to 32 bits, is not above the threshold.

    scikit-learn rounds numbers before it compares them.
    """
    if not np.isfinite(threshold):
        return threshold
    below = np.float32(threshold)
    if float(below) > threshold:
        below = np.nextafter(below, np.float32(-np.inf))
    above = np.nextafter(below, np.float32(np.inf))
    if np.isinf(above):
        return threshold
    middle = 0.5 * (float(below) + float(above))
    # A number in the middle is rounded to the neighbour with an even mantissa.
    even = int(below.view(np.uint32)) % 2 == 0
    return middle if even else float(np.nextafter(middle, -np.inf))
