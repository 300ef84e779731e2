"""Indicators of a model's predictions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from robustq.families.functions import assess
from robustq.exceptions import InputError
from robustq.perturbations import Perturbation

from . import table
from .probabilities import predict_probabilities
from .table import Indicator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robustq.arrays import Floats

    from .ensemble import BootstrapEnsemble

__all__ = ["compute", "measure"]


def compute(
    model: Any,
    X: Any,
    names: str | Perturbation | Indicator | Sequence[str | Perturbation | Indicator],
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
    names: str | Perturbation | Indicator | Sequence[str | Perturbation | Indicator],
    ensemble: BootstrapEnsemble | None = None,
) -> dict[str, Floats]:
    """Return the values of indicators as the literature has them.

    Parameters and result are those of `compute`; here a high value of `u_max`, `u_H`, `u_t`,
    `u_a` or `u_e` means doubt.
    """
    wanted = _read(names)
    values = _measure(model, X, wanted, ensemble)
    return {indicator.name: values[indicator.name] for indicator in wanted}


def _measure(
    model: Any, X: Any, wanted: list[Indicator], ensemble: BootstrapEnsemble | None
) -> dict[str, Floats]:
    values = _measure_robustness(model, X, wanted)
    for indicator in wanted:
        if indicator.needs == "ensemble" and not hasattr(ensemble, "predict_probas"):
            msg = (
                f"{indicator.name} needs several models: fit a BootstrapEnsemble on the training "
                "set and give it as ensemble="
            )
            raise InputError(msg)
    # Each source is asked once, and only if anybody needs it.
    if own := [i for i in wanted if i.needs == "probabilities"]:
        probs = predict_probabilities(model, X)
        values |= {i.name: i.formula(probs) for i in own if i.formula}
    shared = [i for i in wanted if i.needs == "ensemble"]
    if shared and ensemble is not None:
        probs = ensemble.predict_probas(X)
        values |= {i.name: i.formula(probs) for i in shared if i.formula}
    return values


def _read(names: Any) -> list[Indicator]:
    if isinstance(names, (str, Perturbation, Indicator)):
        names = [names]
    if not isinstance(names, Iterable):
        msg = f"names must be a list of indicators, got {names!r}"
        raise InputError(msg)
    given = list(names)
    wanted = [table.get(name) for name in given]
    twice = {i.name for i in wanted if sum(i.name == other.name for other in wanted) > 1}
    if twice:
        msg = f"each indicator can be named once, got {', '.join(sorted(twice))} again"
        raise InputError(msg)
    return wanted


def _measure_robustness(model: Any, X: Any, wanted: list[Indicator]) -> dict[str, Floats]:
    balls = {i.name: i.perturbation for i in wanted if i.perturbation is not None}
    if not balls:
        return {}
    found = assess(model, X, list(balls.values())).robustness
    return {name: found[ball.name] for name, ball in balls.items()}
