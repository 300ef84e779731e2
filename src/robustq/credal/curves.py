"""How sets of classes grow with the size, and what that is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.core.neighbourhoods import read
from robustq.exceptions import InputError
from robustq.families.functions import assess, credal_predict
from robustq.families.remarks import ignoring_unknown_values

from .measures import Framed, Measures, as_columns, measure
from .sets import predict_sets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from robustq.arrays import Floats
    from robustq.core.assessment import Assessment
    from robustq.core.neighbourhoods import Neighbourhood, PerturbationLike

__all__ = ["CredalCurve", "choose_sizes", "curve", "read_curve", "trace"]

# Sizes at which so many predictions are no longer robust.
SHARES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)


@dataclass(frozen=True, repr=False)
class CredalCurve(Framed):
    """What sets are worth at several sizes.

    Attributes
    ----------
    name : str
        Of the neighbourhood.
    deltas : ndarray of shape (sizes,)
    measures : list of Measures
        One for each size.
    """

    name: str
    deltas: Floats
    measures: list[Measures]

    def to_dict(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the columns by name: delta, and the measures."""
        return {"delta": self.deltas, **as_columns(self.measures)}

    def plot(self, ax: Axes | None = None, title: str | None = None) -> Axes:
        """Draw determinacy and utilities against the size.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new ones by default.
        title : str, optional

        Returns
        -------
        matplotlib Axes
        """
        from .plots import plot_credal_curve  # noqa: PLC0415 (slow to import)

        return plot_credal_curve(self, ax=ax, title=title)

    def __repr__(self) -> str:
        columns = self.to_dict()
        width = {name: max(len(name), 6) for name in columns}
        lines = ["  ".join(name.rjust(width[name]) for name in columns)]
        lines += [
            "  ".join(
                _show(v, name).rjust(width[name]) for name, v in zip(columns, row, strict=True)
            )
            for row in zip(*columns.values(), strict=True)
        ]
        return "\n".join([f"Sets of classes in {self.name}", *lines])


def curve(
    model: Any,
    X: Any,
    y: ArrayLike,
    perturbation: PerturbationLike = "epsilon",
    deltas: ArrayLike | None = None,
    *,
    parts: str | Iterable[str] | None = None,
    sizes: str | None = None,
    rule: str = "maximality",
) -> CredalCurve:
    """Return what sets of classes are worth at several sizes.

    Parameters
    ----------
    model : GenerativeClassifier or Pipeline
        Fitted.
    X : frame or array of shape (rows, features)
    y : array_like of shape (rows,)
        The true labels.
    perturbation : str or Perturbation
        "idm" counts records: delta is s then.
    deltas : array_like, optional
        By default 0, and sizes that up to half of the predictions do not survive.
    parts, sizes : optional
        See `GenerativeClassifier.robustness`.
    rule : {"maximality", "interval"}
        See `GenerativeClassifier.credal_predict`.

    Returns
    -------
    CredalCurve
    """
    neighbourhood = read(perturbation, parts, sizes)
    found = assess(model, X, [neighbourhood])
    if rule == "maximality":
        return trace(model, X, y, neighbourhood, found, deltas)
    given = _read_sizes(deltas, neighbourhood, found.robustness[neighbourhood.name])
    with ignoring_unknown_values():
        sets = [credal_predict(model, X, neighbourhood, delta, rule=rule) for delta in given]
    measures = [measure(one, y, model.classes_) for one in sets]
    return CredalCurve(neighbourhood.name, given, measures)


def trace(
    model: Any,
    X: Any,
    y: ArrayLike,
    neighbourhood: Neighbourhood,
    found: Assessment,
    deltas: ArrayLike | None = None,
) -> CredalCurve:
    """Return the curve of sets of maximal classes, where the robustness is known already."""
    robustness = found.robustness[neighbourhood.name]
    position = {label: index for index, label in enumerate(model.classes_.tolist())}
    prediction = np.array([position[label] for label in found.prediction.tolist()], dtype=np.int64)
    given = _read_sizes(deltas, neighbourhood, robustness)
    sets = (
        predict_sets(model, X, neighbourhood, delta, prediction, robustness)
        for delta in given.tolist()
    )
    measures = [measure(one, y, model.classes_) for one in sets]
    return CredalCurve(neighbourhood.name, given, measures)


def _read_sizes(
    deltas: ArrayLike | None, neighbourhood: Neighbourhood, robustness: Floats
) -> Floats:
    given = choose_sizes(robustness) if deltas is None else neighbourhood.domain.check(deltas)
    if given.ndim != 1 or not len(given):
        msg = f"deltas must be a list of sizes, at least one, got {deltas!r}"
        raise InputError(msg)
    return given


def read_curve(name: str, columns: Mapping[str, Any]) -> CredalCurve:
    """Return the curve that `to_dict` gave."""
    every = Measures.__dataclass_fields__
    rows = zip(*(columns[name] for name in every), strict=True)
    measures = [Measures(**dict(zip(every, row, strict=True))) for row in rows]
    return CredalCurve(name, np.asarray(columns["delta"]), measures)


def choose_sizes(robustness: Floats) -> Floats:
    """Return 0, and sizes of two digits that small shares of the predictions do not survive."""
    finite = robustness[np.isfinite(robustness) & (robustness > 0.0)]
    if not len(finite):
        return np.zeros(1)
    found = np.quantile(finite, SHARES, method="lower")
    return np.unique([0.0, *(float(f"{size:.2g}") for size in found)])


def _show(value: float, name: str) -> str:
    return "–" if np.isnan(value) else f"{value:.4g}" if name == "delta" else f"{value:.3f}"
