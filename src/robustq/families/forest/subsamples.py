"""Forests whose trees each grow on some of the rows, wherever these are.

Which rows a tree grows on is told by a hash of its seed and the number of a row: the rows with the
smallest ones. So parts of a table can tell alone, and the forest is the same for any parts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from robustq.blocks import for_each_block
from robustq.learning.counts import Counts
from robustq.learning.folds import draw_numbers
from robustq.tables import Rows

from .growing import grow_tree, place_rows, rank
from .planting import (
    BASE_COUNT,
    Counted,
    Sample,
    Structure,
    assemble,
    count,
    estimate,
    without_class,
)
from .shrinking import MOST_TRIED, Grown, choose_shrinkage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from robustq.arrays import Bools, Codes, Floats, Indices

    from .growing import Options
    from .model import Forest
    from .planting import Features, Shrinkage, Tree

__all__ = ["OneTable", "RowSource", "grow_subsampled"]

MOST_CELLS = 1 << 24  # of leaves that are counted in one pass


class RowSource(Protocol):
    """Rows to learn from, in one place or in parts."""

    def map(self, work: Callable[[Rows, Indices, Floats, int], Any]) -> Any:
        """Return the sum of what some work makes of rows, labels, weights, the first's number."""

    def spread(self, work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Return what some work makes of each item."""


@dataclass(frozen=True)
class OneTable:
    """Rows in one place."""

    rows: Rows
    labels: Indices
    weights: Floats
    threads: int | None

    def map(self, work: Callable[[Rows, Indices, Floats, int], Any]) -> Any:
        """Do it here."""
        return work(self.rows, self.labels, self.weights, 0)

    def spread(self, work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Do it on some threads."""
        found: list[Any] = [None] * len(items)

        def fill(block: slice) -> None:
            found[block.start] = work(items[block.start])

        for_each_block(fill, len(items), 1, self.threads)
        return found


@dataclass(frozen=True)
class Drawn:
    """The rows with the smallest random numbers, at most so many, sorted by these.

    `index` is the number of each row in the table.
    """

    numbers: Any
    index: Indices
    rows: Rows
    labels: Indices
    weights: Floats
    most: int

    def __add__(self, other: Drawn) -> Drawn:
        """Return the smallest of both."""
        return Drawn(
            np.concatenate([self.numbers, other.numbers]),
            np.concatenate([self.index, other.index]),
            Rows(
                np.concatenate([self.rows.codes, other.rows.codes]),
                np.concatenate([self.rows.numbers, other.rows.numbers]),
            ),
            np.concatenate([self.labels, other.labels]),
            np.concatenate([self.weights, other.weights]),
            self.most,
        ).cut()

    def cut(self) -> Drawn:
        """Return the smallest, sorted."""
        order = np.argsort(self.numbers, kind="stable")[: self.most]
        return Drawn(
            *(self.numbers[order], self.index[order], self.rows[order]),
            *(self.labels[order], self.weights[order], self.most),
        )


class Many(NamedTuple):
    """Several things that add up, each with its own."""

    each: list[Any]

    def __add__(self, other: Many) -> Many:  # type: ignore[override]
        """Return the sum of each."""
        return Many([one + another for one, another in zip(self.each, other.each, strict=True)])


def grow_subsampled(
    source: RowSource,
    features: Features,
    find_options: Callable[[Sample], Options],
    seeds: Sequence[np.random.SeedSequence],
    most: int,
    classes: int,
) -> tuple[Forest, Shrinkage | None]:
    """Return a forest each of whose trees grew on some of the rows.

    Shrunk leaves learn from all rows, others from the rows that their tree grew on.

    Parameters
    ----------
    source : RowSource
    features : Features
    find_options : callable
        Returns how a tree grows on a sample.
    seeds : sequence of SeedSequence
        One for each tree, and one for the rows on which the shrinkage is tried.
    most : int
        How many rows a tree grows on.
    classes : int
    """
    numbers = [[int(n) for n in np.random.default_rng(s).integers(2**62, size=2)] for s in seeds]
    draws = [*((number, most) for number, _ in numbers[:-1]), (numbers[-1][0], MOST_TRIED)]
    *drawn, tried = source.map(partial(_draw, draws)).each
    if features.shrinkage is not None:
        features = _with_base(source, features)
    samples = [Sample.of(one.rows, one.labels, one.weights, classes) for one in drawn]
    items = [
        (sample, find_options(sample), growing)
        for sample, (_, growing) in zip(samples, numbers[:-1], strict=True)
    ]
    trees = source.spread(partial(_grow, features, len(samples)), items)
    if features.shrinkage is None:
        return assemble([estimate(tree.counted, features) for tree in trees], features), None
    counted = _count_all(source, features, trees, classes, samples[0].unit)
    rows = Sample(
        *(tried.rows, tried.labels.astype(np.int32), tried.weights, np.ones(len(tried.labels))),
        classes,
    )
    grown = [
        _settle(tree, own, rows, features, ~np.isin(tried.index, one.index))
        for tree, own, one in zip(trees, counted, drawn, strict=True)
    ]
    found = choose_shrinkage(grown, rows, features)
    features = replace(features, shrinkage=found or features.shrinkage)
    planted: list[Tree | None] = [estimate(own, features) for own in counted]
    return assemble(planted, features), features.shrinkage


def _draw(
    draws: list[tuple[int, int]], rows: Rows, labels: Indices, weights: Floats, first: int
) -> Many:
    """Return the rows that trees of some seeds grow on, at most so many each."""
    counted = np.flatnonzero(weights)
    found = []
    for seed, most in draws:
        numbers = draw_numbers(seed, first, len(labels))[counted]
        chosen = counted
        if most < len(counted):
            # A row farther back than so many of its own part is drawn by nobody.
            smallest = np.argpartition(numbers, most)[:most]
            numbers, chosen = numbers[smallest], counted[smallest]
        own = Drawn(*(numbers, first + chosen, rows[chosen], labels[chosen], weights[chosen]), most)
        found.append(own.cut())
    return Many(found)


def _with_base(source: RowSource, features: Features) -> Features:
    """Return features with the distribution that leaves are shrunk to: see `Features`."""
    counts = source.map(partial(_count_values, features.sizes))
    shares = []
    for feature in range(len(features.sizes)):
        if feature not in features.numeric:
            own = counts.layout.feature(counts.values, feature)[:, 0]
            shares.append((own + BASE_COUNT) / (own.sum() + BASE_COUNT * len(own)))
    return replace(features, base=np.concatenate([np.empty(0), *shares]))


def _count_values(
    sizes: tuple[int, ...], rows: Rows, labels: Indices, weights: Floats, _first: int
) -> Counts:
    return Counts.of(rows.codes, np.zeros_like(labels), weights, sizes, 1)


class Branch(NamedTuple):
    """A tree before its leaves have learned from all rows.

    Attributes
    ----------
    nodes, lists : ndarray
        See `Structure`.
    heavier : ndarray
        To which side of each node a missing value goes.
    leaves : int
    counted : Counted, optional
        What its leaves count in the rows that it grew on, where they learn from these alone.
    """

    nodes: Codes
    lists: Codes
    heavier: Codes
    leaves: int
    counted: Counted | None


def _grow(features: Features, trees: int, item: tuple[Sample, Options, int]) -> Branch:
    sample, options, seed = item
    structure, heavier = grow_tree(sample, rank(sample.rows, features), features, options, seed)
    alone = count(structure, sample, features, trees) if features.shrinkage is None else None
    leaves = len(structure.leaf_starts) - 1
    return Branch(structure.nodes, structure.lists, heavier, leaves, alone)


def _place(branch: Branch, rows: Rows, features: Features) -> tuple[Structure, Codes]:
    """Return a tree with some rows, and the leaf where each of them ends."""
    empty = Structure(
        branch.nodes,
        branch.lists,
        np.empty(0, dtype=np.int32),
        np.zeros(branch.leaves + 1, dtype=np.int64),
    )
    return place_rows(empty, branch.heavier, rows, features)


def _count_all(
    source: RowSource, features: Features, trees: list[Branch], classes: int, unit: float
) -> list[Counted]:
    """Return what the leaves of all trees count in all rows, some trees at a time."""
    sizes = (*features.sizes, classes)
    found: list[Counted] = []
    group: list[Branch] = []
    cells = 0
    for tree in trees:
        more = sum(sizes) * tree.leaves
        if group and cells + more > MOST_CELLS:
            found += _count_group(source, features, group, sizes, unit)
            group, cells = [], 0
        group.append(tree)
        cells += more
    return found + _count_group(source, features, group, sizes, unit)


def _count_group(
    source: RowSource, features: Features, trees: list[Branch], sizes: tuple[int, ...], unit: float
) -> list[Counted]:
    counts = source.map(partial(_count_leaves, features, trees, sizes)).each
    return [
        _tabulate(tree, own, features, sizes[-1], len(trees), unit)
        for tree, own in zip(trees, counts, strict=True)
    ]


def _count_leaves(
    features: Features,
    trees: list[Branch],
    sizes: tuple[int, ...],
    rows: Rows,
    labels: Indices,
    weights: Floats,
    _first: int,
) -> Many:
    """Count values and labels by leaf: as values within classes, the leaves being the classes."""
    codes = np.column_stack([rows.codes, labels]).astype(np.int32)
    return Many(
        [
            Counts.of(
                *(codes, _place(tree, rows, features)[1].astype(np.int64), weights),
                *(sizes, tree.leaves),
            )
            for tree in trees
        ]
    )


def _tabulate(
    tree: Branch, counts: Counts, features: Features, classes: int, trees: int, unit: float
) -> Counted:
    """Return counts of leaves as `count` returns them.

    It is given rows that count the same: one for each label and each value of each leaf, all else
    missing. Rows of values are of one class more, which is taken away again.
    """
    codes, labels, weights, leaves = [], [], [], []
    for feature in range(len(features.sizes) + 1):
        values, leaf = np.nonzero(counts.layout.feature(counts.values, feature))
        own = np.full((len(values), len(features.sizes)), -1, dtype=np.int32)
        if feature < len(features.sizes):
            own[:, feature] = values
        codes.append(own)
        labels.append(values if feature == len(features.sizes) else np.full(len(values), classes))
        weights.append(counts.layout.feature(counts.values, feature)[values, leaf])
        leaves.append(leaf)
    ends = np.concatenate(leaves)
    sample = Sample(
        Rows(np.concatenate(codes), np.empty((len(ends), 0))),
        np.concatenate(labels).astype(np.int32),
        np.concatenate(weights),
        np.ones(len(ends)),
        classes + 1,
    )
    structure = Structure(
        tree.nodes,
        tree.lists,
        np.argsort(ends, kind="stable").astype(np.int32),
        np.searchsorted(np.sort(ends), np.arange(tree.leaves + 1)),
    )
    found = count(structure, sample, features, trees)
    return without_class(found, unit)


def _settle(
    tree: Branch, counted: Counted, rows: Sample, features: Features, out_of_bag: Bools
) -> Grown:
    return Grown(_place(tree, rows.rows, features)[0], counted, out_of_bag)
