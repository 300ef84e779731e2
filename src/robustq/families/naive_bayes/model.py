"""The model: p(c, f) = p(c) Π p(f_i | c)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from robustq.core.coupled import Records
from robustq.core.engine import Reading
from robustq.core.evidence import CLASS, FEATURE, NONE, PRODUCT, SUM, Evidence, split_evidence
from robustq.core.frequency import by_frequency
from robustq.core.keeping import Keeper
from robustq.core.products import Products, ProductTables
from robustq.core.quantified import Ranking
from robustq.documents.documents import write_rows
from robustq.tables import MISSING, Rows

from .local_models import FEATURES, PARTS, PRIOR, NaiveBayesLocals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robustq.arrays import Bools, Codes, Floats, Indices
    from robustq.learning.counts import Layout

__all__ = ["NaiveBayes", "log_joint"]


@dataclass(frozen=True, eq=False)
class NaiveBayes:
    """The parameters of the model, as flat arrays.

    Attributes
    ----------
    class_probs : ndarray of shape (classes,)
    feature_probs : ndarray
        p(category | class), flat: see `Layout`.
    layout : Layout
    prior_rows : float
        The weight of the rows behind the prior; NaN if it was given.
    feature_rows : ndarray of shape (features, classes)
        The weight of the rows behind each p(F_i | class); NaN where nothing was counted.
    smoothing : float
        What was added to each count of a category; 0 also where nobody told.
    """

    class_probs: Floats
    feature_probs: Floats
    layout: Layout
    prior_rows: float
    feature_rows: Floats
    smoothing: float = 0.0

    default_parts: ClassVar[tuple[str, ...]] = PARTS
    has_numbers: ClassVar[bool] = False
    leaf_parts: ClassVar[tuple[int, ...]] = ()
    merges_rows: ClassVar[bool] = False  # looking for equal rows takes as long as their products
    depth: ClassVar[int] = 1

    def local_model(self, feature: int) -> Floats:
        """Return p(category | class) of one feature, (categories, classes)."""
        return self.layout.feature(self.feature_probs, feature)

    @cached_property
    def _whole(self) -> bool:
        """Whether what is left out of products is 1, to the last digit."""
        left_out = map(self.local_model, np.flatnonzero(self.alone).tolist())
        return all(bool(np.all(probs == 1.0)) for probs in left_out)

    @cached_property
    def alone(self) -> Bools:
        """Which features have a single category, whose probability is 1 whatever happens."""
        return np.array(self.layout.sizes, dtype=np.int64) == 1

    @cached_property
    def by_frequency(self) -> Indices:
        """The positions of the classes, the most frequent one first."""
        return by_frequency(self.class_probs)

    @cached_property
    def locals(self) -> NaiveBayesLocals:
        """The local mass functions."""
        return NaiveBayesLocals(self)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Rows, Indices]:
        """Return n rows and the positions of their classes."""
        labels = rng.choice(len(self.class_probs), size=n, p=self.class_probs)
        rows = Rows.empty(n, len(self.layout.sizes), 0)
        for feature, size in enumerate(self.layout.sizes):
            probs = self.local_model(feature).T
            for c in np.unique(labels):
                here = labels == c
                drawn = rng.choice(size, size=here.sum(), p=probs[c]) if size else MISSING
                rows.codes[here, feature] = drawn
        return rows, labels

    def log_joint(self, rows: Rows) -> Floats:
        """Return log p(c, f), (rows, classes); missing features are summed out."""
        return _log_joint(rows.codes, self._tables, self.layout)

    def read(self, rows: Rows) -> Reading:
        """Return log p(c, f), and the rows as products."""
        from robustq.core import _joint_kernels  # noqa: PLC0415 (numba, when it is needed)

        classes, offsets = self.layout.classes, self.layout.offsets[:-1]
        joint, ranking = np.empty((len(rows), classes)), Ranking.empty(len(rows))
        cells = np.empty(rows.codes.shape, dtype=np.int32)
        _joint_kernels.read(
            *_joint_kernels.prepare(rows.codes, self._tables, offsets, classes),
            *(cells.ravel(), joint, *ranking.arrays),
        )
        if self.alone.any():
            cells[:, self.alone] = -1  # no ball moves it
        products = Products(
            self._product_tables, cells, joint, ranking, self._keeper, whole=self._whole
        )
        return Reading(joint, [(np.arange(len(rows)), products)], ranking=ranking)

    @cached_property
    def records(self) -> Records:
        """The records that were counted, with what smoothing added, for `idm`."""
        sizes = np.array(self.layout.sizes, dtype=np.float64)
        totals = self.feature_rows + self.smoothing * sizes[:, None]
        totals[self.alone] = np.nan
        return Records(
            *(self.class_probs, self.feature_probs, self.layout.offsets[:-1]),
            *(self.prior_rows, totals),
        )

    @cached_property
    def _tables(self) -> tuple[Floats, Floats, int]:
        """The probabilities, as kernels read them."""
        from robustq.core import _joint_kernels  # noqa: PLC0415 (numba, when it is needed)

        return _joint_kernels.lay_out(self.class_probs, self.feature_probs)

    @cached_property
    def _keeper(self) -> Keeper:
        return Keeper()

    @cached_property
    def _product_tables(self) -> ProductTables:
        sizes, classes = np.array(self.layout.sizes, dtype=np.int64), self.layout.classes
        owner = np.repeat(np.arange(len(sizes)), sizes * classes)
        rows = np.concatenate(
            [
                np.zeros(0),
                *(np.tile(row, size) for row, size in zip(self.feature_rows, sizes, strict=True)),
            ]
        )
        return ProductTables(
            *(self.class_probs, self.feature_probs, self.prior_rows, rows, owner, self.alone),
            parts=(0, 1),
        )

    def reach(
        self,
        rows: Rows,
        *,
        fold: bool = False,  # noqa: ARG002 (there is little to fold)
    ) -> Iterator[tuple[slice, Evidence]]:
        """Yield what rows reach: a sum over the classes of products, each with an indicator."""
        codes = rows.codes
        counts = 1 + self.layout.classes * (2 + (codes >= 0).sum(axis=1))
        for block in split_evidence(counts):
            yield block, self._reach(codes[block], counts[block])

    def _reach(self, codes: Codes, counts: Indices) -> Evidence:
        rows, features = codes.shape
        classes = self.layout.classes
        evidence = Evidence.empty(np.concatenate([[0], np.cumsum(counts)]))
        seen = codes >= 0
        present = seen.sum(axis=1)
        # Each class of a row: an indicator, the features that are there, and their product.
        whole = np.ones((rows, classes, features + 2), dtype=bool)
        whole[:, :, 1:-1] = seen[:, None, :]
        keep = np.concatenate([whole.reshape(rows, -1), np.ones((rows, 1), dtype=bool)], axis=1)
        label = np.arange(classes)[:, None]
        feature = np.arange(features)

        def lay(column: Any, inside: Any, indicator: Any, product: Any, root: Any) -> None:
            table = np.empty((rows, classes, features + 2), dtype=column.dtype)
            table[:, :, 1:-1], table[:, :, 0], table[:, :, -1] = inside, indicator, product
            flat = np.concatenate(
                [table.reshape(rows, -1), np.full((rows, 1), root, dtype=column.dtype)], axis=1
            )
            column[:] = flat[keep]

        lay(evidence.op, FEATURE, CLASS, PRODUCT, SUM)
        lay(evidence.arity, 0, 0, 1 + present[:, None], classes)
        cells = self.layout.offsets[:-1] + np.maximum(codes, 0) * np.int64(classes)
        probs = np.append(self.feature_probs, 1.0)[
            np.minimum(cells[:, None, :] + label, len(self.feature_probs))
        ]
        lay(evidence.p, probs, 1.0, self.class_probs, 1.0)
        lay(evidence.local, 1 + feature * classes + label, -1, 0, -1)
        lay(evidence.slot, codes[:, None, :], label[:, 0], label[:, 0], 0)
        lay(evidence.extra, 0, -1, 0, 0)
        lay(evidence.part, np.where(self.alone, NONE, 1), NONE, 0 if classes > 1 else NONE, NONE)
        lay(evidence.feature, feature, NONE, NONE, NONE)
        lay(evidence.rows, self.feature_rows.T, np.nan, self.prior_rows, np.nan)
        return evidence

    def to_circuit(self) -> dict[str, Any]:
        """Return the same as the nodes of a circuit: a sum over the classes of products."""
        nodes: list[dict[str, Any]] = []
        products = []
        for c in range(self.layout.classes):
            first = len(nodes)
            nodes.append({"class_probs": np.eye(self.layout.classes)[c].tolist(), "part": None})
            for feature, rows in enumerate(self.feature_rows[:, c].tolist()):
                probs = self.local_model(feature)[:, c].tolist()
                told = {"part": FEATURES, "rows": write_rows(rows)}
                nodes.append({"feature": feature, "probs": probs, **told})
            products.append(len(nodes))
            nodes.append({"product": list(range(first, len(nodes)))})
        told = {"part": PRIOR, "rows": write_rows(self.prior_rows)}
        nodes.append({"sum": products, "weights": self.class_probs.tolist(), **told})
        return {"parts": list(PARTS), "root": len(nodes) - 1, "nodes": nodes}

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def log_joint(codes: Codes, class_probs: Floats, feature_probs: Floats, layout: Layout) -> Floats:
    """Return log p(c, f), (rows, classes); missing features are summed out."""
    from robustq.core import _joint_kernels  # noqa: PLC0415 (numba is imported when it is needed)

    return _log_joint(codes, _joint_kernels.lay_out(class_probs, feature_probs), layout)


def _log_joint(codes: Codes, tables: tuple[Floats, Floats, int], layout: Layout) -> Floats:
    from robustq.core import _joint_kernels  # noqa: PLC0415 (numba is imported when it is needed)

    out = np.empty((len(codes), layout.classes))
    _joint_kernels.log_joint(codes, tables, layout.offsets[:-1], out)
    return out
