"""How good a model and its indicators are on rows with labels, as one plain dictionary."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from robustq import rejection
from robustq.blocks import for_each_block
from robustq.core.engine import has_kernel
from robustq.core.neighbourhoods import read
from robustq.credal.curves import trace
from robustq.families.base import describe_endless, describe_unknown, ignoring_unknown_values
from robustq.families.others import describe_others
from robustq.families.seen_rows import find_seen
from robustq.indicators import get
from robustq.indicators.choices import list_single, remark_on
from robustq.indicators.scores import examine
from robustq.rejection.averages import GRID
from robustq.rejection.bands import confidence_band
from robustq.scoring import Guest
from robustq.tables.table import take_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from robustq.arrays import Bools, Floats, Indices
    from robustq.core.assessment import Assessment
    from robustq.core.neighbourhoods import Neighbourhood, PerturbationLike
    from robustq.families.base import GenerativeClassifier

__all__ = ["evaluate"]

FEW_ROWS = 2000
LEAST_ROBUST = 10
MOST_CELLS = 100_000  # that are looked at to tell what predictions hang on
RESAMPLES = 200
MOST_BAND_ROWS = 20_000


def evaluate(
    model: GenerativeClassifier | Guest,
    X: pa.Table,
    y: np.ndarray[Any, Any],
    *,
    title: str,
    names: Sequence[Any] | None = None,
    ball: PerturbationLike = "tv",
    rows: Indices | None = None,
) -> dict[str, Any]:
    """Return what is to be told about a model.

    Parameters
    ----------
    model : GenerativeClassifier or Guest
    X : pyarrow.Table
    y : ndarray of shape (rows,)
        Labels of the model's types.
    title : str
        What to call the model.
    names : sequence of str, optional
        Indicators; by default all that a single model allows, of balls that kernels do not know
        only where there are at most 2000 rows.
    ball : str or Neighbourhood, default "tv"
        What the least robust predictions are told by.
    rows : ndarray of int, optional
        Which rows of a file these are, if some were left out.
    """
    known = list_single(model)
    chosen = list(names or [name for name in known if len(y) <= FEW_ROWS or _is_quick(name)])
    told = read(ball)
    asked, features = _find_asked(model, X)
    seen = examine(asked, features, chosen, more=[told])
    correct = seen.assessment.prediction == y
    robustness = seen.assessment.robustness[told.name]
    return {
        "title": title,
        "kind": getattr(model, "kind", type(model).__name__),
        "training": {k: v for k, v in getattr(model, "training_", {}).items() if k != "sketch"},
        "rows": len(y),
        **_describe_classes(y, correct),
        "indicators": _describe_curves(correct, seen.scores),
        "left_out": [name for name in known if name not in chosen] if names is None else [],
        "unknown": seen.assessment.unknown,
        "cautions": _list_cautions(model, X, y, seen.assessment),
        "remarks": remark_on(model, seen.scores),
        "ball": told.name,
        "robustness": {
            "right": _describe_spread(robustness[correct]),
            "wrong": _describe_spread(robustness[~correct]),
        },
        "points": {"correct": correct, "robustness": robustness},
        "least": _list_least(X, y, seen.assessment, told.name, rows),
        "hanging": None if isinstance(model, Guest) else _describe_hanging(model, X, told),
        "credal": _describe_sets(asked, features, y, seen.assessment, told),
    }


def _find_asked(model: GenerativeClassifier | Guest, X: pa.Table) -> tuple[Any, Any]:
    """Return whom to ask, and the table as they take it."""
    return (model.estimator, model.adapt(X)) if isinstance(model, Guest) else (model, X)


def _describe_hanging(
    model: GenerativeClassifier, X: pa.Table, ball: Neighbourhood
) -> dict[str, Any]:
    """Return which features predictions hang on, by a sample where there are many."""
    bound = ball.bind(model.model_, model.encoding_.names)
    with ignoring_unknown_values():
        one = model._encode_one(X.slice(0, 1))  # noqa: SLF001 (one house)
    most = MOST_CELLS if has_kernel(model.model_, one, bound) else MOST_CELLS // 50
    count = min(X.num_rows, FEW_ROWS, max(most // X.num_columns, 1))
    sample = np.unique(np.linspace(0, X.num_rows - 1, count).round().astype(np.int64))
    with ignoring_unknown_values():
        summary = model.explain(take_rows(X, sample), ball).summary()
    return {"rows": summary.rows, "features": summary.to_dict()}


def _list_cautions(
    model: Any, X: pa.Table, y: np.ndarray[Any, Any], assessment: Assessment
) -> list[str]:
    """Return, in words, what makes the figures less than they seem."""
    cautions = list(model.cautions)
    endless = [name for name, found in assessment.robustness.items() if np.isinf(found).all()]
    if endless and not cautions:
        cautions.append(describe_endless(endless, len(y)))
    if assessment.unknown:
        cautions.append(describe_unknown(assessment.unknown))
    if assessment.others:
        told = describe_others(model.estimator)
        cautions.append(f"in {assessment.others:,} of {len(y):,} rows {told}")
    seen = find_seen(model, X, y, getattr(model, "training_", {}).get("sketch"))
    if seen is not None and seen.found:
        rows = f"{seen.found:,} of {seen.looked_at:,} rows"
        if seen.looked_at < len(y):
            share = seen.found / seen.looked_at
            rows = f"about {share:.0%} of the rows ({seen.found:,} of {seen.looked_at:,} looked at)"
        cautions.append(
            f"{rows} are equal to rows that the model has learned from: for such rows the figures "
            "promise too much"
        )
    return cautions


def _describe_sets(
    model: Any,
    X: Any,
    y: np.ndarray[Any, Any],
    assessment: Assessment,
    told: Neighbourhood,
) -> dict[str, Any]:
    """Return what sets of classes are worth at several sizes."""
    found = trace(model, X, y, told, assessment)
    return {name: column.tolist() for name, column in found.to_dict().items()}


def _describe_classes(y: np.ndarray[Any, Any], correct: Bools) -> dict[str, Any]:
    labels, counts = np.unique(y, return_counts=True)
    return {
        "classes": [
            {"label": _plain(label), "rows": int(count), "right": int(correct[y == label].sum())}
            for label, count in zip(labels, counts, strict=True)
        ],
        "accuracy": float(correct.mean()),
        "frequent": float(counts.max() / len(y)),
    }


def _is_quick(name: str) -> bool:
    """Tell whether an indicator takes no long where rows are many."""
    neighbourhood = get(name).neighbourhood
    return neighbourhood is None or _has_form(neighbourhood)


def _has_form(neighbourhood: Neighbourhood) -> bool:
    """Tell whether kernels know a ball by its bounds."""
    return neighbourhood.ball.form(np.array([0.5])) is not None


def _describe_curves(correct: Bools, scores: dict[str, Floats]) -> dict[str, Any]:
    """Return what there is to say about each curve, several at once."""
    found: dict[str, Any] = dict.fromkeys(scores)

    def work(block: slice) -> None:
        for name in list(scores)[block]:
            found[name] = _describe_curve(correct, scores[name])

    for_each_block(work, len(scores), 1)
    return found


def _describe_curve(correct: Bools, score: Floats) -> dict[str, Any]:
    curve = rejection.accuracy_rejection_curve(correct, score)
    band = None
    if len(correct) <= MOST_BAND_ROWS:
        found = confidence_band(correct, score, n_resamples=RESAMPLES)
        band = list(found.auc)
    rates = [rate for rate in GRID.tolist() if rate * len(correct) <= len(correct) - 1]
    return {
        "area": curve.auc,
        "band": band,
        "excess": curve.excess_aurc,
        "rates": rates,
        "accuracy": curve.at(rates).tolist(),
    }


def _describe_spread(values: Floats) -> dict[str, Any]:
    if not len(values):
        return {"rows": 0, "median": None}
    return {"rows": len(values), "median": float(np.median(values))}


def _list_least(
    X: pa.Table, y: np.ndarray[Any, Any], assessment: Assessment, ball: str, places: Indices | None
) -> list[dict[str, Any]]:
    """Return the least robust predictions, with what would flip them."""
    least = replace(assessment, index=np.arange(len(y))).least(LEAST_ROBUST, ball)
    places = np.arange(len(y)) if places is None else places
    features = take_rows(X, least.index).to_pylist()
    return [
        {
            "row": int(places[row]) + 1,
            "prediction": _plain(least.prediction[rank]),
            "truth": _plain(y[row]),
            "probability": float(least.probability[rank]),
            "robustness": float(least.robustness[ball][rank]),
            "tipping_class": _plain(least.tipping_class[ball][rank]),
            "features": {name: _plain(value) for name, value in shown.items()},
        }
        for rank, (row, shown) in enumerate(zip(least.index, features, strict=True))
    ]


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
