"""The generative forest classifier, and a single generative tree."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from robustq.exceptions import InputError, RigidModelWarning, warn_caller
from robustq.families.base import GenerativeClassifier, encode
from robustq.families.kinds import Kind, Option, Recipe
from robustq.families.labels import Training, read_labels, read_weights, weigh_classes
from robustq.families.parameters import (
    LARGEST_COUNT,
    LARGEST_SMOOTHING,
    is_between,
    is_count,
    is_one_of,
    read_random_state,
    require,
)
from robustq.tables import Binned, Encoding, Table

from .checking import check_forest
from .document import read_forest, write_forest
from .growing import Options, grow_forest
from .model import Forest
from .planting import Features, Sample, Shrinkage
from .sampling import draw
from .subsamples import OneTable, grow_subsampled
from .traces import fit_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from robustq.arrays import Floats, Indices
    from robustq.learning.parted_rows import PartedRows
    from robustq.learning.surveys import Survey
    from robustq.tables import Rows

    from .subsamples import RowSource

__all__ = ["KIND", "RECIPE", "GenerativeForestClassifier", "GenerativeTreeClassifier"]

SMALLEST_SD = 1e-9
# Of a number, in leaves that are shrunk; with two tails, sets of bins fit into one word.
FEWEST_BINS, MOST_BINS, ROWS_OF_A_BIN = 16, 62, 20


@dataclass(frozen=True)
class Ways:
    """How leaves are estimated, and what trees suit them.

    Attributes
    ----------
    shrunk : bool
        Whether leaves learn from all rows, and are shrunk to what is known without them.
    smoothing : float
        What is added to counts, if not.
    min_samples_leaf : int
        Where it is "auto".
    less_depth, least_depth : int
        By how much trees stay below log₂ rows, and how deep they may always grow, where
        `max_depth` is "auto".
    """

    shrunk: bool
    smoothing: float
    min_samples_leaf: int
    less_depth: int
    least_depth: int


WAYS = {
    "shrunk": Ways(True, 0.0, min_samples_leaf=3, less_depth=2, least_depth=8),
    "additive": Ways(False, 1e-6, min_samples_leaf=1, less_depth=3, least_depth=3),
    "likelihood": Ways(False, 0.0, min_samples_leaf=1, less_depth=3, least_depth=3),
}


class GenerativeForestClassifier(GenerativeClassifier):
    """A uniform mixture of generative trees, with the robustness of every prediction.

    A tree grows like one of a random forest, and each of its leaves then holds a
    distribution p(c) Π p(f_i); the forest is one joint distribution p(c, f), not a vote.
    Text, truth values and whole numbers of at most 50 different values are categories, and a
    split sends a subset of them to the left. Other numbers are cut into bins, which splits and
    leaves tell apart; with additive leaves they are taken as they are, a split is a threshold,
    and a leaf holds a normal density, truncated to the leaf's cell.

    Parameters
    ----------
    n_estimators : int, default 25
        How many trees there are.
    criterion : {"gini", "entropy"}, default "gini"
        What a split should reduce.
    max_depth : int, None or "auto", default "auto"
        How deep a tree may grow; None lets it. "auto" is ⌊log₂ rows⌋ − 2, but at least 8; with
        additive leaves − 3, and at least 3: such a leaf has to learn how every feature is
        distributed from its own rows alone, and deeper trees predict worse.
    min_samples_split : int, default 2
        A node of fewer rows is not split.
    min_samples_leaf : int or "auto", default "auto"
        No split leaves fewer rows on a side. "auto" is 3, less below 60 rows; 1 with additive
        leaves.
    max_features : int, float, "sqrt", "log2" or None, default 1/3
        How many features are tried at a split: so many, a share of them, or all of
        them (None). If none of these improves anything, others are tried.
    purity : float, default 0.99
        A node with a class of at least this share is not split.
    bootstrap : bool, default True
        Whether each tree learns from a bootstrap sample, drawn class by class.
    max_samples : int or float, optional
        How many rows a tree grows on, at most, or which share of them; all by default. They are
        drawn without putting back, by a hash of the seed and the number of a row, so that a table
        in parts gives the same forest. Shrunk leaves still learn from all rows.
    leaves : {"shrunk", "additive", "likelihood"}, optional
        How leaves are estimated; by default "shrunk", or "additive" if there is a `smoothing`.
        "shrunk" leaves learn from all rows, also those that their tree did not grow on; classes
        are shrunk to those of the parent, features to their distribution in all rows, and how
        much is told by the rows that a tree did not grow on. "additive" leaves learn from the
        bootstrap sample, `smoothing` being added to counts. "likelihood" adds nothing: many rows
        have probability 0 then.
    smoothing : float, optional
        What is added to the counts of the classes and values in an additive leaf, of the values
        its path allows: 1e-6 if nothing is said; 0 is maximum likelihood.
    min_sd : float, default 0.1
        The smallest standard deviation of a number in an additive leaf, as a share of that of
        its column.
    class_weight : dict of label to weight or "balanced", optional
        By what the weights of the rows of a class are multiplied, 1 by default; "balanced" gives
        all classes the same weight. A forest has no prior of its own to be set, as its classes
        live in the leaves: with the wanted over the present share of each class, it learns it.
    handle_unknown : {"missing", "error"}, default "missing"
        What to do with a value never seen in training: take it as missing, and say how many
        there were in a warning, or raise.
    categorical, numeric : sequence of str or int, optional
        Columns, by name or position, whose kind is not to be inferred.
    n_jobs : int, optional
        How many threads to use; all cores by default. The result is the same for any number.
    random_state : int or RandomState, optional

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted.
    model_ : Forest
        The trees, as flat arrays.
    encoding_ : Encoding
        How the columns are understood.
    shrinkage_ : Shrinkage
        Of shrunk leaves: how many rows the distribution of all rows counts for in a leaf
        (`features`), and the classes of a parent in its children (`classes`).

    Notes
    -----
    Missing values when learning: a row without a value for the feature of a split goes to the side
    that got more weight; in a leaf, what is missing is not counted, and a leaf that never saw a
    value of a feature takes all that its path allows as it is distributed in all rows; if it is
    additive, as equally likely (of numbers, the mean and standard deviation of the column). So
    every leaf sums to one. When predicting, missing features are summed out exactly.

    There is no `partial_fit`: where a tree splits depends on all rows, so more rows ask for new
    trees.

    Whole-number weights count as repeated rows. With others, a bootstrap sample has as many
    rows as the data, drawn in proportion to the weights.

    Examples
    --------
    >>> X = [["sunny", 22.5], ["rainy", 8.0], ["sunny", 25.0], ["rainy", 21.5]] * 5
    >>> y = ["out", "in", "out", "in"] * 5
    >>> model = GenerativeForestClassifier(n_estimators=5, random_state=0).fit(X, y)
    >>> model.predict([["sunny", 24.0]]).tolist()
    ['out']
    >>> model.robustness([["sunny", 24.0], ["rainy", None]], "epsilon").tolist()
    [1.0, 1.0]
    """

    def __init__(
        self,
        n_estimators: int = 25,
        *,
        criterion: Literal["gini", "entropy"] = "gini",
        max_depth: int | Literal["auto"] | None = "auto",
        min_samples_split: int = 2,
        min_samples_leaf: int | Literal["auto"] = "auto",
        max_features: float | str | None = 1 / 3,
        purity: float = 0.99,
        bootstrap: bool = True,
        max_samples: float | None = None,
        leaves: Literal["shrunk", "additive", "likelihood"] | None = None,
        smoothing: float | None = None,
        min_sd: float = 0.1,
        class_weight: dict[Any, float] | str | None = None,
        handle_unknown: str = "missing",
        categorical: Sequence[str | int] | None = None,
        numeric: Sequence[str | int] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.purity = purity
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.leaves = leaves
        self.smoothing = smoothing
        self.min_sd = min_sd
        self.class_weight = class_weight
        self.handle_unknown = handle_unknown
        self.categorical = categorical
        self.numeric = numeric
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None
    ) -> GenerativeForestClassifier:
        """Learn from rows and their labels.

        Parameters
        ----------
        X : frame or array of shape (rows, features)
        y : sequence of labels
        sample_weight : array_like of shape (rows,), optional

        Returns
        -------
        GenerativeForestClassifier
            The classifier itself.
        """
        self._check_parameters()
        table, classes, labels, weights = Training.read(X, y, sample_weight, self.class_weight)
        bins = _count_bins(weights) if self._ways.shrunk else None
        encoding = self._learn_encoding(table, weights, bins, classes, labels, tails=True)
        rows = encode(encoding, table, self._threads())
        most = self._limit_samples(int(np.count_nonzero(weights)))
        if most is not None:
            source = OneTable(rows, labels, weights, self._threads())
            model, shrinkage = self._grow_subsampled(source, encoding, len(classes), most)
        else:
            sample = Sample.of(rows, labels, weights, len(classes))
            model, shrinkage = grow_forest(
                sample,
                self._features(encoding),
                self._options(table.width, sample),
                self._spawn(int(self.n_estimators)),
                self._threads(),
            )
        self._note_training(table.rows)
        self._keep(model, shrinkage, encoding, classes)
        return self

    @property
    def _learns_from_parts(self) -> bool:
        return self.max_samples is not None

    def _binning(self, survey: Survey) -> dict[str, Any]:
        if not self._ways.shrunk:
            return {"bins": None, "tails": True}
        weight = sum(weight for _, weight in survey.labels.values())
        rows = weight if survey.whole else sum(survey.counted.values())
        return {"bins": _limit_bins(rows), "tails": True}

    def _learns_together(self, survey: Survey) -> bool:
        # A bootstrap sample of all rows is drawn in one place.
        counted = sum(survey.counted.values())
        return super()._learns_together(survey) or self._limit_samples(counted) is None

    def _fit_parted(self, rows: PartedRows) -> None:
        most = self._limit_samples(sum(rows.survey.counted.values()))
        assert most is not None  # noqa: S101 (else it learns together)
        found = self._grow_subsampled(rows, rows.encoding, len(rows.classes), most)
        self._keep(*found, rows.encoding, rows.classes)

    def _grow_subsampled(
        self, source: RowSource, encoding: Encoding, classes: int, most: int
    ) -> tuple[Forest, Shrinkage | None]:
        options = partial(self._options, len(encoding.columns))
        seeds = self._spawn(int(self.n_estimators) + 1)
        return grow_subsampled(source, self._features(encoding), options, seeds, most, classes)

    def _spawn(self, count: int) -> list[np.random.SeedSequence]:
        return np.random.SeedSequence(_seed_of(self.random_state)).spawn(count)

    def _limit_samples(self, rows: int) -> int | None:
        """Return how many of the rows that count a tree grows on; None for all of them."""
        if self.max_samples is None:
            return None
        if isinstance(self.max_samples, Integral):
            most = int(self.max_samples)
        else:
            most = max(1, round(float(self.max_samples) * rows))
        return most if most < rows else None

    def _keep(
        self,
        model: Forest,
        shrinkage: Shrinkage | None,
        encoding: Encoding,
        classes: np.ndarray[Any, Any],
    ) -> None:
        if shrinkage is not None:
            self.shrinkage_ = shrinkage
        self._set_model(model, encoding, classes)
        self._warn_if_rigid()

    @classmethod
    def from_sklearn(
        cls, forest: Any, X: Any, y: Any, sample_weight: ArrayLike | None = None, **parameters: Any
    ) -> GenerativeForestClassifier:
        """Return a generative forest with the trees of a fitted scikit-learn forest.

        Weights and leaves are estimated on the rows given, which every tree sees all of. Splits
        that no row passes one way are dropped. A row ends in the same leaf as in scikit-learn:
        numbers are split where it split them, so they are not binned, and have normal densities.

        Parameters
        ----------
        forest : RandomForestClassifier, ExtraTreesClassifier, or a single tree
            Fitted, on numbers; what is a category here is split in two sets by a threshold.
        X : frame or array of shape (rows, features)
        y : sequence of labels
        sample_weight : array_like of shape (rows,), optional
        **parameters
            Of this class: leaves, smoothing, min_sd, class_weight, handle_unknown, categorical,
            numeric, n_jobs.

        Returns
        -------
        GenerativeForestClassifier
        """
        from . import foreign  # noqa: PLC0415 (imports scikit-learn's forests, needed here only)

        trees, classes = foreign.read(forest)
        classifier = cls(**parameters)
        classifier._set_tree_count(len(trees))
        classifier._check_parameters()
        table = foreign.arrange(forest, Table.read(X))
        weights = read_weights(sample_weight, table.rows)
        labels = foreign.locate(read_labels(y, table.rows), classes)
        weights = weigh_classes(classifier.class_weight, classes, labels, weights)
        encoding = classifier._learn_encoding(table, weights, bins=None)
        model = foreign.convert(
            trees,
            table,
            encode(encoding, table, classifier._threads()),
            labels,
            weights,
            encoding,
            len(classes),
            classifier._features(encoding),
        )
        classifier._note_training(table.rows)
        classifier._set_model(model, encoding, classes)
        classifier._warn_if_rigid()
        return classifier

    def _draw(self, n: int, rng: np.random.Generator) -> tuple[Rows, Indices]:
        return draw(self.model_, n, rng)

    def _warn_if_rigid(self) -> None:
        for caution in self.cautions:
            warn_caller(RigidModelWarning(caution))

    # Parameters

    def _set_tree_count(self, trees: int) -> None:
        self.n_estimators = trees

    @property
    def _ways(self) -> Ways:
        """How leaves are estimated: what was not said follows from what was."""
        name = self.leaves or ("shrunk" if self.smoothing is None else "additive")
        ways = WAYS[name]
        return ways if self.smoothing is None else replace(ways, smoothing=float(self.smoothing))

    def _features(self, encoding: Encoding) -> Features:
        ways = self._ways
        return Features(
            encoding.sizes,
            encoding.numeric,
            ways.smoothing,
            float(self.min_sd),
            ordered=tuple(i for i, c in enumerate(encoding.columns) if isinstance(c, Binned)),
            shrinkage=Shrinkage() if ways.shrunk else None,
        )

    def _options(self, width: int, sample: Sample) -> Options:
        return Options(
            max_features=self._count_features(width),
            max_depth=self._limit_depth(sample),
            min_samples_split=float(self.min_samples_split),
            min_samples_leaf=self._limit_leaves(sample),
            purity=float(self.purity),
            entropy=self.criterion == "entropy",
            bootstrap=bool(self.bootstrap),
        )

    def _limit_depth(self, sample: Sample) -> int:
        if self.max_depth is None:
            return LARGEST_COUNT
        if self.max_depth == "auto":
            deep = math.floor(math.log2(sample.repeats.sum())) - self._ways.less_depth
            return max(self._ways.least_depth, deep)
        return int(self.max_depth)

    def _limit_leaves(self, sample: Sample) -> float:
        if self.min_samples_leaf == "auto":
            # Of a few rows, a few make a leaf.
            return max(1.0, min(self._ways.min_samples_leaf, sample.repeats.sum() // 20))
        return float(self.min_samples_leaf)

    def _count_features(self, width: int) -> int:
        most = self.max_features
        if most is None:
            return width
        if most == "sqrt":
            return max(1, math.isqrt(width))
        if most == "log2":
            return max(1, int(math.log2(width)))
        if isinstance(most, Integral):
            return min(width, int(most))
        # A third of 9 features is 3, though 9 · (1/3) may fall short of it by rounding.
        return max(1, math.floor(float(most) * width + 1e-9))

    def _check_parameters(self) -> None:
        self._require(
            "n_estimators", is_count(self.n_estimators, 1), "a whole number of at least 1"
        )
        self._require(
            "criterion", is_one_of(self.criterion, "gini", "entropy"), '"gini" or "entropy"'
        )
        self._require(
            "max_depth",
            self.max_depth is None
            or is_one_of(self.max_depth, "auto")
            or is_count(self.max_depth, 0),
            'at least 0, None or "auto"',
        )
        self._require("min_samples_split", is_count(self.min_samples_split, 1), "at least 1")
        self._require(
            "min_samples_leaf",
            is_one_of(self.min_samples_leaf, "auto") or is_count(self.min_samples_leaf, 1),
            'at least 1, or "auto"',
        )
        self._require(
            "max_features",
            _is_share_of_features(self.max_features),
            'a count of at least 1, a share in (0, 1], "sqrt", "log2" or None',
        )
        self._require("purity", is_between(self.purity, 0.0, 1.0), "a share in (0, 1]")
        self._check_leaves()
        self._require(
            "min_sd",
            is_between(self.min_sd, 0.0, 1e9) and self.min_sd >= SMALLEST_SD,
            f"a number of at least {SMALLEST_SD:g}",
        )
        self._check_jobs()
        self._require(
            "handle_unknown",
            is_one_of(self.handle_unknown, "missing", "error"),
            '"missing" or "error"',
        )
        self._require("bootstrap", isinstance(self.bootstrap, (bool, np.bool_)), "True or False")
        self._require(
            "max_samples",
            self.max_samples is None or _is_share_of_rows(self.max_samples),
            "a count of at least 1, a share in (0, 1] or None",
        )
        if self.max_samples is not None and not self.bootstrap:
            msg = "max_samples says how many rows are drawn, and with bootstrap=False none are"
            raise InputError(msg)

    def _check_leaves(self) -> None:
        self._require(
            "leaves",
            self.leaves is None or is_one_of(self.leaves, *WAYS),
            f"{', '.join(repr(name) for name in WAYS)} or None",
        )
        self._require(
            "smoothing",
            self.smoothing is None
            or is_between(self.smoothing, 0.0, LARGEST_SMOOTHING, low_included=True),
            f"a number from 0 to {LARGEST_SMOOTHING:g}, or None",
        )
        if self.smoothing is not None and self.leaves not in (None, "additive"):
            msg = (
                f"smoothing={self.smoothing!r} is for additive leaves, and leaves is "
                f"{self.leaves!r}: give one of the two"
            )
            raise InputError(msg)

    def _require(self, name: str, valid: bool, allowed: str) -> None:
        require(name, getattr(self, name), valid, allowed)

    def _suit(self, model: Forest) -> None:
        self._set_tree_count(model.trees)

    def _rows_at_once(self, rows: Rows) -> int:
        return fit_memory(self.model_.trees, len(self.classes_), rows)


class GenerativeTreeClassifier(GenerativeForestClassifier):
    """A single generative tree: a forest of one, grown on all rows and features.

    Parameters
    ----------
    criterion, max_depth, min_samples_split, min_samples_leaf, max_features, purity, leaves, \
