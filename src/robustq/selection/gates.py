"""Who is accepted: one gate for the command, for model files and for `SelectiveClassifier`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from robustq.exceptions import InputError, ParameterError, UnknownNameError
from robustq.families.parameters import is_between
from robustq.indicators.table import ROBUSTNESS, get

from .choosing import Choice, Ranking, choose, split_for_choice
from .thresholds import Calibration, Promises, calibrate, list_promises

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from robustq.arrays import Bools, Floats

__all__ = ["Gate", "Made", "Promise", "make_gate", "require_share"]

LOWEST = -2.0  # every score is above: what stands for −∞, which JSON does not have


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
    ranking : Ranking
        What gives the scores.
    threshold : float
        Infinite where nothing is accepted.
    inclusive : bool
        Whether a score at the threshold is accepted; −∞ then accepts everything.
    bound : float, optional
        What the error of what is accepted is at most; None if nothing is promised.
    accepted : float, optional
        The share of the calibration data that is accepted.
    """

    ranking: Ranking
    threshold: float
    inclusive: bool = False
    bound: float | None = None
    accepted: float | None = None

    @classmethod
    def by(cls, indicator: str, threshold: float, *, inclusive: bool = False) -> Gate:
        """Return a gate of one indicator that promises nothing."""
        return cls(Ranking((indicator,)), threshold, inclusive)

    def accepts(self, scores: Mapping[str, Floats]) -> Bools:
        """Tell which predictions are accepted, from the scores of the indicators."""
        trust = self.ranking.score(scores)
        return trust >= self.threshold if self.inclusive else trust > self.threshold

    def to_dict(self) -> dict[str, Any]:
        """Return a calibrated gate as plain data, for a model file."""
        ranking = self.ranking
        return {
            "indicators": list(ranking.indicators),
            "levels": [list(levels) for levels in ranking.levels],
            "above": None if self.bound is None else max(self.threshold, LOWEST),
            "accepted": self.accepted,
            "bound": self.bound,
        }

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Gate:
        """Return the gate that a model file tells; where nothing is promised, a closed one.

        Raises
        ------
        InputError
            If it tells none.
        """
        try:
            above = told.get("above")
            # Older files tell the ball of a robustness.
            names = told.get("indicators") or [f"{ROBUSTNESS}{told['ball']}"]
            levels = tuple(tuple(map(float, each)) for each in told.get("levels", ()))
            ranking = Ranking(tuple(get(str(name)).name for name in names), levels)
            if (
                len(levels) not in {0, len(names)}
                or not all(levels)
                or len(names) > 1 > len(levels)
            ):
                raise ValueError  # noqa: TRY301 (told below)
            threshold = np.inf if above is None else float(above)
        except UnknownNameError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            msg = f"the gate in the model file is damaged: {str(dict(told))[:200]}"
            raise InputError(msg) from error
        return cls(ranking, threshold, bound=told.get("bound"), accepted=told.get("accepted"))


class Made(NamedTuple):
    """A gate, and how it came about.

    Attributes
    ----------
    gate : Gate
    calibration : Calibration
        What was found at each threshold.
    promises : Promises
        What else could be promised.
    choice : Choice
        What it goes by, and why.
    """

    gate: Gate
    calibration: Calibration
    promises: Promises
    choice: Choice

    def to_dict(self, promise: Promise) -> dict[str, Any]:
        """Return all of it as plain data, for a model file."""
        promises = zip(self.promises.errors.tolist(), self.promises.accepted.tolist(), strict=True)
        return {
            **self.gate.to_dict(),
            "max_error": promise.max_error,
            "confidence": promise.confidence,
            "rows": self.calibration.rows,
            "promises": [list(each) for each in promises],
            "choice": {"rows": self.choice.rows, "au_arc": self.choice.areas},
        }


def make_gate(
    correct: Bools,
    scores: Mapping[str, Floats],
    promise: Promise,
    candidates: Sequence[tuple[str, ...]],
    rng: np.random.RandomState,
) -> Made:
    """Return the loosest gate that keeps a promise.

    The rows must not be those the model learned from. The promise holds for rows that are drawn
    as these were.

    Parameters
    ----------
    correct : ndarray of bool, of shape (rows,)
    scores : dict of str to ndarray of shape (rows,)
    promise : Promise
    candidates : sequence of tuple of str
        Indicators, or several whose ranks are to be added. If there is more than one candidate, a
        part of the rows serves to choose, and the gate is calibrated on the others.
    rng : RandomState
        Picks that part.
    """
    choice = Choice(Ranking(candidates[0]))
    if len(candidates) > 1:
        part, rest = split_for_choice(len(correct), rng)
        choice = choose(correct[part], {n: s[part] for n, s in scores.items()}, candidates)
        correct, scores = correct[rest], {n: s[rest] for n, s in scores.items()}
    score, confidence = choice.ranking.score(scores), float(promise.confidence)
    found = calibrate(correct, score, float(promise.max_error), confidence)
    gate = _read_off(found, choice.ranking, promise)
    return Made(gate, found, list_promises(correct, score, confidence), choice)


def _read_off(found: Calibration, ranking: Ranking, promise: Promise) -> Gate:
    picked = found.pick()
    if picked is None:
        return Gate(ranking, np.inf, accepted=0.0)
    return Gate(
        ranking,
        float(found.thresholds[picked]),
        # The last one accepts all, also scores of −∞.
        inclusive=bool(found.accepted[picked] == found.rows),
        bound=float(promise.max_error),
        accepted=float(found.accepted[picked] / found.rows),
    )
