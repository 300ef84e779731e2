"""Bayesian-network classifiers: structures learned or given, or read from a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from robustq.exceptions import InputError, UnsupportedError
from robustq.families.base import GenerativeClassifier, encode
from robustq.families.kinds import Kind, Option, Recipe
from robustq.families.labels import Training, read_prior
from robustq.families.parameters import (
    LARGEST_SMOOTHING,
    is_between,
    is_count,
    is_one_of,
    read_random_state,
    require,
)
from robustq.learning.smoothing import SMOOTHING_GRID, choose_smoothing
from robustq.tables import Rows

from . import document
from .edges import name_class, read_edges
from .learning import Pairs, TableCounts, learn_structure
from .mixture import Lead, NetworkMixture, PairCounts
from .model import Network

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import ArrayLike

    from robustq.arrays import Codes, Floats
    from robustq.learning.parted_rows import PartedRows
    from robustq.learning.surveys import Survey
    from robustq.tables import Encoding

__all__ = ["KINDS", "RECIPES", "BayesianNetworkClassifier"]

STRUCTURES = ("naive", "tan", "fan", "kdb", "aode")


class BayesianNetworkClassifier(GenerativeClassifier):
    """A Bayesian network over the class and the features, with the robustness of predictions.

    Strings, categories, booleans and integers are categories; floats are cut into bins, at
    quantiles learned in fit. Missing values are not counted in fit and are summed out when
    predicting.

    Parameters
    ----------
    structure : {"tan", "fan", "naive", "kdb", "aode"} or sequence of pairs, default "tan"
        "naive": the class alone is a parent. "tan": the tree of features that tells most of them,
        given the class (Chow and Liu). "fan": the same, with edges only where they gain in a
        penalised score (MDL). "kdb": up to `max_parents` features as parents. "aode": a mean of
        networks, in each of which one feature is a parent of all others. Or edges (parent, child)
        by name, the class by the name of the target or "class"; where none comes from the class,
        every feature has it as a parent.
    smoothing : float or "cv", default 1.0
        Pseudo-records for each category and row of a table. Where the class is the only parent they
        are spread evenly, as in naive Bayes; where there are others there are three times as many,
        spread as the feature's distribution given the class alone: a row of a table that knows
        little backs off to it. "cv" takes the best of
        `robustq.learning.smoothing.SMOOTHING_GRID` in a 5-fold cross-validation; the structure is
        that of all rows.
    max_parents : int, default 2
        How many features a feature may have as parents, for "kdb".
    min_rows : float, default 1.0
        For "aode", how often a value must have been seen for its feature to lead.
    n_bins : int, default 10
        How many bins a numeric column is cut into, at most.
    class_prior : array_like of shape (classes,), optional
        The probabilities of the classes, in sorted order; learned by default.
    class_weight : dict of label to weight or "balanced", optional
        What the rows of each class count, as in scikit-learn; 1 by default.
    handle_unknown : {"missing", "error"}, default "missing"
        What to do with a value never seen in training.
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
    edges_ : list of pairs of str
        (parent, child), the class by the name of the target or "class".
    smoothing_ : float
        The smoothing used.
    model_ : Network or NetworkMixture
        The probabilities, as flat arrays.
    encoding_ : Encoding
        How the columns are understood.

    Examples
    --------
    >>> X = [["sunny", "dry"], ["rainy", "wet"], ["sunny", "dry"], ["rainy", "dry"]]
    >>> y = ["out", "in", "out", "in"]
    >>> model = BayesianNetworkClassifier("tan").fit(X, y)
    >>> model.edges_
    [('class', '0'), ('class', '1'), ('0', '1')]
    >>> model.predict([["sunny", None]]).tolist()
    ['out']
    >>> model.robustness([["sunny", "dry"]], "tv").round(4).tolist()
    [0.1332]
    """

    def __init__(
        self,
        structure: str | Sequence[tuple[str, str]] = "tan",
        smoothing: float | str = 1.0,
        *,
        max_parents: int = 2,
        min_rows: float = 1.0,
        n_bins: int = 10,
        class_prior: ArrayLike | None = None,
        class_weight: dict[Any, float] | str | None = None,
        handle_unknown: str = "missing",
        categorical: Sequence[str | int] | None = None,
        numeric: Sequence[str | int] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.structure = structure
        self.smoothing = smoothing
        self.max_parents = max_parents
        self.min_rows = min_rows
        self.n_bins = n_bins
        self.class_prior = class_prior
        self.class_weight = class_weight
        self.handle_unknown = handle_unknown
        self.categorical = categorical
        self.numeric = numeric
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None
    ) -> BayesianNetworkClassifier:
        """Learn from rows and their labels.

        Parameters
        ----------
        X : frame or array of shape (rows, features)
        y : sequence of labels
        sample_weight : array_like of shape (rows,), optional

        Returns
        -------
        BayesianNetworkClassifier
            The classifier itself.
        """
        self._fit_named(X, y, sample_weight, getattr(y, "name", None))
        return self

    def _fit_named(self, X: Any, y: Any, sample_weight: Any, target: Any) -> None:
        self._check_parameters()
        table, classes, labels, weights = Training.read(X, y, sample_weight, self.class_weight)
        encoding = self._learn_encoding(table, weights, int(self.n_bins), classes, labels)
        prior = read_prior(self.class_prior, len(classes))
        target = name_class(target, encoding.names)
        rows = encode(encoding, table, self._threads()).codes, labels, weights
        count = self._find_counter(encoding, target, lambda count: count(*rows), len(classes))
        counts = count(*rows)
        self.smoothing_ = self._choose_smoothing(rows, counts, count, prior)
        self._note_training(table.rows)
        self.training_["target"] = target
        self._set_model(counts.estimate(self.smoothing_, prior), encoding, classes)

    @property
    def _learns_from_parts(self) -> bool:
        return True

    def _binning(self, _survey: Survey) -> dict[str, Any]:
        return {"bins": int(self.n_bins)}

    def _fit_parted(self, rows: PartedRows) -> None:
        encoding, classes = rows.encoding, rows.classes
        prior = read_prior(self.class_prior, len(classes))
        target = name_class(rows.reader.target, encoding.names)
        count = self._find_counter(encoding, target, rows.count, len(classes))
        if is_one_of(self.smoothing, "cv"):
            seed = int(self._rng().integers(2**63))
            log_joint = partial(_log_joint, prior)
            counts, found = rows.choose_smoothing(seed, count, log_joint, SMOOTHING_GRID)
        else:
            counts, found = rows.count(count), float(self.smoothing)
        self.smoothing_ = found
        self.training_["target"] = target
        self._set_model(counts.estimate(found, prior), encoding, classes)

    def _find_counter(
        self,
        encoding: Encoding,
        target: str,
        count: Callable[[Callable[..., Any]], Any],
        classes: int,
    ) -> Callable[..., Any]:
        """Return what counts rows for the structure asked for; it is learned here.

        Parameters
        ----------
        encoding : Encoding
        target : str
        count : callable
            Returns what a function counts in all rows.
        classes : int
        """
        sizes, structure = encoding.sizes, self.structure
        if is_one_of(structure, "aode"):
            Lead(sizes, classes).require_room()
            least = float(self.min_rows)
            return partial(PairCounts.of, sizes=sizes, classes=classes, min_rows=least)
        if is_one_of(structure, "naive"):
            nothing = np.zeros((len(sizes), len(sizes)))
            pairs = Pairs(nothing, nothing[:, :1].ravel(), nothing)
            found = learn_structure("naive", pairs, sizes, classes, 0)
        elif isinstance(structure, str):
            pairs = Pairs.of(count, sizes, classes)
            found = learn_structure(structure, pairs, sizes, classes, int(self.max_parents))
        else:
            found = read_edges(structure, encoding.names, target, sizes, classes)
            if found.class_parents and self.class_prior is not None:
                msg = "class_prior is for a class without parents: leave one of them out"
                raise InputError(msg)
        found.require_room()
        return partial(TableCounts.of, found)

    def _choose_smoothing(
        self,
        rows: tuple[Any, ...],
        counts: Any,
        count: Callable[..., Any],
        prior: Floats | None,
    ) -> float:
        if not is_one_of(self.smoothing, "cv"):
            return float(self.smoothing)
        log_joint = partial(_log_joint, prior)
        return choose_smoothing(rows[0], rows[1], rows[2], counts, self._rng(), count, log_joint)

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(read_random_state(self.random_state).randint(2**31))

    def _check_parameters(self) -> None:
        self._check_jobs()
        pairs = isinstance(self.structure, Sequence) and not isinstance(self.structure, str)
        words = ", ".join(f'"{name}"' for name in STRUCTURES)
        known = pairs or is_one_of(self.structure, *STRUCTURES)
        require("structure", self.structure, known, f"one of {words}, or pairs of names")
        known = is_one_of(self.smoothing, "cv") or is_between(
            self.smoothing, 0.0, LARGEST_SMOOTHING, low_included=True
        )
        allowed = f'a number from 0 to {LARGEST_SMOOTHING:g} or "cv"'
        require("smoothing", self.smoothing, known, allowed)
        for name, least in (("max_parents", 0), ("n_bins", 1)):
            value = getattr(self, name)
            require(name, value, is_count(value, least), f"a whole number of at least {least}")
        known = is_between(self.min_rows, 0.0, LARGEST_SMOOTHING, low_included=True)
        require("min_rows", self.min_rows, known, "a number of at least 0")
        known = is_one_of(self.handle_unknown, "missing", "error")
        require("handle_unknown", self.handle_unknown, known, '"missing" or "error"')

    def _set_model(self, model: Any, encoding: Encoding, classes: np.ndarray[Any, Any]) -> None:
        if isinstance(model, Network):
            model = replace(model, names=encoding.names)
        super()._set_model(model, encoding, classes)

    def _suit(self, model: Any) -> None:
        """Take over what a model from outside decides."""
        mixture = isinstance(model, NetworkMixture)
        if mixture != is_one_of(self.structure, "aode"):
            self.structure = "aode" if mixture else "tan"

    def _count_found(self) -> int:
        # Places in tables are half as wide as numbers are.
        pairs = len(self.encoding_.names) ** 2 // 2
        return super()._count_found() + pairs * isinstance(self.model_, NetworkMixture)

    # The network itself

    @property
    def target_name_(self) -> str:
        """What the class is called among the edges."""
        self._require_fitted()
        target = getattr(self, "training_", {}).get("target")
        return name_class(target, self.encoding_.names)

    @property
    def edges_(self) -> list[tuple[str, str]]:
        """The edges (parent, child); of averaged networks, those of all of them together."""
        names, target = self.encoding_.names, self.target_name_
        if isinstance(self.model_, Network):
            return self.model_.structure.name_edges(names, target)
        every = [(one, other) for one in names for other in names if one != other]
        return [*((target, name) for name in names), *every]

    def plot_structure(self, ax: Any = None) -> Any:
        """Draw the network, parents above their children.

        Parameters
        ----------
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        from .plot import draw_structure  # noqa: PLC0415 (matplotlib is slow to import)

        return draw_structure(self._require_network("drawn"), self, ax)

    @classmethod
    def from_bif(cls, path: str | Path, target: str) -> Self:
        """Return the network of a BIF file, with one of its variables as the class.

        The file is text, and nothing in it can run. Its states are the categories, as text. It
        tells no rows: sizes by rows are refused.

        Parameters
        ----------
        path : path
        target : str
            The variable to predict; all others are features.

        Raises
        ------
        FileError
            If the file cannot be read.
        InputError
            If it is no such network; the message tells the line.
        """
        from .bif import read_bif  # noqa: PLC0415 (needed here only)

        found = read_bif(path, target)
        classifier = cls()
        classifier.training_ = {"target": target}
        classifier._set_model(found.model, found.encoding, found.classes)
        classifier.structure = classifier.edges_
        return classifier

    def to_bif(self, path: str | Path) -> None:
        """Write the network to a BIF file, which other programs read.

        Parameters
        ----------
        path : path
        """
        from .bif import write_bif  # noqa: PLC0415 (needed here only)

        write_bif(self._require_network("written as BIF"), self, path)

    def _require_network(self, what: str) -> Network:
        self._require_fitted()
        if not isinstance(self.model_, Network):
            msg = f"averaged networks are no single network, and cannot be {what}"
            raise UnsupportedError(msg)
        return self.model_