smoothing, min_sd, class_weight, handle_unknown, categorical, numeric, n_jobs, random_state
        As in `GenerativeForestClassifier`; by default all features are tried at a split.

    Examples
    --------
    >>> tree = GenerativeTreeClassifier().fit([["a"], ["b"], ["b"]], [0, 1, 1])
    >>> tree.predict([["b"]]).tolist()
    [1]
    """

    def __init__(
        self,
        *,
        criterion: Literal["gini", "entropy"] = "gini",
        max_depth: int | Literal["auto"] | None = "auto",
        min_samples_split: int = 2,
        min_samples_leaf: int | Literal["auto"] = "auto",
        max_features: float | str | None = None,
        purity: float = 0.99,
        leaves: Literal["shrunk", "additive", "likelihood"] | None = None,
        smoothing: float | None = None,
        min_sd: float = 0.1,
        class_weight: dict[Any, float] | str | None = None,
        handle_unknown: str = "missing",
        categorical: Sequence[str | int] | None = None,
        numeric: Sequence[str | int] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            n_estimators=1,
            criterion=criterion,
            max_depth=max_depth,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            max_features=max_features,
            purity=purity,
            bootstrap=False,
            leaves=leaves,
            smoothing=smoothing,
            min_sd=min_sd,
            class_weight=class_weight,
            handle_unknown=handle_unknown,
            categorical=categorical,
            numeric=numeric,
            n_jobs=n_jobs,
            random_state=random_state,
        )

    def _set_tree_count(self, trees: int) -> None:
        if trees != 1:
            msg = f"a GenerativeTreeClassifier has one tree, and the model given has {trees}"
            raise InputError(msg)


def _count_bins(weights: Floats) -> int:
    """Return how many bins a number has; whole weights are repeated rows."""
    whole = bool(np.all(weights == np.floor(weights)))
    return _limit_bins(float(weights.sum() if whole else np.count_nonzero(weights)))


def _limit_bins(rows: float) -> int:
    return int(min(max(FEWEST_BINS, rows // ROWS_OF_A_BIN), MOST_BINS))


def _seed_of(random_state: Any) -> int:
    return int(read_random_state(random_state).randint(2**31))


def _is_share_of_features(value: Any) -> bool:
    if value is None or is_one_of(value, "sqrt", "log2"):
        return True
    return is_count(value, 1) if isinstance(value, Integral) else is_between(value, 0.0, 1.0)


def _is_share_of_rows(value: Any) -> bool:
    return is_count(value, 1) if isinstance(value, Integral) else is_between(value, 0.0, 1.0)


# Files


ARRAYS: dict[str, Any] = {
    "roots": np.int32,
    "nodes": np.int32,
    "lists": np.int32,
    "weights": np.float64,
    "rows": np.float64,
    "class_probs": np.float64,
    "seen": np.uint64,
    "starts": np.int32,
    "entry_codes": np.int32,
    "entry_probs": np.float64,
    "normals": np.float64,
    "base": np.float64,
}


def _unpack(model: Forest) -> dict[str, np.ndarray[Any, Any]]:
    return {name: getattr(model, name) for name in ARRAYS}


def _pack(arrays: dict[str, np.ndarray[Any, Any]], encoding: Encoding, classes: int) -> Forest:
    if "rows" not in arrays:
        arrays = {**arrays, "rows": np.full(len(arrays["nodes"]), np.nan)}
    if "base" not in arrays:
        arrays = {**arrays, "base": np.empty(0)}
    model = Forest(encoding.sizes, encoding.numeric, **arrays)
    check_forest(model, classes)
    return model


def _describe(classifier: Any) -> list[tuple[str, str]]:
    model = classifier.model_
    facts = f"{len(model.nodes):,} nodes, {model.leaves:,} leaves, depth {model.depth}"
    cautions = [("caution", caution) for caution in model.cautions]
    return [("trees", f"{model.trees:,} with {facts}"), *cautions]


KIND = Kind(
    "generative_forest",
    arrays=ARRAYS,
    unpack=_unpack,
    pack=_pack,
    write=write_forest,
    read=read_forest,
    estimators=(GenerativeForestClassifier, GenerativeTreeClassifier),
    optional=("rows", "base"),
    renamed={"shares": "weights"},
)

RECIPE = Recipe(
    "gef",
    aliases=("forest", "generative_forest"),
    title="generative forest",
    estimator=GenerativeForestClassifier,
    options={
        "smoothing": Option("smoothing"),
        "trees": Option("n_estimators"),
        "max_depth": Option("max_depth"),
    },
    paper=lambda plan: {
        "n_estimators": plan.trees,
        "smoothing": plan.leaf_smoothing,
        "max_depth": plan.max_depth,
        "n_jobs": 1,
    },
    describe=_describe,
)
