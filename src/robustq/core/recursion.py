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
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from robustq.exceptions import UnsupportedError
from robustq.perturbations import Perturbation

from .evidence import CLASS, FEATURE, PRODUCT, SAME, SIDE, SUM, Evidence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from robustq.arrays import Bools, Floats, Indices

    from .evidence import Locals
    from .neighbourhoods import Perturbed

__all__ = ["Gamble", "Sized", "expect_sized", "oppose", "take_rows"]

FLUSHED = -1000  # exponents so far below the largest are taken as 0, as long as that one counts
HIDDEN = 2.0**-900
NOTHING = -(1 << 60)  # the exponent of 0


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


def take_rows(evidence: Evidence, rows: Indices) -> Evidence:
    """Return what some rows reach."""
    lengths = np.diff(evidence.starts)[rows]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    nodes = np.arange(starts[-1]) + np.repeat(evidence.starts[rows] - starts[:-1], lengths)
    return Evidence(starts, *(column[nodes] for column in evidence[1:]))


def oppose(ahead: Indices, behind: Indices, classes: int) -> Floats:
    """Return the payoff of one class of each row against another: 1_ĉ − 1_c."""
    every = np.arange(classes)
    return (every == ahead[:, None]).astype(np.float64) - (every == behind[:, None])


@dataclass(frozen=True)
class Gamble:
    """What each class pays in each row, and what the rows reach: the recursion for any size.

    Attributes
    ----------
    evidence : Evidence
    locals : Locals
    perturbed : Perturbed
        What is perturbed, and by which ball.
    payoff : ndarray of shape (rows, classes)
    """

    evidence: Evidence
    locals: Locals
    perturbed: Perturbed
    payoff: Floats

    def margins(self, delta: Floats) -> Floats:
        """Return the lower value of each row, divided by a positive number."""
        return self.evaluate(delta).mantissa[self.evidence.starts[1:] - 1]

    def evaluate(self, delta: Floats) -> Sized:
        """Return the lower value of each node."""
        return self._evaluate(delta)[0]

    def _evaluate(self, delta: Floats) -> tuple[Sized, Sized, Bools]:
        """Return the lower and the upper value of each node, and which nodes speak of the class.

        Of those that do the lower value alone means something.
        """
        size = self._local_sizes(delta[self._row])
        lower = Sized(np.zeros(len(self._row)), np.full(len(self._row), NOTHING))
        upper = Sized(lower.mantissa.copy(), lower.exponent.copy())
        speaks = np.zeros(len(self._row), dtype=bool)
        for nodes in self._levels:
            op = self.evidence.op[nodes]
            for kind, evaluate in (
                (FEATURE, self._evaluate_features),
                (CLASS, self._evaluate_classes),
                (PRODUCT, self._evaluate_products),
                (SUM, self._evaluate_sums),
            ):
                some = nodes[op == kind]
                if len(some):
                    evaluate(some, size, lower, upper, speaks)
            again = nodes[op == SAME]
            first = again - self.evidence.extra[again]
            lower.put(again, lower.take(first))
            upper.put(again, upper.take(first))
            values = nodes[op < FEATURE]
            fixed = Sized.of(self.evidence.p[values], self.evidence.extra[values])
            lower.put(values, fixed)
            upper.put(values, fixed)
        return lower, upper, speaks

    def find_branches(self) -> Indices | None:
        """Return for each row the child of its root for each class, if it is a sum over classes.

        That is, if each child is a product with an indicator of a class of its own, and its weight
        that of the class.
        """
        e, parent = self.evidence, self._family[0]
        roots = e.starts[1:] - 1
        shown = np.flatnonzero((e.op == CLASS) & (e.local < 0))
        branch = parent[shown]
        rows, classes = self.payoff.shape
        fits = (
            len(shown) == rows * classes
            and bool(np.all(e.op[roots] == SUM))
            and bool(np.all(e.arity[roots] == classes))
            and bool(np.all(parent[branch] == roots[self._row[shown]]))
            and bool(np.all(e.slot[branch] == e.slot[shown]))
        )
        if not fits:
            return None
        found = np.full((rows, classes), -1, dtype=np.int64)
        found[self._row[shown], e.slot[shown]] = branch
        return found if np.all(found >= 0) else None

    # What is known before any size is

    @cached_property
    def _row(self) -> Indices:
        lengths = np.diff(self.evidence.starts)
        return np.repeat(np.arange(len(lengths)), lengths)

    @cached_property
    def _family(self) -> tuple[Indices, Indices]:
        """The parent of each node, and its height."""
        from . import _evidence_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        e = self.evidence
        parent, height = np.empty((2, len(e.op)), dtype=np.int64)
        longest = int(np.diff(e.starts).max(initial=0))
        _evidence_kernels.find_parents(
            *(e.starts, e.op, e.arity, e.extra),
            *(np.empty(longest + 1, dtype=np.int64), parent, height),
        )
        return parent, height

    @cached_property
    def _levels(self) -> list[Indices]:
        """The nodes, those without children first."""
        height = self._family[1]
        order = np.argsort(height, kind="stable")
        return np.split(order, np.cumsum(np.bincount(height))[:-1])

    @cached_property
    def _children(self) -> tuple[Indices, Indices]:
        """The nodes sorted by parent, and where those of each parent begin."""
        parent = self._family[0]
        order = np.argsort(parent, kind="stable")
        return order, np.searchsorted(parent[order], np.arange(len(parent)))

    @cached_property
    def _free(self) -> Bools:
        """Which nodes have a probability that moves."""
        return self.perturbed.mask(self.evidence)

    def _local_sizes(self, delta: Floats) -> Floats:
        """Return the size of the ball around each node's local mass function."""
        if self.perturbed.sizes == "equal":
            return delta
        size = np.zeros_like(delta)
        free = self._free
        size[free] = self.perturbed.ball.local_size(delta[free], self.evidence.rows[free])
        return size

    # The four kinds of nodes

    def _evaluate_features(
        self, nodes: Indices, size: Floats, lower: Sized, upper: Sized, _: Bools
    ) -> None:
        p = self.evidence.p[nodes]
        bounds = p.copy(), p.copy()
        free = np.flatnonzero(self._free[nodes])
        if len(free):
            some = nodes[free]
            for bound, side in zip(bounds, ("lower", "upper"), strict=True):
                bound[free] = self._bound(some, size[some], side)
        lower.put(nodes, Sized.of(bounds[0]))
        upper.put(nodes, Sized.of(bounds[1]))

    def _bound(self, nodes: Indices, size: Floats, side: str) -> Floats:
        ball = self.perturbed.ball
        method = f"{side}_probability"
        if getattr(type(ball), method) is not getattr(Perturbation, method):
            return np.asarray(getattr(ball, method)(self.evidence.p[nodes], size))
        # The ball gives expectations only: ask it about the full mass functions.
        found = np.empty(len(nodes))
        for some, q in self._expand(nodes):
            indicator = np.eye(q.shape[1])[self._position(nodes[some])]
            sign = 1.0 if side == "lower" else -1.0
            values = lower_expectations(ball, q, sign * indicator, size[some])
            # Rounding in somebody's solver must not leave the interval.
            found[some] = np.clip(sign * values, 0.0, 1.0)
        return found

    def _position(self, nodes: Indices) -> Indices:
        slot = self.evidence.slot[nodes].astype(np.intp)
        return self.locals.position(self.evidence.local[nodes], slot)

    def _expand(self, nodes: Indices) -> Iterator[tuple[Indices, Floats]]:
        """Yield positions of nodes whose local mass functions have as many outcomes, and those."""
        local = self.evidence.local[nodes]
        outcomes = self.locals.outcomes(local)
        for count in np.unique(outcomes):
            some = np.flatnonzero(outcomes == count)
            yield some, self.locals.expand(local[some])

    def _evaluate_classes(
        self, nodes: Indices, size: Floats, lower: Sized, upper: Sized, speaks: Bools
    ) -> None:
        marks = self.evidence.extra[nodes] == SIDE
        lower.put(nodes[marks], Sized.of(np.ones(marks.sum())))
        upper.put(nodes[marks], Sized.of(np.ones(marks.sum())))
        nodes = nodes[~marks]
        row, local = self._row[nodes], self.evidence.local[nodes]
        speaks[nodes] = True
        value = self.payoff[row, self.evidence.slot[nodes]]
        leaves = np.flatnonzero(local >= 0)
        if len(leaves):
            q = self.locals.expand(local[leaves])
            value[leaves] = self._expect(nodes[leaves], q, self.payoff[row[leaves]], size)
        lower.put(nodes, Sized.of(value))

    def _expect(self, nodes: Indices, q: Floats, f: Floats, size: Floats) -> Floats:
        """Return lower expectations, or plain ones where nothing moves."""
        value = (q * f).sum(axis=1)
        free = np.flatnonzero(self._free[nodes])
        if len(free):
            ball = self.perturbed.ball
            value[free] = lower_expectations(ball, q[free], f[free], size[nodes[free]])
        return value

    def _evaluate_products(
        self, nodes: Indices, _: Floats, lower: Sized, upper: Sized, speaks: Bools
    ) -> None:
        children, first = self._children
        arity, start = self.evidence.arity[nodes], first[nodes]
        least, most = (Sized.of(np.ones(len(nodes))) for _ in range(2))
        value, spoken = Sized.of(np.ones(len(nodes))), np.zeros(len(nodes), dtype=bool)
        for k in range(int(arity.max())):
            some = np.flatnonzero(arity > k)
            child = children[start[some] + k]
            own, other = some[speaks[child]], some[~speaks[child]]
            value.put(own, lower.take(child[speaks[child]]))
            spoken[own] = True
            rest = child[~speaks[child]]
            least.put(other, least.take(other).times(lower.take(rest)))
            most.put(other, most.take(other).times(upper.take(rest)))
        positive = ~spoken | (value.mantissa > 0.0)
        chosen = Sized(*(np.where(positive, a, b) for a, b in zip(least, most, strict=True)))
        lower.put(nodes, value.times(chosen))
        upper.put(nodes, most)
        speaks[nodes] = spoken

    def _evaluate_sums(
        self, nodes: Indices, size: Floats, lower: Sized, upper: Sized, speaks: Bools
    ) -> None:
        # The last child stands just before its parent; all have one local mass function.
        own = nodes - 1
        speaks[nodes] = speaks[own]
        for some, q in self._expand(own):

            def expect(f: Floats, at: Indices = own[some], q: Floats = q) -> Floats:
                return self._expect(at, q, f, size)

            lower.put(nodes[some], expect_sized(expect, self._spread(nodes[some], lower, q)))
            free = np.flatnonzero(~speaks[nodes[some]])
            if len(free):
                values = self._spread(nodes[some], upper, q)
                most = expect_sized(lambda f: -expect(-f), values)
                upper.put(nodes[some][free], most.take(free))

    def _spread(self, nodes: Indices, numbers: Sized, q: Floats) -> Sized:
        """Return the numbers of the children of sums, by outcomes: 0 for those not reached."""
        children, first = self._children
        arity = self.evidence.arity[nodes]
        owner = np.repeat(np.arange(len(nodes)), arity)
        place = np.arange(len(owner)) - np.repeat(np.cumsum(arity) - arity, arity)
        child = children[first[nodes][owner] + place]
        slot = self.evidence.slot[child]
        spread = Sized(np.zeros(q.shape), np.full(q.shape, NOTHING))
        spread.mantissa[owner, slot] = numbers.mantissa[child]
        spread.exponent[owner, slot] = numbers.exponent[child]
        return spread


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
