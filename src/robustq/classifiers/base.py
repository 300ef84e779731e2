"""What all classifiers share: this class owns every public method, a family is a few hooks."""

from __future__ import annotations

import itertools
import warnings
from abc import ABC, abstractmethod
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from robustq import __version__
from robustq.blocks import for_each_block
from robustq.exceptions import InputError, RobustqError, UnknownValueWarning
from robustq.perturbations import Perturbation, get
from robustq.quantification.assessment import Assessment
from robustq.quantification.quantified import Quantified
from robustq.tables import UNKNOWN, Encoding, Rows, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import ArrayLike

    from robustq.arrays import Bools, Floats, Indices

__all__ = [
    "DEFAULT_PERTURBATIONS",
    "GenerativeClassifier",
    "NotFittedError",
    "encode",
    "ignoring_unknown_values",
    "require_fitted",
]

DEFAULT_PERTURBATIONS: tuple[str, ...] = ("epsilon", "tv", "chi2")

BLOCK_ROWS = 1 << 13
# The general path holds a few arrays of (rows, classes, features) at a time.
GENERAL_BLOCK_CELLS = 1 << 20


class NotFittedError(RobustqError, SklearnNotFittedError):
    """A model was used before it was fitted."""


class GenerativeClassifier(ClassifierMixin, BaseEstimator, ABC):
    """A classifier with a joint distribution p(c, f).

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only where the table had names.
    training_ : dict
        The number of rows, the date and the version of robustq; see `save`.
    encoding_ : Encoding
        How columns are understood: categories, or bins of numbers.
    """

    handle_unknown: str
    categorical: Sequence[str | int] | None
    numeric: Sequence[str | int] | None
    classes_: np.ndarray[Any, Any]
    encoding_: Encoding
    training_: dict[str, Any]

    # What a family gives

    @abstractmethod
    def _log_joint(self, rows: Rows) -> Floats:
        """Return log p(c, f), (rows, classes)."""

    @abstractmethod
    def _quantify(self, rows: Rows, balls: Sequence[Perturbation]) -> Quantified:
        """Return predictions and their robustness."""

    @abstractmethod
    def _leads(self, rows: Rows, joint: Floats, ahead: Indices, behind: Indices) -> Bools:
        """Tell for each row whether p(ahead, f) > p(behind, f), exactly; `joint` is of the rows."""

    @abstractmethod
    def _margins(
        self, rows: Rows, ahead: Indices, behind: Indices, ball: Perturbation, delta: Floats
    ) -> Floats:
        """Return a number with the sign of E̲[(1_ahead − 1_behind) 1_f]."""

    @abstractmethod
    def _by_frequency(self) -> Indices:
        """Return the classes, the most frequent one first."""

    # Predictions

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """Return log p(c, f) for each row and class; missing features are summed out.

        Parameters
        ----------
        X : frame or array of shape (rows, features)

        Returns
        -------
        ndarray of shape (rows, classes)
        """
        return self._map(X, self._log_joint)

    def predict_log_proba(self, X: Any) -> Floats:
        """Return log p(c | f) for each row and class.

        Parameters
        ----------
        X : frame or array of shape (rows, features)

        Returns
        -------
        ndarray of shape (rows, classes)
            Where p(f) = 0 all classes are equally likely.
        """
        return self._map(X, lambda rows: _condition(self._log_joint(rows)))

    def predict_proba(self, X: Any) -> Floats:
        """Return p(c | f) for each row and class.

        Parameters
        ----------
        X : frame or array of shape (rows, features)

        Returns
        -------
        ndarray of shape (rows, classes)
            Where p(f) = 0 all classes are equally likely.
        """
        return self._map(X, lambda rows: np.exp(_condition(self._log_joint(rows))))

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the most probable label for each row; the first of those that tie.

        A row of probability 0 under every class gets the most frequent label.

        Parameters
        ----------
        X : frame or array of shape (rows, features)

        Returns
        -------
        ndarray of shape (rows,)
        """
        best = self._map(X, lambda rows: self._find_best(self._log_joint(rows)), dtype=np.intp)
        return self.classes_[best]

    def _find_best(self, joint: Floats) -> Indices:
        impossible = np.isneginf(joint.max(axis=1))
        return np.where(impossible, self._by_frequency()[0], joint.argmax(axis=1))

    # Robustness

    def robustness(self, X: Any, perturbation: str | Perturbation = "tv") -> Floats:
        """Return how large a perturbation flips each prediction.

        Parameters
        ----------
        X : frame or array of shape (rows, features)
        perturbation : str or Perturbation

        Returns
        -------
        ndarray of shape (rows,)
            The smallest size at which the prediction is no longer the only best one: 0
            for a tie, infinite where no size flips it.
        """
        ball = get(perturbation)
        return self._map(
            X,
            lambda rows: self._quantify(rows, [ball]).robustness[0],
            block_rows=self._block_rows([ball]),
        )

    def assess(
        self,
        X: Any,
        perturbations: str | Perturbation | Sequence[str | Perturbation] = DEFAULT_PERTURBATIONS,
    ) -> Assessment:
        """Return for each row the prediction, its probability, its robustness and its rivals.

        Parameters
        ----------
        X : frame or array of shape (rows, features)
        perturbations : str or Perturbation, or a sequence of them

        Returns
        -------
        Assessment
        """
        if isinstance(perturbations, (str, Perturbation)):
            perturbations = [perturbations]
        balls = [get(perturbation) for perturbation in perturbations]
        names = [ball.name for ball in balls]
        if len(set(names)) < len(names):
            msg = f"each perturbation can be named once, got {', '.join(names)}"
            raise InputError(msg)
        found = self.quantify(X, balls)
        return Assessment(
            prediction=self.classes_[found.prediction],
            probability=found.probability,
            runner_up=self._labels_or_none(found.runner_up),
            robustness=dict(zip(names, found.robustness, strict=True)),
            tipping_class={
                name: self._labels_or_none(tipping)
                for name, tipping in zip(names, found.tipping, strict=True)
            },
        )

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file, which `robustq.load` reads.

        The file holds data only: nothing in it can run. It appears when it is complete.

        Parameters
        ----------
        path : path
        """
        from .model_files import save  # noqa: PLC0415 (it knows all classifiers)

        save(self, path)

    def quantify(self, X: Any, balls: Sequence[Perturbation]) -> Quantified:
        """Return what `assess` tells, with the positions of classes instead of labels.

        Parameters
        ----------
        X : frame or array of shape (rows, features)
        balls : sequence of Perturbation

        Returns
        -------
        Quantified
        """
        table = self._arrange(X)
        found = Quantified.empty(len(balls), table.rows)

        def work(block: slice, rows: Rows) -> None:
            found.put(block, self._quantify(rows, balls))

        self._for_each_block(table, work, self._block_rows(balls))
        return found

    def is_robust(
        self,
        X: Any,
        perturbation: str | Perturbation,
        delta: ArrayLike,
    ) -> Bools:
        """Tell whether no perturbation of size delta flips the prediction.

        Parameters
        ----------
        X : frame or array of shape (rows, features)
        perturbation : str or Perturbation
        delta : float or array_like of shape (rows,)

        Returns
        -------
        ndarray of bool, of shape (rows,)
        """
        ball = get(perturbation)
        if self._has_kernel(ball):
            # Exact, also where the margins would drown in rounding.
            robustness = self.robustness(X, ball)
            return self._check_sizes(ball, delta, len(robustness)) < robustness
        return self.credal_predict(X, ball, delta).sum(axis=1) == 1

    def credal_predict(
        self,
        X: Any,
        perturbation: str | Perturbation,
        delta: ArrayLike,
    ) -> Bools:
        """Tell which classes no other class beats for certain at size delta (maximality).

        Parameters
        ----------
        X : frame or array of shape (rows, features)
        perturbation : str or Perturbation
        delta : float or array_like of shape (rows,)

        Returns
        -------
        ndarray of bool, of shape (rows, classes)
            In the order of `classes_`; a row with one True is a robust prediction.
        """
        ball = get(perturbation)
        table = self._arrange(X)
        sizes = self._check_sizes(ball, delta, table.rows)
        out = np.empty((table.rows, len(self.classes_)), dtype=bool)

        def work(block: slice, rows: Rows) -> None:
            out[block] = self._maximal(rows, ball, sizes[block])

        self._for_each_block(table, work, self._general_block_rows())
        return out

    @staticmethod
    def _check_sizes(ball: Perturbation, delta: ArrayLike, rows: int) -> Floats:
        sizes = ball.domain.check(delta)
        if sizes.shape not in ((), (rows,)):
            msg = f"delta must be one size or one for each of {rows} rows, got {sizes.shape}"
            raise InputError(msg)
        return np.broadcast_to(sizes, rows)

    def _maximal(self, rows: Rows, ball: Perturbation, delta: Floats) -> Bools:
        """Tell for each row which classes no other class beats for certain."""
        joint = self._log_joint(rows)
        order = np.argsort(-joint, axis=1, kind="stable")
        maximal = np.ones(joint.shape, dtype=bool)
        # Only who leads without any perturbation can win for certain; the best mostly beats
        # all that can be beaten, and then nobody is left to compare.
        for first, second in itertools.combinations(range(joint.shape[1]), 2):
            ahead, behind = order[:, first], order[:, second]
            some = np.flatnonzero(maximal[np.arange(len(rows)), behind])
            some = some[self._leads(rows[some], joint[some], ahead[some], behind[some])]
            margin = self._margins(rows[some], ahead[some], behind[some], ball, delta[some])
            maximal[some, behind[some]] = margin <= 0.0
        if self._has_kernel(ball):
            # Near a tie the margins drown in rounding; the kernel knows who is alone.
            found = self._quantify(rows, [ball])
            robust = delta < found.robustness[0]
            maximal[robust] = np.arange(joint.shape[1]) == found.prediction[robust, None]
            some = np.flatnonzero(~robust)
            maximal[some, found.prediction[some]] = True
            maximal[some, found.tipping[0, some]] = True
        return maximal

    # From tables to rows

    def _arrange(self, X: Any) -> Table:
        self._require_fitted()
        return self.encoding_.arrange(Table.read(X), type(self).__name__)

    def _require_fitted(self) -> None:
        require_fitted(self, "encoding_")

    def _learn_encoding(self, table: Table, weights: Floats, bins: int | None) -> Encoding:
        return Encoding.learn(
            table,
            weights,
            bins=bins,
            categorical=() if self.categorical is None else self.categorical,
            numeric=() if self.numeric is None else self.numeric,
        )

    def _note_training(self, rows: int) -> None:
        """Keep what a model file tells about the training."""
        self.training_ = {
            "rows": rows,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
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
        block_rows: int | None = None,
    ) -> Any:
        """Apply a formula to the rows of X, block by block."""
        table = self._arrange(X)
        # An empty block shows the shape of what comes.
        shape = formula(Rows.empty(0, table.width, len(self.encoding_.numeric))).shape[1:]
        out = np.empty((table.rows, *shape), dtype=dtype)

        def work(block: slice, rows: Rows) -> None:
            out[block] = formula(rows)

        self._for_each_block(table, work, block_rows or BLOCK_ROWS)
        return out

    def _block_rows(self, balls: Sequence[Perturbation]) -> int:
        if all(self._has_kernel(ball) for ball in balls):
            return BLOCK_ROWS
        return self._general_block_rows()

    def _general_block_rows(self) -> int:
        cells = len(self.classes_) * max(1, len(self.encoding_.columns))
        return int(np.clip(GENERAL_BLOCK_CELLS // cells, 64, BLOCK_ROWS))

    @abstractmethod
    def _has_kernel(self, ball: Perturbation) -> bool:
        """Tell whether the fast path knows a ball."""

    def _for_each_block(
        self, table: Table, work: Callable[[slice, Rows], None], block_rows: int
    ) -> None:
        unknown: list[Indices] = []

        def read(block: slice) -> None:
            part = table.slice(block)
            rows = self.encoding_.encode(part)
            strange = rows.codes == UNKNOWN
            if strange.any():
                if self.handle_unknown == "error":
                    self.encoding_.refuse_unknown(part, strange, block.start)
                unknown.append(strange.sum(axis=0))
            work(block, rows)

        for_each_block(read, table.rows, block_rows, self._threads())
        if unknown:
            self._report_unknown(table, np.sum(unknown, axis=0))

    def _threads(self) -> int | None:
        """Return how many threads to use, None for all cores."""
        return None

    def _report_unknown(self, table: Table, counts: Indices) -> None:
        found = {table.label(i): int(counts[i]) for i in np.flatnonzero(counts).tolist()}
        columns = ", ".join(f"{count:,} in {label}" for label, count in found.items())
        msg = f"values never seen in training, taken as missing: {columns}"
        warnings.warn(UnknownValueWarning(msg, found), stacklevel=5)

    def _labels_or_none(self, positions: Indices) -> np.ndarray[Any, Any]:
        if len(positions) and positions.min() >= 0:
            return self.classes_[positions]
        labels = np.append(self.classes_.astype(object), [None])
        return labels[positions]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags


@contextmanager
def ignoring_unknown_values() -> Iterator[None]:
    """Say nothing about unknown values, where only a part of the rows was learned from."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownValueWarning)
        yield


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


def _condition(joint: Floats) -> Floats:
    """Return log p(c | f) from log p(c, f)."""
    best = joint.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        shifted = joint - best
        log_proba = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return np.where(np.isneginf(best), -np.log(joint.shape[1]), log_proba)
