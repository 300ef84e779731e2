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

from .circuits import find_gain, find_limit, size_of
from .room import align

if TYPE_CHECKING:
    from robustq.arrays import Bools, Codes, Floats, Indices, Singles
    from robustq.perturbations.forms import Form

    from .keeping import Keeper
    from .neighbourhoods import Perturbed
    from .quantified import Quantified, Ranking

__all__ = ["FARTHEST", "BallTables", "ProductTables", "Products", "make_tables"]

FARTHEST = 1e15  # roots beyond are looked for again
BEYOND = 8  # what may be read beyond the last class
# What the tables of a ball hold for each probability p: as much as a line of the cache.
COLUMNS = ("l", "l / p", "p", "u", "u / p", "where u is cut", "s", "t")
TINY = 1e-180
# And under Kullback–Leibler; what is multiplied by √δ, and √δ itself where the outcome vanishes
# or is all that is left.
TILTS = ("p", "1 / p", "1 / q", "root of the gain", "√(2pq)", "fall's end", "rise's end", "nothing")
# Probabilities below the first, or as close to 1 as the second, are for the recursion; and so are
# those of a prediction below the third: others hardly move before they vanish.
RARE, ALL_BUT, FRAIL = 1e-60, 1e-12, 1e-9


class BallTables(NamedTuple):
    """What a ball makes of the tables, as `COLUMNS`; the last lines of features never move.

    Sides are p, u and t for kernels that look at several classes at once, where a few digits do;
    with room beyond the last. What never moves comes after the features.
    """

    prior: Floats
    features: Floats
    prior_sides: Singles
    feature_sides: Singles
    cut: float
    limit: float
    chi2: float
    fractional: bool
    falls: bool


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
    ranking : Ranking
        Who seems to lead, by the joint.
    kept : Keeper
        Keeps what balls make of the tables.
    whole : bool
        Whether the joint is that of these factors alone, to the last digit.
    """

    tables: ProductTables
    cells: Codes
    joint: Floats
    ranking: Ranking
    kept: Keeper
    whole: bool = True

    def fits(self, perturbed: Perturbed) -> bool:
        """Tell whether the kernel knows a neighbourhood."""
        ball, tables = perturbed.ball, self.tables
        moves_prior = tables.parts[0] in perturbed.parts
        if ball.expectation == "kl":
            return self._tilts(perturbed) is not None
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
            *(self.ranking.top, self.ranking.lead),
            *(made.prior, made.features, made.prior_sides, made.feature_sides),
            *(made.cut, made.limit, float(perturbed.ball.keeps_zero), made.chi2),
            *(made.fractional, made.falls or not self.whole),
            *(*_product_kernels.make_room(len(made.prior), self.cells.shape[1]), x, tipping),
        )
        # At the end of its range, and where nothing flips, the kernel may be misled.
        farthest = min(FARTHEST, made.limit * (1.0 - 1e-9))
        if not x.max(initial=0.0) < farthest:
            x[~(x < farthest)] = np.nan
        return x, tipping

    def _solve_divergence(self, perturbed: Perturbed, found: Quantified) -> tuple[Floats, Indices]:
        from . import _divergence_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        made = self._tilts(perturbed)
        assert made is not None  # noqa: S101 (`fits` was asked)
        root, tipping = np.empty(len(self.cells)), np.empty(len(self.cells), dtype=np.int64)
        _divergence_kernels.search(
            *(self.cells, self.joint, self.tables.prior, *made),
            *(found.prediction, found.runner_up),
            *(*_divergence_kernels.make_room(self.cells.shape[1]), root, tipping),
        )
        return root * root, tipping

    def _tilts(self, perturbed: Perturbed) -> tuple[Floats, float] | None:
        return self.kept.find(("tilts", perturbed.key), lambda: _make_tilts(perturbed, self.tables))

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


def _make_tilts(perturbed: Perturbed, tables: ProductTables) -> tuple[Floats, float] | None:
    """Return `TILTS` of the features, and the root of what the prior's size is multiplied by."""
    found = _find_free(perturbed, tables)
    if found is None:
        return None
    free, moves_prior = found
    gains, prior_gain = free.astype(np.float64), float(moves_prior)
    if perturbed.sizes == "rows":
        gains = np.where(free, 1.0 / np.where(free, tables.feature_rows, 1.0), 0.0)
        prior_gain = 1.0 / tables.prior_rows if moves_prior else 0.0
    p = tables.features
    gains[p == 1.0] = 0.0
    vague = (gains > 0.0) & ((p < RARE) | (1.0 - p < ALL_BUT))
    p = np.append(np.where(vague, np.nan, np.where(gains > 0.0, p, 0.5)), 0.5)
    q, root = 1.0 - p, np.sqrt(np.append(gains, 0.0))
    ends = [np.where(p < FRAIL, 0.0, np.sqrt(-np.log1p(-p))), np.sqrt(-np.log(p))]
    table = np.stack([p, 1.0 / p, 1.0 / q, root, np.sqrt(2.0 * p * q), *ends, 0.0 * p], axis=1)
    return table, float(np.sqrt(prior_gain))


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
    falls = bool(np.any(prior.fall)) or bool(np.any(features.fall)) or chi2 > 0.0
    still = np.zeros((1, len(COLUMNS)))
    still[0, COLUMNS.index("p")], still[0, COLUMNS.index("where u is cut")] = 1.0, np.inf
    classes = len(tables.prior)
    return BallTables(
        align(_columns(tables.prior, prior, cut)),
        align(np.vstack([_columns(tables.features, features, cut), *[still] * classes])),
        _sides(tables.prior, prior, BEYOND),
        _sides(tables.features, features, classes + BEYOND),
        *(cut, limit, chi2, fractional, falls),
    )


def _both(form: Form) -> bool:
    return bool(np.all(form.fall_scale == form.rise_scale))


def _freeze(form: Form | None, free: Bools) -> Form:
    assert form is not None  # noqa: S101 (`fits` was asked)
    return type(form)(*(np.where(free, part, 0.0) for part in form))


def _columns(probs: Floats, form: Form, cut: float) -> Floats:
    """Return `COLUMNS` for each probability."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rates = [np.where(slope > 0.0, slope / probs, 0.0) for slope in (form.fall, form.rise)]
        ends = np.where(form.rise > 0.0, (cut - probs) / form.rise, np.inf)
    # What falls from so little drowns in what stands for 0: no kernel is to take it.
    rates[0] = np.where((probs < TINY) & (probs > 0.0), np.nan, rates[0])
    columns = [form.fall, rates[0], probs, form.rise, rates[1], ends]
    return np.stack([*columns, form.fall_scale, form.rise_scale], axis=1)


def _sides(probs: Floats, form: Form, more: int) -> Singles:
    """Return p, u and t, and more that never move."""
    still = np.zeros((3, more))
    still[0] = 1.0
    # Rather more than they are than nothing: who seems to be ahead is looked at again.
    least = np.finfo(np.float32).tiny
    p, u = np.maximum(probs, least), np.where(form.rise > 0.0, np.maximum(form.rise, least), 0.0)
    with np.errstate(over="ignore"):
        return np.hstack([np.stack([p, u, form.rise_scale]), still]).astype(np.float32)
