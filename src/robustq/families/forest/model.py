"""The generative forest: a uniform mixture of trees whose leaves hold p(c) Π p(f_i).

An inner node is a sum node: it has one weight for each of its two children. A leaf puts mass only
on the values its path allows, its *cell*; so complete evidence f has mass in one leaf of each
tree only, the one that f falls into.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from robustq.core.engine import Reading
from robustq.core.evidence import Evidence, split_evidence
from robustq.core.frequency import by_frequency
from robustq.core.gaps import Gaps
from robustq.core.keeping import Keeper
from robustq.core.mixtures import Mixtures, MixtureTables
from robustq.core.scale import STEP
from robustq.core.whole_mixtures import MixtureParts, WholeMixtures

from .local_models import CLASSES, FEATURES, PARTS, ROOT, WEIGHTS, ForestLocals
from .nodes import (
    CHILD,
    FEATURE,
    LEAF,
    NARROW,
    NARROW_SIZE,
    NUMERIC,
    WIDE,
)
from .spreading import Spreader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from robustq.arrays import Codes, Floats, Indices
    from robustq.core.engine import Shape
    from robustq.core.whole_mixtures import PathWeights
    from robustq.tables import Rows

    from .leaf_sets import LeafSets
    from .traces import Dense, Trace

__all__ = ["NORMAL", "Arrays", "Forest"]

MIXTURE_PARTS = MixtureParts(ROOT, WEIGHTS, CLASSES, FEATURES)

NORMAL = ("mean", "sd", "low", "high", "height")


class Arrays(NamedTuple):
    """A forest as kernels read it; see `Forest`."""

    nodes: Codes
    sets: NDArray[np.uint64]
    thresholds: Floats
    lists: Codes
    kinds: Codes
    slots: Codes
    roots: Codes
    reach: Floats
    reach_scale: Codes
    seen: NDArray[np.uint64]
    starts: Codes
    entry_codes: Codes
    entry_probs: Floats
    normals: Floats

    @property
    def routes(self) -> tuple[Any, ...]:
        """What routes rows."""
        return self[:7]

    @property
    def contents(self) -> tuple[Any, ...]:
        """What leaves hold."""
        return self[9:]


@dataclass(frozen=True, eq=False)
class Forest:
    """The parameters of the model, as flat arrays over the nodes and leaves of all trees.

    Attributes
    ----------
    sizes : tuple of int
        How many categories each feature has; ignored for numeric features.
    numeric : tuple of int
        Which features are numbers.
    roots : ndarray of shape (trees + 1,)
        The first node of each tree, and the end.
    nodes : ndarray of shape (nodes, 4)
        The feature that is split and the left child, next to which stands the right one; then the
        split: a set of values that go left (bits), the position and length of a list of
        values (that go right, or left if ~length is given), or a threshold. At a leaf, −1 and
        the number of the leaf.
    lists : ndarray
        The lists of values, each sorted.
    weights : ndarray of shape (nodes,)
        The weight of each node among the children of its parent.
    rows : ndarray of shape (nodes,)
        The weight of the training rows at each node; NaN where nothing was counted.
    class_probs : ndarray of shape (leaves, classes)
    seen : ndarray of uint64
        For each leaf and categorical feature, the set of the values that have a probability of
        their own; or, of a feature with more than 64 categories, where they begin in `entry_codes`.
    starts : ndarray
        For each leaf and categorical feature, where its probabilities begin; and the end.
    entry_probs : ndarray
        The probability of every other value in the cell, and then those of the values seen; each
        divided by its base.
    base : ndarray
        For each value of each categorical feature, how likely it is without knowing the leaf;
        empty where all are 1.
    entry_codes : ndarray
        The values seen of features with more than 64 categories, sorted.
    normals : ndarray of shape (leaves · numeric features, 5)
        Mean, standard deviation, the ends of the cell, and the height: 1 / ∫ e^(−z²/2).
    """

    sizes: tuple[int, ...]
    numeric: tuple[int, ...]
    roots: Codes
    nodes: Codes
    lists: Codes
    weights: Floats
    rows: Floats
    class_probs: Floats
    seen: NDArray[np.uint64]
    starts: Codes
    entry_codes: Codes
    entry_probs: Floats
    normals: Floats
    base: Floats = field(default_factory=lambda: np.empty(0))

    default_parts: ClassVar[tuple[str, ...]] = ("weights",)
    leaf_parts: ClassVar[tuple[int, ...]] = (PARTS.index("leaf_features"),)
    merges_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    @property
    def trees(self) -> int:
        """The number of trees."""
        return len(self.roots) - 1

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        return len(self.class_probs)

    @cached_property
    def categorical(self) -> tuple[int, ...]:
        """Which features are categories."""
        return tuple(i for i in range(len(self.sizes)) if i not in self.numeric)

    @cached_property
    def kinds(self) -> Codes:
        """How each feature is split."""
        return split_kinds(self.sizes, self.numeric)

    @cached_property
    def is_narrow(self) -> bool:
        """Whether every feature is split by sets."""
        return bool(np.all(self.kinds == NARROW))

    @cached_property
    def is_plain(self) -> bool:
        """Whether the mass of a row at a leaf is a product of entries that cannot overflow."""
        if not self.is_narrow or not len(self.base):
            return self.is_narrow
        largest = np.maximum.reduceat(self.entry_probs, self.starts[:-1])
        steps = np.log2(np.maximum(largest, 1.0)).reshape(self.leaves, -1).sum(axis=1)
        return bool(steps.max() <= STEP)

    @cached_property
    def base_starts(self) -> Indices:
        """Where the base of each categorical feature begins, and the end."""
        return start_bases(self.sizes, self.numeric)

    @cached_property
    def slots(self) -> Codes:
        """The position of each feature among those of its kind, numbers or categories."""
        return number_slots(self.kinds)

    @cached_property
    def parents(self) -> Codes:
        """The parent of each node, −1 for a root."""
        return _freeze(find_parents(self.nodes))

    @cached_property
    def leaf_nodes(self) -> Indices:
        """The node of each leaf."""
        nodes = np.flatnonzero(self.nodes[:, FEATURE] == LEAF)
        order = np.empty(len(nodes), dtype=np.intp)
        order[self.nodes[nodes, CHILD]] = nodes
        return order

    @cached_property
    def arrays(self) -> Arrays:
        """What kernels read."""
        from . import _route_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        reach, reach_scale = np.empty(self.leaves), np.empty(self.leaves, dtype=np.int32)
        room = np.empty(len(self.nodes)), np.empty(len(self.nodes), dtype=np.int64)
        _route_kernels.multiply_weights(
            self.nodes, self.weights, self.roots, *room, reach, reach_scale
        )
        return Arrays(
            self.nodes,
            self.nodes.view(np.uint64),
            self.nodes.view(np.float64),
            self.lists,
            _freeze(self.kinds),
            _freeze(self.slots),
            self.roots,
            _freeze(reach),
            _freeze(reach_scale),
            self.seen,
            self.starts,
            self.entry_codes,
            self.entry_probs,
            self.normals,
        )

    @cached_property
    def depth(self) -> int:
        """The length of the longest path."""
        return measure_depth(self.parents)

    @cached_property
    def prior(self) -> Floats:
        """p(c), the mean over the trees."""
        mass = np.ldexp(self.arrays.reach, STEP * self.arrays.reach_scale)
        return mass @ self.class_probs / self.trees

    @cached_property
    def by_frequency(self) -> Indices:
        """The positions of the classes, the most frequent one first."""
        return by_frequency(self.prior)

    @cached_property
    def locals(self) -> ForestLocals:
        """The local mass functions."""
        return ForestLocals(self)

    @property
    def has_numbers(self) -> bool:
        """Whether a feature has a density."""
        return bool(self.numeric)

    @cached_property
    def allowed(self) -> Codes:
        """How many values each leaf allows, (leaves, categorical features)."""
        from .planting import count_allowed  # noqa: PLC0415 (it makes forests)

        return _freeze(count_allowed(self))

    @cached_property
    def cautions(self) -> tuple[str, ...]:
        """What makes its robustness less than it seems, in words."""
        if self.class_probs.shape[1] == 1:
            # Nobody expects another prediction.
            return ()
        best = int(self.class_probs[0].argmax())
        rivals = np.delete(self.class_probs, best, axis=1).max(axis=1, initial=0.0)
        if self.leaves == self.trees:
            why = "no tree splits"
        elif np.all(self.class_probs[:, best] > rivals):
            why = "all leaves favour the same class"
        else:
            return ()
        caution = (
            f"{why}, so that no change of the forest's weights flips a prediction: each robustness "
            'is infinite, or the largest there is; parts="all" perturbs the leaves too'
        )
        return (caution,)

    @cached_property
    def _keeper(self) -> Keeper:
        return Keeper()

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    def log_joint(self, rows: Rows) -> Floats:
        """Return log p(c, f), (rows, classes); missing features are summed out."""
        return self.read(rows).joint

    def read(self, rows: Rows) -> Reading:
        """Return log p(c, f); complete rows as mixtures, and others as gaps in them."""
        from .traces import add_base  # noqa: PLC0415 (it reads forests)

        about = self._mixture_tables, rows.codes.shape[1], self._keeper
        if rows.codes.min(initial=0) >= 0:
            every = self.trace(rows)
            return Reading(every.joint, self._offer(np.arange(len(rows)), rows, every))
        complete = (rows.codes >= 0).all(axis=1)
        joint = np.empty((len(rows), self.class_probs.shape[1]))
        whole, some = np.flatnonzero(complete), np.flatnonzero(~complete)
        shapes: list[tuple[Indices, Shape]] = []
        if len(whole):
            found = self.trace(rows[whole])
            joint[whole] = found.joint
            shapes += self._offer(whole, rows[whole], found)
        part, spread = self._spreader.read(*_contiguous(rows[some]))
        add_base(self, rows[some], part)
        joint[some] = part
        return Reading(joint, [*shapes, (some, Gaps(*about, spread))])

    def _offer(self, where: Indices, rows: Rows, trace: Trace) -> list[tuple[Indices, Shape]]:
        """Return the shapes of complete rows."""
        from .factors import Factors  # noqa: PLC0415 (it reads forests)

        width = rows.codes.shape[1]
        mixtures = Mixtures(self._mixture_tables, width, self._keeper, *trace[:3])
        gather = Factors(self, rows, trace.leaves)
        whole = WholeMixtures(
            MIXTURE_PARTS, self.class_probs, trace.leaves, self.paths, width, gather
        )
        return [(where, mixtures), (where, whole)]

    @cached_property
    def paths(self) -> PathWeights:
        """The weights on the path to each leaf."""
        from .factors import follow_paths  # noqa: PLC0415 (it reads forests)

        return follow_paths(self)

    @cached_property
    def leaf_values(self) -> Floats:
        """What leaves make of values, if every feature is split by sets; see `unfold_values`."""
        from .factors import unfold_values  # noqa: PLC0415 (it reads forests)

        return unfold_values(self)

    @cached_property
    def _mixture_tables(self) -> MixtureTables:
        return MixtureTables(
            self.leaf_nodes,
            self.weights,
            self.parents,
            None if np.isnan(self.rows).any() else self.rows,
            self.arrays.reach,
            self.arrays.reach_scale,
            self.class_probs,
            self.depth,
            PARTS.index("weights"),
        )

    def trace(self, rows: Rows) -> Trace:
        """Return where complete rows end, and how likely they are there."""
        from .traces import follow  # noqa: PLC0415 (it reads forests)

        return follow(self, rows)

    @cached_property
    def dense(self) -> Dense:
        """The same for rows side by side, if every feature is split by sets."""
        from .traces import Dense  # noqa: PLC0415 (it reads forests)

        return Dense.of(self)

    @cached_property
    def leaf_sets(self) -> LeafSets | None:
        """Which leaves allow each value, if every feature is split by sets and they are few."""
        from .leaf_sets import LeafSets  # noqa: PLC0415 (it reads forests)

        return LeafSets.of(self)

    @cached_property
    def _spreader(self) -> Spreader:
        return Spreader(self)

    def reach(self, rows: Rows, *, fold: bool = False) -> Iterator[tuple[slice, Evidence]]:
        """Yield what rows with any evidence reach, in blocks that fit into memory.

        With `fold`, the features of a leaf are one value.
        """
        from . import _reach_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        codes, numbers = _contiguous(rows)
        counts = np.empty(len(rows), dtype=np.int64)
        room = np.empty(self.depth + 2, dtype=np.int64), np.empty(self.depth + 2, dtype=np.int64)
        a = self.arrays
        _reach_kernels.count_reached(*a.routes, fold, room[0], codes, numbers, counts)
        for block in split_evidence(counts):
            starts = np.concatenate([[0], np.cumsum(counts[block])])
            evidence = Evidence.empty(starts)
            _reach_kernels.reach(
                *(*a.routes, *a.contents, self.base, self.base_starts),
                *(self.weights, self.rows, self.allowed, self.leaves, fold),
                *room,
                *(codes[block], numbers[block], *evidence),
            )
            yield block, evidence

    def thresholds(self, feature: int) -> Floats:
        """Return the numbers at which a feature is split."""
        return self.arrays.thresholds[self.nodes[:, FEATURE] == feature, 1]

    def to_circuit(self) -> dict[str, Any]:
        """Return the same as the nodes of a circuit."""
        from .document import write_circuit  # noqa: PLC0415 (it makes forests)

        return write_circuit(self)

    # One leaf, one value: what kernels do for many at once.

    def probability(self, leaf: int, feature: int, code: int) -> float:
        """Return the probability of a category at a leaf, within its cell."""
        ratio = self._ratio(leaf, feature, code)
        if not len(self.base):
            return ratio
        base = float(self.base[self.base_starts[self.slots[feature]] + code])
        return min(1.0, ratio * base)  # rounding may go beyond

    def _ratio(self, leaf: int, feature: int, code: int) -> float:
        cell = leaf * len(self.categorical) + int(self.slots[feature])
        seen, start = int(self.seen[cell]), int(self.starts[cell])
        if self.kinds[feature] == NARROW:
            rank = (seen & ((1 << code) - 1)).bit_count() + 1
            return float(self.entry_probs[start + (rank if seen >> code & 1 else 0)])
        listed = self.entry_codes[seen : seen + int(self.starts[cell + 1]) - start - 1]
        at = int(np.searchsorted(listed, code))
        found = at < len(listed) and listed[at] == code
        return float(self.entry_probs[start + (at + 1 if found else 0)])


@lru_cache(maxsize=32)  # every tree asks, several times
def split_kinds(sizes: tuple[int, ...], numeric: tuple[int, ...]) -> Codes:
    """Return how each feature is split."""
    kinds = np.where(np.array(sizes) <= NARROW_SIZE, NARROW, WIDE).astype(np.int32)
    kinds[list(numeric)] = NUMERIC
    return _freeze(kinds)


def number_slots(kinds: Codes) -> Codes:
    """Return the position of each feature among those of its kind, numbers or categories."""
    slots = np.zeros(len(kinds), dtype=np.int32)
    for group in (kinds == NUMERIC, kinds != NUMERIC):
        slots[group] = np.arange(group.sum())
    return slots


@lru_cache(maxsize=32)
def start_bases(sizes: tuple[int, ...], numeric: tuple[int, ...]) -> Indices:
    """Return where the base of each categorical feature begins, and the end."""
    own = [size for feature, size in enumerate(sizes) if feature not in numeric]
    return _freeze(np.cumsum([0, *own], dtype=np.int64))


def find_parents(nodes: Codes) -> Codes:
    """Return the parent of each node, −1 for a root."""
    parents = np.full(len(nodes), -1, dtype=np.int32)
    inner = np.flatnonzero(nodes[:, FEATURE] != LEAF)
    for side in (0, 1):
        parents[nodes[inner, CHILD] + side] = inner
    return parents


def measure_depth(parents: Codes) -> int:
    """Return the length of the longest path."""
    from . import _route_kernels  # noqa: PLC0415 (numba is imported when it is needed)

    return int(_route_kernels.longest_path(parents, np.zeros_like(parents)))


def _contiguous(rows: Rows) -> tuple[Codes, Floats]:
    return np.ascontiguousarray(rows.codes), np.ascontiguousarray(rows.numbers)


def _freeze(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array
