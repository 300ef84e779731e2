"""Somebody else's fitted classifiers, asked what ours are asked.

Of any classifier with `predict_proba` the posterior can be perturbed: one mass function on the
classes for each row. scikit-learn's forests and trees have more to perturb: the class distributions
of their leaves, and the weights of the trees.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from robustq.blocks import for_each_block
from robustq.core import atoms, engine
from robustq.core.assessment import Assessment
from robustq.core.leaves import LEAF_CLASSES, POSTERIOR, ROOT, ClassLeaves, Votes
from robustq.core.neighbourhoods import (
    Neighbourhood,
    OnAtoms,
    Perturbed,
    check_sizes,
    read,
    read_all,
)
from robustq.core.posteriors import bound_posteriors, check_rule, find_sets
from robustq.core.quantified import Quantified
from robustq.exceptions import (
    InputError,
    OtherPredictionWarning,
    UnknownNameError,
    UnsupportedError,
    warn_caller,
)
from robustq.tables import Rows
from robustq.tables.frames import index_of
from robustq.tables.table import count_rows, take_rows

from .probabilities import predict_probabilities

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from robustq.arrays import Bools, Floats
    from robustq.core.neighbourhoods import Bound
    from robustq.explaining.explanation import Explanations

    Work = Callable[[Any, Rows, slice], None]

__all__ = ["OtherClassifier", "describe_others", "judge_posterior"]

BLOCK_ROWS = 1 << 11
TREE_ROWS = 1 << 15  # how many rows go through the trees of a forest at a time
# Ensembles that add scores up and make probabilities of the sum: no mass function is in them.
BOOSTED = {
    *("HistGradientBoostingClassifier", "GradientBoostingClassifier", "XGBClassifier"),
    *("LGBMClassifier", "CatBoostClassifier"),
}


class _Question(NamedTuple):
    """What is asked of leaves: those that rows fall into, or posteriors, one for each row."""

    bound: Bound
    of_trees: bool = False


class OtherClassifier:
    """A fitted classifier that is none of ours.

    Parameters
    ----------
    estimator : estimator
        With `predict_proba`, which gives the posterior.
    inside : estimator
        What a pipeline or search holds; the estimator itself where it is none.
    transform : callable
        Takes a table for the estimator; returns what arrives inside.
    """

    def __init__(self, estimator: Any, inside: Any, transform: Callable[[Any], Any]) -> None:
        self.estimator, self.inside, self._transform = estimator, inside, transform

    @cached_property
    def classes_(self) -> np.ndarray[Any, Any]:
        """The labels, in the order of the probabilities."""
        classes = getattr(self.estimator, "classes_", getattr(self.inside, "classes_", None))
        if classes is None:
            msg = (
                f"{type(self.estimator).__name__} has no classes_: it is not fitted, or no "
                "classifier as scikit-learn's are; posterior_robustness takes its probabilities"
            )
            raise UnsupportedError(msg)
        return np.asarray(classes)

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts that can be perturbed."""
        return (POSTERIOR, ROOT, LEAF_CLASSES) if self._is_forest else (POSTERIOR,)

    # Questions

    def robustness(self, X: Any, perturbation: Any, *, parts: Any, sizes: Any) -> Floats:
        """Return how large a perturbation flips each prediction."""
        return self.quantify(X, [read(perturbation, parts, sizes)]).robustness[0]

    def assess(
        self, X: Any, perturbations: Any, *, parts: Any = None, sizes: Any = None
    ) -> Assessment:
        """Return for each row the prediction, its probability, its robustness and its rivals."""
        assessment = self._assess(X, read_all(perturbations, parts, sizes))
        self._warn(assessment.others, len(assessment))
        return assessment

    def examine(self, X: Any, neighbourhoods: Sequence[Neighbourhood]) -> tuple[Assessment, Floats]:
        """Return what `assess` does, and log p(c | f); warns of nothing."""
        with np.errstate(divide="ignore"):
            return self._assess(X, neighbourhoods), np.log(self._predict(X, count_rows(X)))

    def _assess(self, X: Any, neighbourhoods: Sequence[Neighbourhood]) -> Assessment:
        found, others = self.quantify_and_count(X, neighbourhoods)
        names = [neighbourhood.name for neighbourhood in neighbourhoods]
        return Assessment.of(found, names, self.classes_, index=index_of(X), others=others)

    def is_robust(self, X: Any, perturbation: Any, delta: Any, *, parts: Any, sizes: Any) -> Bools:
        """Tell whether no perturbation of size delta flips the prediction."""
        neighbourhood = read(perturbation, parts, sizes)
        given = check_sizes(self._bind(neighbourhood).bound, delta, count_rows(X))
        return given < self.quantify(X, [neighbourhood]).robustness[0]

    def credal_predict(
        self, X: Any, perturbation: Any, delta: Any, *, parts: Any, sizes: Any, rule: str
    ) -> Bools:
        """Tell which classes no other class beats for certain at size delta."""
        check_rule(rule)
        bound, of_trees = self._bind(read(perturbation, parts, sizes))
        given = check_sizes(bound, delta, count_rows(X))
        out = np.empty((len(given), len(self.classes_)), dtype=bool)

        def work(model: Any, rows: Rows, at: slice) -> None:
            out[at] = find_sets(model, rows, bound, given[at], rule)

        self._warn(self._for_each_block(X, work, of_trees=of_trees), len(given))
        return out

    def posterior_bounds(
        self, X: Any, perturbation: Any, delta: Any, *, parts: Any, sizes: Any
    ) -> tuple[Floats, Floats]:
        """Return between what p(c | f) lies at size delta."""
        bound, of_trees = self._bind(read(perturbation, parts, sizes))
        given = check_sizes(bound, delta, count_rows(X))
        lower, upper = np.empty((2, len(given), len(self.classes_)))

        def work(model: Any, rows: Rows, at: slice) -> None:
            lower[at], upper[at] = bound_posteriors(model, rows, bound, given[at])

        self._warn(self._for_each_block(X, work, of_trees=of_trees), len(given))
        return lower, upper

    def explain(self, X: Any, perturbation: Any, *, parts: Any, sizes: Any) -> Explanations:
        """Return what can be said of predictions of which only the posterior is known."""
        from robustq.explaining.explanation import Explanations  # noqa: PLC0415 (where asked for)
        from robustq.explaining.posteriors import PosteriorFindings  # noqa: PLC0415

        neighbourhood = read(perturbation, parts, sizes)
        base = self.quantify(X, [neighbourhood])
        proba = self._predict(X, len(base.prediction))
        whole = not self._bind(neighbourhood).of_trees
        return Explanations(PosteriorFindings(self.classes_, proba, neighbourhood, base, whole))

    def quantify(self, X: Any, neighbourhoods: Sequence[Neighbourhood]) -> Quantified:
        """Return what `assess` tells, with the positions of classes instead of labels."""
        found, others = self.quantify_and_count(X, neighbourhoods)
        self._warn(others, len(found.prediction))
        return found

    def quantify_and_count(
        self, X: Any, neighbourhoods: Sequence[Neighbourhood]
    ) -> tuple[Quantified, int]:
        """Return what `quantify` does, and in how many rows `predict` says another class."""
        questions = [self._bind(one) for one in read_all(neighbourhoods)]
        found, others = Quantified.empty(len(questions), count_rows(X)), 0
        for of_trees in sorted({of_trees for _, of_trees in questions} or {False}):
            which = [i for i, question in enumerate(questions) if question.of_trees == of_trees]
            work = partial(_put, found, which, [questions[i].bound for i in which])
            others = max(others, self._for_each_block(X, work, of_trees=of_trees))
        return found, others

    def _warn(self, others: int, rows: int) -> None:
        if others:
            msg = f"in {others:,} of {rows:,} rows {describe_others(self.estimator)}"
            warn_caller(OtherPredictionWarning(msg, others))

    # What can be asked

    def check(self, neighbourhood: Neighbourhood) -> None:
        """Raise if the classifier cannot be perturbed so; the message says why."""
        self._bind(neighbourhood)

    def _bind(self, neighbourhood: Neighbourhood) -> _Question:
        parts, name = neighbourhood.parts, type(self.inside).__name__
        if neighbourhood.coupled:
            msg = f"idm adds records to a naive Bayes model, and {name} is none: take epsilon"
            raise UnsupportedError(msg)
        if parts == "joint":
            msg = (
                f"{neighbourhood.name}: of {name} only p(c | f) is known, and no joint "
                "distribution: leave parts out, and its posterior is perturbed"
            )
            raise UnsupportedError(msg)
        if parts == "all" and name in BOOSTED:
            msg = (
                f"{neighbourhood.name}: the trees of {name} add up scores, and probabilities are "
                "made of the sum: there is no mass function in it to perturb but its posterior; "
                "leave parts out"
            )
            raise UnsupportedError(msg)
        if parts in (None, POSTERIOR, (POSTERIOR,)) or (parts == "all" and not self._is_forest):
            return self._bind_posterior(neighbourhood)
        wanted = (parts,) if isinstance(parts, str) else parts
        for part in wanted or ():
            if part not in ("all", *self.parts) or part == POSTERIOR:
                known = f"{', '.join(self.parts)} (posterior alone) and all"
                msg = f"{name} has no part {part!r} beside others: it has {known}"
                raise UnknownNameError(msg)
        return _Question(neighbourhood.bind(self._votes, ()), of_trees=True)

    def _bind_posterior(self, neighbourhood: Neighbourhood) -> _Question:
        if neighbourhood.sizes == "rows":
            more = ': take parts="all", whose leaves have rows' if self._is_forest else ""
            msg = (
                f"{neighbourhood.name}: sizes by rows need rows, and nobody counted any for the "
                f"posterior of {type(self.inside).__name__}{more}"
            )
            raise UnsupportedError(msg)
        return _Question(bind_posterior(neighbourhood))

    # From tables to leaves

    def _for_each_block(self, X: Any, work: Work, *, of_trees: bool) -> int:
        """Call `work` with leaves, rows that name them, and which rows of X these are.

        Return in how many rows `predict` says another class than the most probable one.
        """
        rows = count_rows(X)
        if not of_trees:
            probs = self._predict(X, rows)
            _for_each_posterior(probs, work)
            return self._count_others(X, probs)
        for start in range(0, rows, TREE_ROWS):
            every = np.arange(start, min(start + TREE_ROWS, rows))
            leaves = self._fall(X if len(every) == rows else take_rows(X, every))
            _for_each_part(self._votes, leaves, start, work)
        return 0

    def _predict(self, X: Any, rows: int) -> Floats:
        probs = predict_probabilities(self.estimator, X)
        if probs.shape != (rows, len(self.classes_)):
            msg = (
                f"{type(self.estimator).__name__}.predict_proba gave the shape {probs.shape} for "
                f"{rows} rows and {len(self.classes_)} classes"
            )
            raise InputError(msg)
        return probs

    def _count_others(self, X: Any, probs: Floats) -> int:
        # A forest's prediction is its most probable class, by definition.
        if self._is_forest or not hasattr(self.estimator, "predict"):
            return 0
        labels = np.asarray(self.estimator.predict(X)).reshape(len(probs), -1)[:, :1]
        own = np.where(labels == self.classes_, probs, -1.0).max(axis=1)
        return int(np.count_nonzero(own < probs.max(axis=1)))

    # Forests that vote

    @cached_property
    def _is_forest(self) -> bool:
        from sklearn.ensemble._forest import ForestClassifier  # noqa: PLC0415 (slow imports)
        from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415

        own = getattr(type(self.inside), "predict_proba", None)
        plain = own in (ForestClassifier.predict_proba, DecisionTreeClassifier.predict_proba)
        return plain and getattr(self.inside, "n_outputs_", None) == 1

    @cached_property
    def _trees(self) -> list[Any]:
        return [tree.tree_ for tree in getattr(self.inside, "estimators_", [self.inside])]

    @cached_property
    def _votes(self) -> Any:
        values = np.concatenate([tree.value[:, 0, :] for tree in self._trees]).astype(np.float64)
        sums = values.sum(axis=1, keepdims=True)
        # Counts in scikit-learn's older trees, shares in newer ones.
        values = np.where(np.abs(sums - 1.0) > 1e-9, values / sums, values)
        rows = np.concatenate([tree.weighted_n_node_samples for tree in self._trees])
        return Votes(np.ascontiguousarray(values), rows.astype(np.float64), len(self._trees))

    def _fall(self, X: Any) -> Rows:
        """Return the leaves that rows fall into."""
        try:
            leaves = np.asarray(self.inside.apply(self._transform(X))).reshape(count_rows(X), -1)
        except (TypeError, ValueError) as error:
            msg = f"{type(self.inside).__name__}.apply did not take this table ({error})"
            raise InputError(msg) from error
        first = np.cumsum([0, *(tree.node_count for tree in self._trees[:-1])])
        return Rows((leaves + first).astype(np.int32), np.empty((len(leaves), 0)))


