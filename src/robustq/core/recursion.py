"""The lower value of a gamble, for any ball and any evidence: one recursion for every model.

For a rival c, g = (1_ĉ − 1_c) 1_f; other payoffs of the classes go the same way. Nodes that do not
speak of the class carry an interval [L, U]; nodes that do carry the signed lower value V:

    feature leaf      L = lower q(f_i), U = upper q(f_i)
    class leaf        V = E̲_q[1_ĉ − 1_c]
    product           L = ΠL, U = ΠU;  with the class in child k:  V = V_k · (ΠL if V_k > 0 else ΠU)
    sum               L = E̲_w[L], U = Ē_w[U];  with the class:  V = E̲_w[V]

Theorem 2 (robustness of naive Bayes) and Theorem 3 (robustness of generative forests) are this for
two shapes. It is exact because every local mass function stands in one place and is perturbed
on its own: the value is linear in each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from robustq.exceptions import UnsupportedError
from robustq.perturbations import Perturbation

if TYPE_CHECKING:
    from collections.abc import Callable

    from robustq.arrays import Floats, Indices

    from .evidence import Evidence
    from .reached import Factors, Level, Mean, Reached

__all__ = [
    "Gamble",
    "Margins",
    "Sized",
    "expect_sized",
    "lower_expectations",
    "oppose",
    "spread",
    "unit_of",
]

# Exponents so far below the largest are taken as 0, as long as that one counts: squares of what is
# there must not underflow.
FLUSHED, HIDDEN = -450, 2.0**-400
NOTHING = -(1 << 50)  # the exponent of 0: far below any other, and so are sums of a few hundred


class Sized(NamedTuple):
    """Numbers of any magnitude: mantissa · 2^exponent."""

    mantissa: Floats
    exponent: Indices

    @classmethod
    def of(cls, numbers: Floats, exponent: Indices | int = 0) -> Sized:
        """Return numbers with mantissas between ½ and 1."""
        mantissa, power = np.frexp(numbers)
        power = np.where(mantissa == 0.0, NOTHING, power.astype(np.int64) + exponent)
        return cls(mantissa, power)

    def times(self, other: Sized) -> Sized:
        """Return products."""
        return Sized.of(self.mantissa * other.mantissa, self.exponent + other.exponent)

    def take(self, where: Indices) -> Sized:
        """Return some of the numbers."""
        return Sized(self.mantissa[where], self.exponent[where])

    def put(self, where: Indices, numbers: Sized) -> None:
        """Write some of the numbers."""
        self.mantissa[where], self.exponent[where] = numbers

    def in_units(self, exponent: Indices | int) -> Floats:
        """Return the numbers divided by powers of two; those out of range keep their sign."""
        return np.ldexp(self.mantissa, np.clip(self.exponent - exponent, -1000, 1000))


def unit_of(logs: Floats) -> Indices:
    """Return exponents of powers of two about as large as what has these logarithms."""
    return np.floor(np.maximum(logs, -1e15) / np.log(2.0)).astype(np.int64)


def oppose(ahead: Indices, behind: Indices, classes: int) -> Floats:
    """Return the payoff of one class of each row against another: 1_ĉ − 1_c."""
    every = np.arange(classes)
    return (every == ahead[:, None]).astype(np.float64) - (every == behind[:, None])


@dataclass(frozen=True)
class Gamble:
    """What each class pays in each row, and what the rows reach: the recursion for any size.

    Attributes
    ----------
    reached : Reached
        What rows reach, what is perturbed there, and by which ball.
    payoff : ndarray of shape (rows, classes)
    """

    reached: Reached
    payoff: Floats

    def margins(self, delta: Floats, unit: Indices | int = 0) -> Floats:
        """Return the lower value of each row, divided by 2^unit."""
        return self.evaluate(delta).take(self.reached.roots).in_units(unit)

    def evaluate(self, delta: Floats) -> Sized:
        """Return the lower value of each node."""
        return self.evaluate_both(delta)[0]

    def evaluate_both(self, delta: Floats) -> tuple[Sized, Sized]:
        """Return the lower and the upper value of each node.

        Of those that speak of the class the lower value alone means something.
        """
        reached, e = self.reached, self.evidence
        size = self.local_sizes(delta)
        lower = Sized(np.zeros(len(e.op)), np.full(len(e.op), NOTHING))
        upper = Sized(lower.mantissa.copy(), lower.exponent.copy())
        for level in reached.levels:
            if len(level.features):
                self._evaluate_features(level.features, size, lower, upper)
            for numbers in (lower, upper):
                numbers.put(level.marks, Sized.of(np.ones(len(level.marks))))
                numbers.put(level.values, Sized.of(e.p[level.values], e.extra[level.values]))
            if len(level.classes):
                self._evaluate_classes(level, size, lower)
            if len(level.products):
                _evaluate_products(level, lower, upper)
            for mean in level.means:
                self._evaluate_sums(mean, size, lower, upper)
            if len(level.again):
                first = level.again - e.extra[level.again]
                lower.put(level.again, lower.take(first))
                upper.put(level.again, upper.take(first))
        return lower, upper

    @property
    def evidence(self) -> Evidence:
        """What rows reach."""
        return self.reached.evidence

    def local_sizes(self, delta: Floats) -> Floats:
        """Return the size of the ball around each node's local mass function."""
        delta, perturbed = delta[self.reached.row], self.reached.perturbed
        if perturbed.sizes == "equal":
            return delta
        size = np.zeros_like(delta)
        free = self.reached.free
        size[free] = perturbed.ball.local_size(delta[free], self.evidence.rows[free])
        return size

    # The kinds of nodes

    def _evaluate_features(self, nodes: Indices, size: Floats, lower: Sized, upper: Sized) -> None:
        p = self.evidence.p[nodes]
        bounds = p.copy(), p.copy()
        free = np.flatnonzero(self.reached.free[nodes])
        if len(free):
            some = nodes[free]
            for bound, side in zip(bounds, ("lower", "upper"), strict=True):
                bound[free] = self._bound(some, size[some], side)
        lower.put(nodes, Sized.of(bounds[0]))
        upper.put(nodes, Sized.of(bounds[1]))

    def _bound(self, nodes: Indices, size: Floats, side: str) -> Floats:
        ball = self.reached.perturbed.ball
        method = f"{side}_probability"
        if getattr(type(ball), method) is not getattr(Perturbation, method):
            return np.asarray(getattr(ball, method)(self.evidence.p[nodes], size))
        # The ball gives expectations only: ask it about the full mass functions.
        found = np.empty(len(nodes))
        for some, q in self.reached.expand(nodes):
            indicator = np.eye(q.shape[1])[self.position(nodes[some])]
            sign = 1.0 if side == "lower" else -1.0
            values = lower_expectations(ball, q, sign * indicator, size[some])
            # Rounding in somebody's solver must not leave the interval.
            found[some] = np.clip(sign * values, 0.0, 1.0)
        return found

    def position(self, nodes: Indices) -> Indices:
        """Return which outcome of their local mass functions nodes tell of."""
        slot = self.evidence.slot[nodes].astype(np.intp)
        return self.reached.locals.position(self.evidence.local[nodes], slot)

    def _evaluate_classes(self, level: Level, size: Floats, lower: Sized) -> None:
        nodes, leaves = level.classes, level.leaves
        row = self.reached.row[nodes]
        value = self.payoff[row, self.evidence.slot[nodes]]
        if len(leaves):
            f = self.payoff[row[leaves]]
            value[leaves] = self.expect(nodes[leaves], level.class_weights, f, size)
        lower.put(nodes, Sized.of(value))

    def expect(self, nodes: Indices, q: Floats, f: Floats, size: Floats) -> Floats:
        """Return lower expectations, or plain ones where nothing moves."""
        value = (q * f).sum(axis=1)
        free = np.flatnonzero(self.reached.free[nodes])
        if len(free):
            ball = self.reached.perturbed.ball
            value[free] = lower_expectations(ball, q[free], f[free], size[nodes[free]])
        return value

    def _evaluate_sums(self, mean: Mean, size: Floats, lower: Sized, upper: Sized) -> None:
        def expect(f: Floats) -> Floats:
            return self.expect(mean.nodes - 1, mean.weights, f, size)

        lower.put(mean.nodes, expect_sized(expect, spread(mean, lower)))
        silent = np.flatnonzero(~self.reached.speaks[mean.nodes])
        if len(silent):
            most = expect_sized(lambda f: -expect(-f), spread(mean, upper))
            upper.put(mean.nodes[silent], most.take(silent))


