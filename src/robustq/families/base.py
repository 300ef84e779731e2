"""What all classifiers share: this class owns every public method, a family learns its model."""

from __future__ import annotations

import threading
import warnings
from abc import ABC
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from robustq import __version__
from robustq.blocks import count_cores, for_each_block
from robustq.core import engine
from robustq.core.assessment import Assessment
from robustq.core.neighbourhoods import DEFAULT_PERTURBATIONS, check_sizes, read, read_all
from robustq.core.posteriors import bound_posteriors, check_rule, find_sets
from robustq.core.quantified import Quantified
from robustq.exceptions import (
    InputError,
    OtherPredictionWarning,
    RobustqError,
    TableWarning,
    UnknownValueWarning,
    UnsupportedError,
    warn_caller,
)
from robustq.learning import folds
from robustq.tables import MISSING, UNKNOWN, Encoding, Rows, Table, find_distinct, remark_on_classes
from robustq.tables.frames import index_of
from robustq.tables.single_rows import read_single_row
from robustq.texts import make_visible, shorten

from .labels import Scoring
from .parameters import LARGEST_COUNT, is_count, read_random_state, require

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import ArrayLike

    from robustq.arrays import Bools, Floats, Indices
    from robustq.core.neighbourhoods import Bound, Neighbourhood, PerturbationLike
    from robustq.explaining.counterfactuals import Counterfactuals
    from robustq.explaining.explanation import Explanations
    from robustq.explaining.words import Words
    from robustq.learning.surveys import Survey

    from .circuit.classifier import CircuitClassifier

__all__ = [
    "GenerativeClassifier",
    "NotFittedError",
    "describe_endless",
    "describe_unknown",
    "encode",
    "ignoring_unknown_values",
    "learning_quietly",
    "require_fitted",
]

BLOCK_ROWS = 1 << 13
BLOCK_CELLS = 1 << 17  # of rows and classes: what is found for each of them stays in the cache
LEAST_ROWS, FEWEST_ROWS = 1 << 10, 1 << 7


class NotFittedError(RobustqError, SklearnNotFittedError):
    """A model was used before it was fitted."""