def describe_others(estimator: Any) -> str:
    """Return in words what it means that `predict` does not follow the probabilities."""
    return (
        f"{type(estimator).__name__}.predict says another class than the most probable one: what "
        "is judged is the most probable one"
    )


def bind_posterior(neighbourhood: Neighbourhood) -> Bound:
    """Return what a neighbourhood means for a posterior: a formula, or the ball as it is."""
    ball = neighbourhood.ball
    if ball.expectation in atoms.FORMULAS:
        return OnAtoms(ball, joint=False)
    return Perturbed(ball, (0,), (), "equal")


def judge_posterior(probs: Floats, neighbourhood: Neighbourhood) -> Floats:
    """Return the robustness of posteriors, (rows,)."""
    found = Quantified.empty(1, len(probs))
    _for_each_posterior(probs, partial(_put, found, [0], [bind_posterior(neighbourhood)]))
    return found.robustness[0]


def _for_each_posterior(probs: Floats, work: Work) -> None:
    numbers = np.arange(len(probs), dtype=np.int32)[:, None]
    leaves = ClassLeaves(np.ascontiguousarray(probs), np.full(len(probs), np.nan))
    _for_each_part(leaves, Rows(numbers, np.empty((len(probs), 0))), 0, work)


def _for_each_part(model: ClassLeaves, rows: Rows, start: int, work: Work) -> None:
    for_each_block(
        lambda part: work(model, rows[part], slice(start + part.start, start + part.stop)),
        len(rows),
        BLOCK_ROWS,
    )


def _put(
    found: Quantified,
    which: list[int],
    bound: list[Bound],
    model: Any,
    rows: Rows,
    at: slice,
) -> None:
    """Write what is found for rows, in the places of some of the balls."""
    part = engine.quantify(model, rows, bound)
    found.prediction[at], found.runner_up[at] = part.prediction, part.runner_up
    found.probability[at] = part.probability
    for index, robustness, tipping in zip(which, part.robustness, part.tipping, strict=True):
        found.robustness[index, at], found.tipping[index, at] = robustness, tipping
