"""Whether arrays from outside are a model: every index, range and sum is checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from robustq.documents.checking import SUM_TOLERANCE, check_sums, refuse

from .nodes import CHILD, FEATURE, FIRST, HIGHEST, LEAF, LENGTH, NARROW, NUMERIC, WIDE
from .planting import measure_heights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from robustq.arrays import Bools, Floats, Indices

    from .model import Forest

__all__ = ["check_forest"]

WORD = 64
MOST_WORDS = 1 << 21
LARGEST = 1e300  # as in documents


def check_forest(forest: Forest, classes: int) -> None:
    """Raise unless these are the parameters of a forest.

    Raises
    ------
    InputError
    """
    _check_shapes(forest, classes)
    _check_trees(forest)
    _check_splits(forest)
    check_sums(forest.class_probs, "class_probs")
    _check_weights(forest)
    _check_entries(forest)
    _check_normals(forest)
    layout = _Layout(forest)
    for tree in range(forest.trees):
        _check_cells(forest, layout, tree)


ARRAYS = (
    *("roots", "nodes", "lists", "weights", "rows", "class_probs", "seen", "starts", "entry_codes"),
    *("entry_probs", "normals", "base"),
)
AXES = {"nodes": 2, "class_probs": 2, "normals": 2}


def _check_shapes(forest: Forest, classes: int) -> None:
    for name in ARRAYS:
        array = getattr(forest, name)
        if array.ndim != AXES.get(name, 1):
            refuse(f"{name} has shape {array.shape}, expected {AXES.get(name, 1)} axes")
    leaves, nodes = len(forest.class_probs), len(forest.nodes)
    categorical, numeric = len(forest.categorical), len(forest.numeric)
    expected = {
        "nodes": (nodes, 4),
        "weights": (nodes,),
        "rows": (nodes,),
        "class_probs": (leaves, classes),
        "seen": (leaves * categorical,),
        "starts": (leaves * categorical + 1,),
        "normals": (leaves * numeric, 5),
        "base": (int(forest.base_starts[-1]) if len(forest.base) else 0,),
    }
    for name, shape in expected.items():
        if getattr(forest, name).shape != shape:
            refuse(f"{name} has shape {getattr(forest, name).shape}, expected {shape}")
    if len(forest.roots) < 2:
        refuse("the model has no trees")


def _check_trees(forest: Forest) -> None:
    """Every node but the roots is the child of one node before it, every leaf stands once."""
    nodes = len(forest.nodes)
    roots = forest.roots.astype(np.int64)
    if roots[0] != 0 or roots[-1] != nodes or np.any(np.diff(roots) < 1):
        refuse("roots must begin at 0, increase, and end with the last node")
    feature, child = (
        forest.nodes[:, FEATURE].astype(np.int64),
        forest.nodes[:, CHILD].astype(np.int64),
    )
    if np.any((feature < LEAF) | (feature >= len(forest.sizes))):
        refuse(f"a node splits a feature that is none of the {len(forest.sizes)}")
    inner, at = np.flatnonzero(feature != LEAF), np.flatnonzero(feature == LEAF)
    ends = np.repeat(roots[1:], np.diff(roots))
    if np.any((child[inner] <= inner) | (child[inner] + 1 >= ends[inner])):
        refuse("a node leads back, or out of its tree")
    children = np.concatenate([child[inner], child[inner] + 1])
    met = np.bincount(children, minlength=nodes)
    met[roots[:-1]] += 1
    if np.any(met != 1):
        refuse("a node must have one parent, and a root none")
    leaves = len(forest.class_probs)
    if len(at) != leaves or not np.array_equal(np.sort(child[at]), np.arange(leaves)):
        refuse("every leaf must stand at one node")


def _check_splits(forest: Forest) -> None:
    feature = forest.nodes[:, FEATURE]
    kinds = np.where(feature == LEAF, -1, forest.kinds[feature])
    sizes = np.asarray(forest.sizes, dtype=np.int64)[feature]
    thresholds = forest.nodes.view(np.float64)[:, 1][kinds == NUMERIC]
    if not np.all(np.abs(thresholds) <= LARGEST):
        refuse("a threshold is no finite number")
    # Sets of values may be any: bits beyond the values of a feature are never asked for.
    _check_lists(forest, np.flatnonzero(kinds == WIDE), sizes)


def _check_lists(forest: Forest, wide: Indices, sizes: Indices) -> None:
    """Check the lists of values that wide features are split by: within bounds, and sorted."""
    first, length = _read_lists(forest, wide)
    if np.any((first < 0) | (first + length > len(forest.lists))):
        refuse("a split lies outside the lists of values")
    rows, codes = _gather(forest.lists, first, length)
    _check_codes(rows, codes, sizes[wide], "a split")


def _check_codes(rows: Indices, codes: Indices, sizes: Indices, what: str) -> None:
    if np.any((codes < 0) | (codes >= sizes[rows])):
        refuse(f"{what} names values that its feature does not have")
    if np.any((np.diff(codes) <= 0) & (np.diff(rows) == 0)):
        refuse(f"{what} names values out of order")


def _read_lists(forest: Forest, nodes: Indices) -> tuple[Indices, Indices]:
    """Return where the list of each node begins, and its length."""
    first, length = (forest.nodes[nodes, column].astype(np.int64) for column in (FIRST, LENGTH))
    return first, np.where(length >= 0, length, ~length)


def _gather(values: NDArray[np.int32], first: Indices, length: Indices) -> tuple[Indices, Indices]:
    """Return the values of many lists, one after another, and the list each is of."""
    rows = np.repeat(np.arange(len(first)), length)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(length) - length, length)
    return rows, values[first[rows] + within].astype(np.int64)


def _check_weights(forest: Forest) -> None:
    inner = forest.nodes[forest.nodes[:, FEATURE] != LEAF, CHILD].astype(np.int64)
    check_sums(np.stack([forest.weights[inner], forest.weights[inner + 1]], axis=1), "weights")
    if np.any(forest.rows < 0.0) or np.any(np.isinf(forest.rows)):
        refuse("rows must be counts, at least 0")


def _check_entries(forest: Forest) -> None:
    starts = forest.starts.astype(np.int64)
    if starts[0] != 0 or starts[-1] != len(forest.entry_probs) or np.any(np.diff(starts) < 1):
        refuse("starts must begin at 0, increase, and end with the last probability")
    if not np.all((forest.base > 0.0) & (forest.base <= 1.0)):
        refuse("a base must be a probability above 0")
    # With a base that may be small, they are ratios.
    most = LARGEST if len(forest.base) else 1.0
    if not np.all((forest.entry_probs >= 0.0) & (forest.entry_probs <= most)):
        refuse("a leaf has a probability that is none, from 0 to 1")


def _check_normals(forest: Forest) -> None:
    normals = forest.normals
    mean, sd, low, high, height = normals.T
    with np.errstate(invalid="ignore"):
        fine = (np.abs(mean) <= LARGEST) & (sd > 0.0) & (sd <= LARGEST) & (low < high)
        for end in (low, high):
            fine &= (np.abs(end) <= LARGEST) | np.isinf(end)
    if not np.all(fine):
        refuse("a leaf has a normal density without a mean, a standard deviation or room")
    measured = np.array(normals)
    measure_heights(measured)
    agrees = np.isclose(height, measured[:, -1], rtol=1e-9, atol=0.0) & (height < HIGHEST)
    if not np.all(agrees):
        refuse("a leaf has a normal density whose height is wrong")


class _Level(NamedTuple):
    """Nodes of one depth, with what their paths allow.

    Attributes
    ----------
    nodes : ndarray of shape (nodes,)
    words : ndarray of shape (nodes, words)
        The values allowed, as bits, feature by feature.
    low, high : ndarray of shape (nodes, numeric features)
    """

    nodes: Indices
    words: NDArray[np.uint64]
    low: Floats
    high: Floats

    def copy(self) -> _Level:
        return _Level(self.nodes, self.words.copy(), self.low.copy(), self.high.copy())

    def take(self, rows: Indices | Bools) -> _Level:
        return _Level(self.nodes[rows], self.words[rows], self.low[rows], self.high[rows])


def _check_cells(forest: Forest, layout: _Layout, tree: int) -> None:
    """Check that leaves have mass on what their paths allow only, and that it sums to 1."""
    waiting = [layout.root(int(forest.roots[tree]))]
    while waiting:
        level = waiting.pop()
        if level.words.size > MOST_WORDS and len(level.nodes) > 1:
            # With many values, half of the nodes at a time: memory must not follow the product.
            half = len(level.nodes) // 2
            waiting += [level.take(np.arange(half)), level.take(np.arange(half, len(level.nodes)))]
            continue
        is_leaf = forest.nodes[level.nodes, FEATURE] == LEAF
        _check_leaves(forest, layout, level.take(is_leaf))
        if not is_leaf.all():
            waiting.append(layout.descend(forest, level.take(~is_leaf)))


class _Layout:
    """Where the values of each categorical feature stand among the words."""

    def __init__(self, forest: Forest) -> None:
        self.categorical = np.array(forest.categorical, dtype=np.intp)
        self.sizes = np.asarray(forest.sizes, dtype=np.int64)[self.categorical]
        self.lengths = np.maximum(1, -(-self.sizes // WORD))
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.numeric = len(forest.numeric)
        # Where the probabilities of each leaf and feature begin, how many there are, their sum.
        self.entries = forest.starts[:-1].astype(np.int64)
        self.counts = np.diff(forest.starts.astype(np.int64))
        self.sums = np.add.reduceat(forest.entry_probs, self.entries) if len(self.entries) else None

    def root(self, node: int) -> _Level:
        counts = [
            np.clip(size - WORD * np.arange(length), 0, WORD)
            for size, length in zip(self.sizes, self.lengths, strict=True)
        ]
        words = _fill_words(np.concatenate([np.zeros(0, dtype=np.int64), *counts]))
        ends = np.full((1, self.numeric), np.inf)
        return _Level(np.array([node]), words[None, :], -ends, ends)

    def descend(self, forest: Forest, level: _Level) -> _Level:
        """Return the children."""
        left, right = level.copy(), level.copy()
        feature = forest.nodes[level.nodes, FEATURE]
        kinds, slots = forest.kinds[feature], forest.slots[feature]
        rows = np.flatnonzero(kinds == NUMERIC)
        at = forest.nodes.view(np.float64)[level.nodes[rows], 1]
        left.high[rows, slots[rows]] = np.minimum(left.high[rows, slots[rows]], at)
        right.low[rows, slots[rows]] = np.maximum(right.low[rows, slots[rows]], at)
        rows = np.flatnonzero(kinds == NARROW)
        column, sets = self.starts[slots[rows]], forest.nodes.view(np.uint64)[level.nodes[rows], 1]
        left.words[rows, column] &= sets
        right.words[rows, column] &= ~sets
        for slot in np.unique(slots[kinds == WIDE]).tolist():
            rows = np.flatnonzero((kinds == WIDE) & (slots == slot))
            part = slice(self.starts[slot], self.starts[slot] + self.lengths[slot])
            sets = self._spread(forest, level.nodes[rows], int(self.lengths[slot]))
            left.words[rows, part] &= sets
            right.words[rows, part] &= ~sets
        child = forest.nodes[level.nodes, CHILD].astype(np.int64)
        return _Level(
            np.concatenate([child, child + 1]),
            np.concatenate([left.words, right.words]),
            np.concatenate([left.low, right.low]),
            np.concatenate([left.high, right.high]),
        )

    @staticmethod
    def _spread(forest: Forest, nodes: Indices, length: int) -> NDArray[np.uint64]:
        """Return the values that go left as words, for nodes that split a wide feature."""
        rows, codes = _gather(forest.lists, *_read_lists(forest, nodes))
        listed = _set_bits(rows, codes, (len(nodes), length))
        goes_right = forest.nodes[nodes, LENGTH] >= 0
        return np.where(goes_right[:, None], ~listed, listed)


def _set_bits(rows: Indices, codes: Indices, shape: tuple[int, int]) -> NDArray[np.uint64]:
    words = np.zeros(shape, dtype=np.uint64)
    np.bitwise_or.at(words, (rows, codes // WORD), np.uint64(1) << (codes % WORD).astype(np.uint64))
    return words


def _fill_words(counts: Indices) -> NDArray[np.uint64]:
    """Return words with so many bits set."""
    full = ~np.uint64(0)
    shift = np.uint64(WORD) - np.clip(counts, 1, WORD).astype(np.uint64)
    return np.where(np.asarray(counts) > 0, full >> shift, np.uint64(0))


def _check_leaves(forest: Forest, layout: _Layout, level: _Level) -> None:
    leaves = forest.nodes[level.nodes, CHILD].astype(np.int64)
    if layout.numeric:
        normals = forest.normals.reshape(-1, layout.numeric, 5)[leaves]
        if np.any((normals[:, :, 2] < level.low) | (normals[:, :, 3] > level.high)):
            refuse("a leaf has a normal density beyond what its path allows")
    if layout.sums is None or not len(leaves):
        return
    at = leaves[:, None] * len(layout.categorical) + np.arange(len(layout.categorical))
    seen = layout.counts[at] - 1
    allowed = np.add.reduceat(np.bitwise_count(level.words).astype(np.int64), layout.starts, axis=1)
    _check_seen(forest, layout, level, at, seen)
    # The first probability stands for every value allowed that has none of its own.
    if len(forest.base):
        total = _weigh_cells(forest, layout, level, at, seen)
    else:
        total = layout.sums[at] + forest.entry_probs[layout.entries[at]] * (allowed - seen - 1)
    known = layout.sizes > 0
    if np.any(np.abs(total[:, known] - 1.0) > SUM_TOLERANCE) or np.any(allowed[:, known] < 1):
        refuse("the probabilities in a leaf must sum to 1")


def _weigh_cells(
    forest: Forest, layout: _Layout, level: _Level, at: Indices, seen: Indices
) -> Floats:
    """Return the mass of each leaf and categorical feature, where values have a base."""
    total = np.empty(at.shape)
    for slot in range(at.shape[1]):
        cells, size = at[:, slot], int(layout.sizes[slot])
        start = int(forest.base_starts[slot])
        base = forest.base[start : start + size]
        part = slice(layout.starts[slot], layout.starts[slot] + layout.lengths[slot])
        allowed = _unpack(level.words[:, part])[:, :size] @ base
        first = layout.entries[cells]
        if forest.kinds[layout.categorical[slot]] == NARROW:
            rows, codes = np.nonzero(_unpack(forest.seen[cells][:, None]))
        else:
            rows, codes = _gather(
                forest.entry_codes, forest.seen[cells].astype(np.int64), seen[:, slot]
            )
        before = np.cumsum(seen[:, slot]) - seen[:, slot]
        entry = first[rows] + 1 + np.arange(len(rows)) - before[rows]
        own = np.bincount(rows, base[codes] * forest.entry_probs[entry], len(cells))
        rest = allowed - np.bincount(rows, base[codes], len(cells))
        total[:, slot] = own + forest.entry_probs[first] * rest
    return total


def _unpack(words: NDArray[np.uint64]) -> NDArray[np.uint8]:
    octets = np.ascontiguousarray(words.astype("<u8")).view(np.uint8)
    return np.unpackbits(octets, axis=1, bitorder="little")


def _check_seen(forest: Forest, layout: _Layout, level: _Level, at: Indices, seen: Indices) -> None:
    """Check that the values with a probability of their own are allowed, and as many as those."""
    narrow = forest.kinds[layout.categorical] == NARROW
    sets = forest.seen[at[:, narrow]]
    if np.any(sets & ~level.words[:, layout.starts[narrow]]):
        refuse("a leaf has mass on values that its path does not allow")
    if np.any(np.bitwise_count(sets) != seen[:, narrow]):
        refuse("a leaf has not as many probabilities as values")
    for slot in np.flatnonzero(~narrow).tolist():
        first = forest.seen[at[:, slot]]
        if np.any(first > len(forest.entry_codes)):
            refuse("a leaf lies outside the lists of values")
        begin, length = first.astype(np.int64), seen[:, slot]
        if np.any(begin + length > len(forest.entry_codes)):
            refuse("a leaf lies outside the lists of values")
        rows, codes = _gather(forest.entry_codes, begin, length)
        sizes = np.full(len(begin), layout.sizes[slot])
        _check_codes(rows, codes, sizes, "a leaf")
        word = layout.starts[slot] + codes // WORD
        bits = level.words[rows, word] >> (codes % WORD).astype(np.uint64)
        if np.any(bits & np.uint64(1) == 0):
            refuse("a leaf has mass on values that its path does not allow")
