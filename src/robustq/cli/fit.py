"""`robustq fit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .consoles import check_output, check_seed, make_console, make_table, read_number, split_list
from .options import Delimiter, EncodingName, NoHeader, find_balls, make_csv_options

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from robustq.io.training import Holdout, Understanding

__all__ = ["fit"]


def fit(
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    train: Annotated[
        str | None, typer.Argument(help="CSV or Parquet; - for standard input.", metavar="TRAIN")
    ] = None,
    target: Annotated[str | None, typer.Option(help="The column to predict.")] = None,
    model: Annotated[str, typer.Option(help="nbc (naive Bayes) or forest.")] = "forest",
    drop: Annotated[list[str] | None, typer.Option(help="Columns to leave out.")] = None,
    categorical: Annotated[
        list[str] | None, typer.Option(help="Columns to take as categories.")
    ] = None,
    numeric: Annotated[list[str] | None, typer.Option(help="Columns to take as numbers.")] = None,
    smoothing: Annotated[
        str | None, typer.Option(help="Additive smoothing: a number; for nbc also cv.")
    ] = None,
    bins: Annotated[int, typer.Option(help="Bins of a number, for nbc.")] = 10,
    trees: Annotated[int, typer.Option(help="How many, for forest.")] = 25,
    max_depth: Annotated[
        str, typer.Option(help="Of trees: a number, none for unlimited, or auto.")
    ] = "auto",
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
    perturbation: Annotated[str, typer.Option(help="The gate's perturbation.")] = "tv",
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
    from robustq.io import open_sources, read_table, training  # noqa: PLC0415 (slow to import)
    from robustq.io.columns import require_columns  # noqa: PLC0415

    sources = open_sources([train], make_csv_options(delimiter, encoding, no_header))
    check_output(output, [source.path for source in sources])
    table = read_table(sources)
    dropped, as_category = split_list(drop), split_list(categorical)
    for option, names in (
        ("--target", (target,)),
        ("--drop", dropped),
        ("--categorical", as_category),
        ("--numeric", split_list(numeric)),
    ):
        require_columns(names, table.column_names, train, f"which {option} names")
    X, y, unlabelled = _separate(table, target, dropped)
    numbers = training.find_numbers(X, split_list(numeric), as_category)
    promise = None
    if max_error is not None:
        (ball,) = find_balls((perturbation,))
        promise = training.Promise(ball, max_error, confidence)
    estimator, found = training.train(
        _make_estimator(model, as_category, numbers, smoothing, bins, trees, max_depth, seed),
        *(X, y),
        holdout=None if no_holdout else holdout,
        seed=seed,
        promise=promise,
    )
    estimator.training_ |= {"target": target, "source": Path(train).name}
    estimator.save(output)
    console = make_console()
    _show_columns(console, training.describe_columns(estimator, X))
    _show_model(console, estimator, y, unlabelled, found)
    console.print(f"Model: {output}", soft_wrap=True, markup=False)


def _convert(document: Path, output: Path) -> None:
    from robustq import load  # noqa: PLC0415 (slow to import)

    load(document).save(output)
    make_console().print(f"Model: {output}", soft_wrap=True, markup=False)


def _separate(
    table: pa.Table, target: str, dropped: tuple[str, ...]
) -> tuple[pa.Table, np.ndarray[Any, Any], int]:
    """Return features and labels of the rows that have one, and how many have none."""
    import pyarrow as pa  # noqa: PLC0415 (slow to import)
    import pyarrow.compute as pc  # noqa: PLC0415

    from robustq.exceptions import InputError  # noqa: PLC0415
    from robustq.io.training import read_labels  # noqa: PLC0415

    labelled = pc.is_valid(table[target])
    known = table.filter(labelled)
    if not known.num_rows:
        msg = f"no row has a value in column {target!r}: there is nothing to learn from"
        raise InputError(msg)
    X = known.drop_columns(list(dict.fromkeys([target, *dropped])))
    if not X.num_columns:
        msg = f"there is no column but {target!r}: there is nothing to learn from"
        raise InputError(msg)
    labels = known[target]
    if pa.types.is_floating(labels.type) and not pc.all(pc.equal(labels, pc.round(labels))).as_py():
        msg = (
            f"column {target!r} holds numbers such as {labels[0].as_py()}: a classifier predicts "
            "classes; choose another target, or make classes of it"
        )
        raise InputError(msg)
    return X, read_labels(labels, target), table.num_rows - known.num_rows


def _make_estimator(
    model: str,
    categorical: tuple[str, ...],
    numbers: list[str],
    smoothing: str | None,
    bins: int,
    trees: int,
    max_depth: str,
    seed: int,
) -> Any:
    from robustq import GenerativeForestClassifier, NaiveBayesClassifier  # noqa: PLC0415
    from robustq.exceptions import InputError  # noqa: PLC0415

    kinds: dict[str, Any] = {"categorical": list(categorical) or None, "numeric": numbers or None}
    if model in {"nbc", "naive_bayes"}:
        amount = read_number(smoothing or "cv", "--smoothing", {"cv": "cv"}, float)
        return NaiveBayesClassifier(amount, n_bins=bins, random_state=seed, **kinds)
    if model in {"forest", "gef"}:
        amount = read_number(smoothing or "1e-6", "--smoothing", {}, float)
        depth = read_number(max_depth, "--max-depth", {"none": None, "auto": "auto"}, int)
        return GenerativeForestClassifier(
            trees, max_depth=depth, smoothing=amount, random_state=seed, **kinds
        )
    msg = f"--model is nbc or forest, got {model!r}"
    raise InputError(msg)


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
    console: Any, model: Any, y: np.ndarray[Any, Any], unlabelled: int, found: Holdout | None
) -> None:
    classes = ", ".join(map(str, model.classes_[:6].tolist()))
    more = f", … ({len(model.classes_)} in all)" if len(model.classes_) > 6 else ""
    console.print(
        f"{len(y):,} rows, classes {classes}{more}"
        + (f"; {unlabelled:,} rows without a label left out" if unlabelled else ""),
        markup=False,
    )
    if found is not None:
        areas = ", ".join(f"{name} {area:.3f}" for name, area in found.areas.items())
        console.print(
            f"Tried on {found.rows:,} rows held out: accuracy {found.accuracy:.3f} (always the "
            f"most frequent class: {found.frequent:.3f}); AU-ARC {areas}",
            markup=False,
        )
    gate = model.training_.get("gate")
    if gate is not None and gate["above"] is None:
        console.print(
            f"Gate: an error of at most {gate['max_error']:g} cannot be promised for this model "
            "with these rows: nothing will be accepted.",
            style="yellow",
        )
    elif gate is not None:
        console.print(
            f"Gate: accepts {gate['accepted']:.0%}, those with a robustness ({gate['ball']}) above "
            f"{gate['above']:.4g}; their error is at most {gate['bound']:.3f} with "
            f"{gate['confidence']:.0%} confidence, for rows that come as these did. The model "
            "learned from the other rows only.",
        )
