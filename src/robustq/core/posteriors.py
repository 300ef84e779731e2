"""Bounds of p(c | f) within a neighbourhood of a model.

The lower probability of c given f is the largest share with E̲[(1_c − share) 1_f] ≥ 0, the same
recursion with another payoff of the classes. It is searched for as odds w, with the payoff
(1_c − w 1_others) / (1 + w), so that shares near 0 and near 1 are both exact; the upper
probability is what the lower one of all other classes leaves.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from robustq.exceptions import InputError, UnsupportedError
from robustq.perturbations import Domain

from . import engine
from .coupled import Coupled
from .neighbourhoods import OnAtoms
from .reached import Reached
from .recursion import Gamble, Margins, Sized, expect_sized, lower_expectations, unit_of
from .roots import smallest_roots

if TYPE_CHECKING:
    from collections.abc import Callable

    from robustq.arrays import Bools, Floats, Indices
    from robustq.tables import Rows

    from .evidence import Model
    from .neighbourhoods import Bound, Perturbed

    Value = Callable[[Indices, Floats], Floats]

__all__ = ["bound_posteriors", "check_rule", "find_sets"]

RULES = ("maximality", "interval")

ODDS = Domain(1e300, closed=True)
SMALLEST_ODDS = 1e-300
SMALLEST_MASS = 1e-200


def bound_posteriors(
    model: Model, rows: Rows, neighbourhood: Bound, delta: Floats
) -> tuple[Floats, Floats]:
    """Return lower and upper p(c | f), each (rows, classes).

    Where p(f) = 0 nothing is known: they are 0 and 1.

    Raises
    ------
    UnsupportedError
        If the neighbourhood is one of coupled records.
    """
    if isinstance(neighbourhood, Coupled):
        msg = (
            "idm compares two classes at a time: it has no bounds for a posterior; take "
            'epsilon_rows, or rule="maximality"'
        )
        raise UnsupportedError(msg)
    joint = model.log_joint(rows)
    total = np.logaddexp.reduce(joint, axis=1)
    with np.errstate(invalid="ignore"):
        posterior = np.exp(joint - total[:, None])
    lower, upper = np.zeros_like(joint), np.ones_like(joint)
    possible = np.flatnonzero(joint.max(axis=1) > -np.inf)
    if len(possible):
        given = posterior[possible]
        if isinstance(neighbourhood, OnAtoms):
            found = _bound_whole(neighbourhood, joint[possible], given, delta[possible])
        else:
            unit = unit_of(total[possible])
            found = _bound_parts(model, rows[possible], neighbourhood, delta[possible], unit)
        # Rounding must not put the model itself outside.
        lower[possible] = np.minimum(found[0], given)
        upper[possible] = np.maximum(found[1], given)
    return lower, upper


def check_rule(rule: str) -> None:
    """Raise if nobody knows when a class beats another by this rule."""
    if not isinstance(rule, str) or rule not in RULES:
        msg = f"rule must be {' or '.join(map(repr, RULES))}, got {rule!r}"
        raise InputError(msg)


def find_sets(
    model: Model, rows: Rows, neighbourhood: Bound, delta: Floats, rule: str = RULES[0]
) -> Bools:
    """Tell for each row which classes no other beats for certain at its size, by a rule."""
    sets = engine.find_maximal(model, rows, neighbourhood, delta)
    if rule == "interval":
        lower, upper = bound_posteriors(model, rows, neighbourhood, delta)
        # A maximal class is never dominated so; rounding must not part them.
        sets |= upper >= lower.max(axis=1, keepdims=True)
    return sets


def _bound_whole(
    neighbourhood: OnAtoms, joint: Floats, posterior: Floats, delta: Floats
) -> tuple[Floats, Floats]:
    ball = neighbourhood.ball
    if not neighbourhood.joint:
        sizes = delta[:, None]
        return (
            np.asarray(ball.lower_probability(posterior, sizes)),
            np.asarray(ball.upper_probability(posterior, sizes)),
        )
    # Where p(f) is tiny the sign is the same for any that is.
    mass = np.exp(np.maximum(np.logaddexp.reduce(joint, axis=1), np.log(SMALLEST_MASS)))
    lower, upper = np.empty_like(joint), np.empty_like(joint)
    for c in range(joint.shape[1]):
        own = posterior[:, c] * mass
        q = np.stack([own, mass - own, np.maximum(1.0 - mass, 0.0)], axis=1)
        q = np.maximum(q, 0.0) / q.sum(axis=1, keepdims=True)

        def value(which: Indices, pays: Floats, q: Floats = q) -> Floats:
            f = np.concatenate([pays, np.zeros((len(pays), 1))], axis=1)
            return lower_expectations(ball, q[which], f, delta[which])

        lower[:, c], upper[:, c] = _search(value, len(joint))
    return lower, upper


def _bound_parts(
    model: Model, rows: Rows, perturbed: Perturbed, delta: Floats, unit: Indices
) -> tuple[Floats, Floats]:
    classes = model.locals.class_table.shape[1]
    lower, upper = np.empty((2, len(rows), classes))
    still = not perturbed.features and not perturbed.touches(model.leaf_parts)
    for block, evidence in model.reach(rows, fold=still):
        reached = Reached(evidence, model.locals, perturbed)
        values = _Values(reached, delta[block], unit[block])
        for c in range(classes):
            lower[block, c], upper[block, c] = _search(values.of(c), len(reached))
    return lower, upper


class _Values:
    """What rows reach, and the size of each: what their roots are worth."""

    def __init__(self, reached: Reached, delta: Floats, unit: Indices) -> None:
        self.reached, self.delta, self.unit = reached, delta, unit
        self.margins = Margins(reached, unit)
        self.classes = reached.locals.class_table.shape[1]
        self.last = reached.roots - 1  # the last children of the roots
        self.branches = reached.find_branches(self.classes)

    def of(self, c: int) -> Value:
        """Return a function of rows, and of what a class and the others pay there."""
        value = self._evaluate if self.branches is None else self._expect
        return lambda which, pays: value(which, _spread(pays, c, self.classes))

    def _evaluate(self, which: Indices, payoff: Floats) -> Floats:
        return self.margins.of(which, payoff, self.delta[which])

    # Sums over the classes: below them nothing depends on what classes pay but its sign.

    def _expect(self, which: Indices, payoff: Floats) -> Floats:
        least, most = self._bounds
        chosen = Sized(
            *(np.where(payoff > 0.0, a[which], b[which]) for a, b in zip(least, most, strict=True))
        )
        return expect_sized(
            lambda f: self._expect_at_roots(which, f), chosen.times(Sized.of(payoff))
        ).in_units(self.unit[which])

    @cached_property
    def _bounds(self) -> tuple[Sized, Sized]:
        """The lower and upper probability of f given each class, (rows, classes)."""
        found = []
        for sign in (1.0, -1.0):
            payoff = np.full((len(self.delta), self.classes), sign)
            value = Gamble(self.reached, payoff).evaluate(self.delta)
            value = value.take(self._branches())
            found.append(Sized(np.abs(value.mantissa), value.exponent))
        return found[0], found[1]

    def _branches(self) -> Indices:
        assert self.branches is not None  # noqa: S101 (`value` asked)
        return self.branches

    @cached_property
    def _roots(self) -> tuple[Floats, Bools, Floats]:
        """The weights of the roots, whether they move, and by how much."""
        e, perturbed = self.reached.evidence, self.reached.perturbed
        free = self.reached.free[self.last]
        size = self.delta.copy()
        if perturbed.sizes == "rows":
            size[free] = perturbed.ball.local_size(size[free], e.rows[self.last[free]])
        return self.reached.locals.expand(e.local[self.last]), free, size

    def _expect_at_roots(self, which: Indices, f: Floats) -> Floats:
        weights, moves, sizes = self._roots
        q, free, size = weights[which], moves[which], sizes[which]
        value = np.asarray((q * f).sum(axis=1))
        if free.any():
            value[free] = lower_expectations(
                self.reached.perturbed.ball, q[free], f[free], size[free]
            )
        return value


def _spread(pays: Floats, c: int, classes: int) -> Floats:
    """Return what each class pays, from what one and the others do."""
    payoff = np.repeat(pays[:, 1:], classes, axis=1)
    payoff[:, c] = pays[:, 0]
    return payoff


def _search(value: Value, rows: int) -> tuple[Floats, Floats]:
    """Return the lower and upper probability of a class, whose odds are searched for."""

    def lower(which: Indices, odds: Floats) -> Floats:
        return _not_negative(value(which, np.stack([1.0 / (1.0 + odds), -odds / (1.0 + odds)], 1)))

    def upper(which: Indices, odds: Floats) -> Floats:
        return _not_negative(value(which, np.stack([-odds / (1.0 + odds), 1.0 / (1.0 + odds)], 1)))

    for_it, against = (smallest_roots(side, ODDS, rows) for side in (lower, upper))
    # 1 − 1 / (1 + odds) would lose the digits of small ones.
    least = for_it / (1.0 + np.where(np.isinf(for_it), 0.0, for_it))
    least = np.where(for_it < SMALLEST_ODDS, 0.0, np.minimum(least, 1.0))
    return least, 1.0 / (1.0 + against)


def _not_negative(values: Floats) -> Floats:
    """Let 0 count as positive: models without mass on f say nothing about the posterior."""
    return np.where(values == 0.0, SMALLEST_ODDS, values)
