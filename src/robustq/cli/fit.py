"""`robustq fit`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from .consoles import (
    caution,
    check_output,
    check_seed,
    fill_row,
    make_console,
    make_table,
    naming_file,
    naming_options,
    say,
    showing_progress,
    split_list,
    start_up,
)
from .options import Decimal, Delimiter, EncodingName, NoHeader, SheetName, make_csv_options

if TYPE_CHECKING:
    from robustq.io import Labelled, Understanding
    from robustq.selection.training import Holdout, Trained

__all__ = ["fit"]

MOST_REMARKS = 20
OPTIONS = {"max_error": "--max-error", "confidence": "--confidence", "holdout": "--holdout"}


def fit(
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    train: Annotated[
        str | None,
        typer.Argument(help="CSV, ARFF, Parquet, Excel; - for a pipe.", metavar="TRAIN"),
    ] = None,
    target: Annotated[str | None, typer.Option(help="The column to predict.")] = None,
    target_bins: Annotated[
        int | None,
        typer.Option(help="Cut a target of numbers into so many classes of equal size."),
    ] = None,
    target_threshold: Annotated[
        float | None, typer.Option(help="Cut it into two classes: below this number, or not.")
    ] = None,
    model: Annotated[
        str, typer.Option(help="nbc (naive Bayes), forest, tan, fan, kdb, aode or network.")
    ] = "forest",
    option: Annotated[
        list[str] | None,
        typer.Option(help="Any parameter of the model, as in max_features=3; repeatable."),
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Columns to leave out.")] = None,
    categorical: Annotated[
        list[str] | None, typer.Option(help="Columns to take as categories.")
    ] = None,
    numeric: Annotated[list[str] | None, typer.Option(help="Columns to take as numbers.")] = None,
    smoothing: Annotated[
        str | None, typer.Option(help="Additive smoothing: a number; for nbc also cv.")
    ] = None,
    bins: Annotated[str | None, typer.Option(help="Bins of a number, for nbc; 10.")] = None,
    trees: Annotated[str | None, typer.Option(help="How many, for forest; 25.")] = None,
    max_depth: Annotated[
        str | None, typer.Option(help="Of trees: a number, none for unlimited, or auto.")
    ] = None,
    holdout: Annotated[
        float, typer.Option(help="The share of the rows to try the model on.")
    ] = 0.2,
    no_holdout: Annotated[
        bool, typer.Option("--no-holdout", help="Learn from all; try on none.")
    ] = False,
    max_error: Annotated[
        float | None,
        typer.Option(help="Calibrate a gate: what it accepts has at most this error."),
    ] = None,
    confidence: Annotated[float, typer.Option(help="With which confidence.")] = 0.95,
    perturbation: Annotated[
        str,
        typer.Option(help="What the gate goes by: a robustness, as in tv_all, or chosen by auto."),
    ] = "auto",
    from_json: Annotated[
        Path | None, typer.Option(help="Make the model of `inspect --json`, not of data.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    delimiter: Delimiter = None,
    encoding: EncodingName = None,
    no_header: NoHeader = False,
    decimal: Decimal = None,
    sheet: SheetName = None,
) -> None:
    """Train a model on a table, and say how the table was understood.

    Text and whole numbers are categories; whole numbers with more than 50 different values, and
    all other numbers, are numbers (as in Python: docs/tables.md). The model learns from all rows;
    before, a copy of it is tried on rows it did not see.

    Example: [bold]robustq fit train.csv --target outcome -o model.robustq[/bold]
    """
    if from_json is not None:
        check_output(output, [str(from_json)])
        _convert(from_json, output)
        return
    if train is None or target is None:
        msg = "give a table and --target, the column to predict"
        raise typer.BadParameter(msg)
    check_seed(seed)
    start_up()
    from robustq.families.seen_rows import sketch_rows  # noqa: PLC0415 (slow to import)
    from robustq.families.table import find_recipe  # noqa: PLC0415
    from robustq.io import describe_columns, open_sources  # noqa: PLC0415

    from .models import make_estimator, name_options  # noqa: PLC0415

    shorthands = {"smoothing": smoothing, "bins": bins, "trees": trees, "max_depth": max_depth}
    made = make_estimator(find_recipe(model), shorthands, option or (), seed)
    with naming_options(OPTIONS | name_options(made)):
        made._check_parameters()  # noqa: SLF001 (one house; before anything is read)
    reading = make_csv_options(delimiter, encoding, no_header, decimal, sheet)
    sources = open_sources([train], reading)
    check_output(output, [source.path for source in sources])
    columns = {
        "--target": (target,),
        "--drop": split_list(drop),
        "--categorical": split_list(categorical),
        "--numeric": split_list(numeric),
    }
    share = None if no_holdout else holdout
    with naming_file(sources[0].name):
        read = _read(sources, train, columns, target_bins, target_threshold)
        made.set_params(**_choose_kinds(columns))
        estimator, found = _learn(made, read.data, share, seed, max_error, confidence, perturbation)
    estimator.training_ |= {"target": target, "source": Path(train).name}
    estimator.training_["sketch"] = sketch_rows(estimator, read.data.X, read.data.y)
    if read.edges:
        estimator.training_["target_edges"] = read.edges
    estimator.save(output)
    console = make_console()
    _show_columns(console, describe_columns(estimator.encoding_, read.data.X))
    _show_remarks(console, read)
    _show_model(console, estimator, len(read.data.y), read.unlabelled, found)
    console.print(f"Model: {output}", soft_wrap=True, markup=False)


class _Read(NamedTuple):
    """The table to learn from, and what is to be said about it.

    Attributes
    ----------
    data : Labelled
    unlabelled : int
        How many of its rows have no label.
    edges : list of float
        Where a target of numbers was cut into classes.
    notes : dict of str to str
        What was done in reading, or may be wrong.
    """

    data: Labelled
    unlabelled: int
    edges: list[float]
    notes: dict[str, str]


def _convert(document: Path, output: Path) -> None:
    from robustq import load  # noqa: PLC0415 (slow to import)

    load(document).save(output)
    make_console().print(f"Model: {output}", soft_wrap=True, markup=False)


def _read(
    sources: Any,
    name: str,
    columns: dict[str, tuple[str, ...]],
    bins: int | None,
    threshold: float | None,
) -> _Read:
    from robustq import io  # noqa: PLC0415 (slow to import)

    with showing_progress(f"reading {Path(name).name}"):
        read = io.read_table(sources)
    for option, names in columns.items():
        read.require(names, name, f"which {option} names")
    table, notes = read
    (target,), edges = columns["--target"], []
    if bins is not None or threshold is not None:
        edges = io.find_edges(table, target, bins, threshold)
        table = io.cut_target(table, target, edges)
    elif target in columns["--categorical"]:
        table = io.name_classes(table, target)
    data = io.separate_target(table, target, columns["--drop"])
    return _Read(data, table.num_rows - len(data.y), edges, notes)


def _choose_kinds(columns: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """Return the parameters that say which columns are categories and which are numbers."""
    left_out = {*columns["--target"], *columns["--drop"]}
    named = {
        option: [name for name in columns[f"--{option}"] if name not in left_out]
        for option in ("categorical", "numeric")
    }
    return {option: names or None for option, names in named.items()}


def _learn(
    made: Any,
    data: Labelled,
    holdout: float | None,
    seed: int,
    max_error: float | None,
    confidence: float,
    perturbation: str,
) -> Trained:
    from robustq.exceptions import RigidModelWarning, TableWarning  # noqa: PLC0415
    from robustq.indicators.finding import find_neighbourhood  # noqa: PLC0415 (slow to import)
    from robustq.selection.choosing import AUTO  # noqa: PLC0415
    from robustq.selection.gates import Promise  # noqa: PLC0415
    from robustq.selection.training import train  # noqa: PLC0415

    from .models import name_options  # noqa: PLC0415

    with (
        naming_options(OPTIONS | name_options(made)),
        showing_progress("learning"),
        warnings.catch_warnings(),
    ):
        # What they say is shown in words of the command, once.
        warnings.simplefilter("ignore", TableWarning)
        warnings.simplefilter("ignore", RigidModelWarning)
        return train(
            *(made, data.X, data.y),
            holdout=holdout,
            seed=seed,
            promise=None if max_error is None else Promise(max_error, confidence),
            neighbourhood=AUTO if perturbation == AUTO else find_neighbourhood(perturbation),
        )


def _show_columns(console: Any, columns: list[Understanding]) -> None:

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


def _show_remarks(console: Any, read: _Read) -> None:
    """Show what is to be said about the file and its classes."""
    import numpy as np  # noqa: PLC0415 (slow to import)

    from robustq.families.labels import find_classes  # noqa: PLC0415
    from robustq.io import name_bins  # noqa: PLC0415
    from robustq.tables import remark_on_classes  # noqa: PLC0415

    lines = [f"{name}: {note}" for name, note in list(read.notes.items())[:MOST_REMARKS]]
    classes, labels = find_classes(read.data.y)
    remark = remark_on_classes(classes, np.bincount(labels))
    for line in [*lines, *([remark] if remark else [])]:
        console.print(line, style="yellow", markup=False)
    if read.edges:
        console.print(f"Target cut into {', '.join(name_bins(read.edges))}", markup=False)


def _show_model(
    console: Any, model: Any, rows: int, unlabelled: int, found: Holdout | None
) -> None:
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
