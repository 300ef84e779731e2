"""What all classifiers do with tables: they become rows, which a model looks at in blocks."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from robustq import __version__
from robustq.blocks import count_cores, for_each_block
from robustq.core.neighbourhoods import read_all
from robustq.exceptions import RobustqError, UnknownValueWarning, warn_caller
from robustq.learning import folds
from robustq.tables import UNKNOWN, Encoding, Kinds, Rows, Table
from robustq.tables.single_rows import read_single_row
from robustq.texts import make_visible, shorten

from .parameters import is_count, require
from .remarks import describe_unknown, looks_for_mistakes, name_counts, warn_of_remarks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from robustq.arrays import Floats, Indices
    from robustq.core.neighbourhoods import Bound, Neighbourhood
    from robustq.learning.surveys import Survey

__all__ = ["FittedModel", "NotFittedError", "encode", "fit_cache", "require_fitted"]

BLOCK_ROWS = 1 << 13
BLOCK_CELLS = 1 << 17  # numbers that are found for the rows of a block: they stay in the cache
FEWEST_ROWS = 1 << 7
FEWEST_KINDS = 1 << 10  # that a thread is given


class NotFittedError(RobustqError, SklearnNotFittedError):
    """A model was used before it was fitted."""


class FittedModel:
    """A model, how it understands tables, and how its rows are looked at."""

    model_: Any
    encoding_: Encoding
    classes_: np.ndarray[Any, Any]
    categorical: Any
    numeric: Any
    handle_unknown: str

    def _set_model(self, model: Any, encoding: Encoding, classes: np.ndarray[Any, Any]) -> None:
        self.model_ = model
        self._set_encoding(encoding, classes)

    # From tables to rows

    def _arrange(self, X: Any) -> Table:
        self._require_fitted()
        row = read_single_row(X, self.encoding_)
        if row is not None:
            return row
        return self.encoding_.arrange(Table.read(X), type(self).__name__)

    def _require_fitted(self) -> None:
        require_fitted(self, "encoding_")

    def _learn_encoding(
        self,
        table: Table,
        weights: Floats,
        bins: int | None,
        classes: np.ndarray[Any, Any] | None = None,
        labels: Indices | None = None,
        *,
        tails: bool = False,
    ) -> Encoding:
        """Return how a table is understood; warn of what looks like a mistake."""
        encoding = Encoding.learn(
            table,
            weights,
            bins=bins,
            tails=tails,
            categorical=() if self.categorical is None else self.categorical,
            numeric=() if self.numeric is None else self.numeric,
            labels=labels if looks_for_mistakes() else None,
            remarks=looks_for_mistakes(),
        )
        if not looks_for_mistakes():
            return encoding
        counts = None
        if classes is not None and labels is not None:
            counts = np.bincount(labels, minlength=len(classes))
        warn_of_remarks(encoding, classes, counts, stacklevel=4)
        return encoding

    @property
    def _learns_from_parts(self) -> bool:
        """Whether it can learn from parts of a table: see `families.parted`."""
        return False

    def _learns_together(self, survey: Survey) -> bool:
        """Tell whether parts of a table are brought together: there are few rows, or must be."""
        return survey.total <= folds.FEW

    def _note_training(self, rows: int) -> None:
        """Keep what a model file tells about the training."""
        self.training_ = {
            "rows": rows,
            "robustq": __version__,
        }

    def _set_encoding(self, encoding: Encoding, classes: np.ndarray[Any, Any]) -> None:
        self.classes_ = classes
        self.encoding_ = encoding
        self.n_features_in_ = len(encoding.columns)
        if encoding.named:
            self.feature_names_in_ = np.array(encoding.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _map(
        self,
        X: Any,
        formula: Callable[[Rows], np.ndarray[Any, Any]],
        dtype: Any = np.float64,
    ) -> Any:
        """Apply a formula to the rows of X, block by block."""
        table = self._arrange(X)
        # An empty block shows the shape of what comes.
        shape = formula(Rows.empty(0, table.width, len(self.encoding_.numeric))).shape[1:]

        def apply(block: slice, rows: Rows) -> None:
            out[block] = formula(rows)

        if self.model_.merges_rows:
            rows, unknown = self._encode(table)
            kinds = Kinds.of(rows)
            out = np.empty((len(kinds), *shape), dtype=dtype)
            self._for_each_kind(kinds, apply)
            out = out if kinds.all_differ else out[kinds.twins]
        else:
            out = np.empty((table.rows, *shape), dtype=dtype)
            unknown = self._for_each_block(table, apply, fit_cache(len(self.classes_)))
        self._report_unknown(table, unknown)
        return out

    def _encode(self, table: Table) -> tuple[Rows, Indices]:
        """Return all rows at once, and how many values of each column are unknown."""
        rows = Rows.empty(table.rows, table.width, len(self.encoding_.numeric))
        return rows, self._for_each_block(table, rows.fill)

    def _for_each_kind(self, kinds: Kinds, work: Callable[[slice, Rows], None]) -> None:
        """Call `work` with blocks of rows that differ."""
        # Enough blocks for all threads; large ones, since each reads the whole model once.
        share = -(-len(kinds) // (self._threads() or count_cores()))
        block_rows = min(self._rows_at_once(kinds.rows), max(FEWEST_KINDS, share))
        for_each_block(
            lambda block: work(block, kinds.take(block)), len(kinds), block_rows, self._threads()
        )

    def _rows_at_once(self, rows: Rows) -> int:  # noqa: ARG002 (some models ask what they hold)
        """Return how many rows to look at at once, of these."""
        return BLOCK_ROWS

    def _for_each_block(
        self, table: Table, work: Callable[[slice, Rows], None], block_rows: int = BLOCK_ROWS
    ) -> Indices:
        """Call `work` with blocks of encoded rows; return how many values are unknown."""
        unknown = np.zeros(table.width, dtype=np.int64)
        lock = threading.Lock()

        def read_block(block: slice) -> None:
            part = table.slice(block)
            rows = self.encoding_.encode(part)
            if rows.codes.min(initial=0) <= UNKNOWN:
                strange = rows.codes == UNKNOWN
                if self.handle_unknown == "error":
                    self.encoding_.refuse_unknown(part, strange, block.start)
                with lock:
                    unknown[:] += strange.sum(axis=0)
            work(block, rows)

        for_each_block(read_block, table.rows, block_rows, self._threads())
        return unknown

    def _threads(self) -> int | None:
        """Return how many threads to use, None for all cores."""
        given = getattr(self, "n_jobs", None)
        return int(given) if given is not None and is_count(given, 1) else None

    def _check_jobs(self) -> None:
        given = getattr(self, "n_jobs", None)
        valid = given is None or is_count(given, 1) or is_count(given, -1, -1)
        require("n_jobs", given, valid, "at least 1, or −1 or None for all cores")

    def _report_unknown(self, table: Table, counts: Indices) -> None:
        found = name_counts(table, counts)
        if not found:
            return
        msg = shorten(make_visible(describe_unknown(found)))
        warn_caller(UnknownValueWarning(msg, found))

    def _bind(self, neighbourhoods: Sequence[Neighbourhood]) -> list[Bound]:
        names = self.encoding_.names
        return [one.bind(self.model_, names) for one in read_all(neighbourhoods)]


def require_fitted(estimator: Any, attribute: str) -> None:
    """Raise if an estimator lacks what fit would have given it."""
    if not hasattr(estimator, attribute):
        msg = (
            f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' with "
            "appropriate arguments before using this estimator."
        )
        raise NotFittedError(msg)


def encode(encoding: Encoding, table: Table, threads: int | None = None) -> Rows:
    """Return all rows of a table at once, to learn from them."""
    rows = Rows.empty(table.rows, table.width, len(encoding.numeric))
    for_each_block(
        lambda block: rows.fill(block, encoding.encode(table.slice(block))),
        table.rows,
        BLOCK_ROWS,
        threads,
    )
    return rows


def fit_cache(found: int) -> int:
    """Return how many rows to look at at once, where so many numbers are found for each."""
    return min(BLOCK_ROWS, max(FEWEST_ROWS, BLOCK_CELLS // found))
