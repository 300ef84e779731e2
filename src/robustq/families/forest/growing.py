"""Growing generative trees, as a random forest grows its trees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from robustq.blocks import for_each_block
from robustq.memory import require_memory

from .model import Forest, number_slots, split_kinds
from .nodes import FEATURE, FIRST, LENGTH
from .planting import (
    Features,
    Room,
    Sample,
    Shrinkage,
    Structure,
    Tree,
    assemble,
    count,
    estimate,
)
from .shrinking import Grown, choose_shrinkage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robustq.arrays import Codes, Floats
    from robustq.tables import Rows

__all__ = ["Options", "grow_forest", "grow_tree", "place_rows", "rank"]

MOST_KEPT = 1 << 25  # rows of trees that are kept until they told how much leaves are shrunk


@dataclass(frozen=True)
class Options:
    """How trees grow; see `GenerativeForestClassifier`."""

    max_features: int
    max_depth: int
    min_samples_split: float
    min_samples_leaf: float
    purity: float
    entropy: bool
    bootstrap: bool


class Ranks(NamedTuple):
    """The sample as `grow` reads it: codes by column, with the numbers as ranks among `values`."""

    columns: Codes
    sizes: Codes
    values: list[Floats]


def grow_forest(
    sample: Sample,
    features: Features,
    options: Options,
    seeds: Sequence[np.random.SeedSequence],
    threads: int | None,
) -> tuple[Forest, Shrinkage | None]:
    """Return a forest with one tree for each seed, and how much its leaves are shrunk.

    It is the same for any number of threads.
    """
    ranks, features = rank(sample.rows, features), features.with_base(sample)
    require_memory(
        8 * sample.classes * int(ranks.sizes.max(initial=1)),
        f"counting {sample.classes:,} classes",
        "is the target a number rather than a class?",
    )
    trees: list[Tree | None] = [None] * len(seeds)
    kept: dict[int, Grown] = {}

    def grow(index: int) -> Grown:
        return _grow_one(sample, ranks, features, options, seeds[index], len(seeds))

    def keep(block: slice) -> None:
        kept[block.start] = grow(block.start)

    if features.shrinkage is not None and options.bootstrap:
        few = max(1, MOST_KEPT // len(sample.labels))
        for_each_block(keep, min(few, len(seeds)), 1, threads)
        found = choose_shrinkage([kept[i] for i in sorted(kept)], sample, features)
        features = replace(features, shrinkage=found or features.shrinkage)

    def work(block: slice) -> None:
        tree = kept.pop(block.start) if block.start in kept else grow(block.start)
        trees[block.start] = estimate(tree.counted, features)

    for_each_block(work, len(seeds), 1, threads)
    return assemble(trees, features), features.shrinkage


def _grow_one(
    sample: Sample,
    ranks: Ranks,
    features: Features,
    options: Options,
    seed: np.random.SeedSequence,
    trees: int,
) -> Grown:
    """Return one of so many trees, and which rows it did not grow on."""
    rng = np.random.default_rng(seed)
    own = sample.resample(rng) if options.bootstrap else sample
    structure, heavier = grow_tree(own, ranks, features, options, int(rng.integers(2**62)))
    out_of_bag = own.weights == 0.0
    if features.shrinkage is not None and options.bootstrap:
        structure, own = _settle(structure, heavier, sample, features), sample
    return Grown(structure, count(structure, own, features, trees), out_of_bag)


def rank(rows: Rows, features: Features) -> Ranks:
    """Replace numbers by their ranks."""
    columns = rows.codes.T.copy()
    sizes = np.array(features.sizes, dtype=np.int32)
    values = []
    for slot, feature in enumerate(features.numeric):
        numbers = rows.numbers[:, slot]
        found, positions = np.unique(numbers, return_inverse=True)
        missing = np.isnan(numbers)
        columns[feature] = np.where(missing, -1, positions)
        values.append(found)
        sizes[feature] = len(found)
    return Ranks(columns, sizes, values)


def grow_tree(
    sample: Sample, ranks: Ranks, features: Features, options: Options, seed: int
) -> tuple[Structure, Codes]:
    """Return a tree, and to which side of each node a missing value goes."""
    from . import _growing_kernels  # noqa: PLC0415 (numba is imported when it is needed)

    rows = int(np.count_nonzero(sample.weights))
    # Memory that is asked for and never written to costs nothing.
    nodes, heavier = np.empty((2 * rows, 4), dtype=np.int32), np.empty(2 * rows, dtype=np.int32)
    kinds = split_kinds(features.sizes, features.numeric).copy()
    kinds[list(features.ordered)] = _growing_kernels.ORDERED
    leaf_starts, used = np.empty(rows + 1, dtype=np.int64), np.empty(3, dtype=np.int64)
    stack = np.empty((rows + 1, 4), dtype=np.int64)
    capacity = 16 * rows
    while True:
        room = Room.of(int(ranks.sizes.max(initial=1)), sample.classes)
        order = np.flatnonzero(sample.weights).astype(np.int32)
        lists = np.empty(capacity, dtype=np.int32)
        full = _growing_kernels.grow(
            ranks.columns,
            kinds,
            sample.labels,
            sample.weights,
            sample.repeats,
            np.array(
                [options.max_features, options.max_depth, options.entropy, seed], dtype=np.int64
            ),
            np.array([options.min_samples_split, options.min_samples_leaf, options.purity]),
            order,
            heavier,
            nodes,
            lists,
            leaf_starts,
            used,
            *room,
            np.arange(len(ranks.columns)),
            stack,
            np.empty(rows, dtype=np.int32),
            np.empty((2, rows)),
        )
        if not full:
            break
        capacity *= 4
    nodes = nodes[: used[0]].copy()
    _set_thresholds(nodes, features, ranks.values)
    lists, leaf_starts = lists[: used[1]].copy(), leaf_starts[: used[2] + 1].copy()
    return Structure(nodes, lists, order, leaf_starts), heavier[: used[0]]


def _settle(structure: Structure, heavier: Codes, sample: Sample, features: Features) -> Structure:
    """Return a tree with all rows of a sample, not only those that it grew on."""
    return place_rows(structure, heavier, sample.rows, features)[0]


def place_rows(
    structure: Structure, heavier: Codes, rows: Rows, features: Features
) -> tuple[Structure, Codes]:
    """Return a tree with all of some rows, some being in place already, and where each ends."""
    from . import _route_kernels  # noqa: PLC0415 (numba is imported when it is needed)

    nodes = structure.nodes
    kinds = split_kinds(features.sizes, features.numeric)
    leaf_starts = np.zeros(len(structure.leaf_starts), dtype=np.int64)
    order = np.empty(len(rows), dtype=np.int32)
    ends = np.full(len(rows), -1, dtype=np.int32)
    _route_kernels.settle(
        *(nodes, nodes.view(np.uint64), nodes.view(np.float64), structure.lists),
        *(kinds, number_slots(kinds), heavier),
        *(np.ascontiguousarray(rows.codes), np.ascontiguousarray(rows.numbers)),
        *(structure.order, structure.leaf_starts),
        *(ends, leaf_starts, order),
    )
    return Structure(nodes, structure.lists, order, leaf_starts), ends


def _set_thresholds(nodes: Codes, features: Features, values: list[Floats]) -> None:
    """Replace the ranks on both sides of a cut by the number midway between them."""
    thresholds = nodes.view(np.float64)
    for feature, numbers in zip(features.numeric, values, strict=True):
        here = np.flatnonzero(nodes[:, FEATURE] == feature)
        low, high = numbers[nodes[here, FIRST]], numbers[nodes[here, LENGTH]]
        middle = low + 0.5 * (high - low)
        thresholds[here, 1] = np.where(middle < high, middle, low)
