"""Indicators of a model's predictions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax

from robustq.core.neighbourhoods import Neighbourhood
from robustq.exceptions import InputError
from robustq.families.functions import assess
from robustq.perturbations import Perturbation

from . import table
from .probabilities import predict_probabilities
from .table import Indicator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robustq.arrays import Bools, Floats
    from robustq.core.assessment import Assessment
    from robustq.families.base import GenerativeClassifier

    from .ensemble import BootstrapEnsemble

    IndicatorLike = str | Perturbation | Neighbourhood | Indicator

__all__ = ["Examined", "compute", "examine", "measure"]


def compute(
    model: Any,
    X: Any,
    names: IndicatorLike | Sequence[IndicatorLike],
    ensemble: BootstrapEnsemble | None = None,
) -> dict[str, Floats]:
    """Return scores of the predictions, higher ones more trusted.

    Parameters
    ----------
    model : estimator
        A robustq classifier (also in a pipeline) for a robustness, any classifier with
        `predict_proba` for `u_max`, `u_marg` and `u_H`.
    X : frame or array of shape (rows, features)
    names : sequence of str or Perturbation
        See `names`.
    ensemble : BootstrapEnsemble, optional
        Fitted; `u_t`, `u_a` and `u_e` need it.

    Returns
    -------
    dict of str to ndarray of shape (rows,)
    """
    wanted = _read(names)
    values = _measure(model, X, wanted, ensemble)
    return {indicator.name: indicator.as_trust(values[indicator.name]) for indicator in wanted}


def measure(
    model: Any,
    X: Any,
    names: IndicatorLike | Sequence[IndicatorLike],
    ensemble: BootstrapEnsemble | None = None,
) -> dict[str, Floats]:
    """Return the values of indicators as the literature has them.

    Parameters and result are those of `compute`; here a high value of `u_max`, `u_H`, `u_t`,
    `u_a` or `u_e` means doubt.
    """
    return _measure(model, X, _read(names), ensemble)


@dataclass(frozen=True, eq=False)
class Examined:
    """What a model says of rows, all of it from one look at them.

    Attributes
    ----------
    assessment : Assessment
    possible : ndarray of bool, of shape (rows,)
        Whether a row has a probability above 0 under some class.
    values : dict of str to ndarray of shape (rows,)
        The indicators as the literature has them.
    scores : dict of str to ndarray of shape (rows,)
        The same, higher ones more trusted.
    """

    assessment: Assessment
    possible: Bools
    values: dict[str, Floats]
    scores: dict[str, Floats]


def examine(
    classifier: GenerativeClassifier,
    X: Any,
    names: Sequence[IndicatorLike],
    ensemble: BootstrapEnsemble | None = None,
    *,
    more: Sequence[Neighbourhood] = (),
) -> Examined:
    """Return predictions and indicators of them; nothing is said about unknown values.

    Parameters
    ----------
    classifier : GenerativeClassifier
    X : frame or array of shape (rows, features)
    names : sequence of str or Indicator
    ensemble : BootstrapEnsemble, optional
    more : sequence of Neighbourhood
        To be assessed besides.
    """
    wanted = _read(names)
    _require_ensemble(wanted, ensemble)
    asked = {n.name: n for n in (*_neighbourhoods(wanted), *more)}
    assessment, joint = classifier.examine(X, list(asked.values()))
    possible = joint.max(axis=1) > -np.inf
    # Where p(f) = 0 all classes are equally likely.
    probs = softmax(np.where(possible[:, None], joint, 0.0), axis=1)
    values = _read_off(wanted, assessment.robustness, probs, ensemble, X)
    scores = {indicator.name: indicator.as_trust(values[indicator.name]) for indicator in wanted}
    return Examined(assessment, possible, values, scores)


def _measure(
    model: Any, X: Any, wanted: list[Indicator], ensemble: BootstrapEnsemble | None
) -> dict[str, Floats]:
    _require_ensemble(wanted, ensemble)
    # Each source is asked once, and only if anybody needs it.
    neighbourhoods = _neighbourhoods(wanted)
    robustness = assess(model, X, neighbourhoods).robustness if neighbourhoods else {}
    needed = any(indicator.needs == "probabilities" for indicator in wanted)
    probs = predict_probabilities(model, X) if needed else None
    return _read_off(wanted, robustness, probs, ensemble, X)


def _neighbourhoods(wanted: list[Indicator]) -> list[Neighbourhood]:
    return [i.neighbourhood for i in wanted if i.neighbourhood is not None]


def _read_off(
    wanted: list[Indicator],
    robustness: dict[str, Floats],
    probs: Floats | None,
    ensemble: BootstrapEnsemble | None,
    X: Any,
) -> dict[str, Floats]:
    """Return the values of indicators, from what a model said."""
    several = None
    if ensemble is not None and any(indicator.needs == "ensemble" for indicator in wanted):
        several = ensemble.predict_probas(X)
    values = {}
    for indicator in wanted:
        given = several if indicator.needs == "ensemble" else probs
        if indicator.neighbourhood is not None:
            values[indicator.name] = robustness[indicator.neighbourhood.name]
        elif indicator.formula is not None and given is not None:
            values[indicator.name] = indicator.formula(given)
    return values


def _require_ensemble(wanted: list[Indicator], ensemble: Any) -> None:
    for indicator in wanted:
        if indicator.needs == "ensemble" and not hasattr(ensemble, "predict_probas"):
            msg = (
                f"{indicator.name} needs several models: fit a BootstrapEnsemble on the training "
                "set and give it as ensemble="
            )
            raise InputError(msg)


def _read(names: Any) -> list[Indicator]:
    if isinstance(names, (str, Perturbation, Neighbourhood, Indicator)):
        names = [names]
    if not isinstance(names, Iterable) or getattr(names, "ndim", 1) == 0:
        msg = f"names must be a list of indicators, got {names!r}"
        raise InputError(msg)
    wanted = [table.get(name) for name in names]
    given = [indicator.name for indicator in wanted]
    twice = {name for name in given if given.count(name) > 1}
    if twice:
        msg = f"each indicator can be named once, got {', '.join(sorted(twice))} again"
        raise InputError(msg)
    return wanted
