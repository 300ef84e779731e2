"""`robustq reproduce`."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from robustq.exceptions import InputError

from .consoles import (
    check_folder,
    make_console,
    naming_options,
    read_number,
    say,
    showing_progress,
    split_list,
    start_up,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robustq.experiments import Plan

__all__ = ["reproduce"]

QUICK_RUNS = 3
OPTIONS = {
    "runs": "--runs",
    "seed": "--seed",
    "leaf_smoothing": "--smoothing",
    "nbc_smoothing": "--nbc-smoothing",
    "max_depth": "--max-depth",
}


def reproduce(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder for tables and report.")
    ] = Path("results"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Three runs, on the data sets that are at hand.")
    ] = False,
    datasets: Annotated[
        list[str] | None, typer.Option(help="Data sets, with commas between.")
    ] = None,
    runs: Annotated[int | None, typer.Option(help="How many runs; 10 by default.")] = None,
    models: Annotated[
        list[str] | None, typer.Option(help="As in nbc,gef; both by default.")
    ] = None,
    indicators: Annotated[
        list[str] | None,
        typer.Option(help="As in r_tv,r_tv_all,u_max; module:Class for a ball of one's own."),
    ] = None,
    smoothing: Annotated[
        float, typer.Option(help="Of the forest's leaves; 0 by default: maximum likelihood.")
    ] = 0.0,
    nbc_smoothing: Annotated[
        str, typer.Option(help="Of naive Bayes: a number, or cv for the best by cross-validation.")
    ] = "cv",
    max_depth: Annotated[
        str, typer.Option(help="Of the trees: a number, none for unlimited, or auto.")
    ] = "none",
    workers: Annotated[
        int | None, typer.Option(help="How many processes; one for each core by default.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the splits and models.")] = 0,
    data_dir: Annotated[
        Path | None, typer.Option(help="A folder with UCI's files or archives.")
    ] = None,
) -> None:
    """Run the paper's experiments: tables, curves and a report.

    Stopped at any moment, the same command goes on where it was.

    Example: [bold]robustq reproduce --quick -o results[/bold]
    """
    check_folder(output)
    start_up()
    from robustq.experiments import reproduce as carry_out  # noqa: PLC0415 (slow to import)
    from robustq.report import write_reproduction  # noqa: PLC0415
    from robustq.report.pages import begin_sentence  # noqa: PLC0415

    given = {
        "data_sets": _read_list(datasets) or (_at_hand(data_dir) if quick else None),
        "runs": runs if runs is not None else QUICK_RUNS if quick else None,
        "models": _read_list(models),
        "indicators": _read_list(indicators),
    }
    plan = _make_plan(
        {name: value for name, value in given.items() if value is not None},
        smoothing,
        read_number(nbc_smoothing, "--nbc-smoothing", {"cv": "cv"}, float),
        read_number(max_depth, "--max-depth", {"none": None, "auto": "auto"}, int),
        seed,
    )
    with _watch() as watcher:
        found = carry_out(plan, output, data_dir=data_dir, workers=workers, watcher=watcher)
    with showing_progress("writing the report"):
        report = write_reproduction(found.summary, found.timings, output)
    console = make_console()
    for model, table in found.tables.items():
        title = begin_sentence(found.summary["models"][model]["title"])
        console.print(table.to_rich(title, console.width))
    own = [data["name"] for data in found.summary["data_sets"] if data["own_split"]]
    if own and plan.runs > 1:
        say(console, f"{', '.join(own)}: split by UCI, the runs differ by their seeds only.")
    seconds = found.timings["wall"]
    console.print(f"Done in {seconds:.0f} s. Report: {report}", markup=False, soft_wrap=True)


def _make_plan(given: dict[str, Any], smoothing: float, nbc: Any, depth: Any, seed: int) -> Plan:
    from robustq.experiments import Plan  # noqa: PLC0415 (slow to import)

    with naming_options(OPTIONS):
        return Plan(
            **given, leaf_smoothing=smoothing, nbc_smoothing=nbc, max_depth=depth, seed=seed
        )


def _read_list(given: list[str] | None) -> tuple[str, ...] | None:
    """Return what an option lists, None where it was not given; an empty list is an error."""
    if given is not None and not split_list(given):
        msg = "an option that lists names has none: leave it out to take all"
        raise InputError(msg)
    return split_list(given) or None


def _at_hand(data_dir: Path | None) -> tuple[str, ...]:
    from robustq import datasets  # noqa: PLC0415 (slow to import)

    return tuple(n for n in datasets.names() if datasets.locate(datasets.get(n), data_dir))


class _Bar:
    """Shows how far it is, what is running, and the time left."""

    def __init__(self, progress: Any) -> None:
        self.progress = progress
        self.task = progress.add_task("reading data", total=None)
        self.running: list[Any] = []

    def expect(self, cost: float) -> None:
        self.progress.update(self.task, total=cost)

    def start(self, task: Any) -> None:
        self.running.append(task)
        self._show()

    def finish(self, task: Any) -> None:
        self.running.remove(task)
        self.progress.advance(self.task, task.cost)
        self._show()

    def _show(self) -> None:
        self.progress.update(self.task, description="; ".join(map(str, self.running)))


@contextmanager
def _watch() -> Iterator[_Bar | None]:
    console = make_console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    from rich import progress as parts  # noqa: PLC0415 (slow to import)
    from rich.table import Column  # noqa: PLC0415

    # What is running gives way where the terminal is narrow.
    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    columns = (
        parts.BarColumn(20, table_column=Column(min_width=20)),
        parts.TaskProgressColumn(table_column=Column(min_width=4, no_wrap=True)),
        parts.TimeRemainingColumn(table_column=Column(min_width=7, no_wrap=True)),
        parts.TextColumn("{task.description}", markup=False, table_column=rest),
    )
    with parts.Progress(*columns, console=console, transient=True, expand=True) as progress:
        yield _Bar(progress)
