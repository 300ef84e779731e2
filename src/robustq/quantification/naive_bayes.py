"""The robustness of naive Bayes predictions: Theorem 2 for any ball, kernels for some."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

import numpy as np

from robustq.perturbations import (
    ChiSquared,
    Epsilon,
    PariMutuel,
    Perturbation,
    TotalVariation,
)
from robustq.tables import find_distinct

from .expectations import lower_expectations
from .quantified import Quantified
from .rivals import find_first_flips, list_rivals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from robustq.arrays import Bools, Codes, Floats, Indices
    from robustq.models.naive_bayes import NaiveBayes

__all__ = ["FAST", "LinearBall", "leads", "margins", "quantify"]


@dataclass(frozen=True)
class LinearBall:
    """A ball whose bounds are p − x l and p + x u, for some x that grows with δ.

    Attributes
    ----------
    slopes : callable
        Gives l and u for probabilities p.
    size : callable
        Gives the δ that belongs to x.
    cut : float
        What p + x u is cut off at.
    limit : float
        Where x ends at the latest.
    keeps_zero : bool
        Whether an outcome of probability 0 stays there.
    chi2 : bool
        Whether the prior does not behave as one more feature, but as under χ².
    """

    slopes: Callable[[Floats], tuple[Floats, Floats]]
    size: Callable[[Floats], Floats]
    cut: float = 1.0
    limit: float = np.inf
    keeps_zero: bool = False
    chi2: bool = False

    def table(self, probs: Floats, *, prior: bool) -> Floats:
        """Return the columns of `_kernels.COLUMNS` for each probability."""
        fall, rise = self.slopes(probs)
        if prior and self.chi2:
            fall, rise = np.zeros_like(probs), np.zeros_like(probs)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            rates = [np.where(slope > 0.0, slope / probs, 0.0) for slope in (fall, rise)]
        return np.stack([probs, fall, rates[0], rise, rates[1]], axis=1)


# ε divided by (1−δ)ⁿ: the lower bound is p itself and the upper one p + δ/(1−δ); as no
# probability exceeds 1, neither does x.
FAST: dict[type[Perturbation], LinearBall] = {
    Epsilon: LinearBall(
        slopes=lambda p: (np.zeros_like(p), np.ones_like(p)),
        size=lambda x: x / np.where(np.isinf(x), 1.0, 1.0 + x),
        cut=np.inf,
        limit=1.0,
    ),
    TotalVariation: LinearBall(
        slopes=lambda p: (np.ones_like(p), np.ones_like(p)),
        size=lambda x: x,
    ),
    ChiSquared: LinearBall(
        slopes=lambda p: (np.sqrt(p * (1.0 - p)), np.sqrt(p * (1.0 - p))),
        size=lambda x: x * x,
        keeps_zero=True,
        chi2=True,
    ),
    PariMutuel: LinearBall(
        slopes=lambda p: (1.0 - p, p),
        size=lambda x: x,
        keeps_zero=True,
    ),
}


_TABLES: WeakKeyDictionary[NaiveBayes, dict[type[Perturbation], tuple[Floats, Floats]]] = (
    WeakKeyDictionary()
)


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
    rows = _read(model, codes)
    found = Quantified.rank(rows.joint, len(balls))
    for index, ball in enumerate(balls):
        fast = type(ball) in FAST and not general
        answer = _solve(model, rows, type(ball)) if fast else _search(model, rows, ball)
        found.robustness[index], found.tipping[index] = answer
    found.settle(np.isneginf(rows.joint.max(axis=1)), model.by_frequency)
    return found.take(rows.twins) if len(rows.codes) < len(codes) else found


@dataclass(frozen=True)
class _Rows:
    """The rows of a block that differ from each other."""

    codes: Codes
    twins: Indices  # for each row of the block, which of these it is
    cells: Codes
    joint: Floats


def _read(model: NaiveBayes, codes: Codes) -> _Rows:
    from . import _kernels  # noqa: PLC0415 (numba is imported when it is needed)

    codes = np.ascontiguousarray(codes, dtype=np.int32)
    firsts, twins = find_distinct(codes)
    if len(firsts) < len(codes):
        codes = codes[firsts]
    cells = np.empty(codes.shape, dtype=np.int32)
    _kernels.locate(codes, model.offsets, model.alone, len(model.class_probs), cells)
    return _Rows(codes, twins, cells, model.log_joint(codes))


def _solve(model: NaiveBayes, rows: _Rows, kind: type[Perturbation]) -> tuple[Floats, Indices]:
    """Return robustness and tipping class by the kernel."""
    from . import _kernels  # noqa: PLC0415 (numba is imported when it is needed)

    ball = FAST[kind]
    class_table, feature_table = _tables(model, kind)
    x, tipping = np.empty(len(rows.cells)), np.empty(len(rows.cells), dtype=np.int64)
    _kernels.search(
        rows.cells,
        rows.joint,
        class_table,
        feature_table,
        ball.cut,
        ball.limit,
        ball.keeps_zero,
        ball.chi2,
        x,
        tipping,
    )
    return ball.size(x), tipping


def _tables(model: NaiveBayes, kind: type[Perturbation]) -> tuple[Floats, Floats]:
    """Return the tables of a ball, made once per model: blocks are many, tables may be large."""
    made = _TABLES.setdefault(model, {})
    if kind not in made:
        ball = FAST[kind]
        made[kind] = (
            ball.table(model.class_probs, prior=True),
            ball.table(model.feature_probs, prior=False),
        )
    return made[kind]


def _search(model: NaiveBayes, rows: _Rows, ball: Perturbation) -> tuple[Floats, Indices]:
    """Return robustness and tipping class for any ball, by Theorem 2 alone.

    Only whether a prediction is tied, where rounding would decide, is asked of the kernel.
    """
    plain, rival = _solve(model, rows, TotalVariation)
    robustness = np.where(plain == 0.0, 0.0, np.inf)
    tipping = np.where(plain == 0.0, rival, -1)
    classes = len(model.class_probs)
    open_rows = np.flatnonzero(plain > 0.0)
    if classes == 1 or not len(open_rows):
        return robustness, tipping
    prediction = rows.joint.argmax(axis=1)
    rivals = list_rivals(prediction[open_rows], classes)

    def margin_of_each(which: Indices, delta: Floats) -> Floats:
        pick = open_rows[which]
        ahead = np.repeat(prediction[pick], classes - 1)
        behind = rivals[which].ravel()
        repeated = np.repeat(rows.codes[pick], classes - 1, axis=0)
        size = np.repeat(delta, classes - 1)
        return margins(model, repeated, ahead, behind, ball, size).reshape(-1, classes - 1)

    found = find_first_flips(margin_of_each, ball.domain, rivals)
    robustness[open_rows], tipping[open_rows] = found
    return robustness, tipping


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
        log_alpha = np.log(_bounds(model, codes, ahead, ball, delta, "lower")).sum(axis=1)
        log_beta = np.log(_bounds(model, codes, behind, ball, delta, "upper")).sum(axis=1)
    largest = np.maximum(log_alpha, log_beta)
    largest = np.where(np.isneginf(largest), 0.0, largest)
    rows = np.arange(len(codes))
    difference = np.zeros((len(codes), len(model.class_probs)))
    difference[rows, ahead] = np.exp(log_alpha - largest)
    difference[rows, behind] -= np.exp(log_beta - largest)
    return lower_expectations(ball, model.class_probs, difference, delta)


def leads(model: NaiveBayes, codes: Codes, joint: Floats, ahead: Indices, behind: Indices) -> Bools:
    """Tell for each row whether p(ahead, f) > p(behind, f), in exact arithmetic if need be."""
    rows = np.arange(len(codes))
    with np.errstate(invalid="ignore"):
        gap = joint[rows, ahead] - joint[rows, behind]
    leading = gap > 0.0
    scale = np.abs(joint[rows, ahead]) + codes.shape[1] + 1.0
    for row in np.flatnonzero(np.abs(gap) <= 1e-15 * scale):
        pair = (_exact_joint(model, codes[row], int(c[row])) for c in (ahead, behind))
        leading[row] = operator.gt(*pair)
    return leading


def _exact_joint(model: NaiveBayes, codes: Codes, c: int) -> Fraction:
    local = (model.local_model(feature)[code, c] for feature, code in enumerate(codes) if code >= 0)
    return math.prod(map(Fraction, local), start=Fraction(model.class_probs[c]))


def _bounds(
    model: NaiveBayes,
    codes: Codes,
    classes: Indices,
    ball: Perturbation,
    delta: Floats,
    side: Literal["lower", "upper"],
) -> Floats:
    """Return the lower or upper p(f_i | class), (rows, features); 1 where f_i is missing."""
    method = f"{side}_probability"
    if getattr(type(ball), method) is getattr(Perturbation, method):
        # The ball gives expectations only: ask it about the full mass functions.
        expectation = getattr(ball, f"{side}_expectation")
        return _expected_indicators(model, codes, classes, expectation, delta)
    probs, fixed = _local_probabilities(model, codes, classes)
    return np.where(fixed, 1.0, getattr(ball, method)(probs, delta[:, None]))


def _local_probabilities(model: NaiveBayes, codes: Codes, classes: Indices) -> tuple[Floats, Bools]:
    """Return p(f_i | class), and where it is 1 whatever the size.

    That is where f_i is missing, and where the feature has a single category.
    """
    fixed = (codes < 0) | model.alone
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
        if not len(seen):
            continue
        masses = model.local_model(feature).T[classes[seen]]
        indicator = np.eye(size)[codes[seen, feature]]
        bounds[seen, feature] = expectation(masses, indicator, delta[seen])
    # Rounding in somebody's solver must not make a logarithm fail.
    return np.clip(bounds, 0.0, 1.0)
