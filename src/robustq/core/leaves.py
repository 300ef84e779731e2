"""Class leaves alone: one mass function on the classes for each row, or a mean of several.

That is all there is of a classifier of which only p(c | f) is known, and of a forest that votes: it
says of each row the mean of the class distributions of the leaves that the row falls into.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .engine import Reading
from .evidence import CLASS, NONE, PRODUCT, SUM, Evidence, split_evidence
from .modes import MODES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robustq.arrays import Bools, Codes, Floats, Indices
    from robustq.tables import Rows

    from .neighbourhoods import Perturbed
    from .quantified import Quantified

__all__ = ["LEAF_CLASSES", "POSTERIOR", "ROOT", "ClassLeaves", "Votes"]

POSTERIOR, ROOT, LEAF_CLASSES = "posterior", "root", "leaf_classes"
KNOWN = {name: MODES[name] for name in ("epsilon", "tv", "chi2")}


@dataclass(frozen=True, eq=False)
class ClassLeaves:
    """Leaves that rows name: a row of codes has the number of one leaf for each voice.

    Attributes
    ----------
    class_table : ndarray of shape (leaves, classes)
    counts : ndarray of shape (leaves,)
        The weight of the training rows behind each leaf; NaN where nothing was counted.
    voices : int
        How many leaves each row has; they weigh the same.
    """

    class_table: Floats
    counts: Floats
    voices: int = 1

    parts: ClassVar[tuple[str, ...]] = (POSTERIOR,)
    default_parts: ClassVar[tuple[str, ...]] = (POSTERIOR,)
    leaf_parts: ClassVar[tuple[int, ...]] = ()
    merges_rows: ClassVar[bool] = False
    has_numbers: ClassVar[bool] = False
    depth: ClassVar[int] = 1
    root_part: ClassVar[int] = NONE

    @property
    def locals(self) -> ClassLeaves:
        """The local mass functions: the root, number 0, and then the leaves."""
        return self

    @property
    def by_frequency(self) -> Indices:
        """The classes; no row is impossible, so that nobody asks which is the most frequent."""
        return np.arange(self.class_table.shape[1])

    # Rows

    def log_joint(self, rows: Rows) -> Floats:
        """Return log p(c | f), (rows, classes)."""
        from . import _vote_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        total = np.zeros((len(rows), self.class_table.shape[1]))
        _vote_kernels.add(self.class_table, np.ascontiguousarray(rows.codes), total)
        with np.errstate(divide="ignore"):
            return np.log(total / self.voices)

    def read(self, rows: Rows) -> Reading:
        """Return log p(c | f), and the rows as voices."""
        shape = Voices(self, np.ascontiguousarray(rows.codes))
        return Reading(self.log_joint(rows), [(np.arange(len(rows)), shape)])

    def reach(
        self,
        rows: Rows,
        *,
        fold: bool = False,  # noqa: ARG002 (there are no features)
    ) -> Iterator[tuple[slice, Evidence]]:
        """Yield what rows reach: a sum of products, each of a class leaf alone."""
        for block in split_evidence(np.full(len(rows), 2 * self.voices + 1)):
            yield block, self._reach(rows.codes[block].astype(np.int64))

    def _reach(self, leaves: Indices) -> Evidence:
        rows, voices = leaves.shape
        width = 2 * voices + 1
        evidence = Evidence.empty(np.arange(rows + 1) * width)

        def lay(column: np.ndarray, leaf: object, product: object, root: object) -> None:
            table = column.reshape(rows, width)
            table[:, 0:-1:2], table[:, 1:-1:2], table[:, -1] = leaf, product, root

        part = self.root_part if voices > 1 else NONE
        lay(evidence.op, CLASS, PRODUCT, SUM)
        lay(evidence.arity, 0, 1, voices)
        lay(evidence.p, 1.0, 1.0 / voices, 1.0)
        lay(evidence.extra, leaves, 0, 0)
        lay(evidence.local, 1 + leaves, 0, NONE)
        lay(evidence.slot, NONE, np.arange(voices), 0)
        lay(evidence.part, self.root_part + 1, part, NONE)
        lay(evidence.feature, NONE, NONE, NONE)
        lay(evidence.rows, self.counts[leaves], np.nan, np.nan)
        return evidence

    # Local mass functions

    @property
    def wide(self) -> tuple[int, ...]:
        """The parts that weigh more than two children."""
        return (self.root_part,) if self.voices > 2 else ()

    @property
    def on_classes(self) -> tuple[int, ...]:
        """The parts that are mass functions on the classes in a leaf."""
        return (self.root_part + 1,)

    @property
    def counted(self) -> Bools:
        """For each part, whether rows were counted there."""
        known = not np.isnan(self.counts).any()
        return np.array([known and i == self.root_part + 1 for i in range(len(self.parts))])

    def outcomes(self, local: Indices) -> Indices:
        """Return how many outcomes each has."""
        return np.where(local == 0, self.voices, self.class_table.shape[1])

    def expand(self, local: Indices) -> Floats:
        """Return whole mass functions, all with the same number of outcomes."""
        root = local == 0
        if root.all():
            return np.full((len(local), self.voices), 1.0 / self.voices)
        found = self.class_table[local - 1]
        found[root] = 1.0 / self.voices
        return found

    def position(self, local: Indices, slot: Indices) -> Indices:  # noqa: ARG002 (no features)
        """Return where values stand among the outcomes: there are no features."""
        return slot


class Votes(ClassLeaves):
    """A forest that votes: the weights of its trees, and the classes of its leaves."""

    parts = default_parts = (ROOT, LEAF_CLASSES)
    root_part = 0


@dataclass(frozen=True, eq=False)
class Voices:
    """Rows of which a kernel knows what ε-contamination, total variation and χ² do.

    Attributes
    ----------
    model : ClassLeaves
    leaves : ndarray of shape (rows, voices)
    """

    model: ClassLeaves
    leaves: Codes

    def fits(self, perturbed: Perturbed) -> bool:
        """Tell whether the kernel knows a neighbourhood."""
        known = perturbed.ball.expectation in KNOWN and not perturbed.features
        return known and perturbed.sizes == "equal"

    def solve(self, perturbed: Perturbed, found: Quantified) -> tuple[Floats, Indices]:
        """Return the size and the tipping class of each row; NaN where rounding would show."""
        from . import _vote_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        size, tipping = np.empty(len(self.leaves)), np.empty(len(self.leaves), dtype=np.int64)
        root = self.model.root_part
        _vote_kernels.search(
            *(KNOWN[perturbed.ball.expectation or ""], root in perturbed.parts),
            *(root + 1 in perturbed.parts, self.model.class_table, self.leaves),
            *(
                found.prediction,
                found.runner_up,
                np.empty((_vote_kernels.ROOM, self.model.voices)),
                size,
                tipping,
            ),
        )
        return size, tipping

    def size_of(self, perturbed: Perturbed, x: Floats) -> Floats:  # noqa: ARG002 (it is the size)
        """Return the sizes that belong to x: x itself."""
        return x
