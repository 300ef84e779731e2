"""A classifier that abstains where its error could not be bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator

from robustq.exceptions import InputError, NoGuaranteeWarning, warn_caller
from robustq.families.fitted import NotFittedError, require_fitted
from robustq.families.labels import Scoring, read_labels
from robustq.families.parameters import read_random_state
from robustq.families.probabilities import predict_probabilities
from robustq.indicators import BootstrapEnsemble, compute, get
from robustq.tables.table import count_rows, take_rows

from .choosing import AUTO, list_candidates
from .gates import Promise, make_gate, require_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robustq.arrays import Bools, Floats, Indices
    from robustq.perturbations import Perturbation

    from .choosing import Choice
    from .gates import Gate
    from .thresholds import Calibration, Promises

__all__ = ["SelectiveClassifier"]


class SelectiveClassifier(Scoring, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Accept only predictions whose error is bounded, and abstain from the others.

    A part of the data is kept aside; on it the loosest threshold of an indicator is found at which
    the error of the accepted predictions is at most `max_error`, with the confidence stated. The
    guarantee rests on one assumption: that the data to come are *exchangeable* with those kept
    aside — drawn from the same source, in the same way. It is about the mean over all accepted
    predictions to come, not about any single one or any subgroup.

    Parameters
    ----------
    estimator : estimator
        Any classifier with `predict_proba`. It is copied and fitted. If it is already fitted, wrap
        it in `sklearn.frozen.FrozenEstimator`: then all data given to fit serve to calibrate, and
        must be new to it.
    indicator : str or Perturbation, default "r_tv"
        What to trust: see `robustq.indicators.names`; "r_tv_all" and the like too. "auto" takes
        a quarter of the rows kept aside to choose among the probability, the robustness in tv (of
        what the paper perturbs, and of everything) and both, their ranks added.
    max_error : float, default 0.05
        The largest share of wrong predictions among those accepted.
    confidence : float, default 0.95
        The probability, over the data kept aside, that the guarantee holds.
    calibration_size : float, default 0.5
        The share of the data that is kept aside.
    ensemble : BootstrapEnsemble, optional
        Fitted, for `u_t`, `u_a` and `u_e` of a frozen estimator (in a `FrozenEstimator` itself, so
        that copies keep it); for others one is made.
    random_state : int or RandomState, default 0
        Picks the part that is kept aside.

    Attributes
    ----------
    estimator_ : estimator
        The fitted classifier.
    classes_ : ndarray
        The labels that the estimator knows.
    threshold_ : float
        Predictions with a higher score are accepted; infinite if none is.
    accepts_all_ : bool
        Whether even accepting everything is safe.
    guaranteed_ : bool
        Whether there is a guarantee.
    error_bound_ : float
        What the error is at most, with the confidence stated: `max_error`, NaN without a guarantee.
    coverage_ : float
        The share of the calibration data that is accepted.
    calibration_ : Calibration
        What was found at each threshold.
    promises_ : Promises
        Which errors could be promised, and at which coverage.
    choice_ : Choice
        What is trusted, and why.
    gate_ : Gate
        Who is accepted.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from robustq import NaiveBayesClassifier, SelectiveClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SelectiveClassifier(NaiveBayesClassifier(1.0), max_error=0.08).fit(X[:400], y[:400])
    >>> accepted = model.accepts(X[400:])
    >>> float((model.predict(X[400:]) == y[400:])[accepted].mean().round(2))
    0.97
    """

    estimator_: Any
    classes_: np.ndarray[Any, Any]
    calibration_: Calibration
    promises_: Promises
    choice_: Choice
    gate_: Gate

    def __init__(
        self,
        estimator: Any,
        indicator: str | Perturbation = "r_tv",
        max_error: float = 0.05,
        confidence: float = 0.95,
        *,
        calibration_size: float = 0.5,
        ensemble: BootstrapEnsemble | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.estimator = estimator
        self.indicator = indicator
        self.max_error = max_error
        self.confidence = confidence
        self.calibration_size = calibration_size
        self.ensemble = ensemble
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> SelectiveClassifier:
        """Fit the estimator on a part of the data and calibrate it on the rest.

        Parameters
        ----------
        X : frame or array of shape (rows, features)
        y : sequence of labels

        Returns
        -------
        SelectiveClassifier
            The classifier itself.
        """
        self._check_parameters()
        labels = read_labels(y, count_rows(X))
        if isinstance(self.estimator, FrozenEstimator):
            self.estimator_, self.ensemble_ = self.estimator.estimator, self.ensemble
            if not hasattr(self.estimator_, "classes_"):
                msg = f"the frozen {type(self.estimator_).__name__} is not fitted: fit it first"
                raise NotFittedError(msg)
            return self._calibrate(X, labels)
        rng = read_random_state(self.random_state)
        aside = self._split(labels, rng)
        rest = np.setdiff1d(np.arange(len(labels)), aside)
        train, own = take_rows(X, rest), labels[rest]
        self.estimator_ = clone(self.estimator).fit(train, own)
        self.ensemble_ = None
        if not self._is_auto and get(self.indicator).needs == "ensemble":
            self.ensemble_ = BootstrapEnsemble(self.estimator, random_state=rng).fit(train, own)
        return self._calibrate(take_rows(X, aside), labels[aside], rng)

    def _calibrate(
        self, X: Any, labels: np.ndarray[Any, Any], rng: np.random.RandomState | None = None
    ) -> SelectiveClassifier:
        self.classes_ = self.estimator_.classes_
        if hasattr(self.estimator_, "n_features_in_"):
            self.n_features_in_ = self.estimator_.n_features_in_
        if hasattr(self.estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.estimator_.feature_names_in_
        correct = np.asarray(self.estimator_.predict(X)).reshape(len(labels)) == labels
        promise = Promise(self.max_error, self.confidence)
        candidates, asked = self._list_candidates()
        rng = read_random_state(self.random_state) if rng is None else rng
        made = make_gate(correct, self._scores(X, asked), promise, candidates, rng)
        self.gate_, self.calibration_, self.promises_, self.choice_ = made
        self.threshold_ = self.gate_.threshold
        self.accepts_all_ = self.gate_.inclusive
        self.guaranteed_ = self.gate_.bound is not None
        self.error_bound_ = np.nan if self.gate_.bound is None else self.gate_.bound
        self.coverage_ = self.gate_.accepted
        if not self.guaranteed_:
            self._warn()
        return self

    def _list_candidates(self) -> tuple[list[tuple[str, ...]], list[Any]]:
        """Return what the gate may go by, and the indicators that takes."""
        if self._is_auto:
            candidates = list_candidates(self.estimator_)
            return candidates, list(dict.fromkeys(name for c in candidates for name in c))
        return [(get(self.indicator).name,)], [self.indicator]

    @property
    def _is_auto(self) -> bool:
        return isinstance(self.indicator, str) and self.indicator == AUTO

    def _warn(self) -> None:
        least = float(self.calibration_.bounds.min())
        msg = (
            f"no threshold guarantees an error of at most {self.max_error:g} with confidence "
            f"{self.confidence:g} on {self.calibration_.rows} calibration rows (the best bound is "
            f"{least:.3g}): "
            "nothing will be accepted. Allow a larger error, or calibrate on more data"
        )
        warn_caller(NoGuaranteeWarning(msg))

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the labels the estimator predicts, accepted or not: see `accepts`."""
        require_fitted(self, "calibration_")
        return np.asarray(self.estimator_.predict(X))

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities the estimator predicts."""
        require_fitted(self, "calibration_")
        return predict_probabilities(self.estimator_, X)

    def accepts(self, X: Any) -> Bools:
        """Tell which predictions are accepted.

        Parameters
        ----------
        X : frame or array of shape (rows, features)

        Returns
        -------
        ndarray of bool, of shape (rows,)
        """
        require_fitted(self, "calibration_")
        names = self.gate_.ranking.indicators if self._is_auto else [self.indicator]
        return self.gate_.accepts(self._scores(X, names))

    def _scores(self, X: Any, names: Sequence[Any]) -> dict[str, Floats]:
        return compute(self.estimator_, X, names, ensemble=self.ensemble_)

    def _check_parameters(self) -> None:
        if not self._is_auto:
            get(self.indicator)
        if not hasattr(self.estimator, "fit"):
            msg = f"estimator must be a classifier, got {self.estimator!r}"
            raise InputError(msg)
        if self.ensemble is not None and not isinstance(self.estimator, FrozenEstimator):
            msg = "an ensemble can be given for a frozen estimator only; for others one is made"
            raise InputError(msg)
        Promise(self.max_error, self.confidence)
        require_share("calibration_size", self.calibration_size)

    def _split(self, labels: np.ndarray[Any, Any], rng: np.random.RandomState) -> Indices:
        """Return the rows to keep aside, a share of them all at random.

        Not class by class: the guarantee needs an independent sample, and quotas are none.
        """
        count = round(float(self.calibration_size) * len(labels))
        if not 0 < count < len(labels):
            msg = (
                f"n_samples={len(labels)} cannot be split into a part to learn from and one to "
                f"calibrate on (calibration_size={self.calibration_size:g}): give more rows"
            )
            raise InputError(msg)
        return np.sort(rng.permutation(len(labels))[:count])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = getattr(self.estimator, "__sklearn_tags__", None)
        if inner is not None:
            tags.input_tags = inner().input_tags
        return tags
