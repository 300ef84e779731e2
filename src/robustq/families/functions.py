"""The questions as functions, for any fitted classifier."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from robustq.core.neighbourhoods import DEFAULT_PERTURBATIONS, read
from robustq.exceptions import UnsupportedError
from robustq.tables.frames import index_of

from .base import GenerativeClassifier
from .fitted import NotFittedError
from .others import OtherClassifier, judge_posterior
from .probabilities import check_probabilities, require_probabilities

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import ArrayLike

    from robustq.arrays import Bools, Floats
    from robustq.core.assessment import Assessment
    from robustq.core.neighbourhoods import PerturbationLike
    from robustq.explaining.counterfactuals import Counterfactuals
    from robustq.explaining.explanation import Explanations

__all__ = [
    "assess",
    "counterfactuals",
    "credal_predict",
    "explain",
    "find_subject",
    "is_robust",
    "posterior_bounds",
    "posterior_robustness",
    "robustness",
    "witness",
]


def robustness(
    model: Any,
    X: Any,
    perturbation: PerturbationLike = "tv",
    *,
    parts: str | Iterable[str] | None = None,
    sizes: str | None = None,
) -> Floats:
    """Return how large a perturbation flips each prediction of a model.

    Parameters
    ----------
    model : estimator
        A fitted classifier: one of robustq's, also within pipelines and searches; or any other with
        `predict_proba`, whose posterior is perturbed. What is judged is the most probable class; a
        warning counts the rows where `predict` says another.
    X : frame or array of shape (rows, features)
    perturbation : str or Perturbation
    parts, sizes : optional
        See `GenerativeClassifier.robustness`. Of scikit-learn's forests and trees "all" are the
        weights of the trees ("root") and the class distributions of leaves ("leaf_classes").

    Returns
    -------
    ndarray of shape (rows,)
        See `GenerativeClassifier.robustness`.
    """
    subject, transform = find_subject(model)
    return subject.robustness(transform(X), perturbation, parts=parts, sizes=sizes)


def assess(
    model: Any,
    X: Any,
    perturbations: PerturbationLike | Iterable[PerturbationLike] = DEFAULT_PERTURBATIONS,
    *,
    parts: str | Iterable[str] | None = None,
    sizes: str | None = None,
) -> Assessment:
    """Return for each row the prediction, its probability, its robustness and its rivals.

    Parameters
    ----------
    model : estimator
        As in `robustness`.
    X : frame or array of shape (rows, features)
    perturbations : sequence of str or Perturbation
    parts, sizes : optional
        See `GenerativeClassifier.robustness`.

    Returns
    -------
    Assessment
    """
    subject, transform = find_subject(model)
    assessment = subject.assess(transform(X), perturbations, parts=parts, sizes=sizes)
    # The steps of a pipeline may have lost it.
    index = index_of(X)
    return assessment if index is None else replace(assessment, index=index)


def is_robust(
    model: Any,
    X: Any,
    perturbation: PerturbationLike,
    delta: ArrayLike,
    *,
    parts: str | Iterable[str] | None = None,
    sizes: str | None = None,
) -> Bools:
    """Tell for each row whether no perturbation of size delta flips the prediction.

    Parameters
    ----------
    model : estimator
        As in `robustness`.
    X : frame or array of shape (rows, features)
    perturbation : str or Perturbation
    delta : float or array_like of shape (rows,)
    parts, sizes : optional
        See `GenerativeClassifier.robustness`.

    Returns
    -------
    ndarray of bool, of shape (rows,)
    """
    subject, transform = find_subject(model)
    return subject.is_robust(transform(X), perturbation, delta, parts=parts, sizes=sizes)


def credal_predict(
    model: Any,
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
    model : estimator
        As in `robustness`.
    X : frame or array of shape (rows, features)
    perturbation : str or Perturbation
    delta : float or array_like of shape (rows,)
    parts, sizes : optional
        See `GenerativeClassifier.robustness`.
    rule : {"maximality", "interval"}
        See `GenerativeClassifier.credal_predict`.

    Returns
    -------
    ndarray of bool, of shape (rows, classes)
    """
    subject, transform = find_subject(model)
    return subject.credal_predict(
        transform(X), perturbation, delta, parts=parts, sizes=sizes, rule=rule
    )


