"""Carrying out a plan: pieces, tables, pictures, summary, all in one folder."""

from __future__ import annotations

import io
import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.csv

from robustq.blocks import count_cores, for_each_block, using_threads
from robustq.datasets import DataSet, load
from robustq.exceptions import InputError, RobustqError
from robustq.families.parameters import is_count
from robustq.families.table import find_recipe
from robustq.files import make_folder, write_atomically

from .figures import FORMATS, draw_curves, draw_overview, render
from .pieces import digest, run_piece
from .results import Results, collect
from .store import Store
from .summary import figure_name, summarise
from .workers import Silence, Watcher, Workers

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from robustq.rejection import Comparison, Curve

    from .plan import Piece, Plan

__all__ = ["Reproduction", "reproduce"]

TABLES = ("md", "tex", "csv")


@dataclass(frozen=True)
class Reproduction:
    """What a reproduction found, and how long it took.

    Attributes
    ----------
    summary : dict
        As in summary.json.
    tables : dict of model to Comparison
    timings : dict
        The seconds of this execution (`wall`), those of all pieces (`pieces`), how many of
        them were here already (`kept`), and of how many workers (`workers`).
    folder : Path
        Where its files are.
    """

    summary: dict[str, Any]
    tables: dict[str, Comparison]
    timings: dict[str, Any]
    folder: Path


def reproduce(
    plan: Plan,
    folder: str | Path,
    *,
    data_dir: str | Path | None = None,
    workers: int | None = None,
    watcher: Watcher | None = None,
) -> Reproduction:
    """Carry out a plan, or go on where it was stopped.

    Parameters
    ----------
    plan : Plan
    folder : path
        Gets `pieces/` (what was found for every row tested), a table for each model as .md,
        .tex and .csv, pictures as .png and .svg, and `summary.json`.
    data_dir : path, optional
        Where UCI's files are; see `robustq.datasets.load`.
    workers : int, optional
        How many processes; as many as there are cores by default. The result is the same.
    watcher : Watcher, optional
        Is told of the costs to expect, and of the tasks that start and finish.

    Returns
    -------
    Reproduction
    """
    if workers is not None and not is_count(workers, 1):
        msg = f"workers must be a whole number from 1, got {workers!r}"
        raise InputError(msg)
    start = time.perf_counter()
    workers, shown = min(workers or count_cores(), len(plan.pieces())), watcher is not None
    watcher, folder = watcher or Silence(), Path(folder)
    with Workers(workers) as crew:
        # They import what they need while the data is read here.
        crew.call(_get_ready)
        data = {n: _prepare(plan, load(n, data_dir, progress=shown)) for n in plan.data_sets}
        contents = {name: digest(item) for name, item in data.items()}
        make_folder(folder)
        store = Store(plan, folder, contents)
        pieces = store.find()
        kept = len(pieces)
        missing = [piece for piece in plan.pieces() if piece not in pieces]
        pieces |= _run(plan, missing, store, data, crew, watcher)
        results = {model: collect(plan, model, pieces) for model in plan.models}
        tables = {model: found.comparison for model, found in results.items()}
        summary = summarise(plan, data, results)
        for model, table in tables.items():
            _write_table(folder, model, table)
        _draw(folder, plan, data, results, crew, watcher)
    _remove_leftovers(folder, summary)
    write_atomically(folder / "summary.json", json.dumps(summary, indent=1, ensure_ascii=False))
    timings = {
        "wall": time.perf_counter() - start,
        "pieces": _add_times(plan, store),
        "kept": kept,
        "workers": workers,
    }
    return Reproduction(summary, tables, timings, folder)


def _prepare(plan: Plan, data: DataSet) -> DataSet:
    """Return a data set as the plan wants it: with the split it came with, or none."""
    return data if plan.own_splits else replace(data, split=None)


def _add_times(plan: Plan, store: Store) -> dict[str, float]:
    """Return how long the pieces of each model took together."""
    seconds = store.read_times()
    return {
        model: sum(s for piece, s in seconds.items() if piece.model == model)
        for model in plan.models
    }


