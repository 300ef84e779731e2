"""`robustq inspect`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from .consoles import fill_row, make_console, make_table, say_json, showing_progress, start_up
from .options import ModelPath

__all__ = ["inspect"]

MOST = 60
MOST_SAID = 5
GATE_DETAILS = ("levels", "promises")


def inspect(
    model: ModelPath,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the whole model as JSON (to_dict).")
    ] = False,
) -> None:
    """Show what a model file holds.

    Example: [bold]robustq inspect model.robustq --json > model.json[/bold]
    """
    start_up()
    from robustq import load  # noqa: PLC0415 (slow to import)
    from robustq.files import find_place, name_file  # noqa: PLC0415

    with showing_progress(f"reading {name_file(model)}"):
        classifier = load(model)
    if as_json:
        say_json(json.dumps(classifier.to_dict(), ensure_ascii=False, allow_nan=False))
        return
    console = make_console()
    _show_facts(console, classifier, find_place(model).size())
    _show_features(console, classifier)


def _show_facts(console: Any, classifier: Any, size: int) -> None:
    from rich.table import Table  # noqa: PLC0415 (slow to import)
    from rich.text import Text  # noqa: PLC0415

    table = Table.grid(padding=(0, 2))
    training = getattr(classifier, "training_", {})
    facts = {
        "kind": type(classifier).__name__,
        "size": f"{size:,} bytes",
        "classes": _list(classifier.classes_.tolist()),
        **_describe_model(classifier),
        # A sketch of rows tells people nothing.
        **{name: _say(value) for name, value in training.items() if name != "sketch"},
    }
    if "gate" in training:
        facts["gate"] = _say({n: v for n, v in training["gate"].items() if n not in GATE_DETAILS})
    for name, value in facts.items():
        table.add_row(Text(str(name), style="bold"), Text(str(value)))
    console.print(table)


def _describe_model(classifier: Any) -> dict[str, str]:
    from robustq.families.table import recipe_of  # noqa: PLC0415 (slow to import)

    given = classifier.get_params()
    plain = type(classifier)().get_params()
    changed = [f"{name}={value!r}" for name, value in given.items() if value != plain[name]]
    recipe = recipe_of(classifier)
    return {
        "parameters": ", ".join(changed) or "defaults",
        **dict([] if recipe is None else recipe.describe(classifier)),
        "parts": ", ".join(classifier.parts),
    }


def _show_features(console: Any, classifier: Any) -> None:
    encoding = classifier.encoding_
    told = bool(encoding.verdicts)
    table = make_table("feature", "taken as", *(["it holds"] if told else []), "values")
    shown = list(zip(encoding.columns, encoding.describe(), strict=True))[:MOST]
    for column, (name, kind, why) in shown:
        values = _list(list(getattr(column, "categories", ())))
        fill_row(table, name, kind, *([why] if told else []), values)
    console.print(table)
    if len(encoding.columns) > MOST:
        console.print(f"… and {len(encoding.columns) - MOST:,} more features")
    for name, remark in list(encoding.remarks.items())[:MOST]:
        console.print(f"{name} {remark}", style="yellow", markup=False)


def _list(values: list[Any], most: int = 6) -> str:
    shown = ", ".join(map(str, values[:most]))
    return f"{shown}, … ({len(values):,})" if len(values) > most else shown


def _say(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_say(part)}" for name, part in value.items() if part != [])
    if isinstance(value, list):
        return ", ".join(map(_say, value)) if len(value) <= MOST_SAID else f"({len(value)})"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
