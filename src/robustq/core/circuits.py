"""The compiled recursion over what rows reach, for balls that kernels know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .evidence import CLASS, SUM
from .modes import ENDLESS, MODES, USER

if TYPE_CHECKING:
    from robustq.arrays import Bools, Floats, Indices
    from robustq.perturbations import Perturbation

    from .evidence import Evidence, Locals
    from .neighbourhoods import Perturbed
    from .quantified import Quantified
    from .ties import Leads

__all__ = ["Circuits", "can_solve", "find_gain", "find_limit", "size_of"]

UNBACKED = 1e-150  # stands for no rows
AT_ONCE = 1e-140  # sizes below this are reached at once by what has no rows
FARTHEST, FARTHEST_BY_ROWS = 1e303, 1e150
START = 2.0**-6  # where the search begins to look


class Circuits(NamedTuple):
    """What rows reach, with what a neighbourhood has to say about it; see `_circuit_kernels`."""

    mode: int
    evidence: Evidence
    parts: Bools
    features: Bools
    by_rows: bool
    forms: Floats
    class_probs: Floats
    class_forms: Floats

    @classmethod
    def of(cls, perturbed: Perturbed, locals_: Locals, evidence: Evidence) -> Circuits:
        """Read evidence for a neighbourhood that `can_solve` takes."""
        parts = np.zeros(len(locals_.parts), dtype=bool)
        parts[list(perturbed.parts)] = True
        features = np.zeros(int(evidence.feature.max(initial=0)) + 1, dtype=bool)
        features[[feature for feature in perturbed.features if feature < len(features)]] = True
        mode, by_rows = _mode(perturbed), perturbed.sizes == "rows"
        probs = locals_.class_table
        forms, class_forms = np.zeros((0, 4)), np.zeros((0, probs.shape[1], 4))
        if mode == USER:
            free = np.flatnonzero(perturbed.mask(evidence))
            forms = np.zeros((len(evidence.op), 4))
            forms[free] = _read_form(perturbed, evidence.p[free], evidence.rows[free])
            leaves = free[evidence.op[free] == CLASS]
            if len(leaves):
                class_forms = np.zeros((*probs.shape, 4))
                at = evidence.extra[leaves]
                rows = np.repeat(evidence.rows[leaves], probs.shape[1])
                found = _read_form(perturbed, probs[at].ravel(), rows)
                class_forms[at] = found.reshape(len(at), probs.shape[1], 4)
        return cls(mode, evidence, parts, features, by_rows, forms, probs, class_forms)

    def solve(
        self, perturbed: Perturbed, found: Quantified, leads: Leads
    ) -> tuple[Floats, Indices]:
        """Return robustness and tipping class of each row."""
        from . import _circuit_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        rows = len(found.prediction)
        x, tipping = np.empty(rows), np.empty(rows, dtype=np.int64)
        limit = find_limit(perturbed)
        _circuit_kernels.solve(
            *(self.mode, (limit, *self._range(perturbed), START), *self._arrays),
            *((leads.close, leads.lead, leads.place), found.prediction, found.runner_up),
            *(self._room(), x, tipping),
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
            *(self.mode, x_of(perturbed, delta), *self._arrays),
            *((leads.close, leads.lead, leads.place), ranking, self._room(), maximal),
        )
        return maximal

    @staticmethod
    def _range(perturbed: Perturbed) -> tuple[float, float]:
        """Return the largest x to look at, and the one that only what has no rows reaches."""
        if perturbed.sizes == "equal":
            return FARTHEST, 0.0
        return FARTHEST_BY_ROWS, float(perturbed.ball.x_of(np.float64(AT_ONCE), by_rows=True))

    @property
    def _arrays(self) -> tuple[Any, ...]:
        e = self.evidence
        return (
            (e.starts, e.op, e.arity, e.p, e.extra, e.slot, e.part, e.feature, e.rows),
            (
                *(self.parts, self.features, self.by_rows, self.forms),
                *(self.class_probs, self.class_forms),
            ),
        )

    def _room(self) -> tuple[Any, ...]:
        e = self.evidence
        # Of each class is noted whether it is behind, however little a row reaches.
        longest = int(np.diff(e.starts).max(initial=max(1, self.class_probs.shape[1])))
        return make_room(longest, int(e.arity[e.op == SUM].max(initial=2)) + 1)


def make_room(longest: int, widest: int) -> tuple[Any, ...]:
    """Return arrays to work in, for so many nodes of a row, and children of a sum.

    Steps, places, masses, siblings, factors, gains, two factors, the stack and its nodes, weights
    and values of children, what is gained and lost, two orders, and what steps gave.
    """
    return (
        *(np.zeros((longest, 6), np.int64), np.zeros(longest, np.int64), np.zeros(longest)),
        *(np.zeros(longest, np.int64), np.zeros((6, longest)), np.zeros(longest)),
        *(np.zeros((6, 2)), np.zeros((5, longest)), np.zeros(longest, np.int64)),
        *(np.zeros((7, widest)), np.zeros(4), np.zeros(widest + 1, np.int64)),
        *(np.zeros(4, np.int64), np.zeros((3, longest))),
    )


def can_solve(perturbed: Perturbed, locals_: Locals, classes: int) -> bool:
    """Tell whether kernels know the ball, for all the sums that are perturbed."""
    ball = perturbed.ball
    if ball.expectation in MODES:
        return True
    if not perturbed.has_form:
        return False
    # Of other balls bounds are known, and so what two outcomes do. (Where a feature is perturbed
    # on its own, nobody tells which of its mass functions weigh children.)
    if perturbed.touches(locals_.wide) or (perturbed.features and locals_.wide):
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
    end, by_rows = perturbed.domain.end, perturbed.sizes == "rows"
    beyond = x >= ENDLESS
    if not beyond.any():
        return perturbed.ball.delta_of(x, by_rows)
    delta = perturbed.ball.delta_of(np.where(beyond, 0.0, x), by_rows)
    return np.where(np.isinf(x), np.inf, np.where(beyond, end, delta))


def x_of(perturbed: Perturbed, delta: Floats) -> Floats:
    """Return the x that belong to sizes."""
    with np.errstate(divide="ignore"):
        x = perturbed.ball.x_of(delta, perturbed.sizes == "rows")
    return np.ascontiguousarray(np.minimum(x, ENDLESS))


def find_gain(ball: Perturbation, rows: Floats) -> Floats:
    """Return what x is multiplied by for local mass functions with so many rows behind them."""
    return 1.0 / np.sqrt(rows) if ball.expectation == "chi2" else 1.0 / rows


def _mode(perturbed: Perturbed) -> int:
    return MODES.get(perturbed.ball.expectation or "", USER)


def _read_form(perturbed: Perturbed, p: Floats, rows: Floats) -> Floats:
    """Return the form of probabilities of local mass functions, (some, 4)."""
    given = np.maximum(rows, UNBACKED) if perturbed.sizes == "rows" else None
    form = perturbed.ball.form(p, given)
    assert form is not None  # noqa: S101 (`can_solve` was asked)
    return np.stack(form, axis=1)
