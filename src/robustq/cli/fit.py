"""`robustq fit`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from .consoles import (
    check_output,
    check_seed,
    make_console,
    naming_file,
    naming_options,
    showing_progress,
    split_list,
    start_up,
)
from .options import Decimal, Delimiter, EncodingName, NoHeader, SheetName, make_csv_options
from .training_output import show_columns, show_model, show_remarks

if TYPE_CHECKING:
    from robustq.io import Labelled
    from robustq.selection.training import Trained

__all__ = ["fit"]

HOLDOUT = 0.2
OPTIONS = {"max_error": "--max-error", "confidence": "--confidence", "holdout": "--holdout"}


def fit(
    output: Annotated[
        str, typer.Option("--output", "-o", help="The model file to write.", metavar="PATH")
    ],
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
    ] = HOLDOUT,
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
        str | None,
        typer.Option(help="Make the model of `inspect --json`, not of data.", metavar="PATH"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    engine: Annotated[
        str | None, typer.Option(help="Learn on workers: dask or spark.", metavar="NAME")
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(help="Of a cluster, as in tcp://host:8786, spark://host:7077 or local[2]."),
    ] = None,
    delimiter: Delimiter = None,
    encoding: EncodingName = None,
    no_header: NoHeader = False,
    decimal: Decimal = None,
    sheet: SheetName = None,
) -> None:
    """Train a model on a table, and say how the table was understood.

    Text and whole numbers are categories; whole numbers with more than 50 different values, and
    all other numbers, are numbers (as in Python: docs/tables.md). The model learns from all rows;
    before, a copy of it is tried on rows it did not see. With --engine, and for naive Bayes and
    networks where a table is larger than the memory, it learns from parts of the table: the model
    is the same, and it is not tried.

    Example: [bold]robustq fit train.csv --target outcome -o model.robustq[/bold]
    """
    if from_json is not None:
        check_output(output, [from_json])
        _convert(from_json, output)
        return
    if train is None or target is None:
        msg = "give a table and --target, the column to predict"
        raise typer.BadParameter(msg)
    check_seed(seed)
    start_up()
    import numpy as np  # noqa: PLC0415 (slow to import)

    from robustq.families.labels import find_classes  # noqa: PLC0415
    from robustq.families.seen_rows import sketch_rows  # noqa: PLC0415
    from robustq.families.table import find_recipe  # noqa: PLC0415
    from robustq.files import hide_secrets, name_file  # noqa: PLC0415
    from robustq.io import describe_columns, open_sources  # noqa: PLC0415

    from .models import make_estimator, name_options  # noqa: PLC0415
    from .parted_fit import fit_in_parts, goes_in_parts  # noqa: PLC0415

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
    made.set_params(**_choose_kinds(columns))
    whole = {
        "--max-error": max_error is not None,
        "--holdout": holdout != HOLDOUT and not no_holdout,
        "--target-bins": target_bins is not None,
        "--target-threshold": target_threshold is not None,
    }
    needs_whole = [name for name, asked in whole.items() if asked]
    if goes_in_parts(made, sources, engine, address, needs_whole):
        with (
            naming_file(*(source.name for source in sources)),
            naming_options(OPTIONS | name_options(made)),
        ):
            fit_in_parts(made, sources, train, columns, engine, address, output)
        return
    share = None if no_holdout else holdout
    with naming_file(*(source.name for source in sources)):
        read = _read(sources, train, columns, target_bins, target_threshold)
        estimator, found = _learn(made, read.data, share, seed, max_error, confidence, perturbation)
    estimator.training_ |= {"target": target, "source": name_file(train)}
    estimator.training_["sketch"] = sketch_rows(estimator, read.data.X, read.data.y)
    if read.edges:
        estimator.training_["target_edges"] = read.edges
    estimator.save(output)
    console = make_console()
    show_columns(console, describe_columns(estimator.encoding_, read.data.X))
    classes, labels = find_classes(read.data.y)
    rows = np.bincount(labels, minlength=len(classes))
    show_remarks(console, read.notes, classes, rows, read.edges)
    show_model(console, estimator, len(read.data.y), read.unlabelled, found)
    console.print(f"Model: {hide_secrets(output)}", soft_wrap=True, markup=False)


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


def _convert(document: str, output: str) -> None:
    from robustq import load  # noqa: PLC0415 (slow to import)
    from robustq.files import hide_secrets  # noqa: PLC0415

    load(document).save(output)
    make_console().print(f"Model: {hide_secrets(output)}", soft_wrap=True, markup=False)


def _read(
    sources: Any,
    name: str,
    columns: dict[str, tuple[str, ...]],
    bins: int | None,
    threshold: float | None,
) -> _Read:
    from robustq import io  # noqa: PLC0415 (slow to import)
    from robustq.files import hide_secrets, name_file  # noqa: PLC0415

    with showing_progress(f"reading {name_file(name)}"):
        read = io.read_table(sources)
    for option, names in columns.items():
        read.require(names, hide_secrets(name), f"which {option} names")
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
