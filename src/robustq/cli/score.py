"""`robustq score`."""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .consoles import check_output, make_console, split_list
from .options import Delimiter, EncodingName, ModelPath, NoHeader, make_csv_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from robustq.core.neighbourhoods import Neighbourhood
    from robustq.io import Source
    from robustq.scoring import Scorer
    from robustq.selection.gates import Gate

__all__ = ["score"]


def score(
    model: ModelPath,
    data: Annotated[
        list[str],
        typer.Argument(help="Files, folders or patterns; - for standard input.", metavar="DATA..."),
    ],
    output: Annotated[
        str,
        typer.Option("--output", "-o", help=".parquet, .csv, .csv.gz or .jsonl; - for CSV here."),
    ],
    perturbation: Annotated[
        list[str] | None,
        typer.Option(help="As in tv, tv_all or module:Class. By default epsilon, tv and chi2."),
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="Columns of the data to keep, such as an id.")
    ] = None,
    keep_all: Annotated[
        bool, typer.Option("--keep-all", help="Keep all columns of the data.")
    ] = False,
    min_robustness: Annotated[
        float | None,
        typer.Option(help="Accept predictions that are so robust (first perturbation)."),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(help="Add the classes that no other beats for certain at this size."),
    ] = None,
    delimiter: Delimiter = None,
    encoding: EncodingName = None,
    no_header: NoHeader = False,
) -> None:
    """Give every row a prediction, how far it is from flipping, and what it would flip to.

    Reads and writes piece by piece: any number of rows fits into memory. The output appears under
    its name when it is complete.

    Example: [bold]robustq score model.robustq new.csv -o scored.csv --keep id[/bold]
    """
    from robustq import load  # noqa: PLC0415 (slow to import)
    from robustq.core.neighbourhoods import DEFAULT_PERTURBATIONS  # noqa: PLC0415
    from robustq.indicators.finding import find_neighbourhoods  # noqa: PLC0415
    from robustq.io import (  # noqa: PLC0415
        check_ending,
        open_sources,
        open_writer,
        read_ahead,
        unify_types,
    )
    from robustq.scoring import Scorer  # noqa: PLC0415

    check_ending(output)
    sources = open_sources(data, make_csv_options(delimiter, encoding, no_header))
    check_output(output, [str(model), *(source.path for source in sources)])
    classifier = load(model)
    asked = find_neighbourhoods(split_list(perturbation) or DEFAULT_PERTURBATIONS)
    gate = _find_gate(classifier.training_, asked, min_robustness)
    kept = _list_kept(sources, split_list(keep), keep_all=keep_all)
    scorer = Scorer(classifier, asked, kept, gate, unify_types(sources, kept or ()), delta)
    start, rows = time.perf_counter(), 0
    batches = read_ahead(_read(sources, scorer))
    first = scorer.score(next(batches))
    with open_writer(output, first.schema) as writer, _watch(sources) as watch:
        for scored in _chain(first, batches, scorer):
            writer.write_table(scored)
            rows += scored.num_rows
            watch(rows)
    if output != "-":
        _report(make_console(stderr=True), scorer, rows, time.perf_counter() - start, output)


def _list_kept(
    sources: list[Source], names: tuple[str, ...], *, keep_all: bool
) -> tuple[str, ...] | None:
    """Return the columns to keep, None for all that a pipe has: nobody knows them before."""
    from robustq.exceptions import InputError  # noqa: PLC0415

    if not keep_all:
        return names
    if not sources[0].is_regular:
        return None
    first = sources[0].names()
    for source in sources[1:]:
        more = set(source.names()) - set(first) if source.is_regular else set()
        if more:
            name = min(more)
            msg = f"{source.name} has a column {name!r} that {sources[0].name} lacks: use --keep"
            raise InputError(msg)
    return first


def _find_gate(
    training: dict[str, Any], asked: list[Neighbourhood], least: float | None
) -> Gate | None:
    """Return who is accepted, if anybody asked; the gate's neighbourhood joins the others."""
    from robustq.core.neighbourhoods import read  # noqa: PLC0415 (slow to import)
    from robustq.exceptions import InputError  # noqa: PLC0415
    from robustq.indicators import get  # noqa: PLC0415
    from robustq.selection.gates import Gate  # noqa: PLC0415

    if least is not None:
        if least != least:  # noqa: PLR0124 (NaN)
            msg = "--min-robustness must be a number"
            raise InputError(msg)
        return Gate(get(asked[0]).name, least, inclusive=True)
    told = training.get("gate")
    if not isinstance(told, dict):
        return None
    gate = Gate.from_dict(told)
    if gate.robustness not in [neighbourhood.name for neighbourhood in asked]:
        # Never by module and class: a file must not choose what is imported.
        asked.append(read(gate.robustness))
    return gate


def _read(sources: list[Source], scorer: Scorer) -> Iterator[Any]:
    for source in sources:
        yield from source.read(partial(scorer.choose, where=source.name))
        source.share = 1.0


def _chain(first: Any, batches: Iterator[Any], scorer: Scorer) -> Iterator[Any]:
    yield first
    for batch in batches:
        if batch.num_rows:
            yield scorer.score(batch)


@contextmanager
def _watch(sources: list[Source]) -> Iterator[Callable[[int], None]]:
    """Give what shows how far it is; nothing where nobody sees it."""
    console = make_console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    from rich import progress as parts  # noqa: PLC0415 (slow to import)

    columns = (
        parts.TextColumn("scoring"),
        parts.BarColumn(),
        parts.TaskProgressColumn(),
        parts.TimeRemainingColumn(),
        parts.TextColumn("{task.fields[rows]}"),
    )
    total, start = sum(source.size for source in sources), time.perf_counter()
    with parts.Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total or None, rows="")

        def show(rows: int) -> None:
            speed = rows / (time.perf_counter() - start)
            done = sum(source.size * source.share for source in sources)
            progress.update(task, completed=done, rows=f"{rows:,} rows, {speed:,.0f} rows/s")

        yield show


def _report(console: Any, scorer: Scorer, rows: int, seconds: float, output: str) -> None:
    if scorer.unknown:
        found = ", ".join(f"{count:,} in {label}" for label, count in scorer.unknown.items())
        console.print(
            f"Values never seen in training, taken as missing: {found}",
            style="yellow",
            markup=False,
        )
    console.print(f"{rows:,} rows in {seconds:.1f} s: {Path(output)}", soft_wrap=True, markup=False)
