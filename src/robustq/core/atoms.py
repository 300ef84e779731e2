"""A mass function perturbed as a whole: only what the two classes have, and the rest, matters.

With a = p(ĉ, f), b = p(c, f) and D = a − b the closed forms are: ε D/(1+D), total variation D/2,
pari-mutuel D/(1−D), χ² D²/(a+b−D²), odds ratio 1 − b/a, Kullback–Leibler −log(1 − (√a − √b)²); of a
posterior likewise, with a = p(ĉ | f) and b = p(c | f). The runner-up tips.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .recursion import lower_expectations
from .roots import smallest_roots

if TYPE_CHECKING:
    from robustq.arrays import Floats, Indices
    from robustq.perturbations import Perturbation

__all__ = ["margins", "solve"]


def solve(
    ball: Perturbation, log_a: Floats, log_b: Floats, log_lead: Floats, log_rest: Floats
) -> Floats:
    """Return at which size b catches up with a.

    Parameters
    ----------
    ball : Perturbation
    log_a, log_b : ndarray of shape (rows,)
        Logarithms of two probabilities: they may be far below what a float holds.
    log_lead : ndarray of shape (rows,)
        The logarithm of a − b, which is −∞ for a tie.
    log_rest : ndarray of shape (rows,)
        The logarithm of 1 − a − b.
    """
    formula = FORMULAS.get(ball.expectation or "")
    with np.errstate(all="ignore"):
        if formula is not None:
            found = formula(log_a, log_b, log_lead, log_rest)
        else:
            found = _search(ball, log_a, log_b)
    return np.where(np.isneginf(log_lead), 0.0, found)


def margins(ball: Perturbation, log_a: Floats, log_b: Floats, delta: Floats) -> Floats:
    """Return the lower expectation of 1_a − 1_b."""
    a, b = np.exp(log_a), np.exp(log_b)
    rest = np.maximum(1.0 - a - b, 0.0)
    q = np.stack([a, b, rest], axis=1)
    q /= q.sum(axis=1, keepdims=True)
    f = np.broadcast_to([1.0, -1.0, 0.0], q.shape)
    return lower_expectations(ball, q, f, delta)


def _search(ball: Perturbation, log_a: Floats, log_b: Floats) -> Floats:
    def margin(which: Indices, delta: Floats) -> Floats:
        return margins(ball, log_a[which], log_b[which], delta)

    return smallest_roots(margin, ball.domain, len(log_a))


# Where a and b are nearly all there is, 1 − D would cancel: 1 − D = rest + 2b, and so on.


def _epsilon(_a: Floats, _b: Floats, lead: Floats, _rest: Floats) -> Floats:
    return np.exp(lead - np.log1p(np.exp(lead)))


def _tv(_a: Floats, _b: Floats, lead: Floats, _rest: Floats) -> Floats:
    return 0.5 * np.exp(lead)


def _pari_mutuel(_a: Floats, b: Floats, lead: Floats, rest: Floats) -> Floats:
    return np.exp(lead - np.logaddexp(rest, b + np.log(2.0)))


def _chi2(a: Floats, b: Floats, lead: Floats, rest: Floats) -> Floats:
    # a + b − D² = (a + b)(1 − a − b) + 4ab.
    return np.exp(2.0 * lead - np.logaddexp(np.logaddexp(a, b) + rest, a + b + np.log(4.0)))


def _odds_ratio(a: Floats, b: Floats, lead: Floats, _rest: Floats) -> Floats:
    return np.where(np.isneginf(b), np.inf, np.exp(lead - a))


def _kl(a: Floats, b: Floats, lead: Floats, rest: Floats) -> Floats:
    # (√a − √b)² = D²/(√a + √b)².
    square = np.exp(2.0 * (lead - np.logaddexp(0.5 * a, 0.5 * b)))
    left = np.logaddexp(rest, 0.5 * (a + b) + np.log(2.0))
    return np.where(square < 0.5, -np.log1p(-np.minimum(square, 0.5)), -left)


FORMULAS = {
    "epsilon": _epsilon,
    "tv": _tv,
    "pari_mutuel": _pari_mutuel,
    "chi2": _chi2,
    "odds_ratio": _odds_ratio,
    "kl": _kl,
}
