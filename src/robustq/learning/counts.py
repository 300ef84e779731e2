"""Counts of categories within classes, and the probabilities they give."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.memory import require_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from robustq.arrays import Codes, Floats, Indices

__all__ = ["FOLDS", "SMOOTHING_GRID", "Counts", "Layout", "choose_smoothing"]

FOLDS = 5
MOST_COPIES = 10**7  # of rows with whole numbers for weights
SMOOTHING_GRID = (0.001, 0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)


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


def choose_smoothing(
    codes: Codes,
    labels: Indices,
    weights: Floats,
    total: Any,
    rng: np.random.Generator,
    count: Callable[[Codes, Indices, Floats], Any],
    log_joint: Callable[[Any, float, Codes], Floats],
) -> float:
    """Return the smoothing of `SMOOTHING_GRID` with the best cross-validated accuracy.

    The log-likelihood of the labels breaks ties, and then the smaller smoothing. The folds are
    stratified by class; what a fold leaves over to train on is the total minus its counts.

    Parameters
    ----------
    codes, labels, weights : of the rows
    total : counts of any kind that can be subtracted
    rng : numpy.random.Generator
    count : callable
        Returns the counts of some rows, given as codes, labels and weights.
    log_joint : callable
        Takes counts, a smoothing and codes; returns log p(c, f).
    """
    folds = _deal(codes, labels, weights, rng)
    scores = np.zeros((len(SMOOTHING_GRID), 2))
    for fold in range(FOLDS):
        held_out = np.flatnonzero(folds[:, fold])
        if not len(held_out):
            continue
        rows, truth, weight = codes[held_out], labels[held_out], folds[held_out, fold]
        rest = total - count(rows, truth, weight)
        for index, smoothing in enumerate(SMOOTHING_GRID):
            joint = log_joint(rest, smoothing, rows)
            scores[index] += _score(joint, truth, weight)
    best = max(range(len(SMOOTHING_GRID)), key=lambda index: (*scores[index], -index))
    return SMOOTHING_GRID[best]


def _score(joint: Floats, truth: Indices, weight: Floats) -> tuple[float, float]:
    """Return how many are right, and the log-likelihood of the labels."""
    right = joint.argmax(axis=1) == truth
    # A class the fold has never seen has probability 0: a floor keeps one such row
    # from deciding alone.
    own = np.maximum(joint[np.arange(len(truth)), truth], -1e4)
    best = joint.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        log_evidence = best[:, 0] + np.log(np.exp(joint - best).sum(axis=1))
    likelihood = np.where(np.isfinite(log_evidence), own - log_evidence, -1e4)
    return float(weight @ right), float(weight @ likelihood)


def _deal(codes: Codes, labels: Indices, weights: Floats, rng: np.random.Generator) -> Floats:
    """Deal the rows of each class, shuffled, to the folds in turn; (rows, folds), their weight.

    A row of weight 2 is dealt as two rows are, one of weight 0 not at all; a row whose weight is
    no whole number as one. The shuffling goes by what is in the rows, not by their order.
    """
    whole = np.all(weights == np.floor(weights)) and weights.sum() <= MOST_COPIES
    copies = weights.astype(np.int64) if whole else (weights > 0.0).astype(np.int64)
    mix = rng.integers(1, 2**63, size=codes.shape[1] + 2, dtype=np.uint64) | np.uint64(1)
    keys = np.zeros(len(codes), dtype=np.uint64)
    for column, factor in zip([labels, *codes.T], mix, strict=False):
        keys = _mix(keys, column, factor)
    # Equal rows side by side: each copy is told from the others by its number.
    dealt = np.repeat(
        *(array[np.argsort(keys, kind="stable")] for array in (np.arange(len(codes)), copies))
    )
    place = np.arange(len(dealt))
    begins = np.diff(keys[dealt], prepend=~keys[dealt[:1]]) != 0
    number = place - np.maximum.accumulate(np.where(begins, place, 0))
    order = np.lexsort((_mix(keys[dealt], number, mix[-1]), labels[dealt]))
    folds = np.zeros((len(codes), FOLDS))
    np.add.at(folds, (dealt[order], place % FOLDS), 1.0)
    return folds * (weights / np.maximum(copies, 1))[:, None]


def _mix(keys: np.ndarray[Any, Any], more: Indices, factor: np.uint64) -> np.ndarray[Any, Any]:
    """Return keys that depend on more, as if they were random."""
    mixed = (keys ^ more.astype(np.uint64)) * factor
    return mixed ^ (mixed >> np.uint64(29))


def _normalise(weights: Floats) -> Floats:
    """Divide by the sums over the first axis; where they are 0, return equal shares."""
    total = weights.sum(axis=0)
    share = 1.0 / max(len(weights), 1)
    safe = np.where(total > 0.0, total, 1.0)
    return np.where(total > 0.0, weights / safe, share)
