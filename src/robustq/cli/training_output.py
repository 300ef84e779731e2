"""What `robustq fit` shows: how a table was understood, and what was learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .consoles import caution, fill_row, make_table, say

if TYPE_CHECKING:
    import numpy as np

    from robustq.arrays import Indices
    from robustq.io import Understanding
    from robustq.selection.training import Holdout

__all__ = ["show_columns", "show_model", "show_remarks"]

MOST_REMARKS = 20


def show_columns(console: Any, columns: list[Understanding]) -> None:
    """Show how columns were understood."""
    table = make_table(
        *("column", "taken as", "values", "missing", "for example"),
        right=("values", "missing"),
        shrink="for example",
    )
    shown = columns if len(columns) <= 60 else columns[:50]
    for column in shown:
        missing = f"{column.missing:,}" if column.missing else ""
        cells = (column.name, column.kind, column.values, missing, column.examples)
        fill_row(table, *cells)
    console.print(table)
    if len(shown) < len(columns):
        console.print(f"… and {len(columns) - len(shown):,} more columns")
    for column in [column for column in columns if column.remark][:MOST_REMARKS]:
        console.print(f"{column.name} {column.remark}", style="yellow", markup=False)


def show_remarks(
    console: Any,
    notes: dict[str, str],
    classes: np.ndarray[Any, Any],
    rows: Indices,
    edges: list[float],
) -> None:
    """Show what is to be said about the file and its classes, of so many rows each."""
    from robustq.io import name_bins  # noqa: PLC0415 (slow to import)
    from robustq.tables import remark_on_classes  # noqa: PLC0415

    lines = [f"{name}: {note}" for name, note in list(notes.items())[:MOST_REMARKS]]
    remark = remark_on_classes(classes, rows)
    for line in [*lines, *([remark] if remark else [])]:
        console.print(line, style="yellow", markup=False)
    if edges:
        console.print(f"Target cut into {', '.join(name_bins(edges))}", markup=False)


def show_model(console: Any, model: Any, rows: int, unlabelled: int, found: Holdout | None) -> None:
    """Show what was learned, how good it is, and its gate."""
    classes = ", ".join(map(str, model.classes_[:6].tolist()))
    more = f", … ({len(model.classes_)} in all)" if len(model.classes_) > 6 else ""
    console.print(
        f"{rows:,} rows, classes {classes}{more}"
        + (f"; {unlabelled:,} rows without a label left out" if unlabelled else ""),
        markup=False,
    )
    for text in model.cautions:
        caution(console, text)
    if found is not None:
        _show_holdout(console, found)
    if "gate" in model.training_:
        _show_gate(console, model.training_["gate"])


def _show_holdout(console: Any, found: Holdout) -> None:
    from robustq.indicators.choices import REMARK, WIDER  # noqa: PLC0415 (slow to import)

    areas = ", ".join(f"{name} {area:.3f}" for name, area in found.au_arc.items())
    say(
        console,
        f"Tried on {found.rows:,} rows held out: accuracy {found.accuracy:.3f} (always the "
        f"most frequent class: {found.frequent:.3f}); AU-ARC {areas}",
    )
    if set(WIDER) & set(found.au_arc):
        say(console, REMARK)


def _show_gate(console: Any, gate: dict[str, Any]) -> None:
    """Show what the gate goes by and why, what it promises, and what else could be promised."""
    from robustq.selection.gates import Gate  # noqa: PLC0415 (slow to import)

    name, tried = Gate.from_dict(gate).ranking.name, gate["choice"]["au_arc"]
    if tried:
        areas = ", ".join(f"{other} {area:.3f}" for other, area in tried.items())
        say(
            console,
            f"Gate: goes by {name}, which ranked best on {gate['choice']['rows']:,} rows kept for "
            f"this choice alone (AU-ARC: {areas}).",
        )
    if gate["above"] is None:
        say(
            console,
            f"Gate: an error of at most {gate['max_error']:g} cannot be promised for this model "
            f"with these {gate['rows']:,} rows: nothing will be accepted.",
            style="yellow",
        )
    else:
        say(
            console,
            f"Gate: accepts {gate['accepted']:.0%}, those with {name} above {gate['above']:.4g}; "
            f"their error is at most {gate['bound']:g} with {gate['confidence']:.0%} confidence, "
            f"for rows that come as the {gate['rows']:,} did that it was calibrated on. The model "
            "learned from the other rows only.",
        )
    _show_promises(console, gate)


def _show_promises(console: Any, gate: dict[str, Any]) -> None:
    from rich.text import Text  # noqa: PLC0415 (slow to import)

    made = [(error, share) for error, share in gate["promises"] if share]
    if not made:
        return
    # Up to the first promise that accepts everything.
    last = next((i for i, (_, share) in enumerate(made) if share == 1), len(made) - 1)
    say(
        console,
        f"What could be promised with {gate['confidence']:.0%} confidence, each line for itself:",
    )
    names = ("error at most", "accepts")
    table = make_table(*names, right=names)
    for error, share in made[: last + 1]:
        fill_row(table, Text(f"{error:.1%}"), f"{share:.0%}")
    console.print(table)
