"""The compiled recursion: what a neighbourhood gives to the nodes that rows reach, and the search."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .modes import ENDLESS, MODES, USER
from .evidence import CLASS, NONE, SUM

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from robustq.arrays import Bools, Floats, Indices

    from robustq.perturbations import Perturbation

    from .evidence import Evidence, Locals
    from .neighbourhoods import Perturbed
    from .quantified import Quantified
    from .ties import Leads

__all__ = ["Circuits", "can_solve", "read_classes"]

UNBACKED = 1e-150  # stands for no rows
AT_ONCE = 1e-140  # sizes below this are reached at once by what has no rows
FARTHEST, FARTHEST_BY_ROWS = 1e303, 1e150
START = 2.0**-6  # where the search begins to look


class Circuits(NamedTuple):
    """What rows reach, with all that a ball has to say about it; see `_circuit_kernels`."""

    mode: int
    evidence: Evidence
    ball: Floats
    rest: NDArray[np.int8]
    class_row: Indices
    class_probs: Floats
    class_gain: Floats
    class_ball: Floats

    @classmethod
    def of(cls, perturbed: Perturbed, locals_: Locals, evidence: Evidence) -> Circuits:
        """Read evidence for a neighbourhood that `can_solve` takes."""
        free = perturbed.mask(locals_, evidence.local)
        where = np.flatnonzero(free & (evidence.op != CLASS))
        ball = np.zeros((len(free), 5))
        ball[where] = _shape(perturbed, locals_, evidence.local[where], evidence.p[where])
        class_row, class_local = read_classes(evidence)
        probs = locals_.expand(class_local) if len(class_local) else np.ones((0, 1))
        class_ball = np.zeros((*probs.shape, 5))
        moved = np.flatnonzero(perturbed.mask(locals_, class_local))
        if len(moved):
            q = probs[moved]
            local = np.repeat(class_local[moved], q.shape[1])
            class_ball[moved] = _shape(perturbed, locals_, local, q.ravel()).reshape(*q.shape, 5)
        rest = np.zeros(len(free), dtype=np.int8)
        sums = np.flatnonzero(evidence.op == SUM)
        # The last child stands just before its parent.
        rest[sums] = locals_.outcomes(evidence.local[sums - 1]) > evidence.arity[sums]
        gain = np.ascontiguousarray(class_ball[:, 0, 0]) if probs.shape[1] else np.zeros(len(probs))
        mode = _mode(perturbed)
        return cls(mode, evidence, ball, rest, class_row, probs, gain, class_ball)

    def solve(
        self, perturbed: Perturbed, found: Quantified, leads: Leads
    ) -> tuple[Floats, Indices]:
        """Return robustness and tipping class of each row."""
        from . import _circuit_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        rows = len(found.prediction)
        x, tipping = np.empty(rows), np.empty(rows, dtype=np.int64)
        limit = find_limit(perturbed)
        _circuit_kernels.solve(
            *(self.mode, limit, *self._range(perturbed), START),
            *(*self._arrays, found.prediction, found.runner_up),
            *(leads.close, leads.lead, leads.place, x, tipping),
        )
        robustness = size_of(perturbed, x)
        return robustness, np.where(np.isinf(robustness), -1, tipping)

    def find_maximal(
        self, perturbed: Perturbed, delta: Floats, ranking: Indices, leads: Leads
    ) -> Bools:
        """Tell for each row which classes no other beats for certain."""
        from . import _circuit_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        maximal = np.empty(ranking.shape, dtype=bool)
        _circuit_kernels.find_maximal(
            *(self.mode, x_of(perturbed, delta), *self._arrays, ranking),
            *(leads.close, leads.lead, leads.place, maximal),
        )
        return maximal

    @staticmethod
    def _range(perturbed: Perturbed) -> tuple[float, float]:
        """Return the largest x to look at, and the one that only what has no rows reaches."""
        if perturbed.sizes == "equal":
            return FARTHEST, 0.0
        return FARTHEST_BY_ROWS, float(perturbed.ball.x_of(np.float64(AT_ONCE), by_rows=True))

    @property
    def _arrays(self) -> tuple[NDArray[np.generic], ...]:
        e = self.evidence
        return (
            *(e.starts, e.op, e.arity, e.p, e.exponent, e.slot, self.ball, self.rest),
            *(self.class_row, self.class_probs, self.class_gain, self.class_ball),
        )


def can_solve(perturbed: Perturbed, locals_: Locals, classes: int) -> bool:
    """Tell whether kernels know the ball, for all the sums that are perturbed."""
    ball = perturbed.ball
    if ball.expectation in MODES:
        return True
    if not perturbed.has_form:
        return False
    # Of other balls bounds are known, and so what two outcomes do.
    if perturbed.touches(locals_.wide):
        return False
    return ball.together or classes <= 2 or not perturbed.touches(locals_.on_classes)


def find_limit(perturbed: Perturbed) -> float:
    """Return the largest x; `ENDLESS` if a closed domain ends there."""
    domain = perturbed.domain
    end = float(perturbed.ball.x_of(np.float64(domain.end), perturbed.sizes == "rows"))
    if np.isinf(end):
        return ENDLESS if domain.closed else np.inf
    return end


def size_of(perturbed: Perturbed, x: Floats) -> Floats:
    """Return the sizes that belong to x, infinite where x is."""
    end = perturbed.domain.end
    beyond = x >= ENDLESS
    delta = perturbed.ball.delta_of(np.where(beyond, 0.0, x), perturbed.sizes == "rows")
    return np.where(np.isinf(x), np.inf, np.where(beyond, end, delta))


def x_of(perturbed: Perturbed, delta: Floats) -> Floats:
    """Return the x that belong to sizes."""
    with np.errstate(divide="ignore"):
        x = perturbed.ball.x_of(delta, perturbed.sizes == "rows")
    return np.ascontiguousarray(np.minimum(x, ENDLESS))


def find_gain(ball: Perturbation, rows: Floats) -> Floats:
    """Return what x is multiplied by for local mass functions with so many rows behind them."""
    return 1.0 / np.sqrt(rows) if ball.expectation == "chi2" else 1.0 / rows


def read_classes(evidence: Evidence) -> tuple[Indices, Indices]:
    """Return for each node its row among the class leaves, −1 for others, and those leaves."""
    leaves = np.flatnonzero((evidence.op == CLASS) & (evidence.local != NONE))
    class_row = np.full(len(evidence.op), -1, dtype=np.int64)
    class_row[leaves] = np.arange(len(leaves))
    return class_row, evidence.local[leaves]


def _mode(perturbed: Perturbed) -> int:
    return MODES.get(perturbed.ball.expectation or "", USER)


def _shape(perturbed: Perturbed, locals_: Locals, local: Indices, p: Floats) -> Floats:
    """Return gain and form of probabilities of some local mass functions, (some, 5)."""
    found = np.zeros((len(local), 5))
    found[:, 0] = 1.0
    rows = None
    if perturbed.sizes == "rows":
        rows = np.maximum(locals_.rows(local), UNBACKED)
        found[:, 0] = find_gain(perturbed.ball, rows)
    form = perturbed.ball.form(p, rows)
    if form is not None:
        for column, values in enumerate(form, start=1):
            found[:, column] = values
    return found
