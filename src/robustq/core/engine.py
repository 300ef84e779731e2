"""Predictions and their robustness, for any model and neighbourhood.

Three ways lead to the same number: kernels for shapes that a model offers (products, mixtures), the
compiled recursion for balls that kernels know, and the general recursion for any ball.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from robustq.tables import Kinds

from . import atoms
from .circuits import Circuits, can_solve
from .coupled import Coupled
from .neighbourhoods import OnAtoms, Perturbed
from .reached import Reached
from .recursion import Margins, oppose, unit_of
from .rivals import find_first_flips, list_rivals
from .ties import rank_exactly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from robustq.arrays import Bools, Floats, Indices
    from robustq.tables import Rows

    from .evidence import Evidence, Model
    from .neighbourhoods import Bound
    from .quantified import Quantified, Ranking

__all__ = ["Reading", "Shape", "find_maximal", "has_kernel", "predict", "quantify"]


class Shape(Protocol):
    """Rows laid out for a kernel of their own."""

    def fits(self, perturbed: Perturbed) -> bool:
        """Tell whether the kernel knows a neighbourhood."""

    def solve(self, perturbed: Perturbed, found: Quantified) -> tuple[Floats, Indices]:
        """Return x and the tipping class of each row; x is NaN where rounding would show."""

    def size_of(self, perturbed: Perturbed, x: Floats) -> Floats:
        """Return the sizes that belong to x."""


class Reading(NamedTuple):
    """What a model makes of rows.

    Attributes
    ----------
    joint : ndarray of shape (rows, classes)
        log p(c, f)
    shapes : list of pairs (rows, Shape)
        The rows that kernels of their own can take.
    check : callable, optional
        Raises where the local mass functions of a row cannot be perturbed each on its own.
    ranking : Ranking, optional
        Who seems to lead, where that was found on the way.
    """

    joint: Floats
    shapes: list[tuple[Indices, Shape]]
    check: Callable[[Perturbed], None] | None = None
    ranking: Ranking | None = None


def predict(model: Model, rows: Rows) -> Indices:
    """Return the most probable class of each row, the first one if several are.

    A row of probability 0 under every class gets the most frequent one.
    """
    joint = model.log_joint(rows)
    found, _, impossible = rank_exactly(model, rows, joint, all_close=False)
    return np.where(impossible, model.by_frequency[0], found.prediction)


def has_kernel(model: Model, rows: Rows, neighbourhood: Bound) -> bool:
    """Tell whether some of the rows go to a kernel of their own: others take longer."""
    shapes = model.read(rows).shapes
    return isinstance(neighbourhood, Perturbed) and any(
        shape.fits(neighbourhood) for _, shape in shapes
    )


def quantify(
    model: Model,
    rows: Rows,
    neighbourhoods: Sequence[Bound],
    *,
    general: bool = False,
    distinct: bool = False,
) -> Quantified:
    """Return the predictions of rows and their robustness.

    Parameters
    ----------
    model : Model
    rows : Rows
    neighbourhoods : sequence of Perturbed, OnAtoms or Coupled
    general : bool
        Whether to use the general path also where there is a kernel.
    distinct : bool
        Whether all rows differ; else each kind is looked at once.
    """
    if distinct or not model.merges_rows:
        return _Work(model, rows, general=general).quantify(neighbourhoods)
    kinds = Kinds.of(rows)
    found = _Work(model, kinds.take(), general=general).quantify(neighbourhoods)
    return found if kinds.all_differ else found.take(kinds.twins)


def find_maximal(model: Model, rows: Rows, neighbourhood: Bound, delta: Floats) -> Bools:
    """Tell for each row which classes no other class beats for certain at its size."""
    return _Work(model, rows).find_maximal(neighbourhood, delta)


class _Work:
    """Rows, what a model makes of them, and who leads."""

    def __init__(self, model: Model, rows: Rows, *, general: bool = False) -> None:
        self.model, self.rows, self.general = model, rows, general
        self.reading = model.read(rows)
        self.joint = self.reading.joint
        self.found, self.leads, self.impossible = rank_exactly(
            model, rows, self.joint, self.reading.ranking
        )

    def quantify(self, neighbourhoods: Sequence[Bound]) -> Quantified:
        found = self.found.widen(len(neighbourhoods))
        tied, rival = self.leads.tied()
        for index, neighbourhood in enumerate(neighbourhoods):
            found.robustness[index], found.tipping[index] = self._solve(neighbourhood)
            found.robustness[index, tied], found.tipping[index, tied] = 0.0, rival
        found.settle(self.impossible, self.model.by_frequency)
        return found

    def _solve(self, neighbourhood: Bound) -> tuple[Floats, Indices]:
        if self.joint.shape[1] == 1:
            rows = len(self.rows)
            return np.full(rows, np.inf), np.full(rows, -1, dtype=np.int64)
        if isinstance(neighbourhood, OnAtoms):
            return self._solve_whole(neighbourhood)
        if isinstance(neighbourhood, Coupled):
            best, rival = self.found.prediction, self.found.runner_up
            return neighbourhood.solve(self.rows, self.joint, self._gaps(), best, rival)
        self._check(neighbourhood)
        return self._solve_parts(neighbourhood)

    def _check(self, perturbed: Perturbed) -> None:
        if self.reading.check is not None:
            self.reading.check(perturbed)

    def _gaps(self) -> Floats:
        """Return by how much the logarithm of the predicted class is ahead of the others'."""
        every = np.arange(len(self.rows))
        best = self.joint[every, self.found.prediction]
        with np.errstate(invalid="ignore"):
            gaps = best[:, None] - self.joint
        for c in range(gaps.shape[1]):
            with np.errstate(invalid="ignore"):
                exact = -np.log1p(
                    -np.exp(self.leads.log_leads(every, np.full_like(every, c)) - best)
                )
            gaps[:, c] = np.where(np.isnan(exact), gaps[:, c], exact)
        return gaps

    # One mass function as a whole

    def _logs(self, neighbourhood: OnAtoms) -> Floats:
        if neighbourhood.joint:
            return self.joint
        with np.errstate(invalid="ignore"):
            return self.joint - np.logaddexp.reduce(self.joint, axis=1, keepdims=True)

    def _solve_whole(self, neighbourhood: OnAtoms) -> tuple[Floats, Indices]:
        logs, every = self._logs(neighbourhood), np.arange(len(self.rows))
        best, rival = self.found.prediction, self.found.runner_up
        robustness = self._solve_pair(neighbourhood, logs, every, best, rival)
        return robustness, np.where(np.isinf(robustness), -1, rival)

    def _solve_pair(
        self, neighbourhood: OnAtoms, logs: Floats, rows: Indices, best: Indices, rival: Indices
    ) -> Floats:
        a, b = logs[rows, best], logs[rows, rival]
        with np.errstate(all="ignore"):
            lead = a + np.log(-np.expm1(b - a))
            exact = self.leads.log_leads(rows, rival) + (a - self.joint[rows, best])
        lead = np.where(np.isnan(exact), lead, exact)
        rest = self._log_rest(neighbourhood, logs, rows, best, rival)
        lead = np.where(np.isnan(lead), -np.inf, lead)
        return atoms.solve(neighbourhood.ball, a, b, lead, rest)

    @staticmethod
    def _log_rest(
        neighbourhood: OnAtoms, logs: Floats, rows: Indices, best: Indices, rival: Indices
    ) -> Floats:
        """Return the logarithm of what two classes leave to everything else."""
        others = logs[rows].copy()
        every = np.arange(len(rows))
        others[every, best] = others[every, rival] = -np.inf
        with np.errstate(all="ignore"):
            if neighbourhood.joint:
                both = np.exp(logs[rows, best]) + np.exp(logs[rows, rival])
                return np.log1p(-np.minimum(both, 1.0))
            return np.logaddexp.reduce(others, axis=1)

    # Local mass functions

    def _solve_parts(self, perturbed: Perturbed) -> tuple[Floats, Indices]:
        rows, solved = len(self.rows), []
        for where, shape in [] if self.general else self.reading.shapes:
            if shape.fits(perturbed):
                found = self.found if len(where) == rows else self.found.take(where)
                x, rival = shape.solve(perturbed, found)
                if len(where) == rows and not np.isnan(x.max(initial=0.0)):
                    return shape.size_of(perturbed, x), rival
                sure = ~np.isnan(x)
                solved.append((where[sure], shape.size_of(perturbed, x[sure]), rival[sure]))
        robustness, tipping = np.full(rows, np.inf), np.full(rows, -1, dtype=np.int64)
        waiting = ~self.impossible
        waiting[self.leads.tied()[0]] = False
        for done, sizes, rivals in solved:
            robustness[done], tipping[done], waiting[done] = sizes, rivals, False
        rest = np.flatnonzero(waiting)
        if len(rest):
            robustness[rest], tipping[rest] = self._solve_reached(perturbed, rest)
        return robustness, tipping

    def _solve_reached(self, perturbed: Perturbed, rows: Indices) -> tuple[Floats, Indices]:
        robustness, tipping = np.empty(len(rows)), np.empty(len(rows), dtype=np.int64)
        compiled = not self.general and can_solve(perturbed, self.model.locals, self.joint.shape[1])
        for block, evidence in self._reach(perturbed, rows):
            some = rows[block]
            if compiled:
                circuits = Circuits.of(perturbed, self.model.locals, evidence)
                answer = circuits.solve(perturbed, self.found.take(some), self.leads.take(some))
            else:
                answer = self._search(perturbed, evidence, some)
            robustness[block], tipping[block] = answer
        return robustness, tipping

    def _reach(self, perturbed: Perturbed, rows: Indices) -> Iterator[tuple[slice, Evidence]]:
        still = not perturbed.features and not perturbed.touches(self.model.leaf_parts)
        return self.model.reach(self.rows[rows], fold=still)

    def _search(
        self, perturbed: Perturbed, evidence: Evidence, rows: Indices
    ) -> tuple[Floats, Indices]:
        """Return robustness and tipping class for any ball, by the recursion alone."""
        joint, prediction = self.joint[rows], self.found.prediction[rows]
        reached = Reached(evidence, self.model.locals, perturbed)
        margins = Margins(reached, unit_of(joint.max(axis=1)))

        def margin(which: Indices, rival: Indices, delta: Floats) -> Floats:
            return margins.of(which, oppose(prediction[which], rival, joint.shape[1]), delta)

        rivals = list_rivals(prediction, self.found.runner_up[rows], joint)
        return find_first_flips(margin, perturbed.domain, rivals)

    # Which classes no other beats

    def find_maximal(self, neighbourhood: Bound, delta: Floats) -> Bools:
        order = np.argsort(-self.joint, axis=1, kind="stable")
        # Who really leads comes first.
        behind = order != self.found.prediction[:, None]
        order = np.take_along_axis(order, np.argsort(behind, axis=1, kind="stable"), axis=1)
        maximal = np.ones(self.joint.shape, dtype=bool)
        rows = np.flatnonzero(~self.impossible)
        if isinstance(neighbourhood, OnAtoms):
            logs = self._logs(neighbourhood)
            for rival in order.T[1:]:
                pair = self.found.prediction[rows], rival[rows]
                size = self._solve_pair(neighbourhood, logs, rows, *pair)
                maximal[rows, rival[rows]] = size <= delta[rows]
        elif isinstance(neighbourhood, Coupled):
            found = neighbourhood.find_maximal(self.rows, self.joint, self._gaps(), order, delta)
            maximal[rows] = found[rows]
        elif len(rows):
            self._check(neighbourhood)
            maximal[rows] = self._find_maximal(neighbourhood, delta[rows], order[rows], rows)
        return maximal

    def _find_maximal(
        self, perturbed: Perturbed, delta: Floats, order: Indices, rows: Indices
    ) -> Bools:
        maximal = np.empty(order.shape, dtype=bool)
        compiled = can_solve(perturbed, self.model.locals, self.joint.shape[1])
        for block, evidence in self._reach(perturbed, rows):
            if compiled:
                circuits = Circuits.of(perturbed, self.model.locals, evidence)
                leads = self.leads.take(rows[block])
                maximal[block] = circuits.find_maximal(
                    perturbed, delta[block], np.ascontiguousarray(order[block]), leads
                )
            else:
                maximal[block] = self._compare(perturbed, evidence, delta[block], order[block])
        tied = self.leads.close[rows] >= 0
        ties = self.leads.wanted & (self.leads.lead == 0.0)
        maximal[tied] |= ties[self.leads.close[rows[tied]]]
        return maximal

    def _compare(
        self, perturbed: Perturbed, evidence: Evidence, delta: Floats, order: Indices
    ) -> Bools:
        maximal = np.ones(order.shape, dtype=bool)
        reached = Reached(evidence, self.model.locals, perturbed)
        margins = Margins(reached, np.zeros(len(reached), dtype=np.int64))  # the sign is all
        # The best mostly beats all that can be beaten, and then nobody is left to compare.
        for first, second in itertools.combinations(range(order.shape[1]), 2):
            ahead, behind = order[:, first], order[:, second]
            some = np.flatnonzero(maximal[np.arange(len(order)), behind])
            if not len(some):
                continue
            payoff = oppose(ahead[some], behind[some], order.shape[1])
            maximal[some, behind[some]] = margins.of(some, payoff, delta[some]) <= 0.0
        return maximal
