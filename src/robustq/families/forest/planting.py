"""Planting trees: from the structure of a tree and a sample to weights and leaves."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from robustq.exceptions import UnsupportedError
from robustq.memory import require_memory
from robustq.tables import Rows, find_distinct

from .model import (
    NORMAL,
    Forest,
    find_parents,
    measure_depth,
    number_slots,
    split_kinds,
    start_bases,
)
from .nodes import CHILD, FEATURE, FIRST, LEAF, NARROW_SIZE, NUMERIC, WIDE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from robustq.arrays import Codes, Floats, Indices

__all__ = [
    "Counted",
    "Features",
    "Room",
    "Sample",
    "Shrinkage",
    "Structure",
    "Tree",
    "assemble",
    "count",
    "count_allowed",
    "estimate",
    "measure_cells",
    "measure_heights",
    "plant",
    "without_class",
]

MOST_ENTRIES = 2**31 - 1  # positions are 32 bits
MOST_REPEATS = 2**53  # whole numbers beyond are no longer exact

BASE_COUNT = 0.5  # what is added to the count of a value, or a class, of all rows
NO_BASE = np.empty(0)


class Shrinkage(NamedTuple):
    """How many rows it counts for what is known without a leaf.

    Attributes
    ----------
    features : float
        Of the distribution of a feature in all rows.
    classes : float
        Of the classes of the parent.
    """

    features: float = 50.0
    classes: float = 2.0


@dataclass(frozen=True)
class Features:
    """What there is to know about the columns before a tree grows.

    Attributes
    ----------
    sizes : tuple of int
        How many categories each feature has; ignored for numeric features.
    numeric : tuple of int
        Which features are numbers.
    smoothing : float
    min_sd : float
        The smallest standard deviation in a leaf, as a share of that of the column.
    ordered : tuple of int
        Which features are bins: a split does not part neighbours.
    shrinkage : Shrinkage, optional
        None adds `smoothing` to counts instead.
    base : ndarray
        That distribution; see `Forest`.
    """

    sizes: tuple[int, ...]
    numeric: tuple[int, ...]
    smoothing: float = 0.0
    min_sd: float = 0.0
    ordered: tuple[int, ...] = ()
    shrinkage: Shrinkage | None = None
    base: Floats = field(default_factory=lambda: NO_BASE, compare=False)

    def with_base(self, sample: Sample) -> Features:
        """Return the same, with the distribution that leaves are shrunk to, if they are."""
        if self.shrinkage is None:
            return self
        shares = [NO_BASE]
        for feature, size in enumerate(self.sizes):
            if feature not in self.numeric:
                codes = sample.rows.codes[:, feature]
                known = codes >= 0
                count = np.bincount(codes[known], sample.weights[known] / sample.unit, size)
                shares.append((count + BASE_COUNT) / (count.sum() + BASE_COUNT * size))
        return replace(self, base=np.concatenate(shares))


@dataclass(frozen=True)
class Sample:
    """Rows to learn from, each kind once, in an order that does not depend on theirs.

    Attributes
    ----------
    rows : Rows
    labels : ndarray of int32
    weights : ndarray
        The sum of the weights of the rows of this kind.
    repeats : ndarray
        How often they count for the sizes of nodes: whole weights are repetitions, and
        with others every row counts once.
    classes : int
    """

    rows: Rows
    labels: Codes
    weights: Floats
    repeats: Floats
    classes: int

    @classmethod
    def of(cls, rows: Rows, labels: Indices, weights: Floats, classes: int) -> Sample:
        """Merge equal rows; those of weight 0 are left out."""
        counted = np.flatnonzero(weights)
        if len(counted) < len(weights):
            rows, labels, weights = rows[counted], labels[counted], weights[counted]
        keys = np.column_stack([rows.bits, labels.astype(np.int32)])
        firsts, twins = find_distinct(keys)
        order = np.lexsort(keys[firsts].T)
        whole = bool(np.all(weights == np.floor(weights)) and weights.sum() < MOST_REPEATS)
        # Sums of fractions depend on their order: make it one of their own.
        rank = np.arange(len(twins)) if whole else np.lexsort((weights, twins))
        total = np.bincount(twins[rank], weights[rank]).astype(np.float64)
        repeats = total if whole else np.bincount(twins)
        return cls(
            rows[firsts[order]],
            labels[firsts[order]].astype(np.int32),
            total[order],
            repeats[order].astype(np.float64),
            classes,
        )

    @property
    def unit(self) -> float:
        """The weight of a row: 1 where weights are whole, else their mean."""
        return float(self.weights.sum() / self.repeats.sum())

    def resample(self, rng: np.random.Generator) -> Sample:
        """Draw a bootstrap sample of each class; every class keeps its weight."""
        weights, repeats = np.zeros_like(self.weights), np.zeros_like(self.repeats)
        for c in range(self.classes):
            members = np.flatnonzero(self.labels == c)
            if not len(members):
                continue
            total = self.weights[members].sum()
            draws = self.repeats[members].sum()
            drawn = rng.multinomial(int(draws), self.weights[members] / total)
            repeats[members] = drawn
            weights[members] = drawn * (total / draws)
        return Sample(self.rows, self.labels, weights, repeats, self.classes)


@dataclass(frozen=True)
class Structure:
    """A tree without what its leaves hold, and the rows sorted by leaf."""

    nodes: Codes
    lists: Codes
    order: Codes
    leaf_starts: Indices


@dataclass(frozen=True)
class Tree:
    """One tree, in the arrays of `Forest`."""

    nodes: Codes
    lists: Codes
    weights: Floats
    rows: Floats
    class_probs: Floats
    seen: NDArray[np.uint64]
    starts: Indices | Codes
    entry_codes: Codes
    entry_probs: Floats
    normals: Floats


class Room(NamedTuple):
    """What kernels work in; see `_growing_kernels.grow`."""

    hist: Floats
    reals: Floats
    codes: Codes
    by_class: Floats
    present: Codes

    @classmethod
    def of(cls, values: int, classes: int) -> Room:
        """Return room for so many values and classes."""
        from . import _growing_kernels as kernels  # noqa: PLC0415 (numba, when it is needed)

        values = max(1, values)
        return cls(
            np.zeros((values, classes)),
            np.zeros((len(kernels.REALS), values)),
            np.zeros((len(kernels.CODES), values), dtype=np.int32),
            np.empty((len(kernels.BY_CLASS), classes)),
            np.empty(classes, dtype=np.int32),
        )


class Counted(NamedTuple):
    """A tree that holds counts where its probabilities will be.

    Attributes
    ----------
    tree : Tree
        Of the entries of a cell, the first counts all that is known of the feature.
    masses : ndarray
        See `Cells`.
    unit : float
        See `Sample`.
    """

    tree: Tree
    masses: Floats
    unit: float


def plant(structure: Structure, sample: Sample, features: Features, trees: int = 1) -> Tree:
    """Return the tree of a structure, its weights and leaves estimated on a sample."""
    return estimate(count(structure, sample, features, trees), features)


def count(structure: Structure, sample: Sample, features: Features, trees: int = 1) -> Counted:
    """Return the tree of a structure, its weights and what its leaves count in a sample."""
    from . import _leaf_kernels  # noqa: PLC0415 (numba is imported when it is needed)

    nodes, order, leaf_starts = structure.nodes, structure.order, structure.leaf_starts
    kinds = split_kinds(features.sizes, features.numeric)
    leaves = len(leaf_starts) - 1
    require_memory(
        8 * leaves * sample.classes * trees,
        f"{trees} trees with {leaves:,} leaves for {sample.classes:,} classes",
        "is the target a number rather than a class? Else lower max_depth, or raise "
        "min_samples_leaf",
    )
    cells = measure_cells(nodes, structure.lists, features)
    categorical, numeric = cells.masses.shape[1], len(features.numeric)
    starts = np.empty(leaves * categorical + 1, dtype=np.int64)
    seen = np.empty(leaves * categorical, dtype=np.uint64)
    room = Room.of(max(features.sizes, default=1), 1)
    last = np.full(len(room.hist), -1, dtype=np.int64)
    codes = np.ascontiguousarray(sample.rows.codes)
    listed = _leaf_kernels.find_entries(codes, kinds, order, leaf_starts, last, seen, starts)
    tree = Tree(
        nodes,
        structure.lists,
        np.empty(len(nodes)),
        np.empty(len(nodes)),
        np.zeros((leaves, sample.classes)),
        seen,
        starts,
        np.empty(listed, dtype=np.int32),
        np.empty(starts[-1]),
        np.empty((leaves * numeric, len(NORMAL))),
    )
    _leaf_kernels.count_values(
        *(codes, np.ascontiguousarray(sample.rows.numbers), sample.labels, sample.weights),
        *(kinds, order, leaf_starts, cells.bounds, _describe_columns(sample, features.min_sd)),
        *(seen, starts, room.codes, room.reals, room.hist.reshape(-1)),
        *(tree.class_probs, tree.entry_codes, tree.entry_probs, tree.normals),
    )
    measure_heights(tree.normals)
    _leaf_kernels.share(nodes, tree.class_probs.sum(axis=1), tree.rows, tree.weights)
    return Counted(tree, cells.masses, sample.unit)


def without_class(counted: Counted, unit: float) -> Counted:
    """Return counts without those of the last class, as if its rows had known no label."""
    from . import _leaf_kernels  # noqa: PLC0415 (numba is imported when it is needed)

    probs = np.ascontiguousarray(counted.tree.class_probs[:, :-1])
    tree = replace(counted.tree, class_probs=probs)
    _leaf_kernels.share(tree.nodes, probs.sum(axis=1), tree.rows, tree.weights)
    return Counted(tree, counted.masses, unit)


def estimate(counted: Counted, features: Features) -> Tree:
    """Replace what the leaves of a tree count by probabilities."""
    from . import _leaf_kernels  # noqa: PLC0415 (numba is imported when it is needed)

    tree, shrinkage = counted.tree, features.shrinkage
    _leaf_kernels.estimate(
        split_kinds(features.sizes, features.numeric),
        counted.masses,
        features.smoothing if shrinkage is None else shrinkage.features * counted.unit,
        shrinkage is not None,
        features.base,
        start_bases(features.sizes, features.numeric),
        *(tree.seen, tree.starts, tree.entry_codes, tree.entry_probs),
    )
    probs = tree.class_probs
    if shrinkage is None:
        total = probs.sum(axis=1, keepdims=True) + features.smoothing * probs.shape[1]
        probs += features.smoothing
        probs /= total
    else:
        _leaf_kernels.shrink_classes(
            tree.nodes,
            shrinkage.classes * counted.unit,
            BASE_COUNT * counted.unit,
            np.empty((len(tree.nodes), probs.shape[1])),
            probs,
        )
    return tree


def measure_heights(normals: Floats) -> None:
    """Write the height of each normal density, 1 / ∫ e^(−z²/2) over its cell."""
    from . import _leaf_kernels  # noqa: PLC0415 (numba is imported when it is needed)

    if len(normals):
        _leaf_kernels.measure_heights(normals)


class Cells(NamedTuple):
    """What the leaves of a tree allow.

    Attributes
    ----------
    masses : ndarray of shape (leaves, categorical features)
        The base of the values allowed together, or how many they are.
    bounds : ndarray of shape (leaves, 2 · numeric features)
        All lower ends, then all upper ends.
    """

    masses: Floats
    bounds: Floats


def measure_cells(nodes: Codes, lists: Codes, features: Features) -> Cells:
    """Return what the leaves of a tree allow."""
    from . import _leaf_kernels  # noqa: PLC0415 (numba is imported when it is needed)

    kinds = split_kinds(features.sizes, features.numeric)
    parents = find_parents(nodes)
    depth = measure_depth(parents)
    words = -(-max(1, *features.sizes) // NARROW_SIZE)
    leaves = int(np.count_nonzero(nodes[:, FEATURE] == LEAF))
    numeric = len(features.numeric)
    cells = Cells(np.empty((leaves, len(kinds) - numeric)), np.empty((leaves, 2 * numeric)))
    _leaf_kernels.measure_cells(
        nodes,
        nodes.view(np.uint64),
        nodes.view(np.float64),
        lists,
        kinds,
        number_slots(kinds),
        np.array(features.sizes, dtype=np.int32),
        parents,
        features.base,
        start_bases(features.sizes, features.numeric),
        np.zeros((len(kinds) + 1, words), dtype=np.uint64),
        np.empty((depth + 1, words), dtype=np.uint64),
        np.repeat([[-np.inf], [np.inf]], numeric, axis=1),
        np.empty((depth + 1, 2)),
        np.empty((2, len(kinds) + depth + 1)),
        np.zeros(3 * depth + 3, dtype=np.int64),
        *cells,
    )
    return cells


def count_allowed(forest: Forest) -> Codes:
    """Return how many values each leaf allows, (leaves, categorical features)."""
    features = Features(forest.sizes, forest.numeric)
    allowed = np.empty((forest.leaves, len(forest.categorical)), dtype=np.int32)
    for first, last in itertools.pairwise(forest.roots.tolist()):
        nodes = forest.nodes[first:last].copy()
        inner = nodes[:, FEATURE] != LEAF
        leaves = nodes[~inner, CHILD].copy()
        nodes[inner, CHILD] -= first
        # A tree on its own numbers its leaves from 0.
        order = np.argsort(leaves)
        nodes[np.flatnonzero(~inner)[order], CHILD] = np.arange(len(leaves))
        allowed[np.sort(leaves)] = measure_cells(nodes, forest.lists, features).masses
    return allowed


def _describe_columns(sample: Sample, min_sd: float) -> Floats:
    """Return mean, standard deviation and its floor for each numeric column."""
    numbers = sample.rows.numbers
    if not numbers.shape[1]:
        return np.empty((3, 0))
    weights = np.where(np.isnan(numbers), 0.0, sample.weights[:, None])
    total = weights.sum(axis=0)
    total = np.where(total > 0.0, total, 1.0)
    values = np.nan_to_num(numbers)
    mean = (weights * values).sum(axis=0) / total
    sd = np.sqrt((weights * (values - mean) ** 2).sum(axis=0) / total)
    # A constant column has no scale of its own.
    sd = np.where(sd > 0.0, sd, np.maximum(np.abs(mean), 1.0))
    return np.stack([mean, sd, min_sd * sd])


def _require_positions(entries: int) -> None:
    if entries > MOST_ENTRIES:
        msg = (
            f"the leaves hold {entries:,} values, more than can be counted: lower max_depth, raise "
            "min_samples_leaf, or grow fewer trees"
        )
        raise UnsupportedError(msg)


def assemble(trees: list[Tree | None], features: Features) -> Forest:
    """Return the forest of some trees; the list is emptied on the way, to save memory."""
    parts = [tree for tree in trees if tree is not None]
    trees.clear()
    categorical = len(features.sizes) - len(features.numeric)
    count = {
        "nodes": [len(tree.nodes) for tree in parts],
        "lists": [len(tree.lists) for tree in parts],
        "leaves": [len(tree.class_probs) for tree in parts],
        "entries": [len(tree.entry_probs) for tree in parts],
        "listed": [len(tree.entry_codes) for tree in parts],
    }
    for sizes in count.values():
        _require_positions(sum(sizes))
    _require_positions(sum(count["leaves"]) * max(1, categorical, len(features.numeric)))
    offset = {name: np.cumsum([0, *sizes]) for name, sizes in count.items()}
    whole = _make_room(
        parts[0], {name: int(ends[-1]) for name, ends in offset.items()}, categorical
    )
    for index in range(len(offset["nodes"]) - 1):
        # Each tree is given back as soon as it is copied.
        tree = parts.pop(0)
        at = {name: int(ends[index]) for name, ends in offset.items()}
        _copy(tree, whole, at, categorical, features)
    whole.starts[-1] = offset["entries"][-1]
    return Forest(
        features.sizes,
        features.numeric,
        offset["nodes"].astype(np.int32),
        whole.nodes,
        whole.lists,
        whole.weights,
        whole.rows,
        whole.class_probs,
        whole.seen,
        np.asarray(whole.starts, dtype=np.int32),
        whole.entry_codes,
        whole.entry_probs,
        whole.normals,
        features.base,
    )


def _make_room(tree: Tree, count: dict[str, int], categorical: int) -> Tree:
    leaves, numeric = count["leaves"], len(tree.normals) // max(1, len(tree.class_probs))
    return Tree(
        np.empty((count["nodes"], 4), dtype=np.int32),
        np.empty(count["lists"], dtype=np.int32),
        np.empty(count["nodes"]),
        np.empty(count["nodes"]),
        np.empty((leaves, tree.class_probs.shape[1])),
        np.empty(leaves * categorical, dtype=np.uint64),
        np.empty(leaves * categorical + 1, dtype=np.int32),
        np.empty(count["listed"], dtype=np.int32),
        np.empty(count["entries"]),
        np.empty((leaves * numeric, len(NORMAL))),
    )


def _copy(
    tree: Tree, whole: Tree, at: dict[str, int], categorical: int, features: Features
) -> None:
    """Copy a tree to its place, and move what its positions refer to."""

    def place(name: str, start: int) -> None:
        part = getattr(tree, name)
        getattr(whole, name)[start : start + len(part)] = part

    place("nodes", at["nodes"])
    place("weights", at["nodes"])
    place("rows", at["nodes"])
    place("lists", at["lists"])
    place("class_probs", at["leaves"])
    place("entry_codes", at["listed"])
    place("entry_probs", at["entries"])
    numeric = len(features.numeric)
    place("normals", at["leaves"] * numeric)
    cells = slice(at["leaves"] * categorical, at["leaves"] * categorical + len(tree.seen))
    whole.starts[cells] = tree.starts[:-1] + at["entries"]
    whole.seen[cells] = tree.seen
    kinds = split_kinds(features.sizes, features.numeric)
    if categorical:
        wide = kinds[kinds != NUMERIC] == WIDE
        whole.seen[cells].reshape(-1, categorical)[:, wide] += np.uint64(at["listed"])
    nodes = whole.nodes[at["nodes"] : at["nodes"] + len(tree.nodes)]
    inner = nodes[:, FEATURE] >= 0
    nodes[:, CHILD] += np.where(inner, at["nodes"], at["leaves"]).astype(np.int32)
    split_by_list = inner & (kinds[nodes[:, FEATURE]] == WIDE)
    nodes[split_by_list, FIRST] += np.int32(at["lists"])
