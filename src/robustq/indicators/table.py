"""The one table of indicators: what each is called, what it means, and what it needs."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from robustq import perturbations
from robustq.exceptions import InputError, UnknownNameError
from robustq.perturbations import Perturbation

from . import uncertainty

if TYPE_CHECKING:
    from collections.abc import Callable

    from robustq.arrays import Floats

__all__ = ["Indicator", "get", "names"]

ROBUSTNESS = "r_"


@dataclass(frozen=True)
class Indicator:
    """A number that should tell which predictions to trust.

    Attributes
    ----------
    name : str
        Its name in the literature.
    meaning : str
    higher : {"trusted", "doubted"}
        What a high value means.
    needs : {"robustness", "probabilities", "ensemble"}
        A robustq classifier, any classifier's `predict_proba`, or a `BootstrapEnsemble`.
    perturbation : Perturbation, optional
        The ball, if it is a robustness.
    formula : callable, optional
        Its value from probabilities, (rows, classes) or (models, rows, classes).
    """

    name: str
    meaning: str
    higher: Literal["trusted", "doubted"]
    needs: Literal["robustness", "probabilities", "ensemble"]
    perturbation: Perturbation | None = None
    formula: Callable[[Floats], Floats] | None = None

    def as_trust(self, values: Floats) -> Floats:
        """Return values of this indicator so that higher ones are trusted more."""
        return values if self.higher == "trusted" else 0.0 - values


_UNCERTAINTY = {
    indicator.name: indicator
    for indicator in (
        Indicator(
            *("u_max", "one minus the largest probability", "doubted", "probabilities"),
            formula=uncertainty.rest,
        ),
        Indicator(
            *("u_marg", "the largest probability minus the second largest", "trusted"),
            "probabilities",
            formula=uncertainty.margin,
        ),
        Indicator(
            *("u_H", "the entropy of the probabilities, in nats", "doubted", "probabilities"),
            formula=uncertainty.entropy,
        ),
        Indicator(
            *("u_t", "total: the entropy of the models' mean distribution", "doubted", "ensemble"),
            formula=uncertainty.total,
        ),
        Indicator(
            *("u_a", "aleatoric: the mean of the models' entropies", "doubted", "ensemble"),
            formula=uncertainty.aleatoric,
        ),
        Indicator(
            *("u_e", "epistemic: total minus aleatoric, the mutual information", "doubted"),
            "ensemble",
            formula=uncertainty.epistemic,
        ),
    )
}


def names() -> tuple[str, ...]:
    """Return the names that `get` knows: a robustness for every registered ball, then the rest."""
    return (*(ROBUSTNESS + ball for ball in perturbations.names()), *_UNCERTAINTY)


def get(indicator: str | Perturbation | Indicator) -> Indicator:
    """Return the indicator of a name; of a perturbation, its robustness.

    Parameters
    ----------
    indicator : str, Perturbation or Indicator

    Examples
    --------
    >>> get("u_marg").meaning
    'the largest probability minus the second largest'
    >>> get("r_chi2").perturbation
    ChiSquared()
    """
    if isinstance(indicator, Indicator):
        return indicator
    if isinstance(indicator, Perturbation):
        return _robustness(indicator)
    if not isinstance(indicator, str):
        msg = f"an indicator is a name or a Perturbation, got {indicator!r}"
        raise InputError(msg)
    if indicator in _UNCERTAINTY:
        return _UNCERTAINTY[indicator]
    ball = indicator.removeprefix(ROBUSTNESS)
    if indicator.startswith(ROBUSTNESS) and ball in perturbations.names():
        return _robustness(perturbations.get(ball))
    near = difflib.get_close_matches(indicator, names(), n=1)
    hint = f" did you mean {near[0]!r}?" if near else ""
    msg = f"unknown indicator {indicator!r};{hint} known are {', '.join(names())}"
    raise UnknownNameError(msg)


def _robustness(ball: Perturbation) -> Indicator:
    return Indicator(
        ROBUSTNESS + ball.name,
        f"the smallest size of {ball.name} that flips the prediction",
        "trusted",
        "robustness",
        perturbation=ball,
    )
