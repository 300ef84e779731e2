"""Averaged one-dependence estimators: p(c, f) = p(c) · mean_j p(f_j | c) Π p(f_i | c, f_j)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from robustq.core.engine import Reading
from robustq.core.evidence import NONE, TREE, About, Evidence, split_evidence
from robustq.core.frequency import by_frequency
from robustq.core.keeping import Keeper
from robustq.core.means import Means
from robustq.core.products import ProductTables
from robustq.exceptions import InputError
from robustq.learning.counts import Counts
from robustq.memory import require_memory

from .structure import MOST_CELLS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from robustq.arrays import Bools, Codes, Floats, Indices
    from robustq.tables import Rows

__all__ = ["Lead", "NetworkMixture", "PairCounts"]

# How many pseudo-records a table with other parents than the class gets, for each that one
# without them gets: few rows stand behind its rows, and trees of features lose to naive Bayes
# without it.
BACK_OFF = 3.0
PARTS = ("prior", "features", "root")
PRIOR, FEATURES, ROOT = range(3)


@dataclass(frozen=True)
class Lead:
    """Where the cells of the tables stand: one table for each lead j and feature i.

    Attributes
    ----------
    sizes : tuple of int
        How many categories each feature has.
    classes : int
    """

    sizes: tuple[int, ...]
    classes: int

    def require_room(self) -> None:
        """Raise, before anything is made, if the tables would not fit into memory."""
        cells = sum(self.sizes) ** 2 * self.classes
        remedy = "take fewer bins, or fewer columns with many values"
        require_memory(8 * 16 * cells, "the tables of all pairs of features", remedy)
        if cells > MOST_CELLS:
            msg = f"the tables of all pairs have {cells:,} cells, {MOST_CELLS:,} at most: {remedy}"
            raise InputError(msg)

    def shape(self, lead: int, feature: int) -> tuple[int, int, int]:
        """Return values of the lead, of the feature, classes."""
        given = 1 if lead == feature else self.sizes[lead]
        return given, self.sizes[feature], self.classes

    @cached_property
    def offsets(self) -> Indices:
        """Where the table of each lead and feature begins, (leads, features)."""
        return self._starts[0][:-1].reshape(len(self.sizes), len(self.sizes))

    @cached_property
    def row_offsets(self) -> Indices:
        """The same for the rows of the tables."""
        return self._starts[1][:-1].reshape(len(self.sizes), len(self.sizes))

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return int(self._starts[0][-1])

    @property
    def lines(self) -> int:
        """How many rows of tables there are."""
        return int(self._starts[1][-1])

    @cached_property
    def _starts(self) -> tuple[Indices, Indices]:
        sizes = np.array(self.sizes, dtype=np.int64)
        given = np.where(np.eye(len(sizes), dtype=bool), 1, sizes[:, None])
        lines = (given * self.classes).ravel()
        cells = (given * sizes * self.classes).ravel()
        return tuple(np.concatenate([[0], np.cumsum(a)]) for a in (cells, lines))  # type: ignore[return-value]

    def table(self, flat: Floats, lead: int, feature: int) -> Floats:
        """Return a view of one table."""
        start, shape = self.offsets[lead, feature], self.shape(lead, feature)
        return flat[start : start + int(np.prod(shape))].reshape(shape)

    def rows_of(self, flat: Floats, lead: int, feature: int) -> Floats:
        """Return a view of the rows behind one table, (values of the lead, classes)."""
        given, _, classes = self.shape(lead, feature)
        start = self.row_offsets[lead, feature]
        return flat[start : start + given * classes].reshape(given, classes)


@dataclass(frozen=True, eq=False)
class NetworkMixture:
    """The parameters of the model, as flat arrays.

    Attributes
    ----------
    layout : Lead
    class_probs : ndarray of shape (classes,)
    prior_rows : float
        The weight of the rows behind the prior; NaN if it was given.
    min_rows : float
        How often a value must have been seen for its feature to lead.
    lead_rows : ndarray
        How often each value was, feature after feature.
    probs : ndarray
        p(f_j | c) and p(f_i | c, f_j), flat: see `Lead`.
    table_rows : ndarray
        The weight of the rows behind each row of these tables; NaN where nothing was counted.
    """

    layout: Lead
    class_probs: Floats
    prior_rows: float
    min_rows: float
    lead_rows: Floats
    probs: Floats
    table_rows: Floats

    default_parts: ClassVar[tuple[str, ...]] = PARTS[:2]
    has_numbers: ClassVar[bool] = False
    leaf_parts: ClassVar[tuple[int, ...]] = ()
    merges_rows: ClassVar[bool] = False
    depth: ClassVar[int] = 2

    @cached_property
    def by_frequency(self) -> Indices:
        """The positions of the classes, the most frequent one first."""
        return by_frequency(self.class_probs)

    @cached_property
    def _extended(self) -> Floats:
        """The probabilities, as kernels read them."""
        from . import _network_kernels  # noqa: PLC0415 (numba, when it is needed)

        return _network_kernels.extend(self.probs)

    @cached_property
    def locals(self) -> MixtureLocals:
        """The local mass functions."""
        return MixtureLocals(self)

    @cached_property
    def alone(self) -> Bools:
        """Which features have a single category."""
        return np.array(self.layout.sizes, dtype=np.int64) == 1

    @cached_property
    def leads(self) -> Bools:
        """Which values let their feature lead, feature after feature."""
        return (self.lead_rows >= self.min_rows) & (self.lead_rows > 0.0)

    # Rows

    def log_joint(self, rows: Rows) -> Floats:
        """Return log p(c, f), (rows, classes); missing features drop out."""
        return self._locate(rows).joint

    def read(self, rows: Rows) -> Reading:
        """Return log p(c, f), and the rows as means."""
        found = self._locate(rows)
        means = Means(self._product_tables, found.cells, found.terms, found.joint, self._keeper)
        return Reading(found.joint, [(np.arange(len(rows)), means)])

    def _locate(self, rows: Rows) -> Located:
        from . import _mixture_kernels as kernels  # noqa: PLC0415 (numba, when it is needed)

        codes, layout = np.ascontiguousarray(rows.codes, dtype=np.int32), self.layout
        count, features = codes.shape
        cells = np.empty((count, max(features, 1), features), dtype=np.int32)
        terms, joint = np.empty(count, dtype=np.int64), np.empty((count, layout.classes))
        kernels.read(
            *(codes, *self._wiring, self.alone, not self.alone.any(), *self._narrow_wiring),
            *(self.class_probs, self._extended),
            *(cells, terms, joint),
        )
        return Located(codes, cells, terms, joint)

    def reach(
        self,
        rows: Rows,
        *,
        fold: bool = False,  # noqa: ARG002 (there is little to fold)
    ) -> Iterator[tuple[slice, Evidence]]:
        """Yield what rows reach: below each class a mean of products."""
        from . import _mixture_kernels as kernels  # noqa: PLC0415 (numba, when it is needed)

        found, classes = self._locate(rows), self.layout.classes
        seen = (found.codes >= 0).sum(axis=1)
        counts = 1 + classes * (found.terms * (2 + seen) + (found.terms > 1))
        for block in split_evidence(counts):
            evidence = Evidence.empty(np.concatenate([[0], np.cumsum(counts[block])]))
            kernels.lay(
                *(found.codes[block], *self._wiring, self.class_probs, self.prior_rows),
                *(self.probs, self.table_rows, self._line, self.layout.lines, *evidence[1:]),
            )
            yield block, evidence

    # What kernels read

    @cached_property
    def _narrow_wiring(self) -> tuple[Codes, Codes]:
        """Sizes and offsets once more, as codes are."""
        sizes, _, _, offsets = self._wiring
        return sizes.astype(np.int32), offsets.astype(np.int32)

    @cached_property
    def _wiring(self) -> tuple[Any, ...]:
        """Sizes, where the values of each feature begin, which of them lead, and offsets."""
        sizes = np.array(self.layout.sizes, dtype=np.int64)
        own = np.concatenate([[0], np.cumsum(sizes)])
        return sizes, own, self.leads, np.ascontiguousarray(self.layout.offsets)

    @cached_property
    def _keeper(self) -> Keeper:
        return Keeper()

    @cached_property
    def _owner(self) -> Indices:
        """For each cell the feature that it is of."""
        sizes = self.layout.sizes
        counts = [
            np.prod(self.layout.shape(j, i)) for j in range(len(sizes)) for i in range(len(sizes))
        ]
        return np.repeat(np.tile(np.arange(len(sizes)), len(sizes)), counts)

    @cached_property
    def _line(self) -> Indices:
        """For each cell the row of a table that it stands in."""
        sizes, made = self.layout.sizes, [np.zeros(0, dtype=np.int64)]
        for j in range(len(sizes)):
            for i in range(len(sizes)):
                given, size, classes = self.layout.shape(j, i)
                lines = np.arange(given * classes).reshape(given, 1, classes)
                lines = lines + self.layout.row_offsets[j, i]
                made.append(np.broadcast_to(lines, (given, size, classes)).ravel())
        return np.concatenate(made)

    @cached_property
    def _product_tables(self) -> ProductTables:
        return ProductTables(
            *(self.class_probs, self.probs, self.prior_rows, self.table_rows[self._line]),
            *(self._owner, self.alone),
            parts=(PRIOR, FEATURES),
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


class Located(NamedTuple):
    """Where the codes of rows stand: cells of each term, how many terms, and log p(c, f)."""

    codes: Codes
    cells: Codes
    terms: Indices
    joint: Floats


class MixtureLocals:
    """The prior, number 0; then the rows of the tables; then means of so many terms, by classes."""

    parts = PARTS
    on_classes = ()

    def __init__(self, model: NetworkMixture) -> None:
        self._model, self._layout = model, model.layout

    @property
    def wide(self) -> tuple[int, ...]:
        """The parts that weigh more than two children."""
        own = (PRIOR,) if self._layout.classes > 2 else ()
        return (*own, ROOT) if len(self._layout.sizes) > 2 else own

    @property
    def counted(self) -> Bools:
        """For each part, whether rows were counted there."""
        rows = self._model.table_rows
        return np.array([not np.isnan(self._model.prior_rows), not np.isnan(rows).all(), False])

    @property
    def class_table(self) -> Floats:
        """No leaf holds a mass function on the classes."""
        return np.ones((0, self._layout.classes))

    def position(self, local: Indices, slot: Indices) -> Indices:  # noqa: ARG002 (all have all values)
        """Return where values stand among the outcomes: at their codes."""
        return slot

    @cached_property
    def _owner(self) -> Indices:
        """For each row of the tables its first cell, and the feature it is of."""
        first = np.full(self._layout.lines, -1, dtype=np.int64)
        line = self._model._line  # noqa: SLF001 (one family)
        first[line[::-1]] = np.arange(len(line))[::-1]
        return first

    def outcomes(self, local: Indices) -> Indices:
        """Return how many outcomes each has."""
        sizes = np.array(self._layout.sizes, dtype=np.int64)
        last = 1 + self._layout.lines
        classes = self._layout.classes
        found = np.where(local == 0, classes, (local - last) // classes)
        tables = np.flatnonzero((local > 0) & (local < last))
        owner = self._model._owner[self._owner[local[tables] - 1]]  # noqa: SLF001 (one family)
        found[tables] = sizes[owner]
        return found

    def expand(self, local: Indices) -> Floats:
        """Return whole mass functions, all with the same number of outcomes."""
        outcomes = int(self.outcomes(local[:1])[0]) if len(local) else 0
        found = np.full((len(local), outcomes), 1.0 / max(outcomes, 1))
        found[local == 0] = self._model.class_probs if (local == 0).any() else 0.0
        tables = np.flatnonzero((local > 0) & (local < 1 + self._layout.lines))
        first = self._owner[local[tables] - 1]
        cells = first[:, None] + np.arange(outcomes) * self._layout.classes
        found[tables] = self._model.probs[cells]
        return found

    def about(self, local: int) -> About:
        """Return what one is about: a feature given the class and a lead, or the leads."""
        layout = self._layout
        if local == 0:
            return About(NONE, path=("class_probs",))
        if local > layout.lines:
            terms, c = divmod(local - 1 - layout.lines, layout.classes)
            # Where some do not lead, their number alone does not tell which.
            whole = terms == len(layout.sizes)
            leads = tuple((lead,) for lead in range(terms)) if whole else ((),) * terms
            return About(TREE, outcomes=leads, label=c)
        starts = layout.row_offsets.ravel()
        table = int(np.searchsorted(starts, local - 1, side="right")) - 1
        lead, feature = divmod(table, len(layout.sizes))
        value, c = divmod(local - 1 - int(starts[table]), layout.classes)
        own = lead == feature
        # A document has the table of the lead first, and counts the class before the lead.
        place = 0 if own else feature + (feature < lead)
        row = c if own else c * layout.sizes[lead] + value
        return About(
            feature,
            label=c,
            given=() if own else ((lead, (value,)),),
            path=("networks", lead, "tables", place, "probs", row),
        )


@dataclass(frozen=True)
class PairCounts:
    """The weights of rows behind the cells of all tables.

    Attributes
    ----------
    layout : Lead
    values : ndarray
        Flat.
    plain : Counts
        Of categories within classes.
    min_rows : float
    """

    layout: Lead
    values: Floats
    plain: Counts
    min_rows: float

    @classmethod
    def of(
        cls,
        codes: Codes,
        labels: Indices,
        weights: Floats,
        sizes: Sequence[int],
        classes: int,
        min_rows: float,
    ) -> PairCounts:
        """Count rows of codes."""
        from . import _mixture_kernels as kernels  # noqa: PLC0415 (numba, when it is needed)

        layout = Lead(tuple(sizes), classes)
        values = np.zeros(layout.cells)
        codes = np.ascontiguousarray(codes, dtype=np.int32)
        kernels.count(
            *(codes, labels, weights, np.array(sizes, dtype=np.int64)),
            *(np.ascontiguousarray(layout.offsets), classes, values),
        )
        return cls(layout, values, Counts.of(codes, labels, weights, sizes, classes), min_rows)

    def __add__(self, other: PairCounts) -> PairCounts:
        values = self.values + other.values
        return PairCounts(self.layout, values, self.plain + other.plain, self.min_rows)

    def __sub__(self, other: PairCounts) -> PairCounts:
        values = np.maximum(self.values - other.values, 0.0)
        return PairCounts(self.layout, values, self.plain - other.plain, self.min_rows)

    def estimate(self, smoothing: float, class_prior: Floats | None = None) -> NetworkMixture:
        """Return the model that these counts and a smoothing give; see `TableCounts.estimate`."""
        layout, plain = self.layout, self.plain.layout
        prior, flat = self.plain.estimate(smoothing, class_prior)
        probs, rows = np.empty_like(self.values), np.empty(layout.lines)
        for j in range(len(layout.sizes)):
            for i, size in enumerate(layout.sizes):
                counts, given = layout.table(self.values, j, i), plain.feature(flat, i)
                layout.rows_of(rows, j, i)[:] = counts.sum(axis=1)
                if i == j:
                    layout.table(probs, j, i)[:] = given
                    continue
                counts = counts + BACK_OFF * smoothing * size * given
                total = counts.sum(axis=1, keepdims=True)
                shares = counts / np.where(total > 0.0, total, 1.0)
                layout.table(probs, j, i)[:] = np.where(total > 0.0, shares, given)
        seen = [plain.feature(self.plain.values, i).sum(axis=1) for i in range(len(layout.sizes))]
        prior_rows = float(self.plain.classes.sum()) if class_prior is None else np.nan
        return NetworkMixture(
            *(layout, prior, prior_rows, self.min_rows),
            *(np.concatenate([np.zeros(0), *seen]), probs, rows),
        )
