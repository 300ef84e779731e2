"""`robustq evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .consoles import check_output, make_console, make_table, split_list
from .options import Delimiter, EncodingName, ModelPath, NoHeader, make_csv_options

__all__ = ["evaluate", "show_areas"]


def evaluate(
    model: ModelPath,
    test: Annotated[
        str,
        typer.Argument(help="CSV or Parquet with labels; - for standard input.", metavar="TEST"),
    ],
    target: Annotated[
        str | None, typer.Option(help="The column with the labels; as in training by default.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all numbers as JSON, besides.")
    ] = False,
    indicators: Annotated[
        list[str] | None, typer.Option(help="As in r_tv,u_max; by default all there are.")
    ] = None,
    delimiter: Delimiter = None,
    encoding: EncodingName = None,
    no_header: NoHeader = False,
) -> None:
    """Try a model on rows with labels: accuracy, rejection curves, the least robust predictions.

    Example: [bold]robustq evaluate model.robustq test.csv --target outcome -o report.html[/bold]
    """
    from robustq import load  # noqa: PLC0415 (slow to import)
    from robustq.exceptions import InputError  # noqa: PLC0415
    from robustq.experiments import evaluation  # noqa: PLC0415
    from robustq.experiments.plan import find_indicator  # noqa: PLC0415
    from robustq.io import read_table  # noqa: PLC0415
    from robustq.report import as_json as say  # noqa: PLC0415
    from robustq.report import write_evaluation  # noqa: PLC0415

    check_output(output, [str(model), test])
    classifier = load(model)
    label = target or classifier.training_.get("target")
    if not label:
        msg = "the model does not tell what it predicts: give --target"
        raise InputError(msg)
    names = [find_indicator(name) for name in split_list(indicators)]
    table = read_table(test, make_csv_options(delimiter, encoding, no_header))
    X, y = _separate(classifier, table, label, test)
    found = evaluation.evaluate(classifier, X, y, title=Path(model).name, names=names or None)
    write_evaluation([found], output, title=f"{Path(model).name} on {Path(test).name}")
    if as_json:
        typer.echo(say(found))
        return
    console = make_console()
    console.print(
        f"{found['rows']:,} rows, accuracy {found['accuracy']:.3f} (always the most frequent "
        f"class: {found['frequent']:.3f})"
    )
    show_areas(console, [found])
    console.print(f"Report: {output}", soft_wrap=True, markup=False)


def _separate(model: Any, table: Any, target: str, name: str) -> tuple[Any, Any]:
    """Return features and labels as the model knows them."""
    import numpy as np  # noqa: PLC0415 (slow to import)
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    from robustq.exceptions import InputError  # noqa: PLC0415
    from robustq.io import Scorer, adapt_labels, adapt_table  # noqa: PLC0415
    from robustq.io.columns import require_columns  # noqa: PLC0415

    require_columns([target], table.column_names, name, "the labels (--target)")
    table = table.filter(pc.is_valid(table[target]))
    if not table.num_rows:
        msg = f"{name} has no row with a label in column {target!r}"
        raise InputError(msg)
    labels = adapt_labels(table[target], model.classes_, target)
    classes = pa.array(model.classes_.tolist())
    try:
        known = pc.is_in(labels, classes.cast(labels.type))
    except pa.ArrowException as error:
        msg = f"column {target!r} holds {labels.type}, and the model's classes are {classes.type}"
        raise InputError(msg) from error
    if not pc.all(known).as_py():
        strange = labels.filter(pc.invert(known))[0].as_py()
        shown = ", ".join(map(str, model.classes_[:6].tolist()))
        msg = (
            f"column {target!r} holds {strange!r}, which the model does not know; it knows {shown}"
        )
        raise InputError(msg)
    names = table.column_names if target in model.encoding_.names else [
        n for n in table.column_names if n != target
    ]  # fmt: skip
    wanted = Scorer(model, [], ()).choose(tuple(names), name)
    X = table.select(wanted)
    X = adapt_table(X, model.encoding_) if model.encoding_.named else X
    return X, np.array(labels.to_pylist()).astype(model.classes_.dtype)


def show_areas(console: Any, found: list[dict[str, Any]]) -> None:
    """Show the AU-ARC of indicators, a column for each model."""
    from rich.text import Text  # noqa: PLC0415 (slow to import)

    titles = [model["title"] for model in found] if len(found) > 1 else [""]
    table = make_table("AU-ARC", *titles, right=titles)
    best = [max(item["area"] for item in model["indicators"].values()) for model in found]
    for name in found[0]["indicators"]:
        areas = [model["indicators"][name]["area"] for model in found]
        cells = [
            Text(f"{area:.4f}", style="bold green" if area >= top - 1e-9 else "")
            for area, top in zip(areas, best, strict=True)
        ]
        table.add_row(Text(name), *cells)
    console.print(table)
