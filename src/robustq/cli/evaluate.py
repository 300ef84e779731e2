"""`robustq evaluate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .consoles import (
    caution,
    check_output,
    check_page,
    fill_row,
    make_console,
    make_table,
    naming_file,
    say,
    say_json,
    showing_progress,
    split_list,
    start_up,
)
from .options import (
    Decimal,
    Delimiter,
    EncodingName,
    ModelName,
    NoHeader,
    SheetName,
    make_csv_options,
)

if TYPE_CHECKING:
    from robustq.io import Labelled

__all__ = [
    "choose_features",
    "evaluate",
    "separate_features",
    "show_areas",
    "show_cautions",
    "show_verdicts",
]


def evaluate(
    model: ModelName,
    test: Annotated[
        str,
        typer.Argument(
            help="CSV, ARFF or Parquet with labels; - for standard input.", metavar="TEST"
        ),
    ],
    target: Annotated[
        str | None, typer.Option(help="The column with the labels; as in training by default.")
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", help="The page to write.", metavar="PATH")
    ] = "report.html",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all numbers as JSON, besides.")
    ] = False,
    indicators: Annotated[
        list[str] | None,
        typer.Option(help="As in r_tv,r_tv_all,u_max; those of one model by default."),
    ] = None,
    perturbation: Annotated[
        str, typer.Option(help="What the least robust predictions are told by, as in tv_all.")
    ] = "tv",
    delimiter: Delimiter = None,
    encoding: EncodingName = None,
    no_header: NoHeader = False,
    decimal: Decimal = None,
    sheet: SheetName = None,
) -> None:
    """Try a model on rows with labels: accuracy, curves, a report.

    Example: [bold]robustq evaluate model.robustq test.csv -o report.html[/bold]
    """
    start_up()
    from robustq.exceptions import InputError  # noqa: PLC0415 (slow to import)
    from robustq.experiments import evaluation  # noqa: PLC0415
    from robustq.files import hide_secrets, name_file  # noqa: PLC0415
    from robustq.indicators.finding import find_indicator, find_neighbourhood  # noqa: PLC0415
    from robustq.io import open_sources, read_table  # noqa: PLC0415
    from robustq.report import as_json as write  # noqa: PLC0415
    from robustq.report import write_evaluation  # noqa: PLC0415
    from robustq.scoring import find_model  # noqa: PLC0415

    reading = make_csv_options(delimiter, encoding, no_header, decimal, sheet)
    sources = open_sources([test], reading)
    check_output(output, [model, *(source.path for source in sources)])
    check_page(output)
    with showing_progress(f"reading {name_file(model)}"):
        classifier = find_model(model)
    label = target or classifier.training_.get("target")
    if not label:
        msg = "the model does not tell what it predicts: give --target"
        raise InputError(msg)
    names = [find_indicator(name) for name in split_list(indicators)]
    ball = find_neighbourhood(perturbation)
    title, name = name_file(model), name_file(test)
    with (
        showing_progress(f"reading {name}") as progress,
        naming_file(*(source.name for source in sources)),
    ):
        read = read_table(sources, infer=False)
        read.require([label], hide_secrets(test), "the labels (--target)")
        X, y, rows = separate_features(classifier, read.table, label, hide_secrets(test))
        progress.begin(f"assessing {len(y):,} rows")
        found = evaluation.evaluate(
            classifier, X, y, title=title, names=names or None, ball=ball, rows=rows
        )
    write_evaluation([found], output, title=f"{title} on {name}")
    if as_json:
        show_cautions([found])
        say_json(write(found))
        return
    console = make_console()
    show_verdicts(console, [found])
    show_cautions([found])
    console.print(
        f"{found['rows']:,} rows, accuracy {found['accuracy']:.3f} (always the most frequent "
        f"class: {found['frequent']:.3f})"
    )
    show_areas(console, [found])
    console.print(f"Report: {hide_secrets(output)}", soft_wrap=True, markup=False)


def separate_features(model: Any, table: Any, target: str, where: str) -> Labelled:
    """Return features and labels as the model knows them, and which rows they are."""
    from robustq.io import cut_target, separate_known  # noqa: PLC0415 (slow to import)

    edges = model.training_.get("target_edges")
    if edges:
        table = cut_target(table, target, edges)
    data = separate_known(table, target, model.classes_, where)
    return data._replace(X=choose_features(model, data.X, target, where))


def choose_features(model: Any, table: Any, target: str | None, where: str) -> Any:
    """Return the columns that the model knows, with values as it knows them."""
    from robustq.io import adapt_table, list_needed  # noqa: PLC0415 (slow to import)
    from robustq.scoring import Guest  # noqa: PLC0415

    if isinstance(model, Guest):
        known = model.names or ()
        names = [name for name in table.column_names if name != target or name in known]
        return table.select(list(model.list_needed(names, where)))
    names = model.encoding_.names
    others = [name for name in table.column_names if name != target or name in names]
    features = table.select(list(list_needed(model.encoding_, others, where)))
    return adapt_table(features, model.encoding_, strict=model.handle_unknown == "error")


def show_verdicts(console: Any, found: list[dict[str, Any]]) -> None:
    """Show what to make of each model, in words."""
    for model in found:
        name = f"{model['title']}: " if len(found) > 1 else ""
        say(console, f"{name}{model['verdict']['text']}\n", style="bold")


def show_cautions(found: list[dict[str, Any]]) -> None:
    """Show what makes the figures less than they seem."""
    for model in found:
        name = f"{model['title']}: " if len(found) > 1 else ""
        for text in model["cautions"]:
            caution(make_console(stderr=True), f"{name}{text}")


def show_areas(console: Any, found: list[dict[str, Any]], *, brief: bool = False) -> None:
    """Show the AU-ARC of indicators, a column for each model, and what is to be said of them.

    In brief, of those alone that the report draws.
    """
    from rich.text import Text  # noqa: PLC0415 (slow to import)

    titles = [model["title"] for model in found] if len(found) > 1 else [""]
    table = make_table("AU-ARC", *titles, right=titles)
    # In the order of the model that has the most.
    longest = sorted((model["indicators"] for model in found), key=len, reverse=True)
    drawn = {name for model in found for name in model["shown"]}
    for name in dict.fromkeys(name for indicators in longest for name in indicators):
        if brief and name not in drawn:
            continue
        cells = []
        for model in found:
            area = model["indicators"].get(name, {}).get("area")
            # Marked where the bands say so only.
            style = "bold green" if model["best"] == name else ""
            cells.append(Text("–" if area is None else f"{area:.4f}", style=style))
        fill_row(table, name, *cells)
    console.print(table)
    if brief:
        return
    for remark in dict.fromkeys(remark for model in found for remark in model["remarks"]):
        say(console, remark)