def _log_joint(prior: Floats | None, rest: Any, smoothing: float, codes: Codes) -> Floats:
    model = rest.estimate(smoothing, prior)
    found: Floats = model.log_joint(Rows(codes, np.empty((len(codes), 0))))
    return found


def _describe(classifier: Any) -> list[tuple[str, str]]:
    facts = []
    if hasattr(classifier, "smoothing_"):
        facts.append(("smoothing", f"{classifier.smoothing_:g}"))
    if isinstance(classifier.model_, Network):
        target = classifier.target_name_
        own = [f"{a} → {b}" for a, b in classifier.edges_ if a != target]
        facts.append(("edges", ", ".join(own) or f"from {target} only"))
    else:
        facts.append(("networks", str(len(classifier.encoding_.columns))))
    return facts


KINDS = (
    Kind(
        "bayesian_network",
        arrays=document.NETWORK_ARRAYS,
        unpack=document.unpack_network,
        pack=document.pack_network,
        write=document.write_network,
        read=document.read_network,
        estimators=(BayesianNetworkClassifier,),
        model=Network,
    ),
    Kind(
        "network_mixture",
        arrays=document.MIXTURE_ARRAYS,
        unpack=document.unpack_mixture,
        pack=document.pack_mixture,
        write=document.write_mixture,
        read=document.read_mixture,
        estimators=(BayesianNetworkClassifier,),
        model=NetworkMixture,
    ),
)


def _make_recipe(name: str, title: str, cost: float, **fixed: Any) -> Recipe:
    return Recipe(
        name,
        aliases=(),
        title=title,
        estimator=BayesianNetworkClassifier,
        options={"smoothing": Option("smoothing"), "bins": Option("n_bins")},
        describe=_describe,
        # Chosen once, on the training set: see naive Bayes.
        refit=lambda classifier: {"smoothing": classifier.smoothing_},
        cost=cost,
        fixed=fixed,
    )


RECIPES = (
    _make_recipe("tan", "tree-augmented naive Bayes", 0.4, structure="tan"),
    _make_recipe("fan", "forest-augmented naive Bayes", 0.4, structure="fan"),
    _make_recipe("kdb", "k-dependence network", 0.5, structure="kdb"),
    _make_recipe("aode", "averaged one-dependence estimators", 1.0, structure="aode"),
    _make_recipe("network", "Bayesian network", 0.4),
)
