"""The robustness of forest predictions: Theorem 3 for any ball, kernels for some.

The weights of the inner nodes are perturbed, each on its own; the uniform root and the leaves
are not. With V(leaf) = (p(ĉ) − p(c)) Π p(f_i) and V(inner) the lower expectation of the V of its
children, R_c(δ) is the mean of the V of the roots.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from robustq.models.forest import CHILD, FEATURE, LEAF, Forest, Trace, is_complete
from robustq.perturbations import (
    ChiSquared,
    Epsilon,
    PariMutuel,
    Perturbation,
    TotalVariation,
)
from robustq.tables import Rows, find_distinct

from . import near_ties
from .evidence import Contest, Evidence, split_rows
from .quantified import Quantified
from .rivals import find_first_flips, list_rivals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from robustq.arrays import Bools, Floats, Indices

__all__ = ["FAST", "SplitBall", "leads", "margins", "quantify"]

# Classes whose difference is, relative to their sum, below this share of the number of factors
# are told apart in exact arithmetic.
NEAR = 2e-7
# On the general path, margins are looked at this far from a root.
DOUBT, LARGEST = 1e-9, 1e300


@dataclass(frozen=True)
class SplitBall:
    """A ball whose bounds on two outcomes are w − x l and w + x u, for some x that grows with δ.

    Attributes
    ----------
    slopes : callable
        Gives l and u for the weights of an outcome and of the other one.
    size : callable
        Gives the δ that belongs to x.
    limit : float
        The largest x.
    """

    slopes: Callable[[Floats, Floats], tuple[Floats, Floats]]
    size: Callable[[Floats], Floats] = lambda x: x
    limit: float = np.inf


FAST: dict[type[Perturbation], SplitBall] = {
    Epsilon: SplitBall(slopes=lambda w, other: (w, other), limit=1.0),
    TotalVariation: SplitBall(
        slopes=lambda w, _: (np.ones_like(w), np.ones_like(w)),
        limit=1.0,
    ),
    ChiSquared: SplitBall(
        slopes=lambda w, other: (np.sqrt(w * other), np.sqrt(w * other)),
        size=lambda x: x * x,
    ),
    PariMutuel: SplitBall(slopes=lambda w, other: (other, w)),
}

_TABLES: WeakKeyDictionary[Forest, dict[type[Perturbation], tuple[Floats, Floats]]] = (
    WeakKeyDictionary()
)


def quantify(
    model: Forest, rows: Rows, balls: Sequence[Perturbation], *, general: bool = False
) -> Quantified:
    """Return the predictions of rows and their robustness.

    Parameters
    ----------
    model : Forest
    rows : Rows
    balls : sequence of Perturbation
    general : bool
        Whether to use the general path also where there is a kernel.
    """
    firsts, twins = find_distinct(rows.bits)
    if len(firsts) < len(rows):
        return quantify(model, rows[firsts], balls, general=general).take(twins)
    complete = is_complete(rows)
    found = Quantified.empty(len(balls), len(rows))
    for whole in (True, False):
        where = np.flatnonzero(complete == whole)
        if len(where):
            found.put(where, _quantify_part(model, rows[where], balls, whole, general))
    return found


def _quantify_part(
    model: Forest, rows: Rows, balls: Sequence[Perturbation], complete: bool, general: bool
) -> Quantified:
    """Return what is found for rows that are all complete, or all not."""
    ends = model.trace(rows) if complete else None
    joint = model.sum_out(rows) if ends is None else model.mix(ends)
    found = Quantified.rank(joint, len(balls))
    for index, ball in enumerate(balls):
        if ends is None or general or type(ball) not in FAST:
            answer = _search(model, rows, joint, ball)
        else:
            answer = _solve(model, rows, ends, found, type(ball))
        found.robustness[index], found.tipping[index] = answer
    found.settle(np.isneginf(joint.max(axis=1)), model.by_frequency)
    return found


def _solve(
    model: Forest, rows: Rows, ends: Trace, found: Quantified, kind: type[Perturbation]
) -> tuple[Floats, Indices]:
    """Return robustness and tipping class by the kernel."""
    from . import _forest_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

    ball = FAST[kind]
    x, tipping = np.empty(len(rows)), np.empty(len(rows), dtype=np.int64)
    near = NEAR * (rows.codes.shape[1] + model.depth)
    kernels.search(
        model.nodes,
        *_tables(model, kind),
        model.arrays.reach,
        model.arrays.reach_scale,
        model.class_probs,
        *ends,
        found.prediction,
        found.runner_up,
        ball.limit,
        near,
        np.empty(model.trees, dtype=np.int64),
        np.empty(2 * model.trees, dtype=np.int64),
        np.empty((model.depth + 1, model.trees)),
        np.empty((model.depth + 1, model.trees)),
        np.empty((len(kernels.TERMS), model.trees)),
        x,
        tipping,
    )
    for row in np.flatnonzero(np.isnan(x)):
        x[row], tipping[row] = _solve_exactly(model, rows, int(row), found.prediction[row], kind)
    return ball.size(x), tipping


def _solve_exactly(
    model: Forest, rows: Rows, row: int, best: int, kind: type[Perturbation]
) -> tuple[float, int]:
    edges, _ = _tables(model, kind)
    return near_ties.solve(model, rows[row : row + 1], int(best), edges, FAST[kind].limit)


def _tables(model: Forest, kind: type[Perturbation]) -> tuple[Floats, Floats]:
    """Return the edges of a ball, and where they end, made once per model; see the kernels."""
    from . import _forest_kernels as kernels  # noqa: PLC0415 (numba is imported when needed)

    made = _TABLES.setdefault(model, {})
    if kind not in made:
        fall, rise = FAST[kind].slopes(model.shares, model.shares[_siblings(model)])
        parents = np.where(model.parents < 0, np.arange(len(model.parents)), model.parents)
        edges = np.stack([model.shares, fall, rise, parents], axis=1)
        # A root has no edge above it, and is its own parent.
        edges[model.roots[:-1], : kernels.PARENT] = 1.0, 0.0, 0.0
        ends = np.empty((len(edges), len(kernels.ENDS)))
        kernels.find_ends(edges, ends)
        made[kind] = edges, ends
    return made[kind]


def _siblings(model: Forest) -> Indices:
    """Return for each node the other child of its parent; a root stands alone."""
    siblings = np.arange(len(model.nodes))
    left = model.nodes[model.nodes[:, FEATURE] != LEAF, CHILD].astype(np.intp)
    siblings[left], siblings[left + 1] = left + 1, left
    return siblings


def _search(model: Forest, rows: Rows, joint: Floats, ball: Perturbation) -> tuple[Floats, Indices]:
    """Return robustness and tipping class for any ball and any evidence, by Theorem 3 alone."""
    robustness, tipping = np.full(len(rows), np.inf), np.full(len(rows), -1, dtype=np.int64)
    for block in split_rows(model, rows):
        part = _search_block(model, block.evidence, rows[block.rows], joint[block.rows], ball)
        robustness[block.rows], tipping[block.rows] = part
    return robustness, tipping


def _search_block(
    model: Forest, evidence: Evidence, rows: Rows, joint: Floats, ball: Perturbation
) -> tuple[Floats, Indices]:
    robustness, tipping = np.full(len(rows), np.inf), np.full(len(rows), -1, dtype=np.int64)
    classes = joint.shape[1]
    prediction = joint.argmax(axis=1)
    rivals = list_rivals(prediction, classes)
    open_rows = np.ones(len(rows), dtype=bool)
    for rival in rivals.T:
        tied = open_rows & ~leads(model, rows, joint, prediction, rival)
        robustness[tied], tipping[tied] = 0.0, rival[tied]
        open_rows &= ~tied
    where = np.flatnonzero(open_rows)
    if classes == 1 or not len(where):
        return robustness, tipping

    contests = [evidence.contest(prediction, rival) for rival in rivals.T]

    def margin_of_each(which: Indices, delta: Floats) -> Floats:
        columns = [contest.margins(where[which], ball, delta) for contest in contests]
        return np.stack(columns, axis=1)

    found = find_first_flips(margin_of_each, ball.domain, rivals[where])
    robustness[where], tipping[where] = found
    if type(ball) in FAST:
        for row in where[_is_doubtful(contests, where, ball, found[0])]:
            x, tipping[row] = _solve_exactly(model, rows, int(row), prediction[row], type(ball))
            robustness[row] = FAST[type(ball)].size(np.array(x))
    return robustness, tipping


def _is_doubtful(
    contests: list[Contest], rows: Indices, ball: Perturbation, found: Floats
) -> Bools:
    """Tell where margins just below and above a root drown in rounding."""
    end = ball.domain.end
    below = np.where(np.isinf(found), min(end, LARGEST), found * (1.0 - DOUBT))
    above = np.where(np.isinf(found), below, np.minimum(found * (1.0 + DOUBT), end))
    doubtful = np.zeros(len(rows), dtype=bool)
    for contest, delta in itertools.product(contests, (below, above)):
        margin = contest.margins(rows, ball, delta)
        # Exactly 0 is where everything has vanished.
        doubtful |= (np.abs(margin) <= contest.noise(rows, ball, delta)) & (margin != 0.0)
    return doubtful


def margins(
    model: Forest,
    rows: Rows,
    ahead: Indices,
    behind: Indices,
    ball: Perturbation,
    delta: Floats,
) -> Floats:
    """Return E̲[(1_ahead − 1_behind) 1_f] up to a positive factor: the left side of Theorem 3.

    Parameters
    ----------
    model : Forest
    rows : Rows
    ahead, behind : ndarray of shape (rows,)
        Two classes for each row.
    ball : Perturbation
    delta : ndarray of shape (rows,)
    """
    margin = np.empty(len(rows))
    for block in split_rows(model, rows):
        where = block.rows
        contest = block.evidence.contest(ahead[where], behind[where])
        margin[where] = contest.margins(np.arange(len(where)), ball, delta[where])
    return margin


def leads(model: Forest, rows: Rows, joint: Floats, ahead: Indices, behind: Indices) -> Bools:
    """Tell for each row whether p(ahead, f) > p(behind, f), in exact arithmetic if need be."""
    every = np.arange(len(rows))
    with np.errstate(invalid="ignore"):
        gap = joint[every, ahead] - joint[every, behind]
    leading = gap > 0.0
    doubtful = np.abs(gap) <= 1e-14 * (rows.codes.shape[1] + model.depth + model.trees)
    leading &= ~doubtful
    doubtful[doubtful] = _differ(model, rows[doubtful], ahead[doubtful], behind[doubtful])
    for row in np.flatnonzero(doubtful):
        pair = int(ahead[row]), int(behind[row])
        leading[row] = near_ties.exact_lead(model, rows[row : row + 1], *pair) > 0
    return leading


def _differ(model: Forest, rows: Rows, ahead: Indices, behind: Indices) -> Bools:
    """Tell for which rows two classes may differ: not where every leaf holds them equal."""
    complete = is_complete(rows)
    differ = np.ones(len(rows), dtype=bool)
    if complete.any():
        leaves = model.nodes[model.trace(rows[complete]).nodes, CHILD]
        pair = (model.class_probs[leaves, c[complete, None]] for c in (ahead, behind))
        differ[complete] = (next(pair) != next(pair)).any(axis=1)
    return differ
