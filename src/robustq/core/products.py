"""Products: for each class one product of factors, as in naive Bayes, by a kernel of their own.

With α the product of the lower probabilities of the features given ĉ, and β that of the upper
ones given c, the prediction is robust against c as long as E̲_prior[α 1_ĉ − β 1_c] > 0: Theorem 2
(robustness of naive Bayes). For most balls the prior is one more factor; under χ² and odds ratio it
has a formula of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from robustq.tables import find_distinct

from .circuits import find_gain, find_limit, size_of

if TYPE_CHECKING:
    from robustq.arrays import Bools, Codes, Floats, Indices
    from robustq.perturbations.forms import Form

    from .keeping import Keeper
    from .neighbourhoods import Perturbed
    from .quantified import Quantified

__all__ = ["FARTHEST", "BallTables", "ProductTables", "Products", "make_tables"]

FARTHEST = 1e15  # roots beyond are looked for again
# What the tables of a ball hold for each probability p: as much as a line of the cache.
COLUMNS = ("p", "l", "l / p", "u", "u / p", "s", "t", "nothing")


class BallTables(NamedTuple):
    """What a ball makes of the tables, as `COLUMNS`; the last line of features never moves."""

    prior: Floats
    features: Floats
    cut: float
    limit: float
    chi2: float
    fractional: bool
    one_sided: bool


@dataclass(frozen=True, eq=False)
class ProductTables:
    """The probabilities whose products are compared, and what stands behind them.

    Attributes
    ----------
    prior : ndarray of shape (classes,)
    features : ndarray
        p(category | class) of all features, flat; classes of one category side by side.
    prior_rows : float
        NaN where nothing was counted.
    feature_rows : ndarray
        Like `features`.
    owner : ndarray
        Like `features`: which feature it is of.
    alone : ndarray of bool, of shape (features,)
        Which features have a single category: no ball moves it.
    parts : tuple of int
        The positions of the prior and the features among the model's parts.
    """

    prior: Floats
    features: Floats
    prior_rows: float
    feature_rows: Floats
    owner: Indices
    alone: Bools
    parts: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Products:
    """Rows as positions in the tables.

    Attributes
    ----------
    tables : ProductTables
    cells : ndarray of shape (rows, features)
        Where each factor of the first class stands; −1 where it is the constant 1.
    joint : ndarray of shape (rows, classes)
    kept : Keeper
        Keeps what balls make of the tables.
    """

    tables: ProductTables
    cells: Codes
    joint: Floats
    kept: Keeper

    def fits(self, perturbed: Perturbed) -> bool:
        """Tell whether the kernel knows a neighbourhood."""
        ball, tables = perturbed.ball, self.tables
        moves_prior = tables.parts[0] in perturbed.parts
        if ball.expectation == "kl":
            return self._gains(perturbed) is not None
        known = ball.together or ball.expectation in ("chi2", "odds_ratio")
        if not perturbed.has_form or (moves_prior and not known and len(tables.prior) > 2):
            return False
        return self._tables(perturbed) is not None

    def solve(self, perturbed: Perturbed, found: Quantified) -> tuple[Floats, Indices]:
        """Return x and the tipping class of each row; x is NaN where rounding would show."""
        from . import _product_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        if perturbed.ball.expectation == "kl":
            return self._solve_divergence(perturbed, found)
        made = self._tables(perturbed)
        assert made is not None  # noqa: S101 (`fits` was asked)
        x, tipping = np.empty(len(self.cells)), np.empty(len(self.cells), dtype=np.int64)
        _product_kernels.search(
            *(self.cells, self.joint, found.prediction, found.runner_up),
            *(made.prior, made.features, made.cut, made.limit),
            *(perturbed.ball.keeps_zero, made.chi2, made.fractional, made.one_sided),
            *(*_product_kernels.make_room(self.cells.shape[1], made.fractional), x, tipping),
        )
        # At the end of its range, and where nothing flips, the kernel may be misled.
        with np.errstate(invalid="ignore"):
            x[~(x < min(FARTHEST, made.limit * (1.0 - 1e-9)))] = np.nan
        return x, tipping

    def _solve_divergence(self, perturbed: Perturbed, found: Quantified) -> tuple[Floats, Indices]:
        from . import _divergence_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        gains, tables = self._gains(perturbed), self.tables
        assert gains is not None  # noqa: S101 (`fits` was asked)
        # The search takes so long that looking for equal rows pays.
        keys = np.column_stack([self.cells, np.ascontiguousarray(self.joint).view(np.int32)])
        firsts, twins = find_distinct(keys)
        size, tipping = np.empty(len(firsts)), np.empty(len(firsts), dtype=np.int64)
        _divergence_kernels.search(
            *(self.cells[firsts], self.joint[firsts], tables.prior, tables.features, *gains),
            *(found.prediction[firsts], found.runner_up[firsts], size, tipping),
        )
        # Nothing below the domain's end flips: the recursion makes sure.
        size[np.isinf(size)] = np.nan
        return size[twins], tipping[twins]

    def _gains(self, perturbed: Perturbed) -> tuple[Floats, float] | None:
        return self.kept.find(("gains", perturbed.key), lambda: _find_gains(perturbed, self.tables))

    def size_of(self, perturbed: Perturbed, x: Floats) -> Floats:
        """Return the sizes that belong to x."""
        return size_of(perturbed, x)

    def _tables(self, perturbed: Perturbed) -> BallTables | None:
        return self.kept.find(perturbed.key, lambda: make_tables(perturbed, self.tables))


def _find_free(perturbed: Perturbed, tables: ProductTables) -> tuple[Bools, bool] | None:
    """Return which features' probabilities move, and whether the prior does; None if at once."""
    free = np.isin(tables.owner, perturbed.features) | (tables.parts[1] in perturbed.parts)
    free = free & ~tables.alone[tables.owner]
    moves_prior = tables.parts[0] in perturbed.parts and len(tables.prior) > 1
    if perturbed.sizes == "rows":
        free &= ~np.isnan(tables.feature_rows)
        moves_prior = moves_prior and not np.isnan(tables.prior_rows)
        # What no rows stand behind moves at once: the recursion knows how.
        if np.any(tables.feature_rows[free] == 0.0) or (moves_prior and tables.prior_rows == 0.0):
            return None
    return free, moves_prior


