"""The questions as functions, for a classifier or for a pipeline that ends in one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from robustq.core.neighbourhoods import DEFAULT_PERTURBATIONS
from robustq.exceptions import UnsupportedError
from robustq.tables.frames import index_of

from .base import GenerativeClassifier, NotFittedError

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    "is_robust",
    "posterior_bounds",
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
    model : GenerativeClassifier or Pipeline
        Fitted; of a pipeline, the last step must be a robustq classifier.
    X : frame or array of shape (rows, features)
    perturbation : str or Perturbation
    parts, sizes : optional
        See `GenerativeClassifier.robustness`.

    Returns
    -------
    ndarray of shape (rows,)
        See `GenerativeClassifier.robustness`.
    """
    classifier, table = _unpack(model, X)
    return classifier.robustness(table, perturbation, parts=parts, sizes=sizes)


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
    model : GenerativeClassifier or Pipeline
    X : frame or array of shape (rows, features)
    perturbations : sequence of str or Perturbation
    parts, sizes : optional
        See `GenerativeClassifier.robustness`.

    Returns
    -------
    Assessment
    """
    classifier, table = _unpack(model, X)
    assessment = classifier.assess(table, perturbations, parts=parts, sizes=sizes)
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
    model : GenerativeClassifier or Pipeline
    X : frame or array of shape (rows, features)
    perturbation : str or Perturbation
    delta : float or array_like of shape (rows,)
    parts, sizes : optional
        See `GenerativeClassifier.robustness`.

    Returns
    -------
    ndarray of bool, of shape (rows,)
    """
    classifier, table = _unpack(model, X)
    return classifier.is_robust(table, perturbation, delta, parts=parts, sizes=sizes)


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
    model : GenerativeClassifier or Pipeline
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
    classifier, table = _unpack(model, X)
    return classifier.credal_predict(
        table, perturbation, delta, parts=parts, sizes=sizes, rule=rule
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
    model : GenerativeClassifier or Pipeline
    X : frame or array of shape (rows, features)
    perturbation : str or Perturbation
    delta : float or array_like of shape (rows,)
    parts, sizes : optional
        See `GenerativeClassifier.robustness`.

    Returns
    -------
    lower, upper : ndarray of shape (rows, classes)
    """
    classifier, table = _unpack(model, X)
    return classifier.posterior_bounds(table, perturbation, delta, parts=parts, sizes=sizes)


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
    model : GenerativeClassifier or Pipeline
        Of a pipeline, features are those that its last step sees.
    X : frame or array of shape (rows, features)
    perturbation : str or Perturbation
    parts, sizes : optional
        See `GenerativeClassifier.robustness`.

    Returns
    -------
    Explanations
    """
    classifier, table = _unpack(model, X)
    return classifier.explain(table, perturbation, parts=parts, sizes=sizes)


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
    classifier, table = _unpack(model, X)
    return classifier.witness(table, perturbation, parts=parts, sizes=sizes)


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
    classifier, table = _unpack(model, X)
    return classifier.counterfactuals(table, perturbation, **options)


def _transform(pipeline: Any, X: Any) -> Any:
    try:
        return pipeline.transform(X)
    except SklearnNotFittedError as error:
        raise NotFittedError(str(error)) from error


def _unpack(model: Any, X: Any) -> tuple[GenerativeClassifier, Any]:
    """Return the classifier at the end of a pipeline, and X as it arrives there."""
    from sklearn.frozen import FrozenEstimator  # noqa: PLC0415 (slow imports, needed here only)
    from sklearn.pipeline import Pipeline  # noqa: PLC0415

    classifier = model
    if isinstance(model, Pipeline):
        if len(model.steps) > 1:
            X = _transform(model[:-1], X)
        classifier = model[-1]
    # A frozen estimator is a fitted one that copies leave alone.
    classifier = classifier.estimator if isinstance(classifier, FrozenEstimator) else classifier
    if not isinstance(classifier, GenerativeClassifier):
        msg = (
            f"{type(classifier).__name__} has no robustness: robustq knows its own classifiers, "
            "and pipelines that end in one"
        )
        raise UnsupportedError(msg)
    return classifier, X
