"""Which indicator a gate goes by: chosen on rows of its own, so that its promise still holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import Pipeline

from robustq import rejection
from robustq.families.base import GenerativeClassifier
from robustq.indicators.choices import list_wider
from robustq.indicators.table import ROBUSTNESS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from robustq.arrays import Bools, Floats, Indices

__all__ = ["AUTO", "Choice", "Ranking", "choose", "list_candidates", "split_for_choice"]

AUTO = "auto"
PROBABILITY = "u_max"
SHARE = 0.25  # of the rows, to choose with
LEVELS = 200
LARGEST = float(np.finfo(np.float64).max)  # stands for ∞, which JSON does not have


@dataclass(frozen=True)
class Ranking:
    """What orders predictions: an indicator, or several whose ranks are added.

    Attributes
    ----------
    indicators : tuple of str
    levels : tuple of tuple of float
        For each of several, its values in the rows it was chosen on, ascending: the rank of a
        new value is its place among them.
    """

    indicators: tuple[str, ...]
    levels: tuple[tuple[float, ...], ...] = ()

    @property
    def name(self) -> str:
        """What to call it."""
        return _name(self.indicators)

    @property
    def neighbourhoods(self) -> list[str]:
        """The neighbourhoods whose robustness it needs."""
        return [n.removeprefix(ROBUSTNESS) for n in self.indicators if n.startswith(ROBUSTNESS)]

    def score(self, scores: Mapping[str, Floats]) -> Floats:
        """Return how much predictions are trusted, from the scores of the indicators."""
        if not self.levels:
            return scores[self.indicators[0]]
        each = zip(self.indicators, self.levels, strict=True)
        return np.sum([_rank(scores[name], levels) for name, levels in each], axis=0)


@dataclass(frozen=True)
class Choice:
    """A ranking, and why it was chosen.

    Attributes
    ----------
    ranking : Ranking
    rows : int
        The rows it was chosen on.
    areas : dict of str to float
        AU-ARC of every candidate there.
    """

    ranking: Ranking
    rows: int = 0
    areas: dict[str, float] = field(default_factory=dict)


def list_candidates(model: Any, ball: str = "tv") -> list[tuple[str, ...]]:
    """Return what may be chosen for a model: the probability, robustness, and both.

    Parameters
    ----------
    model : estimator
        Fitted; of one that is not robustq's own, the probability is all there is.
    ball : str
    """
    classifier = model[-1] if isinstance(model, Pipeline) else model
    if not isinstance(classifier, GenerativeClassifier):
        return [(PROBABILITY,)]
    names = [ROBUSTNESS + ball, *([f"{ROBUSTNESS}{ball}_all"] if list_wider(classifier) else [])]
    return [(PROBABILITY,), *((n,) for n in names), *((n, PROBABILITY) for n in names)]


def split_for_choice(rows: int, rng: np.random.RandomState) -> tuple[Indices, Indices]:
    """Return the rows to choose an indicator with, and those to calibrate a gate on, at random."""
    shuffled = rng.permutation(rows)
    count = round(SHARE * rows)
    return np.sort(shuffled[:count]), np.sort(shuffled[count:])


def choose(
    correct: Bools, scores: Mapping[str, Floats], candidates: Sequence[tuple[str, ...]]
) -> Choice:
    """Return the candidate with the largest AU-ARC; of equals, the first.

    Parameters
    ----------
    correct : ndarray of bool, of shape (rows,)
        Of rows that a gate is not calibrated on.
    scores : dict of str to ndarray of shape (rows,)
    candidates : sequence of tuple of str
    """
    if not len(correct):
        return Choice(Ranking(candidates[0]))
    rankings = [_make(names, scores) for names in candidates]
    areas = {r.name: rejection.auc(correct, r.score(scores)) for r in rankings}
    # Differences by rounding are none.
    best = max(rankings, key=lambda r: round(areas[r.name], 9))
    return Choice(best, len(correct), areas)


def _make(names: tuple[str, ...], scores: Mapping[str, Floats]) -> Ranking:
    if len(names) == 1:
        return Ranking(names)
    shares = np.linspace(0.0, 1.0, LEVELS)
    levels = [np.quantile(_clip(scores[name]), shares, method="nearest") for name in names]
    return Ranking(names, tuple(tuple(level.tolist()) for level in levels))


def _rank(score: Floats, levels: tuple[float, ...]) -> Floats:
    """Return places among levels, from 0 to 1; between two levels, the place between theirs."""
    known, first = np.unique(levels, return_index=True)
    last = np.append(first[1:], len(levels)) - 1
    return np.interp(_clip(score), known, (first + last) / 2 / max(len(levels) - 1, 1))


def _clip(score: Floats) -> Floats:
    return np.clip(score, -LARGEST, LARGEST)


def _name(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"hybrid({', '.join(names)})"
