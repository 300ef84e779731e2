"""What rows reach of a model, and all that is known of it before any size is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .evidence import CLASS, FEATURE, PRODUCT, SAME, SIDE, SUM, Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robustq.arrays import Bools, Codes, Floats, Indices

    from .evidence import Locals
    from .neighbourhoods import Perturbed

__all__ = ["Factors", "Level", "Mean", "Reached", "take_rows"]

# So many numbers of ½ and more have a product that is no subnormal number.
MOST_FACTORS = 512


class Factors(NamedTuple):
    """Some children of products: `child` from each of `first` on, for the products at `some`."""

    some: Indices
    child: Indices
    first: Indices


class Mean(NamedTuple):
    """Sums over as many outcomes: their weights, and whose values stand where among them."""

    nodes: Indices
    weights: Floats
    place: tuple[Indices, Codes]
    child: Indices


class Level(NamedTuple):
    """Nodes that only need lower ones, by kind.

    Attributes
    ----------
    values, again, features, classes, products : ndarray
        `again` has the values of others; `classes` are leaves and indicators.
    marks : ndarray
        Leaves of the class that stand for 1.
    leaves, class_weights : ndarray
        Positions among `classes` of those that hold mass functions, and these.
    spoken, speaker : ndarray
        Positions among `products` of those that speak of the class, and the child that does.
    factors : list of Factors
        Their other children.
    means : list of Mean
    """

    values: Indices
    again: Indices
    features: Indices
    classes: Indices
    products: Indices
    marks: Indices
    leaves: Indices
    class_weights: Floats
    spoken: Indices
    speaker: Indices
    factors: list[Factors]
    means: list[Mean]


def take_rows(evidence: Evidence, rows: Indices) -> Evidence:
    """Return what some rows reach."""
    lengths = np.diff(evidence.starts)[rows]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    nodes = np.arange(starts[-1]) + np.repeat(evidence.starts[rows] - starts[:-1], lengths)
    return Evidence(starts, *(column[nodes] for column in evidence[1:]))


@dataclass(frozen=True)
class Reached:
    """What rows reach, and what is perturbed there.

    Attributes
    ----------
    evidence : Evidence
    locals : Locals
    perturbed : Perturbed
    """

    evidence: Evidence
    locals: Locals
    perturbed: Perturbed

    def __len__(self) -> int:
        return len(self.evidence.starts) - 1

    def take(self, rows: Indices) -> Reached:
        """Return what some rows reach."""
        return Reached(take_rows(self.evidence, rows), self.locals, self.perturbed)

    @property
    def roots(self) -> Indices:
        """The last node of each row."""
        return self.evidence.starts[1:] - 1

    @cached_property
    def row(self) -> Indices:
        """The row of each node."""
        lengths = np.diff(self.evidence.starts)
        return np.repeat(np.arange(len(lengths)), lengths)

    @cached_property
    def free(self) -> Bools:
        """Which nodes have a probability that moves."""
        return self.perturbed.mask(self.evidence)

    @cached_property
    def family(self) -> tuple[Indices, Indices]:
        """The parent of each node, and its height."""
        from . import _evidence_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        e = self.evidence
        parent, height = np.empty((2, len(e.op)), dtype=np.int64)
        longest = int(np.diff(e.starts).max(initial=0))
        _evidence_kernels.find_parents(
            *(e.starts, e.op, e.arity, e.extra),
            *(np.empty(longest + 1, dtype=np.int64), parent, height),
        )
        return parent, height

    @cached_property
    def heights(self) -> list[Indices]:
        """The nodes, those without children first."""
        height = self.family[1]
        order = np.argsort(height, kind="stable")
        return np.split(order, np.cumsum(np.bincount(height))[:-1])

    @cached_property
    def speaks(self) -> Bools:
        """Which nodes speak of the class."""
        e, parent = self.evidence, self.family[0]
        speaks = (e.op == CLASS) & (e.extra != SIDE)
        for nodes in self.heights[:-1]:
            some = nodes[speaks[nodes] & (parent[nodes] >= 0)]
            speaks[parent[some]] = True
        return speaks

    @cached_property
    def levels(self) -> list[Level]:
        """All nodes, those without children first."""
        return [self._arrange(nodes) for nodes in self.heights]

    @cached_property
    def _children(self) -> tuple[Indices, Indices]:
        """The nodes sorted by parent, and where those of each parent begin."""
        parent = self.family[0]
        order = np.argsort(parent, kind="stable")
        return order, np.searchsorted(parent[order], np.arange(len(parent)))

    def _arrange(self, nodes: Indices) -> Level:
        e = self.evidence
        op = e.op[nodes]
        classes, products = nodes[op == CLASS], nodes[op == PRODUCT]
        marked = e.extra[classes] == SIDE
        marks, classes = classes[marked], classes[~marked]
        leaves = np.flatnonzero(e.local[classes] >= 0)
        weights = np.empty((0, 0))
        if len(leaves):
            weights = self.locals.expand(e.local[classes[leaves]])
        owner, child = self._list_children(products)
        speaking = self.speaks[child]
        return Level(
            values=nodes[op < FEATURE],
            again=nodes[op == SAME],
            features=nodes[op == FEATURE],
            classes=classes,
            products=products,
            marks=marks,
            leaves=leaves,
            class_weights=weights,
            spoken=owner[speaking],
            speaker=child[speaking],
            factors=list(_split(owner[~speaking], child[~speaking])),
            means=list(self.list_means(nodes[op == SUM])),
        )

    def _list_children(self, nodes: Indices) -> tuple[Indices, Indices]:
        """Return the children of nodes, and of which of these each is one."""
        order, first = self._children
        arity = self.evidence.arity[nodes]
        owner = np.repeat(np.arange(len(nodes)), arity)
        place = np.arange(len(owner)) - np.repeat(np.cumsum(arity) - arity, arity)
        return owner, order[first[nodes][owner] + place]

    def list_means(self, nodes: Indices) -> Iterator[Mean]:
        """Yield sums by how many outcomes they have."""
        # The last child stands just before its parent; all have one local mass function.
        for some, weights in self.expand(nodes - 1):
            owner, child = self._list_children(nodes[some])
            yield Mean(nodes[some], weights, (owner, self.evidence.slot[child]), child)

    def expand(self, nodes: Indices) -> Iterator[tuple[Indices, Floats]]:
        """Yield positions of nodes whose local mass functions have as many outcomes, and those."""
        local = self.evidence.local[nodes]
        outcomes = self.locals.outcomes(local)
        for count in np.unique(outcomes):
            some = np.flatnonzero(outcomes == count)
            yield some, self.locals.expand(local[some])

    def find_branches(self, classes: int) -> Indices | None:
        """Return for each row the child of its root for each class, if it is a sum over classes.

        That is, if each child is a product with an indicator of a class of its own, and its weight
        that of the class.
        """
        e, parent, roots = self.evidence, self.family[0], self.roots
        shown = np.flatnonzero((e.op == CLASS) & (e.local < 0))
        branch = parent[shown]
        fits = (
            len(shown) == len(self) * classes
            and bool(np.all(e.op[roots] == SUM))
            and bool(np.all(e.arity[roots] == classes))
            and bool(np.all(parent[branch] == roots[self.row[shown]]))
            and bool(np.all(e.slot[branch] == e.slot[shown]))
        )
        if not fits:
            return None
        found = np.full((len(self), classes), -1, dtype=np.int64)
        found[self.row[shown], e.slot[shown]] = branch
        return found if np.all(found >= 0) else None


def _split(owner: Indices, child: Indices) -> Iterator[Factors]:
    """Yield children of products, so many at a time that no product of them underflows."""
    begins = np.flatnonzero(np.diff(owner, prepend=-1))
    place = np.arange(len(owner)) - np.repeat(begins, np.diff(begins, append=len(owner)))
    for low in range(0, int(place.max(initial=-1)) + 1, MOST_FACTORS):
        now = (place >= low) & (place < low + MOST_FACTORS)
        first = np.flatnonzero(np.diff(owner[now], prepend=-1))
        yield Factors(owner[now][first], child[now], first)
