"""Training for use: how good a model is on rows held out, and a gate calibrated on them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone

from robustq import rejection
from robustq.core.neighbourhoods import read
from robustq.exceptions import InputError, ParameterError
from robustq.indicators import get
from robustq.indicators.choices import PAPER, list_wider
from robustq.indicators.scores import Examined, examine
from robustq.indicators.table import ROBUSTNESS
from robustq.tables.table import take_rows

from .choosing import AUTO, PROBABILITY, list_candidates
from .gates import Promise, make_gate, require_share

if TYPE_CHECKING:
    from robustq.arrays import Indices
    from robustq.core.neighbourhoods import Neighbourhood, PerturbationLike
    from robustq.families.base import GenerativeClassifier

__all__ = ["Holdout", "Trained", "split_rows", "train"]


@dataclass(frozen=True)
class Holdout:
    """How good a model is on rows it did not learn from.

    Attributes
    ----------
    rows : int
    accuracy : float
    frequent : float
        The accuracy of always saying the most frequent class.
    au_arc : dict of str to float
        AU-ARC by indicator.
    """

    rows: int
    accuracy: float
    frequent: float
    au_arc: dict[str, float]


class Trained(NamedTuple):
    """A fitted model, and how good a copy of it was on rows held out."""

    model: GenerativeClassifier
    holdout: Holdout | None


def split_rows(rows: int, share: float, seed: int) -> tuple[Indices, Indices]:
    """Return the rows to learn from and those held out, at random."""
    held = min(rows - 1, max(1, round(share * rows)))
    shuffled = np.random.RandomState(seed).permutation(rows)
    return np.sort(shuffled[held:]), np.sort(shuffled[:held])


def train(
    model: GenerativeClassifier,
    X: Any,
    y: np.ndarray[Any, Any],
    *,
    holdout: float | None,
    seed: int,
    promise: Promise | None = None,
    neighbourhood: PerturbationLike = AUTO,
) -> Trained:
    """Return the model, fitted, and how good a copy of it was on rows held out.

    With a promise, the model is the copy: a gate holds for the very model it was calibrated for.
    Both are kept in `training_` too.

    Parameters
    ----------
    model : GenerativeClassifier
    X : frame or array of shape (rows, features)
    y : ndarray of shape (rows,)
    holdout : float, optional
        The share of the rows held out; None holds out none.
    seed : int
    promise : Promise, optional
    neighbourhood : Neighbourhood or str, default "auto"
        Whose robustness the gate goes by; "auto" chooses among robustness, probability and both.
    """
    if holdout is None:
        if promise is not None:
            name, problem = "max_error", "needs rows to calibrate with: hold some out"
            raise ParameterError(name, problem)
        return Trained(model.fit(X, y), None)
    require_share("holdout", holdout)
    if len(y) < 2:
        msg = "there is a single row with a label: give more, or hold none out"
        raise InputError(msg)
    chosen = isinstance(neighbourhood, str) and neighbourhood == AUTO
    by = None if promise is None or chosen else read(neighbourhood)
    learned, held = split_rows(len(y), holdout, seed)
    copy = clone(model).fit(take_rows(X, learned), y[learned])
    seen = _try(copy, take_rows(X, held), by)
    found = _describe(seen, y[learned], y[held])
    told = {name: value for name, value in asdict(found).items() if name != "frequent"}
    facts = {"holdout": told}
    if promise is not None:
        facts["gate"] = _calibrate(copy, seen, y[held], promise, by, seed)
    fitted = model.fit(X, y) if promise is None else copy
    fitted.training_ |= facts
    return Trained(fitted, found)


def _try(copy: GenerativeClassifier, X: Any, by: Neighbourhood | None) -> Examined:
    names = (*PAPER, *list_wider(copy), "u_max")
    return examine(copy, X, names, more=[] if by is None else [by])


def _describe(seen: Examined, learned: Any, held: Any) -> Holdout:
    correct = seen.assessment.prediction == held
    labels, counts = np.unique(learned, return_counts=True)
    return Holdout(
        len(held),
        float(correct.mean()),
        float(np.mean(held == labels[counts.argmax()])),
        {name: rejection.auc(correct, score) for name, score in seen.scores.items()},
    )


def _calibrate(
    copy: GenerativeClassifier,
    seen: Examined,
    held: Any,
    promise: Promise,
    by: Neighbourhood | None,
    seed: int,
) -> dict[str, Any]:
    found = seen.assessment
    # As `robustq score` will have them.
    scores = {f"{ROBUSTNESS}{name}": score for name, score in found.robustness.items()}
    scores[PROBABILITY] = found.probability - 1.0
    candidates = list_candidates(copy) if by is None else [(get(by).name,)]
    rng = np.random.RandomState(seed)
    made = make_gate(found.prediction == held, scores, promise, candidates, rng)
    return made.to_dict(promise)
