"""The robustness of naive Bayes predictions: Theorem 2 for any ball, kernels for some."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from robustq.perturbations import (
    ChiSquared,
    Epsilon,
    OddsRatio,
    PariMutuel,
    Perturbation,
    TotalVariation,
)

from .quantified import Quantified
from .roots import smallest_roots

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from robustq.arrays import Bools, Codes, Floats, Indices
    from robustq.models.naive_bayes import NaiveBayes

__all__ = ["FAST", "margins", "quantify"]

# The balls with a kernel, in the order of its constants.
FAST = (Epsilon, TotalVariation, ChiSquared, PariMutuel, OddsRatio)


def quantify(
    model: NaiveBayes, codes: Codes, balls: Sequence[Perturbation], *, general: bool = False
) -> Quantified:
    """Return the predictions of rows of codes and their robustness.

    Parameters
    ----------
    model : NaiveBayes
    codes : ndarray of shape (rows, features)
    balls : sequence of Perturbation
    general : bool
        Whether to use the general path also where there is a kernel.
    """
    fast = [] if general else [i for i, ball in enumerate(balls) if type(ball) in FAST]
    found = _run_kernel(model, codes, [FAST.index(type(balls[i])) for i in fast])
    if len(fast) == len(balls):
        return found
    robustness = np.empty((len(balls), len(codes)))
    tipping = np.empty((len(balls), len(codes)), dtype=np.int64)
    robustness[fast], tipping[fast] = found.robustness, found.tipping
    for index, ball in enumerate(balls):
        if index not in fast:
            robustness[index], tipping[index] = _search(model, codes, ball)
    return Quantified(found.prediction, found.runner_up, found.probability, robustness, tipping)


def _run_kernel(model: NaiveBayes, codes: Codes, balls: Sequence[int]) -> Quantified:
    from . import _kernels  # noqa: PLC0415 (numba is imported when it is needed)

    found = Quantified.empty(len(balls), len(codes))
    _kernels.quantify(
        np.ascontiguousarray(codes, dtype=np.int32),
        model.class_probs,
        model.feature_probs,
        model.inverse_probs,
        model.root_odds,
        model.offsets,
        np.array(model.cells.sizes) == 1,
        np.array(balls, dtype=np.int64),
        found.prediction,
        found.runner_up,
        found.probability,
        found.robustness,
        found.tipping,
    )
    return found


def _search(model: NaiveBayes, codes: Codes, ball: Perturbation) -> tuple[Floats, Indices]:
    """Return robustness and tipping class for any ball, by Theorem 2 alone.

    Only whether a prediction is tied, where rounding would decide, is asked of the kernel.
    """
    plain = _run_kernel(model, codes, [FAST.index(TotalVariation)])
    robustness = np.where(plain.robustness[0] == 0.0, 0.0, np.inf)
    tipping = np.where(robustness == 0.0, plain.tipping[0], -1)
    rows = np.flatnonzero(robustness > 0.0)
    classes = len(model.class_probs)
    if classes == 1 or not len(rows):
        return robustness, tipping
    rivals = _others(plain.prediction[rows], classes)

    def margin_of_each(which: Indices, delta: Floats) -> Floats:
        pick = rows[which]
        ahead = np.repeat(plain.prediction[pick], classes - 1)
        behind = rivals[which].ravel()
        repeated = np.repeat(codes[pick], classes - 1, axis=0)
        size = np.repeat(delta, classes - 1)
        return margins(model, repeated, ahead, behind, ball, size).reshape(-1, classes - 1)

    found = smallest_roots(
        lambda which, delta: margin_of_each(which, delta).min(axis=1), ball.domain, len(rows)
    )
    robustness[rows] = found
    flips = np.flatnonzero(np.isfinite(found))
    first = margin_of_each(flips, found[flips]).argmin(axis=1)
    tipping[rows[flips]] = rivals[flips, first]
    return robustness, tipping


def _others(prediction: Indices, classes: int) -> Indices:
    """Return for each row all classes but the predicted one, (rows, classes − 1)."""
    every = np.arange(classes - 1)
    return every + (every >= prediction[:, None])


def margins(
    model: NaiveBayes,
    codes: Codes,
    ahead: Indices,
    behind: Indices,
    ball: Perturbation,
    delta: Floats,
) -> Floats:
    """Return E̲[α 1_ahead − β 1_behind] under the prior's ball: the left side of Theorem 2.

    α is the product of the lower probabilities of the features given the class `ahead`,
    β that of the upper probabilities given `behind`. Both are divided by the larger one:
    only the sign is asked for, and products of many probabilities underflow.

    Parameters
    ----------
    model : NaiveBayes
    codes : ndarray of shape (rows, features)
    ahead, behind : ndarray of shape (rows,)
        Two classes for each row.
    ball : Perturbation
    delta : ndarray of shape (rows,)
    """
    with np.errstate(divide="ignore"):
        log_alpha = np.log(_lower_bounds(model, codes, ahead, ball, delta)).sum(axis=1)
        log_beta = np.log(_upper_bounds(model, codes, behind, ball, delta)).sum(axis=1)
    largest = np.maximum(log_alpha, log_beta)
    largest = np.where(np.isneginf(largest), 0.0, largest)
    rows = np.arange(len(codes))
    difference = np.zeros((len(codes), len(model.class_probs)))
    difference[rows, ahead] = np.exp(log_alpha - largest)
    difference[rows, behind] -= np.exp(log_beta - largest)
    return ball.lower_expectation(model.class_probs, difference, delta)


def _lower_bounds(
    model: NaiveBayes, codes: Codes, classes: Indices, ball: Perturbation, delta: Floats
) -> Floats:
    """Return the lower p(f_i | class), (rows, features); 1 where f_i is missing."""
    if type(ball).lower_probability is Perturbation.lower_probability:
        return _expected_indicators(model, codes, classes, ball.lower_expectation, delta)
    probs, fixed = _local_probabilities(model, codes, classes)
    return np.where(fixed, 1.0, ball.lower_probability(probs, delta[:, None]))


def _upper_bounds(
    model: NaiveBayes, codes: Codes, classes: Indices, ball: Perturbation, delta: Floats
) -> Floats:
    """Return the upper p(f_i | class), (rows, features); 1 where f_i is missing."""
    if type(ball).upper_probability is Perturbation.upper_probability:
        return _expected_indicators(model, codes, classes, ball.upper_expectation, delta)
    probs, fixed = _local_probabilities(model, codes, classes)
    return np.where(fixed, 1.0, ball.upper_probability(probs, delta[:, None]))


def _local_probabilities(model: NaiveBayes, codes: Codes, classes: Indices) -> tuple[Floats, Bools]:
    """Return p(f_i | class), and where it is 1 whatever the size.

    That is where f_i is missing, and where the feature has a single category.
    """
    fixed = (codes < 0) | (np.array(model.cells.sizes) == 1)
    cells = model.offsets + codes * np.int64(model.cells.classes) + classes[:, None]
    probs = model.feature_probs[np.where(fixed, 0, cells)] if len(model.feature_probs) else 1.0
    return np.where(fixed, 1.0, probs), fixed


def _expected_indicators(
    model: NaiveBayes,
    codes: Codes,
    classes: Indices,
    expectation: Callable[[Floats, Floats, Floats], Floats],
    delta: Floats,
) -> Floats:
    """Return the bounds of a ball that gives expectations only, from the full mass functions."""
    bounds = np.ones(codes.shape)
    for feature, size in enumerate(model.cells.sizes):
        seen = np.flatnonzero(codes[:, feature] >= 0)
        masses = model.local_model(feature).T[classes[seen]]
        indicator = np.eye(size)[codes[seen, feature]]
        bounds[seen, feature] = expectation(masses, indicator, delta[seen])
    # Rounding in somebody's solver must not make a logarithm fail.
    return np.clip(bounds, 0.0, 1.0)
