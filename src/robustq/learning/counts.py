"""Counts of categories within classes, and the probabilities they give."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from robustq.memory import require_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robustq.arrays import Codes, Floats, Indices

__all__ = ["Counts", "Layout"]


@dataclass(frozen=True)
class Layout:
    """Where the cells of a table [feature][category][class] stand in a flat array.

    Attributes
    ----------
    sizes : tuple of int
        How many categories each feature has.
    classes : int
    """

    sizes: tuple[int, ...]
    classes: int

    @cached_property
    def offsets(self) -> Indices:
        """The position of the first cell of each feature, and the end."""
        return np.concatenate([[0], np.cumsum(self.sizes, dtype=np.int64) * self.classes])

    def feature(self, flat: Floats, index: int) -> Floats:
        """Return a view (categories, classes) of the cells of one feature."""
        start, stop = self.offsets[index : index + 2]
        return flat[start:stop].reshape(-1, self.classes)


@dataclass(frozen=True)
class Counts:
    """What naive Bayes learns: weights of classes, and of categories within classes.

    Attributes
    ----------
    classes : ndarray of shape (classes,)
    values : ndarray
        Flat: see `Layout`.
    layout : Layout
    """

    classes: Floats
    values: Floats
    layout: Layout

    @classmethod
    def of(
        cls, codes: Codes, labels: Indices, weights: Floats, sizes: Sequence[int], classes: int
    ) -> Counts:
        """Count rows of codes."""
        from . import _count_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        layout = Layout(tuple(sizes), classes)
        require_memory(
            8 * int(layout.offsets[-1]),
            f"counts of {sum(sizes):,} categories in {classes:,} classes",
            "is the target a number rather than a class, or a column an identifier?",
        )
        values = np.zeros(layout.offsets[-1])
        codes = np.ascontiguousarray(codes, dtype=np.int32)
        _count_kernels.count(codes, labels, weights, layout.offsets[:-1], classes, values)
        per_class = np.bincount(labels, weights, minlength=classes).astype(np.float64)
        return cls(per_class, values, layout)

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.classes + other.classes, self.values + other.values, self.layout)

    def __sub__(self, other: Counts) -> Counts:
        # Differences of equal weights may fall below zero by rounding.
        return Counts(
            np.maximum(self.classes - other.classes, 0.0),
            np.maximum(self.values - other.values, 0.0),
            self.layout,
        )

    def resize(self, sizes: Sequence[int]) -> Counts:
        """Return the same counts with room for more categories."""
        layout = Layout(tuple(sizes), self.layout.classes)
        values = np.zeros(layout.offsets[-1])
        for index, size in enumerate(self.layout.sizes):
            layout.feature(values, index)[:size] = self.layout.feature(self.values, index)
        return Counts(self.classes, values, layout)

    def feature_rows(self) -> Floats:
        """Return the weight of the rows that were counted, (features, classes)."""
        each = [
            self.layout.feature(self.values, index).sum(axis=0)
            for index in range(len(self.layout.sizes))
        ]
        return np.array(each).reshape(len(each), self.layout.classes)

    def estimate(
        self, smoothing: float, class_prior: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return p(class), and (count + smoothing) / (total + smoothing · categories) of all cells.

        Where there is nothing to divide by, all categories are equally likely.
        """
        # All at once: a step for each feature takes longer than its sums, where there are many.
        sizes = np.array([size for size in self.layout.sizes if size], dtype=np.int64)
        counts = self.values.reshape(-1, self.layout.classes) + smoothing
        total = np.add.reduceat(counts, np.cumsum(sizes) - sizes, axis=0) if len(sizes) else counts
        total, share = np.repeat(total, sizes, axis=0), np.repeat(1.0 / sizes, sizes)[:, None]
        probs = np.where(total > 0.0, counts / np.where(total > 0.0, total, 1.0), share)
        prior = _normalise(self.classes) if class_prior is None else class_prior
        return prior, probs.reshape(-1)


def _normalise(weights: Floats) -> Floats:
    """Divide by the sums over the first axis; where they are 0, return equal shares."""
    total = weights.sum(axis=0)
    share = 1.0 / max(len(weights), 1)
    safe = np.where(total > 0.0, total, 1.0)
    return np.where(total > 0.0, weights / safe, share)
