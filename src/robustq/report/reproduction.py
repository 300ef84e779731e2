"""The report of the paper's experiments, in one reading of the paper or several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from robustq.experiments.findings import VERDICTS
from robustq.experiments.readings import READINGS, describe_choices
from robustq.files import write_atomically

from .pages import as_image, fill

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from robustq.experiments import Reproduction

__all__ = ["tabulate", "write_reproduction"]


def write_reproduction(found: Sequence[Reproduction], folder: Path) -> Path:
    """Write report.html, with the pictures of all readings in it.

    Parameters
    ----------
    found : sequence of Reproduction
        One for each reading.
    folder : Path

    Returns
    -------
    Path
    """
    parts = [
        {
            "summary": one.summary,
            "timings": one.timings,
            "place": "" if one.folder == folder else one.folder.name,
            "pictures": {
                key: as_image((one.folder / f"{name}.svg").read_bytes())
                for key, name in one.summary["figures"].items()
            },
        }
        for one in found
    ]
    overview = tabulate([one.summary for one in found])
    page = fill("reproduction.html", parts=parts, overview=overview)
    path = folder / "report.html"
    write_atomically(path, page)
    return path


def tabulate(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return which findings hold in which reading; those that were not run are in it too.

    Returns
    -------
    dict
        `readings`: name, title and whether it was run; `choices`: what each chooses, by what the
        choice is about; `findings`: model, claim, and for each reading its finding or None;
        `counts`: for each verdict, in how many findings each reading has it; `seen`: in how many
        its means alone say what the paper says.
    """
    ran = {summary["reading"]["name"]: summary for summary in summaries}
    names = list(READINGS)
    judged = {name: ran[name]["findings"] if name in ran else [] for name in names}
    keys: dict[tuple[str, str], str] = {}
    cells: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for name, summary in ran.items():
        for finding in summary["findings"]:
            model, claim = finding["model"], finding["claim"]
            keys[model, claim] = summary["models"][model]["title"]
            cells[name, model, claim] = finding
    choices = {
        name: ran[name]["reading"]["choices"] if name in ran else describe_choices(READINGS[name])
        for name in names
    }
    return {
        "readings": [_describe(name, ran.get(name)) for name in names],
        "choices": {about: [choices[name][about] for name in names] for about in choices[names[0]]},
        "findings": [
            {"model": title, "claim": claim, "cells": [cells.get((n, model, claim)) for n in names]}
            for (model, claim), title in keys.items()
        ],
        "counts": {
            verdict: [
                sum(finding["verdict"] == verdict for finding in judged[name]) for name in names
            ]
            for verdict in VERDICTS
        },
        "seen": [sum(finding["seen"] for finding in judged[name]) for name in names],
    }


def _describe(name: str, summary: Mapping[str, Any] | None) -> dict[str, Any]:
    changed = summary is not None and summary["reading"]["changed"]
    return {
        "name": name,
        "title": f"{name}, changed" if changed else name,
        "meaning": READINGS[name].meaning,
        "ran": summary is not None,
    }
