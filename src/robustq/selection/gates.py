"""Who is accepted: one gate for the command, for model files and for `SelectiveClassifier`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.exceptions import ParameterError
from robustq.families.parameters import is_between
from robustq.indicators.table import ROBUSTNESS

from .thresholds import Calibration, calibrate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from robustq.arrays import Bools, Floats

__all__ = ["Gate", "Promise", "calibrate_gate", "require_share"]

LOWEST = -1.0  # every robustness is above: what stands for −∞, which JSON does not have


@dataclass(frozen=True)
class Promise:
    """What a gate is to promise.

    Attributes
    ----------
    max_error : float
        The largest share of wrong predictions among those accepted.
    confidence : float
        The probability, over the data it is calibrated on, that the promise holds.
    """

    max_error: float
    confidence: float

    def __post_init__(self) -> None:
        require_share("max_error", self.max_error)
        require_share("confidence", self.confidence)


def require_share(name: str, value: Any) -> None:
    """Raise if something is not between 0 and 1."""
    if not is_between(value, 0.0, 1.0) or value == 1:
        raise ParameterError(name, f"must lie between 0 and 1, got {value!r}")


@dataclass(frozen=True)
class Gate:
    """Which predictions are accepted: those with a score above a threshold.

    Attributes
    ----------
    indicator : str
        Whose scores it looks at, as in "r_tv_all".
    threshold : float
        Infinite where nothing is accepted.
    inclusive : bool
        Whether a score at the threshold is accepted; −∞ then accepts everything.
    bound : float, optional
        What the error of what is accepted is at most; None if nothing is promised.
    accepted : float, optional
        The share of the calibration data that is accepted.
    """

    indicator: str
    threshold: float
    inclusive: bool = False
    bound: float | None = None
    accepted: float | None = None

    def accepts(self, scores: Floats) -> Bools:
        """Tell which predictions are accepted."""
        return scores >= self.threshold if self.inclusive else scores > self.threshold

    @property
    def robustness(self) -> str:
        """The neighbourhood whose robustness it looks at."""
        return self.indicator.removeprefix(ROBUSTNESS)

    def to_dict(self, promise: Promise, rows: int) -> dict[str, Any]:
        """Return a calibrated gate on a robustness as plain data, for a model file."""
        return {
            "ball": self.robustness,
            "max_error": promise.max_error,
            "confidence": promise.confidence,
            "rows": rows,
            "above": None if self.bound is None else max(self.threshold, LOWEST),
            "accepted": self.accepted,
            "bound": self.bound,
        }

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Gate:
        """Return the gate that a model file tells; where nothing is promised, a closed one."""
        above = told.get("above")
        return cls(
            ROBUSTNESS + str(told.get("ball")),
            np.inf if above is None else float(above),
            bound=told.get("bound"),
            accepted=told.get("accepted"),
        )


def calibrate_gate(
    correct: Bools, scores: Mapping[str, Floats], promise: Promise
) -> tuple[Gate, Calibration]:
    """Return the loosest gate that keeps a promise, and what was found at each threshold.

    The rows must not be those the model learned from. The promise holds for rows that are drawn
    as these were.

    Parameters
    ----------
    correct : ndarray of bool, of shape (rows,)
    scores : dict of str to ndarray of shape (rows,)
        Of one indicator.
    promise : Promise
    """
    ((indicator, score),) = scores.items()
    found = calibrate(correct, score, float(promise.confidence))
    picked = found.pick(float(promise.max_error))
    if picked is None:
        return Gate(indicator, np.inf, accepted=0.0), found
    gate = Gate(
        indicator,
        float(found.thresholds[picked]),
        # The first one accepts all, also scores of −∞.
        inclusive=picked == 0,
        bound=float(found.bounds[picked]),
        accepted=float(found.accepted[picked] / len(score)),
    )
    return gate, found