class GenerativeClassifier(Scoring, ClassifierMixin, BaseEstimator, ABC):
    """A classifier with a joint distribution p(c, f).

    Where methods take X, a frame or an array, they take a dictionary {column: value} as one row.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only where the table had names.
    training_ : dict
        The number of rows and the version of robustq; see `save`.
    encoding_ : Encoding
        How columns are understood, in words when it is printed: docs/tables.md has the rule.
    """

    handle_unknown: str
    categorical: Sequence[str | int] | None
    numeric: Sequence[str | int] | None
    classes_: np.ndarray[Any, Any]
    encoding_: Encoding
    model_: Any
    training_: dict[str, Any]

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
        return self._map(X, self.model_.log_joint)

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
        return self._map(X, lambda rows: _condition(self.model_.log_joint(rows)))

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
        return self._map(X, lambda rows: np.exp(_condition(self.model_.log_joint(rows))))

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
        best = self._map(X, lambda rows: engine.predict(self.model_, rows), dtype=np.intp)
        return self.classes_[best]

    # The joint distribution

    def log_likelihood(self, X: Any) -> Floats:
        """Return log p(f) for each row: how usual it is, whatever its class.

        Parameters
        ----------
        X : frame or array of shape (rows, features)

        Returns
        -------
        ndarray of shape (rows,)
            Low for outliers; −∞ for rows that the model holds impossible.
        """
        return self._map(X, lambda rows: np.logaddexp.reduce(self.model_.log_joint(rows), axis=1))

    def sample(
        self, n: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> tuple[Any, np.ndarray[Any, Any]]:
        """Draw rows and labels from the joint distribution.

        Parameters
        ----------
        n : int, default 1
        random_state : int or RandomState, optional

        Returns
        -------
        X : pyarrow.Table or ndarray
            A table where the columns have names, an array where they have not. Of a number that
            the model knows by its bin, the middle of that bin, or the edge of an outer one.
        y : ndarray of shape (n,)
        """
        self._require_fitted()
        if not is_count(n, 1):
            msg = f"n must be a whole number from 1 to {LARGEST_COUNT}, got {n!r}"
            raise InputError(msg)
        rng = np.random.default_rng(int(read_random_state(random_state).randint(2**31)))
        rows, labels = self._draw(int(n), rng)
        return self.encoding_.decode(rows), self.classes_[labels]

    def _draw(self, n: int, rng: np.random.Generator) -> tuple[Rows, Indices]:
        """Return n rows and the positions of their classes: one feature after the other.

        A family may know a faster way.
        """
        if self.model_.has_numbers:
            msg = f"{type(self).__name__} cannot draw numbers"
            raise UnsupportedError(msg)
        sizes = self.encoding_.sizes
        rows = Rows.empty(n, len(sizes), 0)
        rows.codes[:] = MISSING
        for feature, size in enumerate(sizes):
            logs = np.empty((n, size))
            for value in range(size):
                rows.codes[:, feature] = value
                logs[:, value] = np.logaddexp.reduce(self.model_.log_joint(rows), axis=1)
            # The largest of logarithms with Gumbel noise is a draw.
            drawn = (logs + rng.gumbel(size=logs.shape)).argmax(axis=1) if size else MISSING
            rows.codes[:, feature] = drawn
        joint = self.model_.log_joint(rows)
        return rows, (joint + rng.gumbel(size=joint.shape)).argmax(axis=1)

    # Robustness

    @property
    def cautions(self) -> tuple[str, ...]:
        """What makes the robustness of this model less than it seems, in words."""
        self._require_fitted()
        return tuple(getattr(self.model_, "cautions", ()))

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts of the model that can be perturbed."""
        self._require_fitted()
        return self.model_.locals.parts

    def robustness(
        self,
        X: Any,
        perturbation: PerturbationLike = "tv",
        *,
        parts: str | Iterable[str] | None = None,
        sizes: str | None = None,
    ) -> Floats:
        """Return how large a perturbation flips each prediction.

        Parameters
        ----------
        X : frame or array of shape (rows, features)
        perturbation : str or Perturbation
            A ball; its name may say more, as in "tv_all", "tv_joint", "tv_rows".
        parts : "all", "joint", "posterior" or names of parts, optional
            What is perturbed: by default what the paper perturbs. See `parts`; "feature:age" are
            all local models of one feature.
        sizes : {"equal", "rows"}, optional
            Whether all local models get the same size, or each by the rows behind it: then a size
            counts records.

        Returns
        -------
        ndarray of shape (rows,)
            The smallest size at which the prediction is no longer the only best one: 0
            for a tie, infinite where no size flips it.
        """
        return self.quantify(X, [read(perturbation, parts, sizes)]).robustness[0]

    def assess(
        self,
        X: Any,
        perturbations: PerturbationLike | Iterable[PerturbationLike] = DEFAULT_PERTURBATIONS,
        *,
        parts: str | Iterable[str] | None = None,
        sizes: str | None = None,
    ) -> Assessment:
        """Return for each row the prediction, its probability, its robustness and its rivals.

        Parameters
        ----------
        X : frame or array of shape (rows, features)
        perturbations : str or Perturbation, or a sequence of them
        parts, sizes : optional
            As in `robustness`; of all perturbations.

        Returns
        -------
        Assessment
        """
        neighbourhoods = read_all(perturbations, parts, sizes)
        table = self._arrange(X)
        found, unknown = self._quantify(table, neighbourhoods)
        self._report_unknown(table, unknown)
        return self._tell(found, neighbourhoods, index_of(X), _name_counts(table, unknown))

    def _tell(
        self,
        found: Quantified,
        neighbourhoods: Sequence[Neighbourhood],
        index: Any,
        unknown: dict[str, int],
    ) -> Assessment:
        """Return what was found in words of the table."""
        names = [neighbourhood.name for neighbourhood in neighbourhoods]
        return Assessment.of(found, names, self.classes_, index=index, unknown=unknown)

    def examine(self, X: Any, neighbourhoods: Sequence[Neighbourhood]) -> tuple[Assessment, Floats]:
        """Return what `assess` does, and log p(c, f), from rows that are encoded once.

        Says nothing about unknown values: that is for whoever asked.
        """
        neighbourhoods = read_all(neighbourhoods)
        table = self._arrange(X)
        rows, unknown = self._encode(table)
        found = self._quantify_rows(rows, self._bind(neighbourhoods))
        joint = np.empty((len(rows), len(self.classes_)))

        def work(block: slice) -> None:
            joint[block] = self.model_.log_joint(rows[block])

        for_each_block(work, len(rows), _fit_cache(len(self.classes_)), self._threads())
        counts = _name_counts(table, unknown)
        return self._tell(found, neighbourhoods, index_of(X), counts), joint

    def quantify(self, X: Any, neighbourhoods: Sequence[Neighbourhood]) -> Quantified:
        """Return what `assess` tells, with the positions of classes instead of labels.

        Parameters
        ----------
        X : frame or array of shape (rows, features)
        neighbourhoods : sequence of Neighbourhood

        Returns
        -------
        Quantified
        """
        table = self._arrange(X)
        found, unknown = self._quantify(table, neighbourhoods)
        self._report_unknown(table, unknown)
        return found

    def count_and_quantify(
        self, X: Any, neighbourhoods: Sequence[Neighbourhood]
    ) -> tuple[Quantified, dict[str, int]]:
        """Return what `quantify` does, and how many values of each column were never seen.

        Says nothing about them: that is for whoever asked.
        """
        table = self._arrange(X)
        found, unknown = self._quantify(table, neighbourhoods)
        return found, _name_counts(table, unknown)

    def _quantify(
        self, table: Table, neighbourhoods: Sequence[Neighbourhood]
    ) -> tuple[Quantified, Indices]:
        bound = self._bind(neighbourhoods)
        if self.model_.merges_rows:
            rows, unknown = self._encode(table)
            return self._quantify_rows(rows, bound), unknown
        found = Quantified.empty(len(bound), table.rows)

        def work(block: slice, rows: Rows) -> None:
            found.put(block, engine.quantify(self.model_, rows, bound))

        # Large blocks, as far as there are enough for all threads: each asks a few questions anew.
        least = _fit_cache(len(self.classes_))
        share = -(-table.rows // (4 * (self._threads() or count_cores())))
        return found, self._for_each_block(table, work, min(4 * least, max(least, share)))

    def _encode(self, table: Table) -> tuple[Rows, Indices]:
        """Return all rows at once, and how many values of each column are unknown."""
        rows = Rows.empty(table.rows, table.width, len(self.encoding_.numeric))
        return rows, self._for_each_block(table, rows.fill)

    def _quantify_rows(self, rows: Rows, bound: Sequence[Bound]) -> Quantified:
        """Return what is found for rows of which each kind is looked at once."""
        firsts, twins = find_distinct(rows.bits)
        differ = len(firsts) == len(rows)
        found = Quantified.empty(len(bound), len(firsts))

        def work(block: slice) -> None:
            part = rows[block] if differ else rows[firsts[block]]
            found.put(block, engine.quantify(self.model_, part, bound, distinct=True))

        # Enough blocks for all threads; large ones, since each reads the whole model once.
        share = -(-len(firsts) // (self._threads() or count_cores()))
        block_rows = min(BLOCK_ROWS, max(LEAST_ROWS, share))
        for_each_block(work, len(firsts), block_rows, self._threads())
        return found if differ else found.take(twins)

    def _bind(self, neighbourhoods: Sequence[Neighbourhood]) -> list[Bound]:
        names = self.encoding_.names
        return [one.bind(self.model_, names) for one in read_all(neighbourhoods)]

    def is_robust(
        self,
        X: Any,
        perturbation: PerturbationLike,
        delta: ArrayLike,
        *,
        parts: str | Iterable[str] | None = None,
        sizes: str | None = None,
    ) -> Bools:
        """Tell whether no perturbation of size delta flips the prediction.

        Parameters
        ----------
        X : frame or array of shape (rows, features)
        perturbation : str or Perturbation
        delta : float or array_like of shape (rows,)
        parts, sizes : optional
            As in `robustness`.

        Returns
        -------
        ndarray of bool, of shape (rows,)
        """
        neighbourhood = read(perturbation, parts, sizes)
        table = self._arrange(X)
        (bound,) = self._bind([neighbourhood])
        given = check_sizes(bound, delta, table.rows)
        found, unknown = self._quantify(table, [neighbourhood])
        self._report_unknown(table, unknown)
        return given < found.robustness[0]

    def credal_predict(
        self,
        X: Any,
        perturbation: PerturbationLike,
        delta: ArrayLike,
        *,
        parts: str | Iterable[str] | None = None,
        sizes: str | None = None,
        rule: str = "maximality",
    ) -> Bools:
        """Tell which classes no other class beats for certain at size delta.

        Parameters
        ----------
        X : frame or array of shape (rows, features)
        perturbation : str or Perturbation
        delta : float or array_like of shape (rows,)
        parts, sizes : optional
            As in `robustness`.
        rule : {"maximality", "interval"}
            A class beats another if it is more probable in every model of that size; or, which
            asks for more, if its lower probability given f is above the other's upper one (see
            `posterior_bounds`).

        Returns
        -------
        ndarray of bool, of shape (rows, classes)
            In the order of `classes_`; a row with one True is a robust prediction.
        """
        check_rule(rule)
        table = self._arrange(X)
        (bound,) = self._bind([read(perturbation, parts, sizes)])
        given = check_sizes(bound, delta, table.rows)
        out = np.empty((table.rows, len(self.classes_)), dtype=bool)

        def work(block: slice, rows: Rows) -> None:
            out[block] = find_sets(self.model_, rows, bound, given[block], rule)

        self._report_unknown(table, self._for_each_block(table, work))
        return out

    def posterior_bounds(
        self,
        X: Any,
        perturbation: PerturbationLike,
        delta: ArrayLike,
        *,
        parts: str | Iterable[str] | None = None,
        sizes: str | None = None,
    ) -> tuple[Floats, Floats]:
        """Return between what p(c | f) lies in all models of size delta.

        Parameters
        ----------
        X : frame or array of shape (rows, features)
        perturbation : str or Perturbation
            Any but `idm`.
        delta : float or array_like of shape (rows,)
        parts, sizes : optional
            As in `robustness`.

        Returns
        -------
        lower, upper : ndarray of shape (rows, classes)
            0 and 1 where p(f) = 0.
        """
        table = self._arrange(X)
        (bound,) = self._bind([read(perturbation, parts, sizes)])
        given = check_sizes(bound, delta, table.rows)
        lower, upper = np.empty((2, table.rows, len(self.classes_)))

        def work(block: slice, rows: Rows) -> None:
            found = bound_posteriors(self.model_, rows, bound, given[block])
            lower[block], upper[block] = found

        self._report_unknown(table, self._for_each_block(table, work))
        return lower, upper

    # Why, and what if

    def explain(
        self,
        X: Any,
        perturbation: PerturbationLike = "tv",
        *,
        parts: str | Iterable[str] | None = None,
        sizes: str | None = None,
    ) -> Explanations:
        """Return for each row what its prediction hangs on, and the nearest model that disagrees.

        Parameters
        ----------
        X : frame or array of shape (rows, features)
        perturbation : str or Perturbation
        parts, sizes : optional
            As in `robustness`.

        Returns
        -------
        Explanations
            A sequence, with a `summary` of all rows; see `Explanation` for what is in each.
        """
        from robustq.explaining.explainer import Findings  # noqa: PLC0415 (only where asked for)
        from robustq.explaining.explanation import Explanations  # noqa: PLC0415

        neighbourhood = read(perturbation, parts, sizes)
        table = self._arrange(X)
        self._bind([neighbourhood])
        found = Findings.empty(self.model_, self._words(), table, neighbourhood)
        self._report_unknown(table, self._for_each_block(table, found.fill))
        return Explanations(found)

    def find_hanging(self, X: Any, perturbation: PerturbationLike = "tv") -> Indices:
        """Return the position of the feature that each prediction hangs on, −1 if there is none.

        It is what `explain` tells, without the rest; says nothing of values never seen.
        """
        from robustq.explaining.explainer import find_hanging  # noqa: PLC0415 (only where asked for)

        table, neighbourhood = self._arrange(X), read(perturbation)
        out = np.empty(table.rows, dtype=np.int64)

        def work(block: slice, rows: Rows) -> None:
            out[block] = find_hanging(self.model_, rows, neighbourhood, self.encoding_)

        self._for_each_block(table, work)
        return out

    def witness(
        self,
        X: Any,
        perturbation: PerturbationLike = "tv",
        *,
        parts: str | Iterable[str] | None = None,
        sizes: str | None = None,
    ) -> Self:
        """Return the nearest model of the same kind that no longer prefers the prediction of a row.

        Each of its local mass functions lies in the ball around the model's own, of the size that
        `robustness` gives; the tipping class is at least as probable as the prediction, up to
        rounding: it ties, or flips.

        Parameters
        ----------
        X : frame or array of shape (1, features)
        perturbation : str or Perturbation
        parts, sizes : optional
            As in `robustness`.

        Returns
        -------
        GenerativeClassifier
            Fitted; it can be saved, scored and explained.

        Raises
        ------
        UnsupportedError
            If nothing flips the prediction, or no model of the same kind does.
        """
        from .witnesses import make_witness  # noqa: PLC0415 (it knows all classifiers)

        neighbourhood = read(perturbation, parts, sizes)
        (bound,) = self._bind_fitted([neighbourhood])
        return make_witness(self, self._encode_one(X), bound, neighbourhood.name)

    def counterfactuals(
        self,
        X: Any,
        perturbation: PerturbationLike = "tv",
        *,
        max_changes: int = 2,
        limit: int | None = 20,
        change: Sequence[str | int] | None = None,
        keep: Sequence[str | int] | None = None,
        parts: str | Iterable[str] | None = None,
        sizes: str | None = None,
    ) -> Counterfactuals:
        """Return the smallest changes of values that flip the prediction of a row.

        Parameters
        ----------
        X : frame or array of shape (1, features)
        perturbation : str or Perturbation
            What the robustness of the new predictions is measured by.
        max_changes : int, default 2
            How many cells may change. All changes of one and two cells are tried; of more, some:
            `note` and `exhaustive` of the result say so.
        limit : int, optional
            How many to return at most; None for all.
        change, keep : sequence of str or int, optional
            Columns that may change, by default all; and columns that may not.
        parts, sizes : optional
            As in `robustness`.

        Returns
        -------
        Counterfactuals
            The fewest changes first, then those whose result is most robust. Numbers change among
            the bins and thresholds that the model knows.
        """
        from robustq.explaining.counterfactuals import Search, choose_columns  # noqa: PLC0415

        require("max_changes", max_changes, is_count(max_changes, 1), "at least 1")
        require("limit", limit, limit is None or is_count(limit, 1), "at least 1, or None")
        (bound,) = self._bind_fitted([read(perturbation, parts, sizes)])
        columns = choose_columns(self.encoding_, change, keep)
        row = self._encode_one(X)
        search = Search(self.model_, self.encoding_, self.classes_, row, bound, columns)
        return search.find(int(max_changes), None if limit is None else int(limit))

    def _words(self) -> Words:
        from robustq.explaining.words import Words  # noqa: PLC0415 (only where asked for)

        target = getattr(self, "training_", {}).get("target", "class")
        return Words(self.encoding_, self.classes_, str(target))

    def _bind_fitted(self, neighbourhoods: Sequence[Neighbourhood]) -> list[Bound]:
        self._require_fitted()
        return self._bind(neighbourhoods)

    def _encode_one(self, X: Any) -> Rows:
        """Return the one row of a table."""
        table = self._arrange(X)
        if table.rows != 1:
            msg = f"X must be a table of one row, got {table.rows:,}: as in X.iloc[[0]] or X[:1]"
            raise InputError(msg)
        rows: list[Rows] = []
        unknown = self._for_each_block(table, lambda _, block: rows.append(block))
        self._report_unknown(table, unknown)
        return rows[0]

    # Plain data and files

    def to_dict(self) -> dict[str, Any]:
        """Return the model as data that fits into JSON, exactly."""
        from .files import describe  # noqa: PLC0415 (it knows all classifiers)

        return describe(self)

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Self:
        """Return the classifier that `to_dict` described.

        Raises
        ------
        InputError
            If the document is not such a description; the message says where.
        """
        from .files import restore  # noqa: PLC0415 (it knows all classifiers)

        return restore(document, cls)

    def to_circuit(self) -> CircuitClassifier:
        """Return the model as a circuit, equal in every probability and robustness.

        Raises
        ------
        UnsupportedError
            If it is none: where local models would stand in several places.
        """
        from .circuit.classifier import as_circuit  # noqa: PLC0415 (it is such a classifier)

        self._require_fitted()
        return as_circuit(self)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file, which `robustq.load` reads.

        The file holds data only: nothing in it can run. It appears when it is complete.

        Parameters
        ----------
        path : path
        """
        from .files import save  # noqa: PLC0415 (it knows all classifiers)

        save(self, path)

    def _suit(self, model: Any) -> None:
        """Take over what a model from outside decides, or refuse it."""

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
            labels=labels if _remarking.get() else None,
            remarks=_remarking.get(),
        )
        if not _remarking.get():
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

    def _fit_named(self, X: Any, y: Any, sample_weight: Any, target: str) -> None:  # noqa: ARG002
        """Fit, where the target has a name; most models do not ask for it."""
        self.fit(X, y, sample_weight)

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
        out = np.empty((table.rows, *shape), dtype=dtype)

        def work(block: slice, rows: Rows) -> None:
            out[block] = formula(rows)

        unknown = self._for_each_block(table, work, _fit_cache(len(self.classes_)))
        self._report_unknown(table, unknown)
        return out

    def _for_each_block(
        self, table: Table, work: Callable[[slice, Rows], None], block_rows: int = BLOCK_ROWS
    ) -> Indices:
        """Call `work` with blocks of encoded rows; return how many values are unknown."""
        unknown = np.zeros(table.width, dtype=np.int64)
        lock = threading.Lock()

        def read_block(block: slice) -> None:
            part = table.slice(block)
            rows = self.encoding_.encode(part)
            strange = rows.codes == UNKNOWN
            if strange.any():
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
        found = _name_counts(table, counts)
        if not found:
            return
        msg = shorten(make_visible(describe_unknown(found)))
        warn_caller(UnknownValueWarning(msg, found))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags


