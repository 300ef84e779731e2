"""Naive Bayes: p(c, f) = p(c) Π p(f_i | c)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from robustq.core.coupled import Records
from robustq.core.engine import Reading
from robustq.core.evidence import (
    CLASS,
    FEATURE,
    NONE,
    PRODUCT,
    SUM,
    About,
    Evidence,
    split_evidence,
)
from robustq.core.frequency import by_frequency
from robustq.core.keeping import Keeper
from robustq.core.products import Products, ProductTables
from robustq.core.quantified import Ranking
from robustq.documents.checking import check_shape, check_sums
from robustq.documents.documents import get, read_probabilities, read_row_counts, write_rows
from robustq.exceptions import InputError
from robustq.learning.counts import Counts, Layout
from robustq.learning.smoothing import SMOOTHING_GRID, choose_smoothing
from robustq.tables import MISSING, Encoding, Rows, Table

from .base import GenerativeClassifier, encode
from .kinds import Kind, Option, Recipe
from .labels import (
    Training,
    find_classes,
    locate_labels,
    read_labels,
    read_prior,
    read_weights,
    weigh_classes,
)
from .parameters import (
    LARGEST_SMOOTHING,
    SMOOTHINGS,
    is_between,
    is_count,
    is_one_of,
    is_smoothing,
    read_random_state,
    require,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike

    from robustq.arrays import Bools, Codes, Floats, Indices
    from robustq.learning.parted_rows import PartedRows
    from robustq.learning.surveys import Survey

__all__ = ["KIND", "RECIPE", "NaiveBayes", "NaiveBayesClassifier"]

PARTS = PRIOR, FEATURES = ("prior", "features")


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
        return _log_joint(rows.codes, *self._extended, self.layout)

    def read(self, rows: Rows) -> Reading:
        """Return log p(c, f), and the rows as products."""
        from robustq.core import _joint_kernels  # noqa: PLC0415 (numba, when it is needed)

        classes, offsets = self.layout.classes, self.layout.offsets[:-1]
        joint, ranking = np.empty((len(rows), classes)), Ranking.empty(len(rows))
        cells = np.empty(rows.codes.shape, dtype=np.int32)
        _joint_kernels.read(
            *_joint_kernels.prepare(rows.codes, *self._extended, offsets, classes),
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
    def _extended(self) -> tuple[Floats, Floats]:
        """The probabilities, as kernels read them."""
        from robustq.core import _joint_kernels  # noqa: PLC0415 (numba, when it is needed)

        return _joint_kernels.extend(self.class_probs, self.feature_probs)

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

    return _log_joint(codes, *_joint_kernels.extend(class_probs, feature_probs), layout)


def _log_joint(codes: Codes, class_probs: Floats, feature_probs: Floats, layout: Layout) -> Floats:
    from robustq.core import _joint_kernels  # noqa: PLC0415 (numba is imported when it is needed)

    out = np.empty((len(codes), layout.classes))
    _joint_kernels.log_joint(codes, class_probs, feature_probs, layout.offsets[:-1], out)
    return out


class NaiveBayesLocals:
    """The prior, number 0, and then for each feature one mass function a class."""

    parts = PARTS
    on_classes = ()

    def __init__(self, model: NaiveBayes) -> None:
        self._model, self._classes = model, model.layout.classes

    @property
    def wide(self) -> tuple[int, ...]:
        """The parts that weigh more than two children."""
        return (0,) if self._classes > 2 else ()

    @property
    def counted(self) -> Bools:
        """For each part, whether rows were counted there."""
        rows = self._model.feature_rows
        return np.array([not np.isnan(self._model.prior_rows), not np.isnan(rows).all()])

    @property
    def class_table(self) -> Floats:
        """No leaf holds a mass function on the classes."""
        return np.ones((0, self._classes))

    def position(self, local: Indices, slot: Indices) -> Indices:  # noqa: ARG002 (all have all values)
        """Return where values stand among the outcomes: at their codes."""
        return slot

    def outcomes(self, local: Indices) -> Indices:
        """Return how many outcomes each has."""
        sizes = np.array([*self._model.layout.sizes, self._classes], dtype=np.int64)
        return sizes[np.where(local > 0, (local - 1) // self._classes, -1)]

    def expand(self, local: Indices) -> Floats:
        """Return whole mass functions, all with the same number of outcomes."""
        outcomes = int(self.outcomes(local[:1])[0]) if len(local) else 0
        found = np.empty((len(local), outcomes))
        for one in np.unique(local).tolist():
            feature, c = divmod(one - 1, self._classes)
            q = self._model.local_model(feature)[:, c] if one > 0 else self._model.class_probs
            found[local == one] = q
        return found

    def about(self, local: int) -> About:
        """Return what one is about."""
        if local == 0:
            return About(NONE, path=("class_probs",))
        feature, c = divmod(local - 1, self._classes)
        return About(feature, label=c, path=("feature_probs", feature, c))


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
        from .sklearn_bayes import describe  # noqa: PLC0415 (a slow import, needed here only)

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


# Files and documents


def _unpack(model: NaiveBayes) -> dict[str, np.ndarray[Any, Any]]:
    return {
        "class_probs": model.class_probs,
        "feature_probs": model.feature_probs,
        "prior_rows": np.array([model.prior_rows]),
        "feature_rows": model.feature_rows,
        "smoothing": np.array([model.smoothing]),
    }


def _pack(arrays: dict[str, np.ndarray[Any, Any]], encoding: Encoding, classes: int) -> NaiveBayes:
    layout = _lay_out(encoding, classes)
    shape = (len(encoding.columns), classes)
    rows = arrays.get("feature_rows", np.full(shape, np.nan))
    prior_rows = arrays.get("prior_rows", np.array([np.nan]))
    smoothing = arrays.get("smoothing", np.zeros(1))
    check_shape("class_probs", arrays["class_probs"], (classes,))
    check_shape("feature_probs", arrays["feature_probs"], (int(layout.offsets[-1]),))
    check_shape("prior_rows", prior_rows, (1,))
    check_shape("feature_rows", rows, shape)
    check_shape("smoothing", smoothing, (1,))
    counts = np.append(rows, prior_rows)
    if np.any(counts < 0.0) or np.any(np.isinf(counts)):
        msg = "not a model: rows must be counts, at least 0"
        raise InputError(msg)
    model = NaiveBayes(
        *(arrays["class_probs"], arrays["feature_probs"], layout, float(prior_rows[0]), rows),
        smoothing=_check_smoothing(float(smoothing[0])),
    )
    check_sums(model.class_probs[None, :], "class_probs")
    for index, size in enumerate(layout.sizes):
        if size:
            check_sums(model.local_model(index).T, f"feature_probs of feature {index}")
    return model


def _check_smoothing(smoothing: Any) -> float:
    if not is_between(smoothing, 0.0, LARGEST_SMOOTHING, low_included=True):
        msg = f"not a model: smoothing must be from 0 to {LARGEST_SMOOTHING:g}, got {smoothing!r}"
        raise InputError(msg)
    return float(smoothing)


def _lay_out(encoding: Encoding, classes: int) -> Layout:
    if encoding.numeric:
        msg = f"features[{encoding.numeric[0]}] is numeric: naive Bayes has categories and bins"
        raise InputError(msg)
    return Layout(encoding.sizes, classes)


def _write(model: NaiveBayes) -> dict[str, Any]:
    features = range(len(model.layout.sizes))
    return {
        "class_probs": model.class_probs.tolist(),
        "feature_probs": [model.local_model(index).T.tolist() for index in features],
        "rows": {
            "prior": write_rows(model.prior_rows),
            "features": [[write_rows(n) for n in row] for row in model.feature_rows.tolist()],
        },
        # Where nobody tells, there was none.
        **({"smoothing": model.smoothing} if model.smoothing else {}),
    }


def _read(document: dict[str, Any], encoding: Encoding, classes: int) -> NaiveBayes:
    layout, columns = _lay_out(encoding, classes), encoding.columns
    class_probs = read_probabilities(get(document, "class_probs", list), (classes,), "class_probs")
    tables = get(document, "feature_probs", list)
    if len(tables) != len(columns):
        msg = f"feature_probs has {len(tables)} entries for {len(columns)} features"
        raise InputError(msg)
    probs = np.empty(layout.offsets[-1])
    for index, (table, column) in enumerate(zip(tables, columns, strict=True)):
        where = f"feature_probs[{index}] ({column.name!r})"
        shape = (classes, encoding.sizes[index])
        layout.feature(probs, index)[:] = read_probabilities(table, shape, where).T
    rows = {} if document.get("rows") is None else get(document, "rows", dict)
    prior = read_row_counts(rows.get("prior"), (), "rows.prior")
    features = read_row_counts(rows.get("features"), (len(columns), classes), "rows.features")
    smoothing = _check_smoothing(document.get("smoothing", 0.0))
    return NaiveBayes(class_probs, probs, layout, float(prior), features, smoothing)


KIND = Kind(
    "naive_bayes",
    arrays=dict.fromkeys(
        ("class_probs", "feature_probs", "prior_rows", "feature_rows", "smoothing"), np.float64
    ),
    unpack=_unpack,
    pack=_pack,
    write=_write,
    read=_read,
    estimators=(NaiveBayesClassifier,),
    optional=("prior_rows", "feature_rows", "smoothing"),
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
