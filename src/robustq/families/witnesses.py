"""Witnesses: the model of the same kind that is nearest, and no longer prefers a prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.base import clone

from robustq import __version__
from robustq.core import engine
from robustq.core.neighbourhoods import Perturbed
from robustq.core.witness import Move, find_moves
from robustq.exceptions import UnsupportedError

from .table import kind_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robustq.core.neighbourhoods import Bound
    from robustq.tables import Rows

    from .explained import ExplainedModel

__all__ = ["make_witness"]

Estimator = TypeVar("Estimator", bound="ExplainedModel")


def make_witness(classifier: Estimator, row: Rows, bound: Bound, name: str) -> Estimator:
    """Return a classifier in the ball around a fitted one that does not prefer its prediction.

    Parameters
    ----------
    classifier : GenerativeClassifier
    row : Rows
        One.
    bound : Bound
    name : str
        Of the neighbourhood.

    Raises
    ------
    UnsupportedError
        If there is none, or none of the same kind.
    """
    if not isinstance(bound, Perturbed):
        msg = (
            f"{name} does not perturb the local mass functions of a model each on its own, so the "
            "nearest one that disagrees is no model of the same kind: take a ball around parts, as "
            "in tv or tv_all"
        )
        raise UnsupportedError(msg)
    found = engine.quantify(classifier.model_, row, [bound])
    if not np.isfinite(found.robustness[0, 0]):
        msg = f"there is no witness: nothing in {name}, of any size, flips this prediction"
        raise UnsupportedError(msg)
    pair = found.prediction, found.tipping[0]
    (moves,) = find_moves(classifier.model_, row, bound, *pair, found.robustness[0])
    witness = clone(classifier)
    model = replace_locals(classifier, moves, name)
    witness._suit(model)  # noqa: SLF001 (one house)
    witness._set_model(model, classifier.encoding_, classifier.classes_)  # noqa: SLF001
    rows = {
        key: classifier.training_[key] for key in ("rows", "target") if key in _facts(classifier)
    }
    witness.training_ = {**rows, "robustq": __version__}
    return witness


def _facts(classifier: ExplainedModel) -> dict[str, Any]:
    return getattr(classifier, "training_", {})


def replace_locals(classifier: ExplainedModel, moves: Sequence[Move], name: str) -> Any:
    """Return the model of a classifier with other local mass functions, by way of its document."""
    kind, model = kind_of(classifier), classifier.model_
    tell = getattr(model.locals, "about", None)
    if kind is None or tell is None:
        msg = f"{type(classifier).__name__} does not tell how to replace its local mass functions"
        raise UnsupportedError(msg)
    document = kind.write(model)
    for move in moves:
        about = tell(move.local)
        if about.path is None:
            part = model.locals.parts[move.part]
            others = [known for known in model.locals.parts if known != part]
            msg = (
                f"{name} moves {part!r}, and a model of the same kind has no place for that (the "
                f"trees of a forest, for one, count equally): take parts={others!r}"
            )
            raise UnsupportedError(msg)
        _write(document, about.path, about.codes, move.after)
    return kind.read(document, classifier.encoding_, len(classifier.classes_))


def _write(
    document: Any, path: tuple[str | int, ...], codes: tuple[int, ...] | None, after: Any
) -> None:
    for step in path[:-1]:
        document = document[step]
    probs = document[path[-1]]
    for code, p in zip(range(len(after)) if codes is None else codes, after.tolist(), strict=True):
        probs[code] = p