def warn_of_remarks(
    encoding: Encoding,
    classes: np.ndarray[Any, Any] | None,
    rows: Indices | None,
    stacklevel: int,
) -> None:
    """Warn of columns, and of classes of so many rows, that look like a mistake."""
    remarks = dict(encoding.remarks)
    if classes is not None and rows is not None and (remark := remark_on_classes(classes, rows)):
        remarks["y"] = remark
    if remarks:
        warnings.warn(TableWarning(_say_remarks(remarks), remarks), stacklevel=stacklevel)


def _say_remarks(remarks: dict[str, str], most: int = 5) -> str:
    shown = [f"{name!r} {remark}" for name, remark in list(remarks.items())[:most]]
    more = len(remarks) - len(shown)
    return "columns to look at: " + ". ".join(shown) + (f". … and {more:,} more" if more else "")


def _name_counts(table: Table, counts: Indices) -> dict[str, int]:
    return {table.label(i): int(counts[i]) for i in np.flatnonzero(counts).tolist()}


def describe_unknown(counts: Mapping[str, int], most: int = 10) -> str:
    """Return in words how many values of each column were never seen in training."""
    shown = [f"{count:,} in {label}" for label, count in list(counts.items())[:most]]
    more = f", … and more in {len(counts) - most:,} columns" if len(counts) > most else ""
    return f"values never seen in training, taken as missing: {', '.join(shown)}{more}"


