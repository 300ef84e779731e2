"""Means: below each class a mean of products, as in averaged networks, by a kernel of their own.

With A the mean of the products of lower probabilities given ĉ, and B that of the upper ones given
c, the prediction is robust against c as long as E̲_prior[A 1_ĉ − B 1_c] > 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .circuits import size_of
from .products import FARTHEST, make_tables

if TYPE_CHECKING:
    from robustq.arrays import Codes, Floats, Indices

    from .keeping import Keeper
    from .neighbourhoods import Perturbed
    from .products import BallTables, ProductTables
    from .quantified import Quantified

__all__ = ["Means"]


@dataclass(frozen=True, eq=False)
class Means:
    """Rows as positions in the tables.

    Attributes
    ----------
    tables : ProductTables
        Of all the terms together.
    cells : ndarray of shape (rows, terms, features)
        Where each factor of the first class stands; −1 where it is the constant 1.
    terms : ndarray of shape (rows,)
        How many terms each row has; they stand first.
    joint : ndarray of shape (rows, classes)
    kept : Keeper
        Keeps what balls make of the tables.
    """

    tables: ProductTables
    cells: Codes
    terms: Indices
    joint: Floats
    kept: Keeper

    def fits(self, perturbed: Perturbed) -> bool:
        """Tell whether the kernel knows a neighbourhood: prior and features, straight bounds."""
        ball, parts = perturbed.ball, self.tables.parts
        if not set(perturbed.parts) <= set(parts) or not perturbed.has_form:
            return False
        known = ball.together or ball.expectation in ("chi2", "odds_ratio")
        if parts[0] in perturbed.parts and not known and len(self.tables.prior) > 2:
            return False
        return self._tables(perturbed) is not None

    def solve(self, perturbed: Perturbed, found: Quantified) -> tuple[Floats, Indices]:
        """Return x and the tipping class of each row; x is NaN where rounding would show."""
        from . import _mean_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        made = self._tables(perturbed)
        assert made is not None  # noqa: S101 (`fits` was asked)
        x, tipping = np.empty(len(self.cells)), np.empty(len(self.cells), dtype=np.int64)
        _mean_kernels.search(
            *(self.cells.reshape(-1, self.cells.shape[2]), self.terms, self.joint),
            *(made.prior, made.features, made.feature_sides, made.cut),
            *(min(made.limit, FARTHEST) * (1.0 - 1e-9), made.chi2, made.fractional),
            made.falls or made.fractional,
            *(found.prediction, found.runner_up),
            *_mean_kernels.make_room(
                self.joint.shape[1], *self.cells.shape[1:], fractional=made.fractional
            ),
            *(x, tipping),
        )
        return x, tipping

    def size_of(self, perturbed: Perturbed, x: Floats) -> Floats:
        """Return the sizes that belong to x."""
        return size_of(perturbed, x)

    def _tables(self, perturbed: Perturbed) -> BallTables | None:
        return self.kept.find(perturbed.key, lambda: make_tables(perturbed, self.tables))