def posterior_bounds(
    model: Any,
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
    model : estimator
        As in `robustness`.
    X : frame or array of shape (rows, features)
    perturbation : str or Perturbation
    delta : float or array_like of shape (rows,)
    parts, sizes : optional
        See `GenerativeClassifier.robustness`.

    Returns
    -------
    lower, upper : ndarray of shape (rows, classes)
    """
    subject, transform = find_subject(model)
    return subject.posterior_bounds(transform(X), perturbation, delta, parts=parts, sizes=sizes)


def posterior_robustness(proba: Any, perturbation: PerturbationLike = "tv") -> Floats:
    """Return how large a perturbation of a posterior makes another class the most probable.

    Parameters
    ----------
    proba : array_like of shape (rows, classes)
        p(c | f), of any model; rows sum to 1.
    perturbation : str or Perturbation

    Returns
    -------
    ndarray of shape (rows,)
        0 for a tie, infinite where no size flips it.

    Examples
    --------
    >>> posterior_robustness([[0.7, 0.2, 0.1], [0.4, 0.4, 0.2]], "tv").round(3).tolist()
    [0.25, 0.0]
    """
    neighbourhood = read(perturbation)
    if neighbourhood.parts not in (None, "posterior", "all") or neighbourhood.sizes == "rows":
        msg = (
            f"{neighbourhood.name}: a posterior is one mass function as a whole, with no rows "
            f"behind it: take {neighbourhood.ball.name!r}"
        )
        raise UnsupportedError(msg)
    return judge_posterior(check_probabilities(proba), neighbourhood)


def explain(
    model: Any,
    X: Any,
    perturbation: PerturbationLike = "tv",
    *,
    parts: str | Iterable[str] | None = None,
    sizes: str | None = None,
) -> Explanations:
    """Return for each row what its prediction hangs on, and the nearest model that disagrees.

    Parameters
    ----------
    model : estimator
        Of a pipeline, features are those that its last step sees. Of somebody else's classifier
        nothing is known but its posterior: there are no features, and the nearest posterior.
    X : frame or array of shape (rows, features)
    perturbation : str or Perturbation
    parts, sizes : optional
        See `GenerativeClassifier.robustness`.

    Returns
    -------
    Explanations
    """
    subject, transform = find_subject(model)
    return subject.explain(transform(X), perturbation, parts=parts, sizes=sizes)


def witness(
    model: Any,
    X: Any,
    perturbation: PerturbationLike = "tv",
    *,
    parts: str | Iterable[str] | None = None,
    sizes: str | None = None,
) -> GenerativeClassifier:
    """Return the nearest model of the same kind that no longer prefers the prediction of a row.

    Parameters
    ----------
    model : GenerativeClassifier or Pipeline
        Of a pipeline, the witness stands for the last step.
    X : frame or array of shape (1, features)
    perturbation : str or Perturbation
    parts, sizes : optional
        See `GenerativeClassifier.robustness`.

    Returns
    -------
    GenerativeClassifier
    """
    classifier, transform = _find_ours(model, "witness")
    return classifier.witness(transform(X), perturbation, parts=parts, sizes=sizes)


def counterfactuals(
    model: Any, X: Any, perturbation: PerturbationLike = "tv", **options: Any
) -> Counterfactuals:
    """Return the smallest changes of values that flip the prediction of a row.

    Parameters
    ----------
    model : GenerativeClassifier or Pipeline
        Of a pipeline, values are those that its last step sees.
    X : frame or array of shape (1, features)
    perturbation : str or Perturbation
    **options
        Those of `GenerativeClassifier.counterfactuals`.

    Returns
    -------
    Counterfactuals
    """
    classifier, transform = _find_ours(model, "counterfactuals")
    return classifier.counterfactuals(transform(X), perturbation, **options)


# From a fitted estimator to what can be asked


def find_subject(
    model: Any,
) -> tuple[GenerativeClassifier | OtherClassifier, Callable[[Any], Any]]:
    """Return who is to be asked about a model, and what makes a table ready for them.

    That is one of our classifiers, also within pipelines and searches; or else somebody else's,
    which is judged by what it predicts itself.
    """
    steps, inside = _look_inside(model)

    def transform(X: Any) -> Any:
        for step in steps:
            X = _transform(step, X)
        return X

    if isinstance(inside, GenerativeClassifier):
        return inside, transform
    if not hasattr(model, "predict_proba"):
        _explain_search(model)
    require_probabilities(model)
    return OtherClassifier(model, inside, transform), lambda X: X


def _look_inside(model: Any) -> tuple[list[Any], Any]:
    """Return what transforms tables, and the classifier at the end of pipelines and searches."""
    from sklearn.frozen import FrozenEstimator  # noqa: PLC0415 (slow imports, needed here only)
    from sklearn.model_selection._search import BaseSearchCV  # noqa: PLC0415
    from sklearn.pipeline import Pipeline  # noqa: PLC0415

    steps = []
    while True:
        if isinstance(model, Pipeline):
            steps += [model[:-1]] if len(model.steps) > 1 else []
            model = model[-1]
        elif isinstance(model, FrozenEstimator):
            # A fitted one that copies leave alone.
            model = model.estimator
        elif isinstance(model, BaseSearchCV) and hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        else:
            return steps, model


def _explain_search(model: Any) -> None:
    if hasattr(model, "cv_results_"):
        msg = f"{type(model).__name__} was fitted with refit=False: there is no model to judge"
        raise UnsupportedError(msg)
    if hasattr(model, "param_grid") or hasattr(model, "param_distributions"):
        msg = f"this {type(model).__name__} is not fitted yet: call its fit first"
        raise NotFittedError(msg)


def _find_ours(model: Any, question: str) -> tuple[GenerativeClassifier, Callable[[Any], Any]]:
    """Return one of our classifiers, of which more than a posterior is known."""
    subject, transform = find_subject(model)
    if isinstance(subject, GenerativeClassifier):
        return subject, transform
    name = type(subject.inside).__name__
    msg = (
        f"{question}: of {name} only p(c | f) is known, and not what it is made of: ask assess "
        "for its rivals and how far away they are, or fit one of robustq's models"
    )
    raise UnsupportedError(msg)


def _transform(pipeline: Any, X: Any) -> Any:
    try:
        return pipeline.transform(X)
    except SklearnNotFittedError as error:
        raise NotFittedError(str(error)) from error