def describe_endless(names: Iterable[str], rows: int) -> str:
    """Return in words in which neighbourhoods nothing flips any of some rows."""
    return (
        f"nothing flips any of the {rows:,} predictions in {', '.join(names)}: robustness is "
        "infinite there, and tells none of them from the others"
    )


@contextmanager
def ignoring_unknown_values() -> Iterator[None]:
    """Say nothing about values and predictions that were spoken of already, or need not be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownValueWarning)
        warnings.simplefilter("ignore", OtherPredictionWarning)
        yield


_remarking: ContextVar[bool] = ContextVar("_remarking", default=True)


@contextmanager
def learning_quietly() -> Iterator[None]:
    """Look for no mistakes in the tables that are learned from: they were spoken of already."""
    token = _remarking.set(False)
    try:
        yield
    finally:
        _remarking.reset(token)


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


def _fit_cache(classes: int) -> int:
    """Return how many rows to look at at once, where something is found for each of the classes."""
    return min(BLOCK_ROWS, max(FEWEST_ROWS, BLOCK_CELLS // classes))


def _condition(joint: Floats) -> Floats:
    """Return log p(c | f) from log p(c, f)."""
    best = joint.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        shifted = joint - best
        log_proba = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return np.where(np.isneginf(best), -np.log(joint.shape[1]), log_proba)
