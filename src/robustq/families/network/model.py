"""A Bayesian network over the class and the features: p(c, f) = p(c | f_pa) Π p(f_i | c, f_pa)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from robustq.core.engine import Reading
from robustq.core.evidence import (
    CLASS,
    NONE,
    PRODUCT,
    SUM,
    VALUE,
    Evidence,
    split_evidence,
)
from robustq.core.frequency import by_frequency
from robustq.core.keeping import Keeper
from robustq.core.products import Products, ProductTables
from robustq.core.quantified import Ranking
from robustq.exceptions import UnsupportedError
from robustq.tables import Rows

from .elimination import eliminate
from .local_models import FEATURES, PARTS, PRIOR, NetworkLocals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robustq.arrays import Bools, Codes, Floats, Indices
    from robustq.core.neighbourhoods import Perturbed
    from robustq.core.quantified import Quantified

    from .structure import Structure

__all__ = ["FEATURES", "PARTS", "PRIOR", "Network"]

BITS_PER_LOG = 1.0 / np.log(2.0)


@dataclass(frozen=True, eq=False)
class Network:
    """The parameters of the model, as flat arrays.

    Attributes
    ----------
    structure : Structure
    class_probs : ndarray of shape (configurations, classes)
        p(class | its parents); one configuration if it has none.
    feature_probs : ndarray
        p(category | parents) of all features, flat: see `Wiring`.
    class_rows : ndarray of shape (configurations,)
        The weight of the rows behind each; NaN where nothing was counted.
    feature_rows : ndarray
        The same for each row of the features' tables, the classes side by side.
    names : tuple of str
        What the features are called, for messages; a model may do without.
    """

    structure: Structure
    class_probs: Floats
    feature_probs: Floats
    class_rows: Floats
    feature_rows: Floats
    names: tuple[str, ...] = ()

    default_parts: ClassVar[tuple[str, ...]] = PARTS
    has_numbers: ClassVar[bool] = False
    leaf_parts: ClassVar[tuple[int, ...]] = ()
    merges_rows: ClassVar[bool] = False
    depth: ClassVar[int] = 2

    def table(self, feature: int) -> Floats:
        """Return the table of a feature: parents, itself, then the class (or one)."""
        offsets = self.structure.wiring.offsets
        flat = self.feature_probs[offsets[feature] : offsets[feature + 1]]
        return flat.reshape(self.structure.shape(feature))

    def rows_of(self, feature: int) -> Floats:
        """Return the rows behind the table of a feature: parents, then the class (or one)."""
        offsets = self.structure.wiring.row_offsets
        shape = self.structure.shape(feature)
        flat = self.feature_rows[offsets[feature] : offsets[feature + 1]]
        return flat.reshape(*shape[:-2], shape[-1])

    @cached_property
    def by_frequency(self) -> Indices:
        """The positions of the classes, the most frequent one first."""
        missing = np.full((1, len(self.structure.sizes)), -1, dtype=np.int32)
        with np.errstate(under="ignore"):
            return by_frequency(np.exp(self.log_joint(Rows(missing, np.empty((1, 0))))[0]))

    @cached_property
    def _extended(self) -> tuple[Floats, Floats]:
        """The tables of the class and the features, as kernels read them."""
        from robustq.core import _joint_kernels  # noqa: PLC0415 (numba, when it is needed)

        return _joint_kernels.extend(self.class_probs.ravel(), self.feature_probs)

    @cached_property
    def _repeated(self) -> tuple[Codes, Codes, Codes]:
        """The wiring, for as many rows as kernels look at at once."""
        from robustq.core import _joint_kernels  # noqa: PLC0415 (numba, when it is needed)

        return self.structure.repeat(_joint_kernels.ROWS)

    @cached_property
    def locals(self) -> NetworkLocals:
        """The local mass functions."""
        return NetworkLocals(self)

    def to_circuit(self) -> dict[str, Any]:
        """Return the same as the nodes of a circuit, if features form trees."""
        from .unrolling import unroll  # noqa: PLC0415 (needed here only)

        return unroll(self)

    # Rows

    def log_joint(self, rows: Rows) -> Floats:
        """Return log p(c, f), (rows, classes); missing features are summed out."""
        return self._locate(rows).joint

    def read(self, rows: Rows) -> Reading:
        """Return log p(c, f), and rows without gaps that matter as products."""
        found = self._locate(rows)
        whole = np.flatnonzero(~found.gap)
        shapes: list[Any] = []
        many = bool(self.structure.class_parents)
        priors = np.unique(found.prior_row[whole] if many else found.prior_row[whole[:1]])
        for prior in priors.tolist():
            where = whole[found.prior_row[whole] == prior] if many else whole
            cells, joint, ranking = found.cells, found.joint, found.ranking
            if len(where) < len(rows):
                cells, joint = (np.ascontiguousarray(each[where]) for each in (cells, joint))
                ranking = None
            products = Products(
                *(self._product_tables(prior), cells, joint, ranking or Ranking.of(joint)),
                *(self._keeper(prior), not found.others.shape[1]),
            )
            shapes.append((where, self._guard(products, found.others[where])))
        return Reading(found.joint, shapes, found.check, found.ranking)

    def _guard(self, products: Products, others: Codes) -> Products | Guarded:
        if not others.shape[1]:
            return products
        return Guarded(products, others, self.feature_probs, self._cell_rows)

    def _locate(self, rows: Rows) -> _Located:
        from robustq.core import _joint_kernels  # noqa: PLC0415 (numba, when it is needed)

        from . import _network_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        structure = self.structure
        codes = np.ascontiguousarray(rows.codes, dtype=np.int32)
        if structure.alone.any():
            # The only value there is: as a parent it is known, and as a child a factor of 1.
            codes = np.where(structure.alone & (codes < 0), np.int32(0), codes)
        count, features = codes.shape
        prior_row = self._find_prior_rows(codes)
        wide = 0 if structure.tied_to_class.all() else features
        cells, others = np.empty((count, features), np.int32), np.empty((count, wide), np.int32)
        gap, joint = np.empty(count, dtype=bool), np.empty((count, structure.classes))
        ranking = Ranking.empty(count)
        repeated = self._repeated
        _network_kernels.read(
            *(codes, codes.ravel(), *structure.wiring[:5], structure.alone),
            *(structure.tied_to_class, prior_row, *self._extended),
            *(structure.is_plain, *repeated),
            *(np.empty(features, dtype=np.int64), np.zeros_like(repeated[0])),
            _joint_kernels.make_room(structure.classes),
            *(cells, cells.ravel(), others, gap, joint, *ranking.arrays),
        )
        found = _Located(self, codes, prior_row, cells, others, gap, joint, ranking)
        if gap.any():
            found.fill()
            found.ranking = None  # who leads there remains to be seen
        return found

    def _find_prior_rows(self, codes: Codes) -> Codes:
        if not self.structure.class_parents:
            return np.zeros(len(codes), dtype=np.int32)
        own = codes[:, list(self.structure.class_parents)]
        there = own.astype(np.int64) @ self.structure.class_steps
        return np.where((own >= 0).all(axis=1), there, -1).astype(np.int32)

    def reach(
        self,
        rows: Rows,
        *,
        fold: bool = False,  # noqa: ARG002 (there is little to fold)
    ) -> Iterator[tuple[slice, Evidence]]:
        """Yield what rows reach: a sum over the classes of products, each with an indicator.

        Where sums over missing features would not split, p(f | c) is one number that nobody moves.
        """
        found = self._locate(rows)
        if found.tangled is not None and (found.tangled >= 0).any():
            apart = found.tangled < 0
            for start in range(len(rows)):
                # One by one: there are few of them, near ties.
                block = slice(start, start + 1)
                if apart[start]:
                    yield block, found.lay(block)
                else:
                    yield block, _fold(found.joint[block])
            return
        counts = found.count_nodes()
        for block in split_evidence(counts):
            yield block, found.lay(block)

    # What kernels read

    @cached_property
    def _keepers(self) -> Keeper:
        return Keeper()

    def _keeper(self, prior: int) -> Keeper:
        return self._keepers.find(("keeper", prior), Keeper)

    @cached_property
    def _cell_rows(self) -> Floats:
        """The rows behind each cell of the features' tables."""
        structure = self.structure
        made = [np.zeros(0)]
        for i in range(len(structure.sizes)):
            rows = np.expand_dims(self.rows_of(i), -2)
            made.append(np.broadcast_to(rows, structure.shape(i)).ravel())
        return np.concatenate(made)

    @cached_property
    def _owner(self) -> Indices:
        offsets = self.structure.wiring.offsets
        return np.repeat(np.arange(len(self.structure.sizes)), np.diff(offsets))

    def _product_tables(self, prior: int) -> ProductTables:
        return ProductTables(
            *(self.class_probs[prior], self.feature_probs, float(self.class_rows[prior])),
            *(self._cell_rows, self._owner, self.structure.alone),
            parts=(PRIOR, FEATURES),
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


@dataclass(eq=False)
class _Located:
    """Where the codes of rows stand in the tables of a network."""

    model: Network
    codes: Codes
    prior_row: Codes
    cells: Codes
    others: Codes
    gap: Bools
    joint: Floats
    ranking: Ranking | None = None
    tangled: Codes | None = None

    @cached_property
    def states(self) -> Codes:
        """For each row and feature: left out, seen, or summed over."""
        return self._sort()

    def _sort(self) -> Codes:
        from . import _gap_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        structure, wiring = self.model.structure, self.model.structure.wiring
        order = np.array([i for i in structure.order if i >= 0], dtype=np.int32)
        states = np.empty(self.codes.shape, dtype=np.int32)
        self.tangled = np.empty(len(self.codes), dtype=np.int32)
        _gap_kernels.sort_cells(
            *(self.codes, order, wiring.starts, wiring.parents),
            *(np.array(structure.class_parents, dtype=np.int32), structure.tied_to_class),
            *(structure.alone, states, self.tangled),
        )
        return states

    def fill(self) -> None:
        """Find log p(c, f) of rows with gaps: by what they reach, or by variable elimination."""
        from . import _gap_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        states = self.states
        assert self.tangled is not None  # noqa: S101 (it comes with them)
        apart = self.take(np.flatnonzero(self.gap & (self.tangled < 0)))
        for block in split_evidence(apart.count_nodes()):
            e = apart.lay(block)
            _gap_kernels.evaluate(
                *(e.starts, e.op, e.arity, e.p, e.extra, e.slot, self.joint.shape[1]),
                apart.joint[block],
            )
        self.joint[self.gap & (self.tangled < 0)] = apart.joint
        rest = np.flatnonzero(self.gap & (self.tangled >= 0))
        if len(rest):
            self.joint[rest] = eliminate(self.model, self.codes[rest], states[rest])

    def take(self, rows: Indices) -> _Located:
        """Return some of the rows."""
        part = _Located(
            *(self.model, self.codes[rows], self.prior_row[rows], self.cells[rows]),
            *(self.others[rows], self.gap[rows], self.joint[rows]),
        )
        part.states  # noqa: B018 (makes `tangled` too)
        return part

    def check(self, perturbed: Perturbed) -> None:
        """Raise where a missing cell would let local models stand in several places."""
        if self.tangled is None or not (moves := (self.tangled >= 0)).any():
            return
        row = int(np.flatnonzero(moves)[0])
        feature, structure = int(self.tangled[row]), self.model.structure
        if perturbed.parts == (PRIOR,) and not perturbed.features:
            own = self.prior_row[moves]
            if (own >= 0).all():
                return
        name = repr(self.model.names[feature]) if self.model.names else f"feature {feature}"
        why = (
            "it is a parent of the class"
            if feature in structure.class_parents
            else "local models that hang on it would then stand in several places at once, and the "
            "smallest perturbation no longer splits"
        )
        msg = (
            f"a cell of {name} is missing, and this structure gives such a row no exact "
            f'robustness: {why}. Fill the cell, take parts="posterior" or parts="joint", or a '
            'structure of one feature as parent at most ("naive", "tan", "fan") or "aode"'
        )
        raise UnsupportedError(msg)

    def _nodes(self, block: slice, ends: Indices, columns: Any, *, writes: bool) -> None:
        from . import _gap_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        model = self.model
        _gap_kernels.lay(
            *(self.codes[block], self.states[block], self.prior_row[block]),
            *(model.structure.tied_to_class, model.class_probs, model.class_rows),
            *(*model.structure.wiring, model.feature_probs, model.feature_rows),
            *(writes, ends, *columns),
        )

    def count_nodes(self) -> Indices:
        """Return how many nodes each row has."""
        ends = np.zeros(len(self.codes) + 1, dtype=np.int64)
        nothing = Evidence.empty(np.zeros(1, dtype=np.int64))[1:]
        self._nodes(slice(None), ends, nothing, writes=False)
        return np.diff(ends)

    def lay(self, block: slice) -> Evidence:
        """Return what a block of rows reaches."""
        part = self.codes[block]
        ends = np.zeros(len(part) + 1, dtype=np.int64)
        nothing = Evidence.empty(np.zeros(1, dtype=np.int64))[1:]
        self._nodes(block, ends, nothing, writes=False)
        evidence = Evidence.empty(ends)
        self._nodes(block, np.empty_like(ends), evidence[1:], writes=True)
        return evidence


def _fold(joint: Floats) -> Evidence:
    """Return one row whose p(c, f) are numbers."""
    classes = joint.shape[1]
    evidence = Evidence.empty(np.array([0, 3 * classes + 1]))
    with np.errstate(over="ignore", under="ignore"):
        power = np.floor(np.where(np.isfinite(joint[0]), joint[0], 0.0) * BITS_PER_LOG)
        mantissa = np.exp(joint[0] - power / BITS_PER_LOG)
    label = np.arange(classes)
    for column, indicator, value, product, root in (
        (evidence.op, CLASS, VALUE, PRODUCT, SUM),
        (evidence.arity, 0, 0, 2, classes),
        (evidence.p, 1.0, mantissa, 1.0, 1.0),
        (evidence.extra, -1, power, 0, 0),
        (evidence.local, NONE, NONE, NONE, NONE),
        (evidence.slot, label, 0, label, 0),
        (evidence.part, NONE, NONE, NONE, NONE),
        (evidence.feature, NONE, NONE, NONE, NONE),
        (evidence.rows, np.nan, np.nan, np.nan, np.nan),
    ):
        column[0:-1:3], column[1:-1:3], column[2:-1:3], column[-1] = indicator, value, product, root
    return evidence


@dataclass(frozen=True, eq=False)
class Guarded:
    """Products beside features that do not hang on the class: they cancel, but must not vanish.

    Attributes
    ----------
    products : Products
    others : ndarray of shape (rows, features)
        Where the probabilities of the other features stand, −1 where there is none.
    probs, rows : ndarray
        The tables of the features, and the rows behind each cell.
    """

    products: Products
    others: Codes
    probs: Floats
    rows: Floats

    def fits(self, perturbed: Perturbed) -> bool:
        """Tell whether the kernel knows a neighbourhood."""
        return self.products.fits(perturbed)

    def solve(self, perturbed: Perturbed, found: Quantified) -> tuple[Floats, Indices]:
        """Return x and the tipping class; x is NaN where something vanishes before."""
        x, tipping = self.products.solve(perturbed, found)
        size = self.size_of(perturbed, x)
        there = (self.others >= 0) & np.isfinite(size)[:, None]
        row, feature = np.nonzero(there & self._moves(perturbed))
        cell = self.others[row, feature]
        sizes, counted = size[row], np.ones(len(row), dtype=bool)
        if perturbed.sizes == "rows":
            counted = ~np.isnan(self.rows[cell])
            sizes = perturbed.ball.local_size(sizes, np.where(counted, self.rows[cell], 1.0))
        low = np.asarray(perturbed.ball.lower_probability(self.probs[cell], sizes))
        x[row[counted & (low <= 0.0)]] = np.nan
        return x, tipping

    def _moves(self, perturbed: Perturbed) -> Bools:
        every = np.arange(self.others.shape[1])
        return np.isin(every, perturbed.features) | (FEATURES in perturbed.parts)

    def size_of(self, perturbed: Perturbed, x: Floats) -> Floats:
        """Return the sizes that belong to x."""
        return self.products.size_of(perturbed, x)
