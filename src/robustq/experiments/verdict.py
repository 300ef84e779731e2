"""Whether robustness is worth using on these rows: a verdict in words, with its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.indicators.table import ROBUSTNESS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from robustq.arrays import Bools
    from robustq.rejection.resampling import Interval, Resampled

    Pair = tuple[Interval, Interval]

__all__ = ["FEWEST", "PROBABILITY", "RATE", "RISK", "find_best", "judge", "list_compared"]

RATE = 0.25
RISK = 0.05
FEWEST = 10  # wrong and right predictions; with fewer, bands from drawing rows again are too narrow
PROBABILITY = "u_max"


def list_compared(names: Iterable[str], ball: str) -> list[str]:
    """Return the indicators that are compared with the probability: a ball's, and all perturbed."""
    known = set(names)
    return [name for name in (f"{ROBUSTNESS}{ball}", f"{ROBUSTNESS}{ball}_all") if name in known]


def judge(correct: Bools, found: Resampled, compared: Sequence[str]) -> dict[str, Any]:
    """Return who separates right from wrong predictions better, and what to do.

    Robustness wins where both its AU-ARC and the accuracy after rejecting a quarter are larger for
    certain: where the bands of both differences, over the same rows drawn again, lie above 0.
    Where several are compared, the risk is shared among them.

    Parameters
    ----------
    correct : ndarray of bool, of shape (rows,)
    found : Resampled
        Of the indicators compared and of the probability.
    compared : sequence of str
    """
    wrong = int((~correct).sum())
    told = {"rate": RATE, "rows": len(correct), "wrong": wrong}
    if not compared or min(wrong, len(correct) - wrong) < FEWEST:
        return told | {"winner": None, "text": _say_too_few(len(correct), wrong)}
    risk = RISK / len(compared)
    areas = {name: found.area(name, PROBABILITY, risk) for name in compared}
    gains = {name: found.accuracy(name, PROBABILITY, risk) for name in compared}
    sure = [name for name in compared if areas[name].low > 0 and gains[name].low > 0]
    best = max(sure or compared, key=lambda name: areas[name].value)
    winner = _find_winner(areas[best], gains[best])
    own, other = found.accuracy(best), found.accuracy(PROBABILITY)
    return told | {
        "winner": winner,
        "indicator": best,
        "accuracy": float(correct.mean()),
        "by_robustness": _as_dict(own),
        "by_probability": _as_dict(other),
        "difference": _as_dict(gains[best]),
        "au_arc_difference": _as_dict(areas[best]),
        "text": SAY[winner](best, own, other, (gains[best], areas[best]), float(correct.mean())),
    }


def _find_winner(area: Interval, gain: Interval) -> str:
    """Return who is better for certain: in both respects, or in one of them."""
    if area.low > 0 and gain.low > 0:
        return "robustness"
    if area.high < 0 or gain.high < 0:
        return "probability"
    return "neither" if area.low <= 0 and gain.low <= 0 else "depends"


def find_best(found: Resampled, names: Sequence[str]) -> str | None:
    """Return the indicator whose AU-ARC is largest for certain, None where none is.

    Those that order all rows alike (as u_max and u_marg do with two classes) are one: the first.
    """
    top = max(names, key=lambda name: found.values[name][0])
    others = [n for n in names if not np.array_equal(found.draws[n], found.draws[top])]
    risk = RISK / max(len(others), 1)
    sure = all(found.area(top, other, risk).low > 0 for other in others)
    return top if others and sure else None


def _as_dict(interval: Interval) -> dict[str, float]:
    return {"value": interval.value, "low": interval.low, "high": interval.high}


def _say_too_few(rows: int, wrong: int) -> str:
    least = "wrong" if wrong <= rows - wrong else "right"
    count = min(wrong, rows - wrong)
    return (
        f"Nothing can be said about which predictions to trust: {count or 'none'} of "
        f"{rows:,} predictions {'is' if count == 1 else 'are'} {least}, and it takes at least "
        f"{FEWEST}. Evaluate on more rows."
    )


def _say_better(name: str, own: Interval, other: Interval, by: Pair, of_all: float) -> str:
    return (
        f"Send the least robust {RATE:.0%} to a person: the rest is {own.value:.1%} right, "
        f"against {other.value:.1%} by probability and {of_all:.1%} of all. Robustness here is "
        f"{name}; the difference is {_band(by[0])}."
    )


def _say_level(name: str, own: Interval, other: Interval, by: Pair, of_all: float) -> str:
    return (
        "On this data robustness does not separate right from wrong predictions better than the "
        "probability does, as far as these rows tell: use the probability. With the least "
        f"probable {RATE:.0%} sent to a person, the rest is {other.value:.1%} right, of all "
        f"{of_all:.1%}; by robustness ({name}) it would be {own.value:.1%}, a difference of "
        f"{_band(by[0])}."
    )


def _say_worse(name: str, own: Interval, other: Interval, by: Pair, of_all: float) -> str:
    return (
        "On this data the probability separates right from wrong predictions better than "
        f"robustness does: use the probability. Send the least probable {RATE:.0%} to a person: "
        f"the rest is {other.value:.1%} right, of all {of_all:.1%}; by robustness ({name}) it "
        f"would be {own.value:.1%}, a difference of {_band(by[0])}. "
        f"Averaged over all shares (AU-ARC) the difference is {_band(by[1])}."
    )


def _say_mixed(name: str, own: Interval, other: Interval, by: Pair, of_all: float) -> str:
    where = f"with {RATE:.0%} only" if by[0].low > 0 else "on average only"
    return (
        "It depends on how many predictions are sent to a person. With the least robust "
        f"{RATE:.0%} ({name}) the rest is {own.value:.1%} right, against {other.value:.1%} by "
        f"probability and {of_all:.1%} of all, a difference of {_band(by[0])}; averaged over all "
        f"shares (AU-ARC) the difference is {_band(by[1])}. Robustness is better for certain "
        f"{where}."
    )


def _band(gain: Interval) -> str:
    value, low, high = (100 * number for number in (gain.value, gain.low, gain.high))
    return f"{value:+.1f} points (95 % band {low:+.1f} to {high:+.1f})".replace("-", "−")


SAY = {
    "robustness": _say_better,
    "probability": _say_worse,
    "depends": _say_mixed,
    "neither": _say_level,
}
