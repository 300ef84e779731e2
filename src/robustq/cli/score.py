"""`robustq score`."""

from __future__ import annotations

import itertools
import sys
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from .consoles import (
    caution,
    check_output,
    make_console,
    naming_file,
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
    from collections.abc import Callable, Iterator

    from robustq.engines.crews import Crew
    from robustq.io import Source
    from robustq.scoring import Scorer

__all__ = ["score"]

BATCH_ROWS = 100_000  # as robustq.io, which is slow to import


def score(
    model: ModelName,
    data: Annotated[
        list[str],
        typer.Argument(help="Files, folders or patterns; - for standard input.", metavar="DATA..."),
    ],
    output: Annotated[
        str,
        typer.Option("--output", "-o", help=".parquet, .csv, .csv.gz, .jsonl, .xlsx; - for CSV."),
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
    explain: Annotated[bool, typer.Option("--explain", help="Add a column hangs_on.")] = False,
    batch_rows: Annotated[
        int,
        typer.Option(help="How many rows at a time; fewer take less memory.", min=1, metavar="N"),
    ] = BATCH_ROWS,
    delta: Annotated[
        float | None,
        typer.Option(help="Add the classes that no other beats for certain at this size."),
    ] = None,
    engine: Annotated[
        str | None, typer.Option(help="Score on workers: dask or spark.", metavar="NAME")
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
    """Give every row a prediction, how far it is from flipping, and what it would flip to.

    Reads and writes piece by piece: any number of rows fits into memory. The output appears under
    its name when it is complete. Its first column, row, counts the rows of the data from 1.
    With --engine, workers of Dask or Spark score the pieces; the output is the same.

    Example: [bold]robustq score model.robustq new.csv -o scored.csv --keep id[/bold]
    """
    start_up()
    from robustq.core.neighbourhoods import (  # noqa: PLC0415 (slow to import)
        DEFAULT_PERTURBATIONS,
    )
    from robustq.files import name_file  # noqa: PLC0415
    from robustq.io import (  # noqa: PLC0415
        check_ending,
        open_sources,
        open_writer,
        unify_types,
    )
    from robustq.scoring import ALL, open_model, open_scorer  # noqa: PLC0415

    check_ending(output)
    _check_engine(engine, address)
    reading = make_csv_options(delimiter, encoding, no_header, decimal, sheet)
    sources = open_sources(data, reading, batch_rows)
    check_output(output, [model, *(source.path for source in sources)])
    with showing_progress(f"reading {name_file(model)}"):
        open_model(model)
    kept = _list_kept(sources, split_list(keep), keep_all=keep_all)
    settings: dict[str, Any] = {
        "perturbations": split_list(perturbation) or DEFAULT_PERTURBATIONS,
        "keep": kept,
        "delta": delta,
        "explain": explain,
        "min_robustness": min_robustness,
        "kept_types": unify_types(sources, () if kept == ALL else kept),
    }
    scorer = open_scorer(model, **settings)
    with ExitStack() as stack:
        workers = None
        if engine is not None:
            with showing_progress(f"starting {engine}"):
                workers = stack.enter_context(_open_workers(engine, address, model, settings))
        start, rows = time.perf_counter(), 0
        batches = _score_all(sources, scorer, workers)
        # Results that scroll through the terminal are progress enough.
        shown = output != "-" or not sys.stdout.isatty()
        watch = stack.enter_context(_watch(sources, shown=shown))
        first = next(batches)
        with open_writer(output, first.schema) as writer:
            for scored in itertools.chain([first], batches):
                writer.write_table(scored)
                rows += scored.num_rows
                watch(rows)
        seconds = time.perf_counter() - start
    if output != "-":
        _report(make_console(stderr=True), scorer, rows, seconds, output)


def _check_engine(engine: str | None, address: str | None) -> None:
    from robustq.exceptions import InputError  # noqa: PLC0415

    if engine is None and address is not None:
        msg = f"--address {address}: of what? Add --engine dask or --engine spark"
        raise InputError(msg)


@contextmanager
def _open_workers(
    engine: str, address: str | None, model: str, settings: dict[str, Any]
) -> Iterator[Crew]:
    from robustq.engines.crews import Order, open_crew  # noqa: PLC0415 (slow to import)
    from robustq.scoring import pack  # noqa: PLC0415

    digest, content = pack(model)
    order = Order(model, digest, {**settings, "threads": 1})
    with open_crew(engine, address, order, content) as crew:
        yield crew


def _list_kept(
    sources: list[Source], names: tuple[str, ...], *, keep_all: bool
) -> tuple[str, ...] | Literal["all"]:
    """Return the columns to keep; of all that a pipe has, nobody knows the names before."""
    from robustq.exceptions import InputError  # noqa: PLC0415
    from robustq.scoring import ALL  # noqa: PLC0415 (slow to import)

    if not keep_all:
        return names
    if not sources[0].is_regular:
        return ALL
    first = sources[0].names()
    for source in sources[1:]:
        more = set(source.names()) - set(first) if source.is_regular else set()
        if more:
            name = min(more)
            msg = f"{source.name} has a column {name!r} that {sources[0].name} lacks: use --keep"
            raise InputError(msg)
    return first


def _read(sources: list[Source], scorer: Scorer) -> Iterator[tuple[str, Any]]:
    for source in sources:
        for batch in source.read(partial(scorer.choose, where=source.name), scorer.repeating):
            yield source.name, batch
        source.share = 1.0


def _score_all(sources: list[Source], scorer: Scorer, workers: Crew | None) -> Iterator[Any]:
    """Yield what becomes of each batch; the first has no rows perhaps, but columns."""
    from robustq.io import read_ahead  # noqa: PLC0415 (slow to import)
    from robustq.scoring import number_rows  # noqa: PLC0415

    rows = 0
    batches = _leave_out_empty(read_ahead(_read(sources, scorer)))
    scored = _score_here(batches, scorer) if workers is None else _send(batches, scorer, workers)
    for table in scored:
        yield number_rows(table, rows)
        rows += table.num_rows


def _leave_out_empty(batches: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    first = True
    for name, batch in batches:
        if first or batch.num_rows:
            yield name, batch
        first = False


def _score_here(batches: Iterator[tuple[str, Any]], scorer: Scorer) -> Iterator[Any]:
    for name, batch in batches:
        with naming_file(name):
            yield scorer.score(batch)


def _send(batches: Iterator[tuple[str, Any]], scorer: Scorer, workers: Crew) -> Iterator[Any]:
    from robustq.engines.crews import score_in_order  # noqa: PLC0415 (slow to import)

    for table, tally in score_in_order(workers, batches, naming_file):
        scorer.tally.add(tally)
        yield table


@contextmanager
def _watch(sources: list[Source], *, shown: bool) -> Iterator[Callable[[int], None]]:
    """Give what shows how far it is: by how much of the files has been read."""
    if not shown:
        yield lambda _: None
        return
    total, start = sum(source.size for source in sources), time.perf_counter()
    with showing_progress("scoring", by_blocks=False) as progress:

        def show(rows: int) -> None:
            speed = rows / (time.perf_counter() - start)
            done = sum(source.size * source.share for source in sources)
            progress.tell(done, total, f"{rows:,} rows, {speed:,.0f} rows/s")

        yield show


def _report(console: Any, scorer: Scorer, rows: int, seconds: float, output: str) -> None:
    from robustq.families.others import describe_others  # noqa: PLC0415
    from robustq.families.remarks import describe_endless  # noqa: PLC0415 (slow)
    from robustq.files import hide_secrets  # noqa: PLC0415

    for text in scorer.model.cautions:
        caution(console, text)
    if scorer.endless and rows and not scorer.model.cautions:
        caution(console, describe_endless(scorer.endless, rows))
    if scorer.tally.unknown:
        caution(console, scorer.tally.describe_unknown())
    if others := scorer.tally.others:
        told = describe_others(scorer.model.estimator)
        caution(console, f"in {others:,} of {rows:,} rows {told}")
    if scorer.gate is not None:
        accepted = scorer.tally.accepted
        share = f" ({accepted / rows:.1%})" if rows else ""
        console.print(f"{accepted:,} of {rows:,} predictions accepted{share}", markup=False)
    console.print(
        f"{rows:,} rows in {seconds:.1f} s: {hide_secrets(output)}", soft_wrap=True, markup=False
    )
