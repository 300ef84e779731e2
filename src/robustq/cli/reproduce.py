"""`robustq reproduce`."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from robustq.exceptions import FileError, InputError

from .consoles import (
    check_folder,
    make_console,
    make_table,
    naming_options,
    read_number,
    say,
    showing_progress,
    split_list,
    start_up,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from robustq.experiments import Plan, Reproduction

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
    reading: Annotated[
        list[str] | None,
        typer.Option(help="How to read the paper: paper or nearest; both by default."),
    ] = None,
    smoothing: Annotated[
        float | None, typer.Option(help="Of the forest's leaves; else as the reading has it.")
    ] = None,
    nbc_smoothing: Annotated[
        str | None,
        typer.Option(help="Of naive Bayes: a number, or cv; else as the reading has it."),
    ] = None,
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
    from robustq.experiments import READINGS  # noqa: PLC0415 (slow to import)
    from robustq.report import write_reproduction  # noqa: PLC0415

    given = {
        "data_sets": _read_list(datasets) or (_at_hand(data_dir) if quick else None),
        "runs": runs if runs is not None else QUICK_RUNS if quick else None,
        "models": _read_list(models),
        "indicators": _read_list(indicators),
        "leaf_smoothing": smoothing,
        "nbc_smoothing": nbc_smoothing
        and read_number(nbc_smoothing, "--nbc-smoothing", {"cv": "cv"}, float),
    }
    given = {name: value for name, value in given.items() if value is not None}
    given["max_depth"] = read_number(max_depth, "--max-depth", {"none": None, "auto": "auto"}, int)
    given["seed"] = seed
    names = _read_list(reading) or tuple(READINGS)
    # All of them before the first is run: what is wrong is said at once.
    plans = [_make_plan(given | {"reading": name}) for name in names]
    _check_places(plans, output)
    found = [_carry_out(plan, output, data_dir, workers) for plan in plans]
    with showing_progress("writing the report"):
        report = write_reproduction(found, output)
    console = make_console()
    for one in found:
        _show(console, one)
    _show_findings(console, found)
    seconds = sum(one.timings["wall"] for one in found)
    console.print(f"Done in {seconds:.0f} s. Report: {report}", markup=False, soft_wrap=True)


def _make_plan(given: dict[str, Any]) -> Plan:
    from robustq.experiments import Plan  # noqa: PLC0415 (slow to import)

    with naming_options(OPTIONS):
        return Plan(**given)


def _check_places(plans: Sequence[Plan], output: Path) -> None:
    """Raise if a file stands where the results of a reading go."""
    from robustq.experiments import READINGS  # noqa: PLC0415 (slow to import)

    for place in (READINGS[plan.reading].place(output) for plan in plans):
        if place.exists() and not place.is_dir():
            msg = f"{place} is a file where a folder is needed: choose another place"
            raise FileError(msg)


def _carry_out(
    plan: Plan, output: Path, data_dir: Path | None, workers: int | None
) -> Reproduction:
    from robustq.experiments import READINGS  # noqa: PLC0415 (slow to import)
    from robustq.experiments import reproduce as carry_out  # noqa: PLC0415

    folder = READINGS[plan.reading].place(output)
    with _watch(plan.reading) as watcher:
        return carry_out(plan, folder, data_dir=data_dir, workers=workers, watcher=watcher)


def _show(console: Console, found: Reproduction) -> None:
    """Print the tables of one reading."""
    from robustq.report.pages import begin_sentence  # noqa: PLC0415 (slow to import)

    summary = found.summary
    for model, table in found.tables.items():
        title = begin_sentence(summary["models"][model]["title"])
        shown = f"{title}, reading {summary['reading']['name']}"
        console.print(table.to_rich(shown, console.width))
    own = [data["name"] for data in summary["data_sets"] if data["own_split"]]
    if own and summary["settings"]["runs"] > 1:
        say(console, f"{', '.join(own)}: split by UCI, the runs differ by their seeds only.")


def _show_findings(console: Console, found: Sequence[Reproduction]) -> None:
    """Print which of the paper's findings hold in which reading."""
    from robustq.report.reproduction import tabulate  # noqa: PLC0415 (slow to import)

    overview = tabulate([one.summary for one in found])
    if not overview["findings"]:
        return
    table = make_table("the paper's finding", *(one["title"] for one in overview["readings"]))
    before = ""
    for finding in overview["findings"]:
        if finding["model"] != before:
            table.add_row(f"{finding['model']}:")
        before = finding["model"]
        cells = [cell["verdict"] if cell else "not run" for cell in finding["cells"]]
        table.add_row(finding["claim"].rstrip("."), *cells)
    many = len(overview["findings"])
    seen = zip(overview["readings"], overview["seen"], strict=True)
    shown = [f"{count} of {many}" if one["ran"] else "not run" for one, count in seen]
    table.add_row("means as in the paper, surely or not", *shown)
    console.print(table)


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

    def __init__(self, progress: Any, title: str) -> None:
        self.progress = progress
        self.title = title
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
        running = "; ".join(map(str, self.running))
        self.progress.update(self.task, description=f"{self.title}: {running}")


@contextmanager
def _watch(title: str) -> Iterator[_Bar | None]:
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
        yield _Bar(progress, title)
