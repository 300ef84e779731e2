"""The naive Bayes model: p(c, f) = p(c) Π p(f_i | c)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .frequency import by_frequency

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robustq.arrays import Bools, Codes, Floats, Indices

__all__ = ["FOLDS", "SMOOTHING_GRID", "Counts", "NaiveBayes", "choose_smoothing"]

FOLDS = 5
SMOOTHING_GRID = (0.001, 0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)


@dataclass(frozen=True)
class Cells:
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


@dataclass(frozen=True, eq=False)
class NaiveBayes:
    """The parameters of the model, as flat arrays.

    Attributes
    ----------
    class_probs : ndarray of shape (classes,)
    feature_probs : ndarray
        p(category | class), flat: see `Cells`.
    cells : Cells
    """

    class_probs: Floats
    feature_probs: Floats
    cells: Cells

    def local_model(self, feature: int) -> Floats:
        """Return p(category | class) of one feature, (categories, classes)."""
        return self.cells.feature(self.feature_probs, feature)

    @property
    def offsets(self) -> Indices:
        """Where the cells of each feature begin."""
        return self.cells.offsets[:-1]

    @cached_property
    def alone(self) -> Bools:
        """Which features have a single category, whose probability is 1 whatever happens."""
        return np.array(self.cells.sizes) == 1

    @cached_property
    def by_frequency(self) -> Indices:
        """The positions of the classes, the most frequent one first."""
        return by_frequency(self.class_probs)

    def log_joint(self, codes: Codes) -> Floats:
        """Return log p(c, f), (rows, classes); missing features are summed out."""
        from . import _kernels  # noqa: PLC0415 (numba is imported when it is needed)

        out = np.empty((len(codes), len(self.class_probs)))
        codes = np.ascontiguousarray(codes, dtype=np.int32)
        _kernels.log_joint(codes, self.class_probs, self.feature_probs, self.offsets, out)
        return out


@dataclass(frozen=True)
class Counts:
    """What naive Bayes learns: weights of classes, and of categories within classes.

    Attributes
    ----------
    classes : ndarray of shape (classes,)
    values : ndarray
        Flat: see `Cells`.
    cells : Cells
    """

    classes: Floats
    values: Floats
    cells: Cells

    @classmethod
    def of(
        cls, codes: Codes, labels: Indices, weights: Floats, sizes: Sequence[int], classes: int
    ) -> Counts:
        """Count rows of codes."""
        from . import _kernels  # noqa: PLC0415 (numba is imported when it is needed)

        cells = Cells(tuple(sizes), classes)
        values = np.zeros(cells.offsets[-1])
        codes = np.ascontiguousarray(codes, dtype=np.int32)
        _kernels.count(codes, labels, weights, cells.offsets[:-1], classes, values)
        per_class = np.bincount(labels, weights, minlength=classes).astype(np.float64)
        return cls(per_class, values, cells)

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.classes + other.classes, self.values + other.values, self.cells)

    def __sub__(self, other: Counts) -> Counts:
        # Differences of equal weights may fall below zero by rounding.
        return Counts(
            np.maximum(self.classes - other.classes, 0.0),
            np.maximum(self.values - other.values, 0.0),
            self.cells,
        )

    def resize(self, sizes: Sequence[int]) -> Counts:
        """Return the same counts with room for more categories."""
        cells = Cells(tuple(sizes), self.cells.classes)
        values = np.zeros(cells.offsets[-1])
        for index, size in enumerate(self.cells.sizes):
            cells.feature(values, index)[:size] = self.cells.feature(self.values, index)
        return Counts(self.classes, values, cells)

    def estimate(self, smoothing: float, class_prior: Floats | None = None) -> NaiveBayes:
        """Return (count + smoothing) / (total + smoothing · categories) for every cell.

        Where there is nothing to divide by, all categories are equally likely.
        """
        probs = np.empty_like(self.values)
        for index in range(len(self.cells.sizes)):
            counts = self.cells.feature(self.values, index) + smoothing
            self.cells.feature(probs, index)[:] = _normalise(counts)
        prior = _normalise(self.classes) if class_prior is None else class_prior
        return NaiveBayes(prior, probs, self.cells)


def choose_smoothing(
    codes: Codes,
    labels: Indices,
    weights: Floats,
    total: Counts,
    class_prior: Floats | None,
    rng: np.random.Generator,
) -> float:
    """Return the smoothing of `SMOOTHING_GRID` with the best cross-validated accuracy.

    The log-likelihood of the labels breaks ties, and then the smaller smoothing. The folds are
    stratified by class; what a fold leaves over to train on is the total minus its counts.
    """
    folds = _stratify(labels, rng)
    scores = np.zeros((len(SMOOTHING_GRID), 2))
    for fold in range(FOLDS):
        held_out = np.flatnonzero(folds == fold)
        if not len(held_out):
            continue
        rows, truth, weight = codes[held_out], labels[held_out], weights[held_out]
        part = Counts.of(rows, truth, weight, total.cells.sizes, total.cells.classes)
        rest = total - part
        for index, smoothing in enumerate(SMOOTHING_GRID):
            joint = rest.estimate(smoothing, class_prior).log_joint(rows)
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


def _stratify(labels: Indices, rng: np.random.Generator) -> Indices:
    """Deal the rows of each class, shuffled, to the folds in turn."""
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    folds = np.empty(len(labels), dtype=np.intp)
    folds[order] = np.arange(len(labels)) % FOLDS
    return folds


def _normalise(weights: Floats) -> Floats:
    """Divide by the sums over the first axis; where they are 0, return equal shares."""
    total = weights.sum(axis=0)
    share = 1.0 / max(len(weights), 1)
    safe = np.where(total > 0.0, total, 1.0)
    return np.where(total > 0.0, weights / safe, share)
