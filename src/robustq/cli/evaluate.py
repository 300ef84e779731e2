"""`robustq evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .consoles import check_output, make_console, make_table, split_list
from .options import Delimiter, EncodingName, ModelPath, NoHeader, make_csv_options

if TYPE_CHECKING:
    from robustq.io import Labelled

__all__ = ["evaluate", "show_areas"]

READABLE = 88


def evaluate(
    model: ModelPath,
    test: Annotated[
        str,
        typer.Argument(
            help="CSV, ARFF or Parquet with labels; - for standard input.", metavar="TEST"
        ),
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
        list[str] | None,
        typer.Option(help="As in r_tv,r_tv_all,u_max; by default those of one model."),
    ] = None,
    perturbation: Annotated[
        str, typer.Option(help="What the least robust predictions are told by, as in tv_all.")
    ] = "tv",
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
    from robustq.indicators.finding import find_indicator, find_neighbourhood  # noqa: PLC0415
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
    ball = find_neighbourhood(perturbation)
    table = read_table(sources, infer=False)
    X, y, rows = _separate(classifier, table, label, test)
    title = Path(model).name
    found = evaluation.evaluate(
        classifier, X, y, title=title, names=names or None, ball=ball, rows=rows
    )
    write_evaluation([found], output, title=f"{title} on {Path(test).name}")
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


def _separate(model: Any, table: Any, target: str, where: str) -> Labelled:
    """Return features and labels as the model knows them, and which rows they are."""
    from robustq.io import adapt_table, list_needed, separate_known  # noqa: PLC0415

    data = separate_known(table, target, model.classes_, where)
    names = model.encoding_.names
    others = [name for name in data.X.column_names if name != target or name in names]
    features = data.X.select(list(list_needed(model.encoding_, others, where)))
    return data._replace(X=adapt_table(features, model.encoding_))


def show_areas(console: Any, found: list[dict[str, Any]]) -> None:
    """Show the AU-ARC of indicators, a column for each model, and what is to be said of them."""
    from rich.text import Text  # noqa: PLC0415 (slow to import)

    titles = [model["title"] for model in found] if len(found) > 1 else [""]
    table = make_table("AU-ARC", *titles, right=titles)
    best = [max(item["area"] for item in model["indicators"].values()) for model in found]
    # In the order of the model that has the most.
    longest = sorted((model["indicators"] for model in found), key=len, reverse=True)
    for name in dict.fromkeys(name for indicators in longest for name in indicators):
        cells = []
        for model, top in zip(found, best, strict=True):
            area = model["indicators"].get(name, {}).get("area")
            style = "bold green" if area is not None and area >= top - 1e-9 else ""
            cells.append(Text("–" if area is None else f"{area:.4f}", style=style))
        table.add_row(Text(name), *cells)
    console.print(table)
    for remark in dict.fromkeys(remark for model in found for remark in model["remarks"]):
        console.print(remark, markup=False, width=min(console.width, READABLE))
