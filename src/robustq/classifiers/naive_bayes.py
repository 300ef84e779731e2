"""The naive Bayes classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.exceptions import InputError
from robustq.models.naive_bayes import Counts, NaiveBayes, choose_smoothing
from robustq.quantification import naive_bayes as quantification
from robustq.tables import Encoding, Rows, Table

from . import documents
from .base import GenerativeClassifier, encode
from .labels import find_classes, locate_labels, read_labels, read_weights
from .parameters import LARGEST_SMOOTHING, is_between, is_count, is_one_of, read_random_state

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from robustq.arrays import Bools, Floats, Indices
    from robustq.perturbations import Perturbation
    from robustq.quantification.quantified import Quantified

__all__ = ["NaiveBayesClassifier"]


class NaiveBayesClassifier(GenerativeClassifier):
    """Naive Bayes for categories, with the robustness of every prediction.

    Strings, categories, booleans and integers are categories. Floats are cut into bins, at
    quantiles learned in fit, because a ball lives on a finite set. Missing values are not counted
    in fit and are summed out when predicting.

    Parameters
    ----------
    smoothing : float or "cv", default 1.0
        What is added to the count of every category within every class. "cv" takes the
        value of `robustq.models.naive_bayes.SMOOTHING_GRID` with the best accuracy in a
        stratified 5-fold cross-validation; the log-likelihood of the labels breaks ties.
    n_bins : int, default 10
        How many bins a numeric column is cut into, at most.
    class_prior : array_like of shape (classes,), optional
        The probabilities of the classes, in sorted order; learned by default.
    handle_unknown : {"missing", "error"}, default "missing"
        What to do with a value never seen in training: take it as missing, and say how many
        there were in a warning, or raise.
    categorical, numeric : sequence of str or int, optional
        Columns, by name or position, whose kind is not to be inferred from their type.
    random_state : int, default 0
        Deals the rows to the folds of "cv".

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted.
    smoothing_ : float
        The smoothing used.
    model_ : NaiveBayes
        The probabilities, as flat arrays.
    encoding_ : Encoding
        How the columns are understood.

    Examples
    --------
    >>> X = [["sunny", "mild"], ["rainy", "cold"], ["sunny", "warm"], ["rainy", "mild"]]
    >>> y = ["out", "in", "out", "in"]
    >>> model = NaiveBayesClassifier().fit(X, y)
    >>> model.predict([["sunny", "warm"]]).tolist()
    ['out']
    >>> model.robustness([["sunny", "warm"], ["rainy", None]], "tv").round(4).tolist()
    [0.114, 0.125]
    """

    def __init__(
        self,
        smoothing: float | str = 1.0,
        *,
        n_bins: int = 10,
        class_prior: ArrayLike | None = None,
        handle_unknown: str = "missing",
        categorical: Sequence[str | int] | None = None,
        numeric: Sequence[str | int] | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.smoothing = smoothing
        self.n_bins = n_bins
        self.class_prior = class_prior
        self.handle_unknown = handle_unknown
        self.categorical = categorical
        self.numeric = numeric
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> NaiveBayesClassifier:
        """Learn from rows and their labels.

        Parameters
        ----------
        X : frame or array of shape (rows, features)
        y : sequence of labels
        sample_weight : array_like of shape (rows,), optional

        Returns
        -------
        NaiveBayesClassifier
            The classifier itself.
        """
        self._check_parameters()
        table = Table.read(X)
        classes, labels = find_classes(read_labels(y, table.rows))
        weights = read_weights(sample_weight, table.rows)
        encoding = self._learn_encoding(table, weights, int(self.n_bins))
        prior = self._check_prior(len(classes))
        codes = encode(encoding, table).codes
        counts = Counts.of(codes, labels, weights, encoding.sizes, len(classes))
        if is_one_of(self.smoothing, "cv"):
            smoothing = choose_smoothing(codes, labels, weights, counts, prior, self._rng())
        else:
            smoothing = float(self.smoothing)
        self._note_training(table.rows)
        return self._keep(encoding, classes, counts, smoothing, prior)

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> NaiveBayesClassifier:
        """Learn from more rows: counts add up.

        Categories that appear later are added; bins of numeric columns stay as the first call
        learned them.

        Parameters
        ----------
        X : frame or array of shape (rows, features)
        y : sequence of labels
        classes : array_like, optional
            All labels there will be; needed in the first call.
        sample_weight : array_like of shape (rows,), optional

        Returns
        -------
        NaiveBayesClassifier
            The classifier itself.
        """
        self._check_parameters()
        if is_one_of(self.smoothing, "cv"):
            msg = 'smoothing="cv" needs all rows at once: give a number to use partial_fit'
            raise InputError(msg)
        table = Table.read(X)
        weights = read_weights(sample_weight, table.rows)
        first = not hasattr(self, "counts_")
        if first and hasattr(self, "model_"):
            msg = "a model read from a document has no counts to add to: fit one anew"
            raise InputError(msg)
        if first:
            if classes is None:
                msg = "classes must be passed on the first call to partial_fit"
                raise InputError(msg)
            known = find_classes(read_labels(classes))[0]
            encoding = self._learn_encoding(table, weights, int(self.n_bins))
        else:
            known = self._check_same_classes(classes)
            table = self.encoding_.arrange(table, type(self).__name__)
            encoding = self.encoding_.grow(table, weights)
        labels = locate_labels(read_labels(y, table.rows), known)
        prior = self._check_prior(len(known))
        codes = encode(encoding, table).codes
        counts = Counts.of(codes, labels, weights, encoding.sizes, len(known))
        if not first:
            counts = self.counts_.resize(encoding.sizes) + counts
        self._note_training(table.rows + (0 if first else self.training_["rows"]))
        return self._keep(encoding, known, counts, float(self.smoothing), prior)

    def to_dict(self) -> dict[str, Any]:
        """Return the model as data that fits into JSON, exactly."""
        self._require_fitted()
        return documents.write_naive_bayes(self.model_, self.encoding_, self.classes_)

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> NaiveBayesClassifier:
        """Return the classifier that `to_dict` described.

        Raises
        ------
        InputError
            If the document is not such a description; the message says where.
        """
        model, encoding, classes = documents.read_naive_bayes(document)
        classifier = cls()
        classifier._set_model(model, encoding, classes)
        return classifier

    def _log_joint(self, rows: Rows) -> Floats:
        return self.model_.log_joint(rows.codes)

    def _quantify(self, rows: Rows, balls: Sequence[Perturbation]) -> Quantified:
        return quantification.quantify(self.model_, rows.codes, balls)

    def _leads(self, rows: Rows, joint: Floats, ahead: Indices, behind: Indices) -> Bools:
        return quantification.leads(self.model_, rows.codes, joint, ahead, behind)

    def _margins(
        self, rows: Rows, ahead: Indices, behind: Indices, ball: Perturbation, delta: Floats
    ) -> Floats:
        return quantification.margins(self.model_, rows.codes, ahead, behind, ball, delta)

    def _by_frequency(self) -> Indices:
        return self.model_.by_frequency

    def _has_kernel(self, ball: Perturbation) -> bool:
        return type(ball) in quantification.FAST

    def _check_parameters(self) -> None:
        if not _is_smoothing(self.smoothing):
            msg = (
                f'smoothing must be a number from 0 to {LARGEST_SMOOTHING:g} or "cv", '
                f"got {self.smoothing!r}"
            )
            raise InputError(msg)
        if not is_count(self.n_bins, 1):
            msg = f"n_bins must be a whole number of at least 1, got {self.n_bins!r}"
            raise InputError(msg)
        if not is_one_of(self.handle_unknown, "missing", "error"):
            msg = f'handle_unknown must be "missing" or "error", got {self.handle_unknown!r}'
            raise InputError(msg)

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(read_random_state(self.random_state).randint(2**31))

    def _check_prior(self, classes: int) -> Floats | None:
        if self.class_prior is None:
            return None
        try:
            prior = np.asarray(self.class_prior, dtype=np.float64)
        except (TypeError, ValueError) as error:
            msg = f"class_prior must be numbers, got {self.class_prior!r}"
            raise InputError(msg) from error
        if prior.shape != (classes,):
            msg = f"class_prior has shape {prior.shape} for {classes} classes: give one for each"
            raise InputError(msg)
        if not np.all(prior >= 0.0) or abs(prior.sum() - 1.0) > 1e-9:
            msg = f"class_prior must be probabilities that sum to 1, got {prior.tolist()}"
            raise InputError(msg)
        return prior

    def _check_same_classes(self, classes: ArrayLike | None) -> np.ndarray[Any, Any]:
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            msg = (
                f"classes={classes!r} is not the same as on the last call to partial_fit, was: "
                f"{self.classes_!r}"
            )
            raise InputError(msg)
        return self.classes_

    def _keep(
        self,
        encoding: Encoding,
        classes: np.ndarray[Any, Any],
        counts: Counts,
        smoothing: float,
        prior: Floats | None,
    ) -> NaiveBayesClassifier:
        self.counts_ = counts
        self.smoothing_ = smoothing
        self._set_model(counts.estimate(smoothing, prior), encoding, classes)
        return self

    def _set_model(
        self, model: NaiveBayes, encoding: Encoding, classes: np.ndarray[Any, Any]
    ) -> None:
        self.model_ = model
        self._set_encoding(encoding, classes)


def _is_smoothing(value: Any) -> bool:
    return is_one_of(value, "cv") or is_between(value, 0.0, LARGEST_SMOOTHING, low_included=True)