class Margins:
    """Lower values of rows, for one payoff and size after the other, in units of their own.

    What is known of the rows that are looked at is kept, until less than half of them are.
    """

    def __init__(self, reached: Reached, unit: Indices) -> None:
        self._all, self._unit = reached, unit
        self._some, self._reached = np.arange(len(reached)), reached

    def of(self, which: Indices, payoff: Floats, delta: Floats) -> Floats:
        """Return the margins of some rows, in ascending order."""
        at = self._find(which)
        # The others that are at hand pay nothing.
        sizes, pays = np.zeros(len(self._some)), np.zeros((len(self._some), payoff.shape[1]))
        sizes[at], pays[at] = delta, payoff
        return Gamble(self._reached, pays).margins(sizes, self._unit[self._some])[at]

    def _find(self, which: Indices) -> Indices:
        """Return where rows stand among those that are at hand."""
        at = np.minimum(np.searchsorted(self._some, which), len(self._some) - 1)
        if 2 * len(which) < len(self._some) or not np.array_equal(self._some[at], which):
            self._some, self._reached = which, self._all
            if len(which) < len(self._all):
                self._reached = self._all.take(which)
            at = np.arange(len(which))
        return at


def _evaluate_products(level: Level, lower: Sized, upper: Sized) -> None:
    count = len(level.products)
    least, most = _multiply(level.factors, lower, count), _multiply(level.factors, upper, count)
    value = Sized.of(np.ones(count))
    value.put(level.spoken, lower.take(level.speaker))
    positive = value.mantissa > 0.0
    chosen = Sized(*(np.where(positive, a, b) for a, b in zip(least, most, strict=True)))
    lower.put(level.products, value.times(chosen))
    upper.put(level.products, most)


