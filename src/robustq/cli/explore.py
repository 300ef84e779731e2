"""`robustq explore`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .consoles import (
    caution,
    check_output,
    check_page,
    make_console,
    naming_file,
    showing_progress,
    start_up,
)
from .evaluate import choose_features, separate_features
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
    from robustq.io import CsvOptions
    from robustq.report import Exploration

__all__ = ["explore"]


def explore(
    model: ModelName,
    data: Annotated[
        str | None,
        typer.Argument(
            help="CSV, ARFF or Parquet; - for standard input. Without it the page has one row "
            "to fill in.",
            metavar="[DATA]",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="The column with the labels; as in training by default, if it is there."),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", help="The page to write.", metavar="PATH")
    ] = "explore.html",
    delimiter: Delimiter = None,
    encoding: EncodingName = None,
    no_header: NoHeader = False,
    decimal: Decimal = None,
    sheet: SheetName = None,
) -> None:
    """Write a page to look through all predictions, and to see what a change would do to one.

    One file that works without a server, from a mail attachment too: the model is in it.

    Example: [bold]robustq explore model.robustq new.csv -o explore.html[/bold]
    """
    start_up()
    from robustq.files import hide_secrets, name_file  # noqa: PLC0415 (slow to import)
    from robustq.scoring import find_model  # noqa: PLC0415

    check_page(output)
    check_output(output, [model, *([] if data in {None, "-"} else [str(data)])])
    with showing_progress(f"reading {name_file(model)}"):
        classifier = find_model(model)
    reading = make_csv_options(delimiter, encoding, no_header, decimal, sheet)
    page = _make(classifier, name_file(model), data, target, reading, output)
    console = make_console(stderr=True)
    if page.total > page.rows:
        caution(console, f"{page.rows:,} of {page.total:,} rows are on the page, drawn at random")
    if page.closed:
        caution(console, f"values cannot be edited on the page: {page.closed}")
    if page.is_large:
        caution(
            console,
            f"the page has {page.megabytes:,.0f} MB, too much for most mail: a smaller model "
            "(fewer trees, a lower max_depth) or fewer rows make it smaller",
        )
    page.write(output)
    make_console().print(
        f"{page.rows:,} predictions, {page.megabytes:.1f} MB: {hide_secrets(output)}",
        soft_wrap=True,
        markup=False,
    )


def _make(
    classifier: Any,
    title: str,
    data: str | None,
    target: str | None,
    reading: CsvOptions,
    output: str,
) -> Exploration:
    from robustq.files import hide_secrets, name_file  # noqa: PLC0415 (slow to import)
    from robustq.io import open_sources, read_table  # noqa: PLC0415
    from robustq.report import make_exploration  # noqa: PLC0415
    from robustq.scoring import Guest  # noqa: PLC0415

    if data is None:
        return make_exploration(_find_inside(classifier), title=title)
    sources = open_sources([data], reading)
    check_output(output, [source.path for source in sources])
    name = name_file(data)
    with (
        showing_progress(f"reading {name}") as progress,
        naming_file(*(source.name for source in sources)),
    ):
        read = read_table(sources, infer=False)
        label = target or classifier.training_.get("target")
        if target:
            read.require([target], hide_secrets(data), "the labels (--target)")
        y = rows = None
        if label in read.table.column_names:
            X, y, rows = separate_features(classifier, read.table, label, hide_secrets(data))
        else:
            X = choose_features(classifier, read.table, None, hide_secrets(data))
        progress.begin(f"assessing {len(X):,} rows")
        # Somebody else's takes frames of its own.
        X = classifier.adapt(X) if isinstance(classifier, Guest) else X
        return make_exploration(_find_inside(classifier), X, y, rows=rows, title=name)


def _find_inside(classifier: Any) -> Any:
    from robustq.scoring import Guest  # noqa: PLC0415 (slow to import)

    return classifier.estimator if isinstance(classifier, Guest) else classifier
