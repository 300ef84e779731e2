"""The report of models on rows with labels."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from robustq import __version__
from robustq.credal.curves import read_curve
from robustq.experiments.figures import render
from robustq.files import write_atomically
from robustq.rejection import AverageCurve
from robustq.rejection.plots import plot_curves, plot_robustness

from .pages import as_image, fill

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["as_json", "draw_evaluation", "write_evaluation"]

# Inches: small, so that letters are large enough on a phone.
WIDE, NARROW = (5.8, 4.2), (4.6, 3.6)
SINGLE = 0.75


def write_evaluation(
    found: Sequence[Mapping[str, Any]],
    path: str | Path,
    *,
    title: str,
    text: str = "",
    pictures: Sequence[Mapping[str, str]] | None = None,
) -> None:
    """Write a page about one model or several.

    Parameters
    ----------
    found : sequence of dict
        What `robustq.experiments.evaluation.evaluate` returned.
    path : path
    title : str
    text : str
        What the page begins with.
    pictures : sequence of dict, optional
        What `draw_evaluation` returned for each of them.
    """
    pictures = list(map(draw_evaluation, found)) if pictures is None else pictures
    page = fill(
        "evaluation.html",
        models=[
            ({**model, "sets_at": _pick_size(model["credal"])}, drawn)
            for model, drawn in zip(found, pictures, strict=True)
        ],
        title=title,
        text=text,
        version=__version__,
    )
    write_atomically(path, page)


def _pick_size(credal: Mapping[str, Any]) -> dict[str, float] | None:
    """Return what sets are worth at the size where about three of four are a single class."""
    places = [place for place, delta in enumerate(credal["delta"]) if delta > 0]
    if not places:
        return None
    best = min(places, key=lambda place: abs(credal["determinacy"][place] - SINGLE))
    return {name: column[best] for name, column in credal.items()}


def as_json(found: Mapping[str, Any]) -> str:
    """Return what was found as JSON, without the points of pictures; infinite numbers are text."""
    told = {name: value for name, value in found.items() if name != "points"}
    return json.dumps(_finite(told), indent=1, ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def draw_evaluation(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the pictures of a model, as a page holds them."""
    import numpy as np  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415 (slow to import)

    curves = {
        name: AverageCurve(
            np.array(item["rates"]),
            np.array(item["accuracy"]),
            np.zeros(len(item["rates"])),
            item["area"],
            curves=1,
        )
        for name, item in found["indicators"].items()
        if name in found["shown"]
    }
    figure, spread, accuracy, sets = (
        Figure(figsize=size, layout="constrained") for size in (WIDE, NARROW, NARROW, WIDE)
    )
    plot_curves(
        curves, ax=figure.subplots(), title="Accuracy of the rest, the least trusted rejected"
    )
    name = f"robustness ({found['ball']})"
    axes = spread.subplots(), accuracy.subplots()
    plot_robustness(**found["points"], name=name, axes=axes)
    title = "Sets with one class only, and what sets are worth"
    read_curve(found["ball"], found["credal"]).plot(sets.subplots(), title)
    pictures = {"curves": figure, "robustness": spread, "accuracy": accuracy, "sets": sets}
    return {name: as_image(render(picture, "svg")) for name, picture in pictures.items()}
