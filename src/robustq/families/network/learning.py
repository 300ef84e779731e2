"""From rows to a network: its structure, the counts behind its tables, and their smoothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.learning.counts import Counts

from .mixture import BACK_OFF
from .model import Network
from .structure import Structure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from robustq.arrays import Codes, Floats, Indices

__all__ = ["Pairs", "TableCounts", "learn_structure"]

LARGEST_TABLE = 1 << 24  # cells of two features together: beyond, no edge joins them
MOST_CELLS = 1 << 22  # of pairs that are counted together


@dataclass(frozen=True)
class Pairs:
    """What features tell of each other and of the class.

    Attributes
    ----------
    between : ndarray of shape (features, features)
        I(F_i; F_j | C), in nats; 0 on the diagonal, −∞ where their table would be too large.
    with_class : ndarray of shape (features,)
        I(F_i; C)
    gain : ndarray of shape (features, features)
        What an edge gains in a penalised score (MDL): log-likelihood, minus half the logarithm of
        the rows for each number that the larger table needs more.
    """

    between: Floats
    with_class: Floats
    gain: Floats

    @classmethod
    def of(
        cls, count: Callable[[Callable[..., Any]], Any], sizes: Sequence[int], classes: int
    ) -> Pairs:
        """Measure rows; cells that are missing are not counted.

        Parameters
        ----------
        count : callable
            Returns what a function of codes, labels and weights counts in all rows.
        sizes : sequence of int
        classes : int
        """
        features = len(sizes)
        between = np.where(np.eye(features, dtype=bool), 0.0, -np.inf)
        gain = between.copy()
        for group in _group_pairs(sizes, classes):
            found = count(partial(PairTables.of, pairs=group, sizes=sizes, classes=classes))
            for (i, j), counts in zip(group, found.tables, strict=True):
                between[i, j] = between[j, i] = _information(counts)
                rows = counts.sum()
                numbers = (sizes[i] - 1) * (sizes[j] - 1) * classes
                gain[i, j] = rows * between[i, j] - 0.5 * np.log(max(rows, 1.0)) * numbers
                gain[j, i] = gain[i, j]
        own = count(partial(Counts.of, sizes=sizes, classes=classes))
        with_class = [
            _information(own.layout.feature(own.values, i)[:, :, None]) for i in range(features)
        ]
        return cls(between, np.array(with_class), gain)


@dataclass(frozen=True)
class PairTables:
    """The weights of rows by two features and the class, for some pairs of features."""

    tables: list[Floats]

    @classmethod
    def of(
        cls,
        codes: Codes,
        labels: Indices,
        weights: Floats,
        pairs: Sequence[tuple[int, int]],
        sizes: Sequence[int],
        classes: int,
    ) -> PairTables:
        """Count rows of codes."""
        from . import _network_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        codes, tables = np.asfortranarray(codes, dtype=np.int32), []
        for i, j in pairs:
            counts = np.zeros((sizes[i], sizes[j], classes))
            _network_kernels.count_pair(
                codes[:, i], codes[:, j], labels, weights, counts.reshape(-1), sizes[j], classes
            )
            tables.append(counts)
        return cls(tables)

    def __add__(self, other: PairTables) -> PairTables:
        both = zip(self.tables, other.tables, strict=True)
        return PairTables([one + another for one, another in both])


def _group_pairs(sizes: Sequence[int], classes: int) -> Iterator[list[tuple[int, int]]]:
    """Yield pairs of features, as many at a time as their tables have room."""
    group: list[tuple[int, int]] = []
    cells = 0
    for i in range(len(sizes)):
        for j in range(i):
            more = sizes[i] * sizes[j] * classes
            if more > LARGEST_TABLE:
                continue
            if group and cells + more > MOST_CELLS:
                yield group
                group, cells = [], 0
            group.append((i, j))
            cells += more
    if group:
        yield group


def _information(counts: Floats) -> float:
    """Return the mutual information of the first two axes given the third, in nats."""
    total = counts.sum()
    if not total > 0.0:
        return 0.0
    p = counts / total
    rows, columns = p.sum(axis=1, keepdims=True), p.sum(axis=0, keepdims=True)
    every = p.sum(axis=(0, 1), keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0.0, p * np.log(p * every / (rows * columns)), 0.0)
    return max(float(terms.sum()), 0.0)


def learn_structure(
    name: str, pairs: Pairs, sizes: Sequence[int], classes: int, max_parents: int
) -> Structure:
    """Return a structure in which every feature has the class as a parent.

    Parameters
    ----------
    name : {"naive", "tan", "fan", "kdb"}
    pairs : Pairs
    sizes : sequence of int
    classes : int
    max_parents : int
        How many features a feature may have as parents, for "kdb".
    """
    # What has no value, or one, tells nothing.
    useful = [i for i, size in enumerate(sizes) if size > 1]
    parents: dict[int, tuple[int, ...]] = {}
    if name == "tan":
        parents = _span(pairs, pairs.between, useful, -np.inf)
    elif name == "fan":
        parents = _span(pairs, pairs.gain, useful, 0.0)
    elif name == "kdb":
        parents = _rank(pairs, useful, max_parents)
    every = range(len(sizes))
    return Structure(
        tuple(sizes), classes, tuple(parents.get(i, ()) for i in every), (True,) * len(sizes)
    )


def _span(pairs: Pairs, weight: Floats, useful: list[int], least: float) -> dict[int, Any]:
    """Return the heaviest tree (Chow and Liu), or forest, of edges above a least weight.

    Each tree grows from the feature that tells most of the class.
    """
    parents: dict[int, tuple[int, ...]] = {}
    left = sorted(useful, key=lambda i: (-pairs.with_class[i], i))
    while left:
        root = left.pop(0)
        nearest = {i: (weight[root, i], root) for i in left}
        while nearest:
            best = max(nearest, key=lambda i: (nearest[i][0], -i))
            gain, parent = nearest.pop(best)
            if gain <= least:
                break
            parents[best] = (parent,)
            left.remove(best)
            for i, (known, _) in nearest.items():
                if weight[best, i] > known:
                    nearest[i] = (weight[best, i], best)
    return parents


def _rank(pairs: Pairs, useful: list[int], max_parents: int) -> dict[int, Any]:
    """Return for each feature those before it that tell most of it (Sahami's k-dependence).

    Before it stand those that tell more of the class.
    """
    order = sorted(useful, key=lambda i: (-pairs.with_class[i], i))
    parents = {}
    for at, own in enumerate(order):
        before = [i for i in order[:at] if pairs.between[own, i] > -np.inf]
        best = sorted(before, key=lambda i: (-pairs.between[own, i], i))[:max_parents]
        parents[own] = tuple(sorted(best))
    return parents


@dataclass(frozen=True)
class TableCounts:
    """The weights of rows behind the cells of a network's tables.

    Attributes
    ----------
    structure : Structure
    classes : ndarray
        Of the class's table, (configurations, classes).
    values : ndarray
        Of the features' tables, flat.
    plain : ndarray
        Of categories within classes (of each feature, whoever its parents), flat: see `Layout`.
        Where a table knows little, it backs off to these.
    """

    structure: Structure
    classes: Floats
    values: Floats
    plain: Counts

    @classmethod
    def of(
        cls, structure: Structure, codes: Codes, labels: Indices, weights: Floats
    ) -> TableCounts:
        """Count rows of codes."""
        from . import _network_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        codes = np.ascontiguousarray(codes, dtype=np.int32)
        values = np.zeros(structure.wiring.offsets[-1])
        _network_kernels.count(codes, labels, weights, *structure.wiring[:5], values)
        own = codes[:, list(structure.class_parents)]
        there = (own >= 0).all(axis=1)
        at = (own.astype(np.int64) @ structure.class_steps) * structure.classes + labels
        size = int(np.prod(structure.class_shape))
        counted = np.bincount(at[there], weights[there], minlength=size).astype(np.float64)
        plain = Counts.of(codes, labels, weights, structure.sizes, structure.classes)
        return cls(structure, counted.reshape(-1, structure.classes), values, plain)

    def __add__(self, other: TableCounts) -> TableCounts:
        return TableCounts(
            self.structure,
            self.classes + other.classes,
            self.values + other.values,
            self.plain + other.plain,
        )

    def __sub__(self, other: TableCounts) -> TableCounts:
        return TableCounts(
            self.structure,
            np.maximum(self.classes - other.classes, 0.0),
            np.maximum(self.values - other.values, 0.0),
            self.plain - other.plain,
        )

    def estimate(self, smoothing: float, class_prior: Floats | None = None) -> Network:
        """Return the network that these counts and a smoothing give.

        A feature with s categories gets s · smoothing pseudo-records a table row, spread evenly,
        where the class is its only parent, as in naive Bayes. With other parents there are
        `BACK_OFF` times as many, spread as its distribution given the class alone.
        """
        structure, wiring = self.structure, self.structure.wiring
        probs, rows = np.empty_like(self.values), np.empty(wiring.row_offsets[-1])
        flat = self.plain.estimate(smoothing)[1]
        for i, size in enumerate(structure.sizes):
            cells = slice(wiring.offsets[i], wiring.offsets[i + 1])
            counts = self.values[cells].reshape(structure.shape(i))
            # (categories, classes), or without the class.
            given = self.plain.layout.feature(flat, i)
            if not structure.from_class[i]:
                own = self.plain.layout.feature(self.plain.values, i).sum(axis=1, keepdims=True)
                given = _share(own + smoothing, np.full_like(own, 1.0 / max(size, 1)))
            if not structure.parents[i]:
                table = given.reshape(structure.shape(i))
            else:
                table = _share(counts + BACK_OFF * smoothing * size * given, given)
            probs[cells] = table.ravel()
            own_rows = slice(wiring.row_offsets[i], wiring.row_offsets[i + 1])
            rows[own_rows] = counts.sum(axis=-2).ravel()
        prior, prior_rows = self._estimate_prior(class_prior)
        return Network(structure, prior, probs, prior_rows, rows)

    def _estimate_prior(self, class_prior: Floats | None) -> tuple[Floats, Floats]:
        if class_prior is not None:
            return class_prior[None, :], np.array([np.nan])
        # With parents, one pseudo-record spread as the class is; without, shares as they are.
        total = self.plain.classes / self.plain.classes.sum()
        more = total if self.structure.class_parents else 0.0 * total
        counts = self.classes + more
        sums = counts.sum(axis=1, keepdims=True)
        prior = np.where(sums > 0.0, counts / np.where(sums > 0.0, sums, 1.0), total)
        return prior, self.classes.sum(axis=1)


def _share(counts: Floats, otherwise: Floats) -> Floats:
    """Return shares over the categories, the last axis but one; where nothing is, the other."""
    total = counts.sum(axis=-2, keepdims=True)
    return np.where(total > 0.0, counts / np.where(total > 0.0, total, 1.0), otherwise)
