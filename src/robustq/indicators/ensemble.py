"""Several models, each learned from a bootstrap sample."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator

from robustq.blocks import for_each_block
from robustq.exceptions import InputError
from robustq.families.fitted import require_fitted
from robustq.families.labels import read_labels
from robustq.families.parameters import read_random_state
from robustq.families.probabilities import predict_probabilities
from robustq.families.remarks import ignoring_unknown_values, learning_quietly
from robustq.tables.table import count_rows, take_rows

if TYPE_CHECKING:
    from robustq.arrays import Floats, Indices

__all__ = ["BootstrapEnsemble"]

MOST_DRAWS = 1000


class BootstrapEnsemble(BaseEstimator):
    """Copies of a model, each fitted on a bootstrap sample of the training set.

    Parameters
    ----------
    model : estimator
        Any classifier with `predict_proba`; it is copied, not changed.
    n_models : int, default 10
    random_state : int or RandomState, default 0
        Draws the samples; and each copy with a `random_state` of its own gets another one.
    n_jobs : int, optional
        How many copies to fit at once; as many as there are cores by default.

    Attributes
    ----------
    models_ : list of estimators
    classes_ : ndarray
        All labels; a model that never saw one gives it probability 0.

    Notes
    -----
    A sample that holds one class only, where there are several, is drawn again: many classifiers
    cannot be fitted on it.

    Examples
    --------
    >>> from robustq import NaiveBayesClassifier
    >>> X, y = [["a"], ["a"], ["b"], ["b"]], [0, 0, 1, 1]
    >>> ensemble = BootstrapEnsemble(NaiveBayesClassifier(), n_models=3).fit(X, y)
    >>> ensemble.predict_probas([["a"]]).shape
    (3, 1, 2)
    """

    models_: list[Any]
    classes_: np.ndarray[Any, Any]

    def __init__(
        self,
        model: Any,
        n_models: int = 10,
        *,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.n_models = n_models
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> BootstrapEnsemble:
        """Fit the copies.

        Parameters
        ----------
        X : frame or array of shape (rows, features)
        y : sequence of labels

        Returns
        -------
        BootstrapEnsemble
            The ensemble itself.
        """
        if not (isinstance(self.n_models, Integral) and self.n_models >= 1):
            msg = f"n_models must be a whole number of at least 1, got {self.n_models!r}"
            raise InputError(msg)
        if self.n_jobs is not None and not isinstance(self.n_jobs, Integral):
            msg = f"n_jobs must be a whole number or None, got {self.n_jobs!r}"
            raise InputError(msg)
        labels = read_labels(y, count_rows(X))
        classes = np.unique(labels)
        rng = read_random_state(self.random_state)
        samples = [_draw(labels, len(classes), rng) for _ in range(self.n_models)]
        models = [_copy(self.model, rng) for _ in samples]

        def work(block: slice) -> None:
            rows = samples[block.start]
            models[block.start].fit(take_rows(X, rows), labels[rows])

        threads = None if self.n_jobs is None or self.n_jobs < 1 else int(self.n_jobs)
        # What the table looks like is said of the model itself, not of ten samples.
        with learning_quietly():
            for_each_block(work, len(models), 1, threads)
        self.models_ = models
        self.classes_ = classes
        return self

    def predict_probas(self, X: Any) -> Floats:
        """Return what each model predicts, (models, rows, classes).

        Parameters
        ----------
        X : frame or array of shape (rows, features)
        """
        require_fitted(self, "models_")
        return np.stack([self._align(model, X) for model in self.models_])

    def _align(self, model: Any, X: Any) -> Floats:
        with ignoring_unknown_values():
            own = predict_probabilities(model, X)
        probs = np.zeros((len(own), len(self.classes_)))
        probs[:, np.searchsorted(self.classes_, model.classes_)] = own
        return probs


def _copy(model: Any, rng: np.random.RandomState) -> Any:
    if isinstance(model, FrozenEstimator) or not hasattr(model, "fit"):
        msg = f"{model!r} cannot be fitted anew on a sample: give the classifier itself"
        raise InputError(msg)
    copy = clone(model)
    states = {name for name in copy.get_params() if name.split("__")[-1] == "random_state"}
    copy.set_params(**{name: int(rng.randint(2**31)) for name in sorted(states)})
    return copy


def _draw(labels: np.ndarray[Any, Any], classes: int, rng: np.random.RandomState) -> Indices:
    for _ in range(MOST_DRAWS):
        rows = rng.randint(len(labels), size=len(labels))
        if classes == 1 or np.any(labels[rows] != labels[rows[0]]):
            break
    return rows
