"""How much is added to counts: what cross-validation finds best."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import folds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from robustq.arrays import Codes, Floats, Indices

    Count = Callable[[Codes, Indices, Floats], Any]
    LogJoint = Callable[[Any, float, Codes], Floats]

__all__ = ["SMOOTHING_GRID", "choose_smoothing", "pick", "score_fold"]

SMOOTHING_GRID = (0.001, 0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
STEPS = 1 << 16  # of a nat: sums of whole steps are the same in any order


def choose_smoothing(
    codes: Codes,
    labels: Indices,
    weights: Floats,
    total: Any,
    rng: np.random.Generator,
    count: Count,
    log_joint: LogJoint,
    grid: Sequence[float] = SMOOTHING_GRID,
) -> float:
    """Return the smoothing of a grid with the best cross-validated accuracy.

    The log-likelihood of the labels breaks ties, and then the smaller smoothing. A few rows are
    dealt to the folds, so that classes are balanced and a weight of 2 is two rows; of more, the
    seed and the number of each row tell its fold. What a fold leaves over to train on is the
    total minus its counts.

    Parameters
    ----------
    codes, labels, weights : of the rows
    total : counts of any kind that can be subtracted
    rng : numpy.random.Generator
    count : callable
        Returns the counts of some rows, given as codes, labels and weights.
    log_joint : callable
        Takes counts, a smoothing and codes; returns log p(c, f).
    grid : sequence of float
        What to choose from.
    """
    if len(codes) <= folds.FEW:
        dealt = folds.deal(codes, labels, weights, rng)
    else:
        own = folds.draw_folds(int(rng.integers(2**63)), 0, len(codes))
        dealt = np.where(own[:, None] == np.arange(folds.FOLDS), weights[:, None], 0.0)
    scores = np.zeros((len(grid), 2))
    for fold in range(folds.FOLDS):
        held_out = np.flatnonzero(dealt[:, fold])
        if not len(held_out):
            continue
        rows, truth, weight = codes[held_out], labels[held_out], dealt[held_out, fold]
        rest = total - count(rows, truth, weight)
        scores += score_fold(rest, rows, truth, weight, log_joint, grid)
    return pick(scores, grid)


def score_fold(
    rest: Any,
    codes: Codes,
    labels: Indices,
    weights: Floats,
    log_joint: LogJoint,
    grid: Sequence[float],
) -> Floats:
    """Return, for each smoothing, how many rows of a fold are right, and their log-likelihood.

    Both are whole numbers where weights are: their sums over parts of the rows are the same,
    however the rows are parted.

    Parameters
    ----------
    rest : counts of the other folds
    codes, labels, weights : of rows of this one
    log_joint, grid
        See `choose_smoothing`.
    """
    scores = [_score(log_joint(rest, smoothing, codes), labels, weights) for smoothing in grid]
    return np.array(scores)


def pick(scores: Floats, grid: Sequence[float]) -> float:
    """Return the smoothing with the best score."""
    best = max(range(len(grid)), key=lambda index: (*scores[index], -grid[index]))
    return float(grid[best])


def _score(joint: Floats, truth: Indices, weight: Floats) -> tuple[float, float]:
    """Return how many are right, and the log-likelihood of the labels in steps."""
    right = joint.argmax(axis=1) == truth
    # A class the fold has never seen has probability 0: a floor keeps one such row
    # from deciding alone.
    own = np.maximum(joint[np.arange(len(truth)), truth], -1e4)
    best = joint.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        log_evidence = best[:, 0] + np.log(np.exp(joint - best).sum(axis=1))
    likelihood = np.where(np.isfinite(log_evidence), own - log_evidence, -1e4)
    return float(weight @ right), float(weight @ np.rint(likelihood * STEPS))
