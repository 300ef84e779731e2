"""The imprecise Dirichlet model of naive Bayes: one and the same records change all its tables.

Zaffalon's naive credal classifier (2002), read as robustness: the smallest number s of training
records that, added to the data, can flip a prediction. Of these, t look like f and have the class c
of a rival, and u = s − t have the predicted class ĉ and look different everywhere. With n(c) the
records of a class, n_i(c) those with the value f_i, N_i(c) those with any value of F_i, smoothing
included in the last two, the logarithm of p(ĉ, f) / p(c, f) then is

    D(u, t) = A(u) + B(t) + constant
    A(u) = log(n(ĉ) + u) − Σ log(N_i(ĉ) + u)
    B(t) = − log(n(c) + t) − Σ log((n_i(c) + t) / (N_i(c) + t))

and ĉ dominates c at s if and only if D is positive wherever u + t = s. B is convex. A is convex, or
else concave up to some u and convex beyond, with a second derivative that grows as long as it is
negative (that of each ((n + u) / (N_i + u))² does, and once one of them is 1 or more it stays so);
that of B(s − u) grows with u. So D along u + t = s is concave at first and then convex, and its
minimum is at u = 0 or is the one local minimum of the convex piece.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from robustq.exceptions import UnsupportedError
from robustq.perturbations import Domain

if TYPE_CHECKING:
    from robustq.arrays import Bools, Codes, Floats, Indices
    from robustq.tables import Rows

    from .evidence import Model

__all__ = ["Coupled", "Records"]

MOST_WHOLE = 10_000  # records; of more, a fraction of one is nothing
TINY = 1e-300


class Records(NamedTuple):
    """The records behind the tables of a naive Bayes model.

    Attributes
    ----------
    class_probs : ndarray of shape (classes,)
    feature_probs : ndarray
        p(category | class) of all features, flat; classes of one category side by side.
    offsets : ndarray of shape (features,)
        Where each feature begins there.
    prior_rows : float
        How many records the prior was estimated from; NaN if records do not change it.
    totals : ndarray of shape (features, classes)
        How many records, with what smoothing added, stand behind each p(F_i | class); NaN where
        records do not change it.
    """

    class_probs: Floats
    feature_probs: Floats
    offsets: Indices
    prior_rows: float
    totals: Floats


@dataclass(frozen=True, eq=False)
class Coupled:
    """Records added to those that a model was learned from.

    Attributes
    ----------
    records : Records
    """

    records: Records
    domain: ClassVar[Domain] = Domain()

    @classmethod
    def of(cls, model: Model) -> Coupled:
        """Return what added records do to a model.

        Raises
        ------
        UnsupportedError
            If it is no naive Bayes model, or has no counts.
        """
        records: Records | None = getattr(model, "records", None)
        if records is None:
            msg = (
                "idm is the imprecise Dirichlet model of naive Bayes: no formula is known for "
                "other models; take epsilon_rows, its local relative"
            )
            raise UnsupportedError(msg)
        if np.isnan(records.prior_rows) and np.isnan(records.totals).all():
            msg = (
                "idm adds records to those that were counted, and this model has no counts (read "
                "from a file without them?): fit it anew"
            )
            raise UnsupportedError(msg)
        return cls(records)

    def solve(
        self, rows: Rows, joint: Floats, gaps: Floats, best: Indices, rival: Indices
    ) -> tuple[Floats, Indices]:
        """Return how many records flip each prediction, and who tips.

        Parameters
        ----------
        rows : Rows
        joint : ndarray of shape (rows, classes)
            log p(c, f)
        gaps : ndarray of shape (rows, classes)
            By how much the predicted class is ahead in it.
        best, rival : ndarray of shape (rows,)
            The predicted class, and the one to look at first.
        """
        from . import _coupled_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        records, tipping = np.empty(len(rows)), np.empty(len(rows), dtype=np.int64)
        _coupled_kernels.solve(
            *(*self._arrays(rows), joint, gaps, best, rival, self._room, records, tipping)
        )
        return records, tipping

    def find_maximal(
        self, rows: Rows, joint: Floats, gaps: Floats, order: Indices, sizes: Floats
    ) -> Bools:
        """Tell which classes no other dominates.

        Parameters
        ----------
        rows : Rows
        joint, gaps : ndarray of shape (rows, classes)
            As in `solve`.
        order : ndarray of shape (rows, classes)
            The classes, the most probable one first.
        sizes : ndarray of shape (rows,)
            How many records are added.
        """
        from . import _coupled_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        maximal = np.ones(joint.shape, dtype=bool)
        _coupled_kernels.find_maximal(
            *(*self._arrays(rows), joint, gaps, np.ascontiguousarray(order)),
            *(np.ascontiguousarray(sizes), self._room, maximal),
        )
        return maximal

    def count_whole(self, codes: Codes, best: int, records: float) -> float:
        """Return the smallest whole number of records that can flip the prediction of a row.

        Parameters
        ----------
        codes : ndarray of shape (features,)
        best : int
            The predicted class.
        records : float
            What `solve` gives: how many it takes where they can be divided.
        """
        count = max(math.ceil(records * (1.0 - 1e-12)), 1) if math.isfinite(records) else math.inf
        while count <= MOST_WHOLE and not self._can_flip(codes, best, int(count)):
            count += 1
        return count

    def _can_flip(self, codes: Codes, best: int, count: int) -> bool:
        """Tell whether so many records flip a prediction, however they are dealt out."""
        theirs = np.arange(count + 1)[:, None]
        logs = self._log_joint(codes, theirs, like=True)
        logs[:, best] = self._log_joint(codes, count - theirs, like=False)[:, best]
        rivals = np.delete(logs, best, axis=1)
        return bool(np.any(logs[:, [best]] <= rivals + 1e-12))

    def _log_joint(self, codes: Codes, added: Indices, *, like: bool) -> Floats:
        """Return log p(c, f) + constant, with records added to each class that look like f or not.

        Parameters
        ----------
        codes : ndarray of shape (features,)
        added : ndarray of shape (counts, 1)
        like : bool
        """
        classes = np.arange(len(self.records.class_probs))
        prior, rows = self.records.class_probs, self.records.prior_rows
        with np.errstate(divide="ignore"):
            logs = np.log(prior * np.ones(added.shape) if np.isnan(rows) else prior * rows + added)
            for i in np.flatnonzero(codes >= 0).tolist():
                cell = self.records.offsets[i] + codes[i] * len(classes)
                p, total = self.records.feature_probs[cell + classes], self.records.totals[i]
                counted = (p * total + (added if like else 0)) / np.maximum(total + added, TINY)
                logs = logs + np.log(np.where(np.isnan(total), p, counted))
        return logs

    def _arrays(self, rows: Rows) -> tuple[object, ...]:
        codes = np.ascontiguousarray(rows.codes, dtype=np.int32)
        return (codes, *self.records)

    @property
    def _room(self) -> Floats:
        """Room for the counts of two classes in one row."""
        return np.empty((3, len(self.records.totals)))
