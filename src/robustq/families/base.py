"""What all classifiers share: this class owns every public method, a family learns its model."""

from __future__ import annotations

from abc import ABC
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from robustq.blocks import count_cores, for_each_block
from robustq.core import engine
from robustq.core.assessment import Assessment
from robustq.core.neighbourhoods import DEFAULT_PERTURBATIONS, check_sizes, read, read_all
from robustq.core.posteriors import bound_posteriors, check_rule, find_sets
from robustq.core.quantified import Quantified, Sizes
from robustq.exceptions import InputError, UnsupportedError
from robustq.tables import MISSING, Encoding, Kinds, Rows, Table
from robustq.tables.frames import index_of

from .explained import ExplainedModel
from .fitted import encode, fit_cache
from .labels import Scoring
from .parameters import LARGEST_COUNT, is_count, read_random_state
from .remarks import name_counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import ArrayLike

    from robustq.arrays import Bools, Floats, Indices
    from robustq.core.neighbourhoods import Bound, Neighbourhood, PerturbationLike

    from .circuit.classifier import CircuitClassifier

__all__ = ["GenerativeClassifier", "encode"]

Found = TypeVar("Found", Quantified, Sizes)


class GenerativeClassifier(ExplainedModel, Scoring, ClassifierMixin, BaseEstimator, ABC):
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
        return self._map(X, lambda rows: _log_condition(self.model_.log_joint(rows)))

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
        return self._map(X, lambda rows: _condition(self.model_.log_joint(rows)))

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
        table = self._arrange(X)
        found, unknown = self._quantify(table, [read(perturbation, parts, sizes)], Sizes)
        self._report_unknown(table, unknown)
        return found.robustness[0]

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
        found, unknown = self._quantify(table, neighbourhoods, Quantified)
        self._report_unknown(table, unknown)
        return self._tell(found, neighbourhoods, index_of(X), name_counts(table, unknown))

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
        found = self._quantify_rows(rows, self._bind(neighbourhoods), Quantified)
        joint = np.empty((len(rows), len(self.classes_)))

        def work(block: slice) -> None:
            joint[block] = self.model_.log_joint(rows[block])

        for_each_block(work, len(rows), fit_cache(len(self.classes_)), self._threads())
        counts = name_counts(table, unknown)
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
        found, unknown = self._quantify(table, neighbourhoods, Quantified)
        self._report_unknown(table, unknown)
        return found

    def count_and_quantify(
        self, X: Any, neighbourhoods: Sequence[Neighbourhood]
    ) -> tuple[Quantified, dict[str, int]]:
        """Return what `quantify` does, and how many values of each column were never seen.

        Says nothing about them: that is for whoever asked.
        """
        table = self._arrange(X)
        found, unknown = self._quantify(table, neighbourhoods, Quantified)
        return found, name_counts(table, unknown)

    def _quantify(
        self, table: Table, neighbourhoods: Sequence[Neighbourhood], kind: type[Found]
    ) -> tuple[Found, Indices]:
        bound = self._bind(neighbourhoods)
        if self.model_.merges_rows:
            rows, unknown = self._encode(table)
            return self._quantify_rows(rows, bound, kind), unknown
        found = kind.empty(len(bound), table.rows)

        def work(block: slice, rows: Rows) -> None:
            found.put(block, engine.quantify(self.model_, rows, bound))

        # Large blocks, as far as there are enough for all threads: each asks a few questions anew.
        least = fit_cache(self._count_found())
        share = -(-table.rows // (4 * (self._threads() or count_cores())))
        return found, self._for_each_block(table, work, min(4 * least, max(least, share)))

    def _count_found(self) -> int:
        """Return how many numbers are found for a row, and kept until its robustness is known."""
        return len(self.classes_)

    def _quantify_rows(self, rows: Rows, bound: Sequence[Bound], kind: type[Found]) -> Found:
        """Return what is found for rows of which each kind is looked at once."""
        kinds = Kinds.of(rows)
        found = kind.empty(len(bound), len(kinds))

        def work(block: slice, part: Rows) -> None:
            found.put(block, engine.quantify(self.model_, part, bound, distinct=True))

        self._for_each_kind(kinds, work)
        return found if kinds.all_differ else found.take(kinds.twins)

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
        found, unknown = self._quantify(table, [neighbourhood], Sizes)
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

    def _fit_named(self, X: Any, y: Any, sample_weight: Any, target: str) -> None:  # noqa: ARG002
        """Fit, where the target has a name; most models do not ask for it."""
        self.fit(X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags


def _condition(joint: Floats) -> Floats:
    """Return p(c | f) from log p(c, f)."""
    from robustq.core import _posterior_kernels  # noqa: PLC0415 (numba, when it is needed)

    probs = np.empty(joint.shape)
    _posterior_kernels.condition(np.ascontiguousarray(joint), probs)
    return probs


def _log_condition(joint: Floats) -> Floats:
    """Return log p(c | f) from log p(c, f)."""
    best = joint.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        shifted = joint - best
        log_proba = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return np.where(np.isneginf(best), -np.log(joint.shape[1]), log_proba)
