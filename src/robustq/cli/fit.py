"""`robustq fit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .consoles import (
    check_output,
    check_seed,
    make_console,
    make_table,
    naming_options,
    split_list,
)
from .options import Delimiter, EncodingName, NoHeader, make_csv_options

if TYPE_CHECKING:
    from robustq.io import Labelled, Understanding
    from robustq.selection.training import Holdout, Trained

__all__ = ["fit"]

OPTIONS = {"max_error": "--max-error", "confidence": "--confidence", "holdout": "--holdout"}


def fit(
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    train: Annotated[
        str | None, typer.Argument(help="CSV or Parquet; - for standard input.", metavar="TRAIN")
    ] = None,
    target: Annotated[str | None, typer.Option(help="The column to predict.")] = None,
    model: Annotated[
        str, typer.Option(help="nbc (naive Bayes), forest, tan, fan, kdb, aode or network.")
    ] = "forest",
    option: Annotated[
        list[str] | None,
        typer.Option(help="Any parameter of the model, as in min_samples_leaf=5; repeatable."),
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
        bool, typer.Option("--no-holdout", help="Learn from all rows, try it on none.")
    ] = False,
    max_error: Annotated[
        float | None,
        typer.Option(help="Calibrate a gate: accept predictions with at most this error."),
    ] = None,
    confidence: Annotated[float, typer.Option(help="With which confidence.")] = 0.95,
    perturbation: Annotated[
        str, typer.Option(help="The gate's perturbation, as in tv or tv_all.")
    ] = "tv",
    from_json: Annotated[
        Path | None, typer.Option(help="Make the model of `inspect --json`, not of data.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    delimiter: Delimiter = None,
    encoding: EncodingName = None,
    no_header: NoHeader = False,
) -> None:
    """Train a model on a table, and say how the table was understood.

    Text and whole numbers are categories; whole numbers with more than 50 different values, and
    all other numbers, are numbers. The model learns from all rows; before, a copy of it is tried on
    rows it did not see.

    Example: [bold]robustq fit train.csv --target outcome --model forest -o model.robustq[/bold]
    """
    if from_json is not None:
        check_output(output, [str(from_json)])
        _convert(from_json, output)
        return
    if train is None or target is None:
        msg = "give a table and --target, the column to predict"
        raise typer.BadParameter(msg)
    check_seed(seed)
    from robustq.families.table import find_recipe  # noqa: PLC0415 (slow to import)
    from robustq.io import describe_columns, open_sources  # noqa: PLC0415

    from .models import make_estimator  # noqa: PLC0415

    shorthands = {"smoothing": smoothing, "bins": bins, "trees": trees, "max_depth": max_depth}
    made = make_estimator(find_recipe(model), shorthands, option or (), seed)
    sources = open_sources([train], make_csv_options(delimiter, encoding, no_header))
    check_output(output, [source.path for source in sources])
    lists = {
        "--drop": split_list(drop),
        "--categorical": split_list(categorical),
        "--numeric": split_list(numeric),
    }
    data, unlabelled = _read(sources, train, target, lists)
    made.set_params(**_choose_kinds(data.X, lists["--categorical"], lists["--numeric"]))
    share = None if no_holdout else holdout
    estimator, found = _learn(made, data, share, seed, max_error, confidence, perturbation)
    estimator.training_ |= {"target": target, "source": Path(train).name}
    estimator.save(output)
    console = make_console()
    _show_columns(console, describe_columns(estimator.encoding_, data.X))
    _show_model(console, estimator, len(data.y), unlabelled, found)
    console.print(f"Model: {output}", soft_wrap=True, markup=False)


def _convert(document: Path, output: Path) -> None:
    from robustq import load  # noqa: PLC0415 (slow to import)

    load(document).save(output)
    make_console().print(f"Model: {output}", soft_wrap=True, markup=False)


def _read(
    sources: Any, name: str, target: str, lists: dict[str, tuple[str, ...]]
) -> tuple[Labelled, int]:
    """Return the table to learn from, and how many of its rows have no label."""
    from robustq.io import read_table, require_columns, separate_target  # noqa: PLC0415

    table = read_table(sources)
    for option, names in {"--target": (target,), **lists}.items():
        require_columns(names, table.column_names, name, f"which {option} names")
    data = separate_target(table, target, lists["--drop"])
    return data, table.num_rows - len(data.y)


def _choose_kinds(X: Any, categorical: tuple[str, ...], numeric: tuple[str, ...]) -> dict[str, Any]:
    """Return the parameters that say which columns are categories and which are numbers."""
    from robustq.io import find_numbers  # noqa: PLC0415 (slow to import)

    numbers = find_numbers(X, numeric, categorical)
    return {"categorical": list(categorical) or None, "numeric": numbers or None}


def _learn(
    made: Any,
    data: Labelled,
    holdout: float | None,
    seed: int,
    max_error: float | None,
    confidence: float,
    perturbation: str,
) -> Trained:
    from robustq.indicators.finding import find_neighbourhood  # noqa: PLC0415 (slow to import)
    from robustq.selection.gates import Promise  # noqa: PLC0415
    from robustq.selection.training import train  # noqa: PLC0415

    with naming_options(OPTIONS):
        return train(
            *(made, data.X, data.y),
            holdout=holdout,
            seed=seed,
            promise=None if max_error is None else Promise(max_error, confidence),
            neighbourhood=find_neighbourhood(perturbation),
        )


def _show_columns(console: Any, columns: list[Understanding]) -> None:
    from rich.text import Text  # noqa: PLC0415 (slow to import)

    table = make_table(
        *("column", "taken as", "values", "missing", "for example", ""),
        right=("values", "missing"),
    )
    shown = columns if len(columns) <= 60 else columns[:50]
    for column in shown:
        missing = f"{column.missing:,}" if column.missing else ""
        cells = (column.name, column.kind, column.values, missing, column.examples[:40])
        table.add_row(*map(Text, cells), Text(column.remark, style="yellow"))
    console.print(table)
    if len(shown) < len(columns):
        console.print(f"… and {len(columns) - len(shown):,} more columns")


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
    if found is not None:
        _show_holdout(console, found)
    if "gate" in model.training_:
        _show_gate(console, model.training_["gate"])


def _show_holdout(console: Any, found: Holdout) -> None:
    from robustq.indicators.choices import REMARK, WIDER  # noqa: PLC0415 (slow to import)

    areas = ", ".join(f"{name} {area:.3f}" for name, area in found.au_arc.items())
    console.print(
        f"Tried on {found.rows:,} rows held out: accuracy {found.accuracy:.3f} (always the "
        f"most frequent class: {found.frequent:.3f}); AU-ARC {areas}",
        markup=False,
    )
    if set(WIDER) & set(found.au_arc):
        console.print(REMARK, markup=False)


def _show_gate(console: Any, gate: dict[str, Any]) -> None:
    if gate["above"] is None:
        console.print(
            f"Gate: an error of at most {gate['max_error']:g} cannot be promised for this model "
            "with these rows: nothing will be accepted.",
            style="yellow",
        )
        return
    console.print(
        f"Gate: accepts {gate['accepted']:.0%}, those with a robustness ({gate['ball']}) above "
        f"{gate['above']:.4g}; their error is at most {gate['bound']:.3f} with "
        f"{gate['confidence']:.0%} confidence, for rows that come as these did. The model "
        "learned from the other rows only.",
        markup=False,
    )