def _multiply(factors: list[Factors], numbers: Sized, count: int) -> Sized:
    """Return products of children."""
    product = Sized.of(np.ones(count))
    for some, child, first in factors:
        mantissa = np.multiply.reduceat(numbers.mantissa[child], first)
        exponent = np.add.reduceat(numbers.exponent[child], first)
        product.put(some, product.take(some).times(Sized(mantissa, exponent)))
    return product


def spread(mean: Mean, numbers: Sized) -> Sized:
    """Return the numbers of the children of sums, by outcomes: 0 for those not reached."""
    found = Sized(np.zeros(mean.weights.shape), np.full(mean.weights.shape, NOTHING))
    found.mantissa[mean.place] = numbers.mantissa[mean.child]
    found.exponent[mean.place] = numbers.exponent[mean.child]
    return found


def expect_sized(expect: Callable[[Floats], Floats], values: Sized) -> Sized:
    """Return expectations of values of any magnitude, (rows, outcomes).

    The largest decides, unless the expectation gives it no mass: then smaller ones do.
    """
    exponent = values.exponent
    top = exponent.max(axis=1)
    for _ in range(values.mantissa.shape[1]):
        # Values above the ones that are looked at only must stay above.
        shift = np.clip(exponent - top[:, None], -2000, 500)
        # No subnormal numbers: somebody's formula may stumble over them.
        found = expect(np.where(shift < FLUSHED, 0.0, np.ldexp(values.mantissa, shift)))
        below = np.where((exponent > NOTHING) & (shift < FLUSHED), exponent, NOTHING).max(axis=1)
        hidden = (np.abs(found) < HIDDEN) & (below > NOTHING)
        if not hidden.any():
            break
        top = np.where(hidden, below, top)
    return Sized.of(found, np.where(top > NOTHING, top, 0))


def lower_expectations(ball: Perturbation, q: Floats, f: Floats, delta: Floats) -> Floats:
    """Return the lower expectation for each row and size, if the ball gives as many.

    Raises
    ------
    UnsupportedError
        If it gives another number of them; the message names the ball.
    """
    values = np.asarray(ball.lower_expectation(q, f, delta))
    if values.shape != delta.shape:
        msg = (
            f"{type(ball).__name__}.lower_expectation gave the shape {values.shape} for "
            f"{len(delta)} rows: it must give one number for each"
        )
        raise UnsupportedError(msg)
    return values
