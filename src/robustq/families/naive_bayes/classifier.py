"""Naive Bayes as a classifier."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from robustq.exceptions import InputError
from robustq.families.base import GenerativeClassifier, encode
from robustq.families.kinds import Kind, Option, Recipe
from robustq.families.labels import (
    Training,
    find_classes,
    locate_labels,
    read_labels,
    read_prior,
    read_weights,
    weigh_classes,
)
from robustq.families.parameters import (
    SMOOTHINGS,
    is_count,
    is_one_of,
    is_smoothing,
    read_random_state,
    require,
)
from robustq.learning.counts import Counts
from robustq.learning.smoothing import SMOOTHING_GRID, choose_smoothing
from robustq.tables import Encoding, Rows, Table

from .document import (
    ARRAYS,
    OPTIONAL,
    pack_naive_bayes,
    read_naive_bayes,
    unpack_naive_bayes,
    write_naive_bayes,
)
from .model import NaiveBayes, log_joint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from robustq.arrays import Codes, Floats, Indices
    from robustq.learning.parted_rows import PartedRows
    from robustq.learning.surveys import Survey

__all__ = ["KIND", "RECIPE", "NaiveBayesClassifier"]


class NaiveBayesClassifier(GenerativeClassifier):
    """Naive Bayes for categories, with the robustness of every prediction.

    Text, truth values and whole numbers of at most 50 different values are categories. Other
    numbers are cut into bins, at quantiles learned in fit, because a ball lives on a finite set.
    Missing values are not counted in fit and are summed out when predicting.

    Parameters
    ----------
    smoothing : float, "cv" or sequence of float, default "cv"
        What is added to the count of every category within every class. "cv" takes the
        value of `robustq.learning.smoothing.SMOOTHING_GRID` with the best accuracy in a
        stratified 5-fold cross-validation; the log-likelihood of the labels breaks ties.
        Several numbers are the grid to choose from in the same way.
    n_bins : int, default 10
        How many bins a numeric column is cut into, at most.
    class_prior : array_like of shape (classes,), optional
        The probabilities of the classes, in sorted order; learned by default.
    class_weight : dict of label to weight or "balanced", optional
        By what the weights of the rows of a class are multiplied, 1 by default; "balanced" gives
        all classes the same weight. A `class_prior` stays what it is.
    handle_unknown : {"missing", "error"}, default "missing"
        What to do with a value never seen in training: take it as missing, and say how many
        there were in a warning, or raise.
    categorical, numeric : sequence of str or int, optional
        Columns, by name or position, whose kind is not to be inferred.
    n_jobs : int, optional
        How many threads to use; all cores by default. The result is the same for any number.
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
    >>> model = NaiveBayesClassifier(smoothing=1).fit(X, y)
    >>> model.predict([["sunny", "warm"]]).tolist()
    ['out']
    >>> model.robustness([["sunny", "warm"], ["rainy", None]], "tv").round(4).tolist()
    [0.114, 0.125]
    """

    def __init__(
        self,
        smoothing: float | str | list[float] | tuple[float, ...] = "cv",
        *,
        n_bins: int = 10,
        class_prior: ArrayLike | None = None,
        class_weight: dict[Any, float] | str | None = None,
        handle_unknown: str = "missing",
        categorical: Sequence[str | int] | None = None,
        numeric: Sequence[str | int] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.smoothing = smoothing
        self.n_bins = n_bins
        self.class_prior = class_prior
        self.class_weight = class_weight
        self.handle_unknown = handle_unknown
        self.categorical = categorical
        self.numeric = numeric
        self.n_jobs = n_jobs
        self.random_state = random_state

    @classmethod
    def from_sklearn(cls, estimator: Any) -> Self:
        """Return a fitted CategoricalNB or BernoulliNB of scikit-learn as it is.

        The probabilities are the same, and so are predictions; the rows behind them are kept, so
        that `sizes="rows"` works. More rows cannot be learned from.

        Parameters
        ----------
        estimator : CategoricalNB or BernoulliNB
            Fitted. Categories are the whole numbers it was fitted on; numbers that BernoulliNB
            cuts into two are cut so here.

        Examples
        --------
        >>> from sklearn.naive_bayes import CategoricalNB
        >>> X, y = [[0, 1], [1, 0], [0, 2], [1, 1]], ["out", "in", "out", "in"]
        >>> model = NaiveBayesClassifier.from_sklearn(CategoricalNB().fit(X, y))
        >>> model.robustness([[0, 2]], "tv").round(3).tolist()
        [0.114]
        """
        from .foreign import describe  # noqa: PLC0415 (a slow import, needed here only)

        classifier = cls.from_dict(describe(estimator))
        classifier.classes_ = np.asarray(estimator.classes_)
        if np.ndim(estimator.alpha) == 0:
            classifier.smoothing = classifier.smoothing_ = float(estimator.alpha)
        return classifier

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
        table, classes, labels, weights = Training.read(X, y, sample_weight, self.class_weight)
        encoding = self._learn_encoding(table, weights, int(self.n_bins), classes, labels)
        prior = read_prior(self.class_prior, len(classes))
        codes = encode(encoding, table, self._threads()).codes
        counts = Counts.of(codes, labels, weights, encoding.sizes, len(classes))
        smoothing = self._find_smoothing(codes, labels, weights, counts, prior)
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

        Categories that appear later are added; bins of numeric columns, what is a number, and a
        smoothing found by cross-validation stay as the first call learned them.

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
        if is_one_of(self.class_weight, "balanced"):
            msg = 'class_weight="balanced" needs all rows at once: give a dictionary to partial_fit'
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
        else:
            known = self._check_same_classes(classes)
            table = self.encoding_.arrange(table, type(self).__name__)
        labels = locate_labels(read_labels(y, table.rows), known)
        weights = weigh_classes(self.class_weight, known, labels, weights)
        if first:
            encoding = self._learn_encoding(table, weights, int(self.n_bins), known, labels)
        else:
            encoding = self.encoding_.grow(table, weights)
        prior = read_prior(self.class_prior, len(known))
        codes = encode(encoding, table, self._threads()).codes
        counts = Counts.of(codes, labels, weights, encoding.sizes, len(known))
        if first or len(self._grid()) == 1:
            smoothing = self._find_smoothing(codes, labels, weights, counts, prior)
        else:
            smoothing = self.smoothing_
        if not first:
            counts = self.counts_.resize(encoding.sizes) + counts
        self._note_training(table.rows + (0 if first else self.training_["rows"]))
        return self._keep(encoding, known, counts, smoothing, prior)

    def _find_smoothing(
        self, codes: Codes, labels: Indices, weights: Floats, counts: Counts, prior: Floats | None
    ) -> float:
        grid = self._grid()
        if len(grid) == 1:
            return float(grid[0])
        count = partial(Counts.of, sizes=counts.layout.sizes, classes=counts.layout.classes)
        predict = partial(_predict, prior)
        return choose_smoothing(codes, labels, weights, counts, self._rng(), count, predict, grid)

    @property
    def _learns_from_parts(self) -> bool:
        return True

    def _binning(self, _survey: Survey) -> dict[str, Any]:
        return {"bins": int(self.n_bins)}

    def _fit_parted(self, rows: PartedRows) -> None:
        classes, grid = rows.classes, self._grid()
        prior = read_prior(self.class_prior, len(classes))
        count = partial(Counts.of, sizes=rows.encoding.sizes, classes=len(classes))
        if len(grid) == 1:
            counts, smoothing = rows.count(count), float(grid[0])
        else:
            seed = int(self._rng().integers(2**63))
            counts, smoothing = rows.choose_smoothing(seed, count, partial(_predict, prior), grid)
        self._keep(rows.encoding, classes, counts, smoothing, prior)

    def _grid(self) -> Sequence[float]:
        """Return what the smoothing is chosen from: itself, where it is a number."""
        if isinstance(self.smoothing, str):
            return SMOOTHING_GRID
        return self.smoothing if isinstance(self.smoothing, (list, tuple)) else [self.smoothing]

    def _draw(self, n: int, rng: np.random.Generator) -> tuple[Rows, Indices]:
        return self.model_.draw(n, rng)

    def _check_parameters(self) -> None:
        require("smoothing", self.smoothing, is_smoothing(self.smoothing), SMOOTHINGS)
        self._check_jobs()
        require("n_bins", self.n_bins, is_count(self.n_bins, 1), "a whole number of at least 1")
        known = is_one_of(self.handle_unknown, "missing", "error")
        require("handle_unknown", self.handle_unknown, known, '"missing" or "error"')

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(read_random_state(self.random_state).randint(2**31))

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
        model = NaiveBayes(
            *counts.estimate(smoothing, prior),
            layout=counts.layout,
            prior_rows=float(counts.classes.sum()) if prior is None else np.nan,
            feature_rows=counts.feature_rows(),
            smoothing=smoothing,
        )
        self._set_model(model, encoding, classes)
        return self


def _predict(prior: Floats | None, rest: Counts, smoothing: float, rows: Codes) -> Floats:
    return log_joint(rows, *rest.estimate(smoothing, prior), rest.layout)


KIND = Kind(
    "naive_bayes",
    arrays=ARRAYS,
    unpack=unpack_naive_bayes,
    pack=pack_naive_bayes,
    write=write_naive_bayes,
    read=read_naive_bayes,
    estimators=(NaiveBayesClassifier,),
    optional=OPTIONAL,
)

RECIPE = Recipe(
    "nbc",
    aliases=("naive_bayes",),
    title="naive Bayes",
    estimator=NaiveBayesClassifier,
    options={"smoothing": Option("smoothing"), "bins": Option("n_bins")},
    paper=lambda plan: {"smoothing": plan.nbc_smoothing},
    describe=lambda classifier: (
        [("smoothing", f"{classifier.smoothing_:g}")] if hasattr(classifier, "smoothing_") else []
    ),
    # Chosen once, on the training set: in a bootstrap sample the folds share rows, and
    # cross-validation would take the same rows for new ones.
    refit=lambda classifier: {"smoothing": classifier.smoothing_},
    cost=0.3,
)