def _find_gains(perturbed: Perturbed, tables: ProductTables) -> tuple[Floats, float] | None:
    """Return what sizes are multiplied by, for features and for the prior."""
    found = _find_free(perturbed, tables)
    if found is None:
        return None
    free, moves_prior = found
    if perturbed.sizes == "equal":
        return free.astype(np.float64), float(moves_prior)
    gains = np.where(free, 1.0 / np.where(free, tables.feature_rows, 1.0), 0.0)
    return gains, 1.0 / tables.prior_rows if moves_prior else 0.0


def make_tables(perturbed: Perturbed, tables: ProductTables) -> BallTables | None:
    """Return what a ball makes of the tables; None where the kernel cannot use it."""
    ball, moving = perturbed.ball, _find_free(perturbed, tables)
    if moving is None:
        return None
    free, moves_prior = moving
    rows, prior_rows = None, None
    if perturbed.sizes == "rows":
        rows = np.where(free, tables.feature_rows, 1.0)
        prior_rows = np.full_like(tables.prior, tables.prior_rows if moves_prior else 1.0)
    features = _freeze(ball.form(tables.features, rows), free)
    prior = _freeze(ball.form(tables.prior, prior_rows), np.full(len(tables.prior), moves_prior))
    chi2 = 0.0
    gain = 1.0 if prior_rows is None else float(find_gain(ball, prior_rows)[0])
    if moves_prior and ball.expectation == "chi2":
        chi2, prior = gain, _freeze(prior, np.zeros(len(tables.prior), dtype=bool))
    elif moves_prior and ball.expectation == "odds_ratio":
        # E̲[α 1_ĉ − β 1_c] > 0 if and only if (1−δ) p(ĉ) α > p(c) β.
        zeros = np.zeros_like(tables.prior)
        prior = type(prior)(zeros, zeros + gain, zeros, zeros)
    everything = perturbed.parts == tables.parts
    return _lay_out(perturbed, tables, prior, features, chi2, everything)


def _lay_out(
    perturbed: Perturbed,
    tables: ProductTables,
    prior: Form,
    features: Form,
    chi2: float,
    everything: bool,
) -> BallTables | None:
    scales = np.concatenate(
        [prior.fall_scale, prior.rise_scale, features.fall_scale, features.rise_scale]
    )
    moved = scales[scales != 0.0]
    limit, cut = find_limit(perturbed), 1.0
    fractional = bool(len(moved))
    if fractional:
        over = [np.any(form.rise > form.rise_scale * (1.0 + 1e-12)) for form in (prior, features)]
        if any(over):
            return None
        cut = np.inf
        same = _both(prior) & _both(features)
        if same and np.all(moved == moved[0]):
            # All factors are divided by the same number, on both sides as often: it cancels.
            fractional = False
            limit = 1.0 / moved[0] if everything and not chi2 else np.inf
            prior, features = (
                form._replace(fall_scale=form.fall_scale * 0.0, rise_scale=form.rise_scale * 0.0)
                for form in (prior, features)
            )
    falls = bool(np.any(prior.fall)) or bool(np.any(features.fall))
    one_sided = not (falls or fractional or chi2 or cut < np.inf)
    still = np.zeros((1, len(COLUMNS)))
    still[0, 0] = 1.0
    return BallTables(
        _columns(tables.prior, prior),
        np.vstack([_columns(tables.features, features), still]),
        cut,
        limit,
        chi2,
        fractional,
        one_sided,
    )


def _both(form: Form) -> bool:
    return bool(np.all(form.fall_scale == form.rise_scale))


def _freeze(form: Form | None, free: Bools) -> Form:
    assert form is not None  # noqa: S101 (`fits` was asked)
    return type(form)(*(np.where(free, part, 0.0) for part in form))


def _columns(probs: Floats, form: Form) -> Floats:
    """Return `COLUMNS` for each probability."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rates = [np.where(slope > 0.0, slope / probs, 0.0) for slope in (form.fall, form.rise)]
    columns = [probs, form.fall, rates[0], form.rise, rates[1], form.fall_scale, form.rise_scale]
    return np.stack([*columns, np.zeros_like(probs)], axis=1)