@dataclass(frozen=True)
class _Running:
    """A piece to run, with all that a process of its own needs."""

    plan: Plan
    piece: Piece
    data: DataSet
    content: str
    folder: Path
    cost: float

    def __str__(self) -> str:
        return str(self.piece)

    def __call__(self) -> float:
        start = time.perf_counter()
        # A thread for all of it; what is done within would else start its own, again and again.
        with using_threads(1):
            for_each_block(self._run, 1, 1)
        return time.perf_counter() - start

    def _run(self, _: slice) -> None:
        try:
            table = run_piece(self.plan, self.piece, self.data)
        except RobustqError:
            raise
        # A ball of one's own may raise anything.
        except Exception as error:
            msg = f"{self.piece} failed ({type(error).__name__}: {error})"
            raise RobustqError(msg) from error
        Store(self.plan, self.folder, {self.piece.data_set: self.content}).write(self.piece, table)


@dataclass(frozen=True, eq=False)
class _Drawing:
    """A picture to draw: of one data set and model, or of all."""

    path: Path
    title: str
    curves: Any
    titles: dict[str, str] | None = None
    cost: float = 1.0

    def __str__(self) -> str:
        return f"picture {self.path.name}"

    def __call__(self) -> None:
        figure = self._draw()
        for kind in FORMATS:
            content = render(figure, kind)
            write_atomically(self.path.with_name(f"{self.path.name}.{kind}"), content)

    def _draw(self) -> Figure:
        if self.titles is None:
            return draw_curves(self.curves, self.title)
        return draw_overview(self.curves, self.titles)


def _do(task: Any) -> Any:
    return task()


def _get_ready() -> None:
    """Be here: a process that is asked for this has imported all the rest."""


def _run(
    plan: Plan,
    missing: list[Piece],
    store: Store,
    data: dict[str, DataSet],
    workers: Workers,
    watcher: Watcher,
) -> dict[Piece, pa.Table]:
    """Run pieces; each keeps its result, which is read while others run."""
    tasks = [
        _Running(
            plan,
            piece,
            data[piece.data_set],
            store.contents[piece.data_set],
            store.folder.parent,
            _cost(piece, data),
        )
        for piece in missing
    ]
    # The longest first, so that no worker is left with one at the end.
    tasks.sort(key=lambda task: -task.cost)
    pictures = 1 + len(plan.models) * len(plan.data_sets)
    watcher.expect(sum(task.cost for task in tasks) + pictures)
    found: dict[Piece, pa.Table] = {}
    for task, seconds in workers.work(_do, tasks, watcher):
        store.note_time(task.piece, seconds)
        found[task.piece] = store.read(task.piece)
    return found


def _cost(piece: Piece, data: dict[str, DataSet]) -> float:
    """Return roughly how long a piece takes, in halves of a second."""
    item = data[piece.data_set]
    cells = len(item.y) * item.X.num_columns
    return find_recipe(piece.model).cost * (0.5 + cells / 50_000)


def _write_table(folder: Path, model: str, table: Comparison) -> None:
    content = io.BytesIO()
    pyarrow.csv.write_csv(table.to_arrow(), content)
    write_atomically(folder / f"table_{model}.csv", content.getvalue())
    write_atomically(folder / f"table_{model}.md", table.to_markdown() + "\n")
    write_atomically(folder / f"table_{model}.tex", table.to_latex() + "\n")


def _remove_leftovers(folder: Path, summary: dict[str, Any]) -> None:
    """Remove the tables and pictures of an earlier plan: nobody must take them for these."""
    try:
        before = json.loads((folder / "summary.json").read_text())
        stale = _list_outputs(before) - _list_outputs(summary)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
    for name in stale:
        (folder / Path(name).name).unlink(missing_ok=True)


def _list_outputs(summary: dict[str, Any]) -> set[str]:
    tables = {f"table_{model}.{kind}" for model in summary["models"] for kind in TABLES}
    return tables | {f"{name}.{kind}" for name in summary["figures"].values() for kind in FORMATS}


def _draw(
    folder: Path,
    plan: Plan,
    data: dict[str, DataSet],
    results: dict[str, Results],
    workers: Workers,
    watcher: Watcher,
) -> None:
    titles = {name: f"{data[name].source.id} {data[name].source.title}" for name in data}
    curves: dict[str, dict[str, dict[str, list[Curve]]]] = {
        model: found.curves for model, found in results.items()
    }
    tasks = [_Drawing(folder / "overview", "", curves, titles)]
    for model in results:
        for name, title in titles.items():
            drawn = f"{title}: {find_recipe(model).title}, mean of {_plural(plan.runs)}"
            tasks.append(_Drawing(folder / figure_name(name, model), drawn, curves[model][name]))
    for _ in workers.work(_do, tasks, watcher):
        pass


def _plural(runs: int) -> str:
    return f"{runs} run{'' if runs == 1 else 's'}"
