"""The structure of a network: who is whose parent, and where the cells of its tables stand."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from robustq.exceptions import InputError
from robustq.memory import require_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robustq.arrays import Bools, Codes, Indices

__all__ = ["CLASS", "Structure", "Wiring"]

CLASS = -1  # the class among parents and variables
MOST_CELLS = 2**31 - 1


class Wiring(NamedTuple):
    """The structure as kernels read it.

    A cell of the table of feature i stands at offsets[i] + Σ code · steps over its parents + code
    · widths[i], and the classes, if the class is a parent, side by side from there.
    """

    starts: Codes
    parents: Codes
    steps: Indices
    offsets: Indices
    widths: Indices
    sizes: Indices
    row_offsets: Indices


@dataclass(frozen=True)
class Structure:
    """Who is whose parent.

    Attributes
    ----------
    sizes : tuple of int
        How many categories each feature has.
    classes : int
    parents : tuple of tuple of int
        For each feature, the features that are its parents.
    from_class : tuple of bool
        For each feature, whether the class is a parent too.
    class_parents : tuple of int
        The features that are parents of the class.
    """

    sizes: tuple[int, ...]
    classes: int
    parents: tuple[tuple[int, ...], ...]
    from_class: tuple[bool, ...]
    class_parents: tuple[int, ...] = ()

    @cached_property
    def order(self) -> tuple[int, ...]:
        """All variables, parents before children; `CLASS` is one of them.

        Raises
        ------
        InputError
            If there is a cycle.
        """
        graph = {i: self.parents_of(i) for i in range(len(self.sizes))}
        graph[CLASS] = self.class_parents
        try:
            return tuple(TopologicalSorter(graph).static_order())
        except CycleError as error:
            msg = f"the parents form a cycle: {error.args[1]}"
            raise InputError(msg) from error

    def parents_of(self, feature: int) -> tuple[int, ...]:
        """Return the parents of a feature, the class first."""
        own = (CLASS,) if self.from_class[feature] else ()
        return (*own, *self.parents[feature])

    @property
    def is_forest(self) -> bool:
        """Whether every feature has the class and at most one feature as parents."""
        return (
            all(self.from_class)
            and not self.class_parents
            and all(len(parents) <= 1 for parents in self.parents)
        )

    def shape(self, feature: int) -> tuple[int, ...]:
        """Return the axes of the table of a feature: parents, itself, then the class or one."""
        own = [self.sizes[parent] for parent in self.parents[feature]]
        return (*own, self.sizes[feature], self.classes if self.from_class[feature] else 1)

    @cached_property
    def class_shape(self) -> tuple[int, ...]:
        """The axes of the table of the class."""
        return (*(self.sizes[parent] for parent in self.class_parents), self.classes)

    def require_room(self, copies: int = 4) -> None:
        """Raise, before anything is made, if the tables would not fit into memory."""
        # Whole numbers of Python: they do not overflow.
        cells = [prod(self.shape(i)) for i in range(len(self.sizes))]
        total = sum(cells) + prod(self.class_shape)
        remedy = "take fewer parents, fewer bins, or fewer columns with many values"
        require_memory(8 * copies * total, "the tables of this network", remedy)
        if total > MOST_CELLS:
            msg = (
                f"the tables of this network have {total:,} cells, {MOST_CELLS:,} at most: {remedy}"
            )
            raise InputError(msg)

    @cached_property
    def wiring(self) -> Wiring:
        """The structure as kernels read it."""
        count = len(self.sizes)
        starts = np.zeros(count + 1, dtype=np.int32)
        parents: list[int] = []
        steps: list[int] = []
        offsets, row_offsets, widths = [0], [0], []
        for i in range(count):
            shape = self.shape(i)
            starts[i + 1] = starts[i] + len(self.parents[i])
            parents.extend(self.parents[i])
            steps.extend(prod(shape[k + 1 :]) for k in range(len(self.parents[i])))
            widths.append(shape[-1])
            offsets.append(offsets[-1] + prod(shape))
            row_offsets.append(row_offsets[-1] + prod(shape[:-2]) * shape[-1])
        return Wiring(
            starts,
            np.array(parents, dtype=np.int32),
            np.array(steps, dtype=np.int64),
            np.array(offsets, dtype=np.int64),
            np.array(widths, dtype=np.int64),
            np.array(self.sizes, dtype=np.int64),
            np.array(row_offsets, dtype=np.int64),
        )

    @cached_property
    def class_steps(self) -> Indices:
        """How far apart the rows of the class's table stand, for each of its parents."""
        shape = self.class_shape[:-1]
        return np.array([prod(shape[k + 1 :]) for k in range(len(shape))], dtype=np.int64)

    @cached_property
    def alone(self) -> Bools:
        """Which features have a single category, whose probability is 1 whatever happens."""
        return np.array(self.sizes, dtype=np.int64) == 1

    @cached_property
    def tied_to_class(self) -> Bools:
        """Which features have the class as a parent."""
        return np.array(self.from_class, dtype=bool)

    @cached_property
    def is_plain(self) -> bool:
        """Whether the class is a parent of every feature and has none, and none is alone."""
        return bool(self.tied_to_class.all() and not self.alone.any() and not self.class_parents)

    def repeat(self, rows: int) -> tuple[Codes, Codes, Codes]:
        """Return the wiring of several rows, one after the other: offsets, parents and steps.

        The first parents of all features come first, then the second ones, and so on; where there
        is none, the feature itself stands there, with a step of 0.
        """
        features, wiring = len(self.sizes), self.wiring
        parents = np.tile(np.arange(features), (max(map(len, self.parents), default=0), 1))
        steps = np.zeros_like(parents)
        for i, (start, stop) in enumerate(itertools.pairwise(wiring.starts.tolist())):
            parents[: stop - start, i] = wiring.parents[start:stop]
            steps[: stop - start, i] = wiring.steps[start:stop]
        lanes = np.repeat(np.arange(rows) * features, features)
        return (
            np.tile(wiring.offsets[:-1], rows).astype(np.int32),
            (np.tile(parents, (1, rows)) + lanes).astype(np.int32),
            np.tile(steps, (1, rows)).astype(np.int32),
        )

    def name_edges(self, names: Sequence[str], target: str) -> list[tuple[str, str]]:
        """Return (parent, child) by name."""
        called = [*names, target]  # CLASS is the last
        pairs = [(called[parent], target) for parent in self.class_parents]
        for i in range(len(self.sizes)):
            pairs.extend((called[parent], names[i]) for parent in self.parents_of(i))
        return pairs
