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
from robustq.families.remarks import ignoring_unknown_values
from robustq.indicators import get
from robustq.indicators.choices import list_single, remark_on
from robustq.indicators.scores import Examined, examine
from robustq.indicators.table import ROBUSTNESS
from robustq.rejection.averages import GRID
from robustq.rejection.resampling import resample
from robustq.scoring import Guest
from robustq.selection.gates import Gate
from robustq.selection.thresholds import list_promises
from robustq.tables.table import take_rows

from .deciding import list_deciding
from .health import list_cautions
from .verdict import PROBABILITY, RATE, RISK, find_best, judge, list_compared

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from robustq.arrays import Bools, Floats, Indices
    from robustq.core.assessment import Assessment
    from robustq.core.neighbourhoods import Neighbourhood, PerturbationLike
    from robustq.families.base import GenerativeClassifier
    from robustq.rejection.resampling import Interval, Resampled

__all__ = ["evaluate"]

FEW_ROWS = 2000
LEAST_ROBUST = 10
MOST_CELLS = 100_000  # that are looked at to tell what predictions hang on
MOST_CURVES = 4
MOST_CLASSES = 12


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
    seen = examine(asked, features, chosen, more=[told, *_list_gated(model)])
    correct = seen.assessment.prediction == y
    robustness = seen.assessment.robustness[told.name]
    # What the verdict compares need not be among the indicators that were named.
    compared = {f"{ROBUSTNESS}{told.name}": robustness, PROBABILITY: seen.assessment.probability}
    resampled = resample(correct, {**compared, **seen.scores}, rate=RATE)
    rivals = list_compared(resampled.values, told.name)
    areas = {name: float(resampled.values[name][0]) for name in seen.scores}
    return {
        "title": title,
        "kind": getattr(model, "kind", type(model).__name__),
        "training": {k: v for k, v in getattr(model, "training_", {}).items() if k != "sketch"},
        "rows": len(y),
        **_describe_classes(y, correct),
        "verdict": judge(correct, resampled, rivals),
        "indicators": _describe_curves(correct, seen.scores, resampled),
        "shown": _choose_shown(areas, rivals, named=names is not None),
        "best": find_best(resampled, list(areas)),
        "left_out": [name for name in known if name not in chosen] if names is None else [],
        "unknown": seen.assessment.unknown,
        "cautions": list_cautions(model, X, y, seen.assessment, told.name),
        "remarks": remark_on(model, seen.scores),
        "ball": told.name,
        "robustness": {
            "right": _describe_spread(robustness[correct]),
            "wrong": _describe_spread(robustness[~correct]),
        },
        "points": {"correct": correct, "robustness": robustness},
        "gate": _try_gate(model, seen, correct, told.name),
        "confusion": _count_confusion(y, seen.assessment.prediction),
        "least": _list_least(model, X, y, seen.assessment, told.name, rows),
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
        summary = model._summarise(take_rows(X, sample), ball)  # noqa: SLF001
    return {"rows": summary.rows, "features": summary.to_dict()}


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


def _list_gated(model: GenerativeClassifier | Guest) -> list[Neighbourhood]:
    """Return the neighbourhoods that the model's gate looks at."""
    gate = getattr(model, "training_", {}).get("gate")
    return [] if gate is None else list(map(read, Gate.from_dict(gate).ranking.neighbourhoods))


def _try_gate(
    model: GenerativeClassifier | Guest, seen: Examined, correct: Bools, ball: str
) -> dict[str, Any]:
    """Return what could be promised by these rows, and how the model's own gate did on them."""
    scores = {f"{ROBUSTNESS}{name}": size for name, size in seen.assessment.robustness.items()}
    scores[PROBABILITY] = seen.assessment.probability - 1.0
    found: dict[str, Any] = {"confidence": 1.0 - RISK, "promises": {}, "own": None}
    for name in (f"{ROBUSTNESS}{ball}", PROBABILITY):
        promises = list_promises(correct, scores[name], 1.0 - RISK)
        found["errors"] = promises.errors.tolist()
        found["promises"][name] = promises.accepted.tolist()
    told = getattr(model, "training_", {}).get("gate")
    if told is not None:
        gate = Gate.from_dict(told)
        if set(gate.ranking.indicators) <= set(scores):
            accepted = gate.accepts(scores)
            found["own"] = {
                "name": gate.ranking.name,
                "max_error": told.get("max_error"),
                "promised": gate.bound is not None,
                "accepted": float(accepted.mean()),
                "wrong": float((~correct[accepted]).mean()) if accepted.any() else None,
            }
    return found


def _count_confusion(
    y: np.ndarray[Any, Any], prediction: np.ndarray[Any, Any]
) -> dict[str, Any] | None:
    """Return how many rows of each class were predicted as which; None where classes are many."""
    labels = np.unique(np.concatenate([y, prediction])).tolist()
    if len(labels) > MOST_CLASSES:
        return None
    counts = [[int(np.sum((y == a) & (prediction == b))) for b in labels] for a in labels]
    return {"labels": [_plain(label) for label in labels], "counts": counts}


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


def _describe_curves(
    correct: Bools, scores: dict[str, Floats], resampled: Resampled
) -> dict[str, Any]:
    """Return what there is to say about each curve, several at once."""
    found: dict[str, Any] = dict.fromkeys(scores)

    def work(block: slice) -> None:
        for name in list(scores)[block]:
            found[name] = _describe_curve(correct, scores[name], resampled.area(name))

    for_each_block(work, len(scores), 1)
    return found


def _describe_curve(correct: Bools, score: Floats, area: Interval) -> dict[str, Any]:
    curve = rejection.accuracy_rejection_curve(correct, score)
    rates = [rate for rate in GRID.tolist() if rate * len(correct) <= len(correct) - 1]
    return {
        "area": curve.auc,
        "band": [area.low, area.high],
        "excess": curve.excess_aurc,
        "rates": rates,
        "accuracy": curve.at(rates).tolist(),
    }


def _choose_shown(areas: dict[str, float], compared: list[str], *, named: bool) -> list[str]:
    """Return the curves to draw: those compared, the probability, and the best of the others.

    All of them, if somebody named them.
    """
    if named:
        return list(areas)
    shown = [name for name in (*compared, PROBABILITY) if name in areas]
    others = sorted((name for name in areas if name not in shown), key=lambda n: -areas[n])
    # With two classes u_marg and u_H draw the curve of u_max once more.
    drawn = {areas[name] for name in shown}
    for name in others:
        if len(shown) < MOST_CURVES and areas[name] not in drawn:
            shown.append(name)
            drawn.add(areas[name])
    return [name for name in areas if name in shown]


def _describe_spread(values: Floats) -> dict[str, Any]:
    if not len(values):
        return {"rows": 0, "median": None}
    return {"rows": len(values), "median": float(np.median(values))}


def _list_least(
    model: GenerativeClassifier | Guest,
    X: pa.Table,
    y: np.ndarray[Any, Any],
    assessment: Assessment,
    ball: str,
    places: Indices | None,
) -> list[dict[str, Any]]:
    """Return the least robust predictions, with what would flip them and what decides them."""
    least = replace(assessment, index=np.arange(len(y))).least(LEAST_ROBUST, ball)
    places = np.arange(len(y)) if places is None else places
    shown = take_rows(X, least.index)
    rivals = least.tipping_class[ball].tolist()
    deciding = list_deciding(model, shown, least.prediction.tolist(), rivals)
    features = [
        {name: row[name] for name in names}
        for names, row in zip(deciding, shown.to_pylist(), strict=True)
    ]
    return [
        {
            "row": int(places[row]) + 1,
            "prediction": _plain(least.prediction[rank]),
            "truth": _plain(y[row]),
            "probability": float(least.probability[rank]),
            "robustness": float(least.robustness[ball][rank]),
            "tipping_class": _plain(least.tipping_class[ball][rank]),
            "features": {name: _plain(value) for name, value in values.items()},
        }
        for rank, (row, values) in enumerate(zip(least.index, features, strict=True))
    ]


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
