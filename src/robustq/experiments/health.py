"""What makes a model, or figures about it, less than they seem: warnings in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.families.others import describe_others
from robustq.families.remarks import describe_unknown
from robustq.families.seen_rows import find_seen

if TYPE_CHECKING:
    import pyarrow as pa

    from robustq.core.assessment import Assessment
    from robustq.families.base import GenerativeClassifier
    from robustq.scoring import Guest

__all__ = ["list_cautions"]


def list_cautions(
    model: GenerativeClassifier | Guest,
    X: pa.Table,
    y: np.ndarray[Any, Any],
    assessment: Assessment,
    ball: str,
) -> list[str]:
    """Return what is wrong with a model or with the rows it is tried on, the worst first.

    Parameters
    ----------
    model : GenerativeClassifier or Guest
    X : pyarrow.Table
    y : ndarray of shape (rows,)
    assessment : Assessment
        Of these rows.
    ball : str
        Whose robustness is looked at.
    """
    found = [
        _say_seen(model, X, y),
        _say_accuracy(y, assessment.prediction),
        *(model.cautions or [_say_infinite(assessment.robustness[ball], ball)]),
        describe_unknown(assessment.unknown) if assessment.unknown else None,
        _say_others(model, assessment.others, len(y)),
    ]
    return [text for text in found if text]


def _say_seen(model: Any, X: pa.Table, y: np.ndarray[Any, Any]) -> str | None:
    seen = find_seen(model, X, y, getattr(model, "training_", {}).get("sketch"))
    if seen is None or not seen.found:
        return None
    rows = f"{seen.found:,} of {seen.looked_at:,} rows"
    if seen.looked_at < len(y):
        share = seen.found / seen.looked_at
        rows = f"about {share:.0%} of the rows ({seen.found:,} of {seen.looked_at:,} looked at)"
    return (
        f"{rows} are equal to rows that the model has learned from: for such rows the figures "
        "promise too much"
    )


def _say_accuracy(y: np.ndarray[Any, Any], prediction: np.ndarray[Any, Any]) -> str | None:
    labels, counts = np.unique(y, return_counts=True)
    accuracy, frequent = float(np.mean(prediction == y)), float(counts.max() / len(y))
    always = f"always saying {labels[counts.argmax()]!s} is right in {frequent:.1%}"
    if len(labels) > 1 and len(set(prediction.tolist())) == 1:
        return f"the model predicts {prediction[0]!s} for every row; {always}"
    if accuracy < frequent:
        return (
            f"the model is worse than the most frequent class: it is right in {accuracy:.1%} of "
            f"the rows, {always}. Its robustness says nothing about predictions not worth having"
        )
    return None


def _say_infinite(robustness: np.ndarray[Any, Any], ball: str) -> str | None:
    share = float(np.isinf(robustness).mean())
    if share < 0.5:
        return None
    rows = "every row" if share == 1 else f"{share:.0%} of the rows"
    return (
        f"the robustness ({ball}) is infinite in {rows}: no perturbation of that kind flips those "
        "predictions, and they cannot be told apart by it"
    )


def _say_others(model: Any, others: int, rows: int) -> str | None:
    return f"in {others:,} of {rows:,} rows {describe_others(model.estimator)}" if others else None
