"""Everything an experiment found, as one plain dictionary."""

from __future__ import annotations

import platform
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from robustq import __version__
from robustq.families.table import find_recipe
from robustq.indicators.finding import find_indicator
from robustq.rejection import average_curves

from .findings import judge
from .outcomes import CONFIDENCE
from .pieces import count_tests
from .readings import describe_choices, find_reading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from robustq.datasets import DataSet

    from .plan import Plan
    from .results import Results

__all__ = ["figure_name", "summarise"]

PACKAGES = ("numpy", "numba", "scikit-learn", "scipy", "pyarrow", "matplotlib")
POOLED = "UCI’s own split is left aside: its files are pooled and split at random"


def figure_name(data_set: str, model: str) -> str:
    """Return what the picture of a data set and model is called, without its ending."""
    return f"curves_{model}_{data_set}"


def summarise(
    plan: Plan, data: Mapping[str, DataSet], results: Mapping[str, Results]
) -> dict[str, Any]:
    """Return the summary; it holds nothing that differs from one execution to the next."""
    outcomes = {model: found.outcome for model, found in results.items()}
    return {
        "settings": plan.to_dict(),
        "reading": _describe_reading(plan),
        "versions": _versions(),
        "confidence": CONFIDENCE,
        "indicators": {i.name: i.meaning for i in map(find_indicator, plan.indicators)},
        "data_sets": [_describe(plan, item) for item in data.values()],
        "models": {
            model: _describe_model(plan, model) | _describe_results(found, data)
            for model, found in results.items()
        },
        "findings": [finding._asdict() for finding in judge(outcomes)],
        "figures": {
            "overview": "overview",
            **{
                f"{model}/{name}": figure_name(name, model)
                for model in results
                for name in plan.data_sets
            },
        },
    }


def _versions() -> dict[str, str]:
    return {
        "robustq": __version__,
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
    }


def _describe_reading(plan: Plan) -> dict[str, Any]:
    return {
        "name": plan.reading,
        "meaning": find_reading(plan.reading).meaning,
        "changed": plan.is_changed,
        "choices": describe_choices(plan),
    }


def _describe(plan: Plan, data: DataSet) -> dict[str, Any]:
    source = data.source
    return {
        "id": source.id,
        "name": source.name,
        "title": source.title,
        "rows": len(data.y),
        "classes": source.classes,
        "features": data.X.num_columns,
        "tests": count_tests(plan, data),
        "own_split": data.split is not None,
        "paper_rows": source.paper_rows or source.rows,
        "differs": source.paper_rows is not None,
        "note": POOLED if source.split and data.split is None else source.note,
        "citation": source.citation,
    }


def _describe_model(plan: Plan, model: str) -> dict[str, Any]:
    recipe = find_recipe(model)
    return {"title": recipe.title, "parameters": recipe.preset(plan)}


def _describe_results(found: Results, data: Mapping[str, DataSet]) -> dict[str, Any]:
    table = found.comparison
    unlike = [name for name, item in data.items() if item.source.paper_rows is not None]
    return {
        "table": {
            "labels": list(table.labels),
            "names": list(table.names),
            "mean": table.mean.tolist(),
            "wins": table.wins.tolist(),
            "best": table.is_best.tolist(),
        },
        "ranks": found.outcome.ranks,
        "critical_difference": found.outcome.critical_difference,
        "mean_areas": {name: asdict(area) for name, area in found.mean_areas().items()},
        "unlike": [data[name].source.id for name in unlike],
        "alike_areas": _describe_areas(found.without(unlike)) if unlike else {},
        "data_sets": {
            data_set: {
                "accuracy": sum(accuracy) / len(accuracy),
                "possible": found.possible[data_set],
                "areas": {name: asdict(area) for name, area in found.areas(data_set).items()},
                "curves": {
                    name: _describe_curve(runs) for name, runs in found.curves[data_set].items()
                },
            }
            for data_set, accuracy in found.accuracy.items()
        },
    }


def _describe_areas(found: Results) -> dict[str, Any]:
    """Return the mean areas, if there is any data set left, and which are best."""
    if not found.curves:
        return {}
    areas = found.mean_areas()
    top = max(area.mean for area in areas.values())
    return {name: {"mean": a.mean, "best": a.mean >= top - 1e-9} for name, a in areas.items()}


def _describe_curve(runs: list[Any]) -> dict[str, Any]:
    average = average_curves(runs)
    return {
        "rates": average.rates.tolist(),
        "accuracy": average.accuracy.tolist(),
        "deviation": average.deviation.tolist(),
    }
