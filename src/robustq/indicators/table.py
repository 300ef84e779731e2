"""The one table of indicators: what each is called, what it means, and what it needs."""

from __future__ import annotations

import difflib
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from robustq import perturbations
from robustq.core.neighbourhoods import Neighbourhood, read
from robustq.exceptions import InputError, UnknownNameError
from robustq.perturbations import Perturbation

from . import uncertainty

if TYPE_CHECKING:
    from collections.abc import Callable

    from robustq.arrays import Floats

__all__ = ["Indicator", "get", "names"]

ROBUSTNESS = "r_"
# What may follow a ball's name; for suggestions.
ENDINGS = ("all", "joint", "posterior", "rows", "all_rows")
WORDS = {
    "all": "everything",
    "joint": "the joint distribution",
    "posterior": "the posterior distribution",
}


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
    neighbourhood : Neighbourhood, optional
        What is perturbed, if it is a robustness.
    formula : callable, optional
        Its value from probabilities, (rows, classes) or (models, rows, classes).
    """

    name: str
    meaning: str
    higher: Literal["trusted", "doubted"]
    needs: Literal["robustness", "probabilities", "ensemble"]
    neighbourhood: Neighbourhood | None = None
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
    """Return the names of the plain ones: a robustness for every registered ball, then the rest.

    After a ball's name, endings say what is perturbed, as in `r_tv_all`: `get` knows those too.
    """
    return (*(ROBUSTNESS + ball for ball in perturbations.names()), *_UNCERTAINTY)


def get(indicator: str | Perturbation | Neighbourhood | Indicator) -> Indicator:
    """Return the indicator of a name; of a perturbation or neighbourhood, its robustness.

    Parameters
    ----------
    indicator : str, Perturbation, Neighbourhood or Indicator

    Examples
    --------
    >>> get("u_marg").meaning
    'the largest probability minus the second largest'
    >>> get("r_chi2_all").meaning
    'the smallest size of chi2 that flips the prediction, everything perturbed'
    """
    if isinstance(indicator, Indicator):
        return indicator
    if isinstance(indicator, (Perturbation, Neighbourhood)):
        return _robustness(read(indicator))
    if not isinstance(indicator, str):
        msg = f"an indicator is a name or a Perturbation, got {indicator!r}"
        raise InputError(msg)
    if indicator in _UNCERTAINTY:
        return _UNCERTAINTY[indicator]
    if indicator.startswith(ROBUSTNESS):
        with suppress(UnknownNameError):
            return _robustness(read(indicator.removeprefix(ROBUSTNESS)))
    raise UnknownNameError(_explain(indicator))


def _explain(indicator: str) -> str:
    known = names()
    longer = [f"{name}_{e}" for name in known if name.startswith(ROBUSTNESS) for e in ENDINGS]
    near = difflib.get_close_matches(indicator, [*known, *longer], n=1)
    hint = f" did you mean {near[0]!r}?" if near else ""
    return f"unknown indicator {indicator!r};{hint} known are {', '.join(known)}"


def _robustness(neighbourhood: Neighbourhood) -> Indicator:
    return Indicator(
        ROBUSTNESS + neighbourhood.name,
        f"the smallest {_say(neighbourhood)}",
        "trusted",
        "robustness",
        neighbourhood=neighbourhood,
    )


def _say(neighbourhood: Neighbourhood) -> str:
    if neighbourhood.coupled:
        return "number of training records that, added to the data, can flip the prediction"
    said = f"size of {neighbourhood.ball.name} that flips the prediction"
    parts = neighbourhood.parts
    if isinstance(parts, str):
        said += f", {WORDS.get(parts, parts)} perturbed"
    elif parts is not None:
        said += f", {' and '.join(parts)} perturbed"
    return said + (", sizes by rows" if neighbourhood.sizes == "rows" else "")
