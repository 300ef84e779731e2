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
    from robustq.io import open_sources, read_table  # noqa: PLC0415
    from robustq.report import as_json as say  # noqa: PLC0415
    from robustq.report import write_evaluation  # noqa: PLC0415

    sources = open_sources([test], make_csv_options(delimiter, encoding, no_header))
    check_output(output, [str(model), *(source.path for source in sources)])
    classifier = load(model)
    label = target or classifier.training_.get("target")
    if not label:
        msg = "the model does not tell what it predicts: give --target"
        raise InputError(msg)
    names = [find_indicator(name) for name in split_list(indicators)]
    table = read_table(sources, infer=False)
    X, y, rows = _separate(classifier, table, label, test)
    found = evaluation.evaluate(
        classifier, X, y, title=Path(model).name, names=names or None, rows=rows
    )
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


def _separate(model: Any, table: Any, target: str, name: str) -> tuple[Any, Any, Any]:
    """Return features and labels as the model knows them, and which rows they are."""
    import numpy as np  # noqa: PLC0415 (slow to import)
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    from robustq.exceptions import InputError  # noqa: PLC0415
    from robustq.io import Scorer, adapt_labels, adapt_table  # noqa: PLC0415
    from robustq.io.columns import require_columns  # noqa: PLC0415
    from robustq.io.training import read_labels  # noqa: PLC0415

    require_columns([target], table.column_names, name, "the labels (--target)")
    labels = adapt_labels(table[target], model.classes_, target)
    if pa.types.is_floating(labels.type):
        labels = pc.if_else(pc.is_nan(labels), None, labels)
    rows = np.flatnonzero(pc.is_valid(labels).to_numpy(zero_copy_only=False))
    if not len(rows):
        msg = f"{name} has no row with a label in column {target!r}"
        raise InputError(msg)
    y = read_labels(pa.chunked_array([labels.take(pa.array(rows))]), target)
    strange = y[~np.isin(y, model.classes_)]
    if len(strange):
        shown = ", ".join(map(str, model.classes_[:6].tolist()))
        what = f"{strange[0]!s}, which the model does not know"
        msg = f"column {target!r} holds {what}; it knows {shown}"
        raise InputError(msg)
    others = [n for n in table.column_names if n != target or n in model.encoding_.names]
    X = table.take(pa.array(rows)).select(Scorer(model, [], ()).choose(tuple(others), name))
    return adapt_table(X, model.encoding_), y.astype(model.classes_.dtype), rows


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
