"""`robustq explain`."""

from __future__ import annotations

from contextlib import contextmanager
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
from .evaluate import choose_features
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
    from collections.abc import Iterator

    import pyarrow as pa

    from robustq.arrays import Indices
    from robustq.core.neighbourhoods import Neighbourhood
    from robustq.explaining.counterfactuals import Counterfactuals
    from robustq.explaining.explanation import Explanation
    from robustq.explaining.posteriors import Turns
    from robustq.explaining.summary import Summary
    from robustq.scoring import Guest

__all__ = ["explain"]

MOST_ROWS = 100
CHANGES, FLIPS = 6, 4  # that are shown
MOST_FLIPS, TOLD_FLIPS = 2000, 20


def explain(
    model: ModelName,
    data: Annotated[
        list[str],
        typer.Argument(help="Files, folders or patterns; - for standard input.", metavar="DATA..."),
    ],
    row: Annotated[list[int] | None, typer.Option(help="Counted from 1, as in score.")] = None,
    where: Annotated[str | None, typer.Option(help="Rows with a value, as in id=17.")] = None,
    least: Annotated[int | None, typer.Option(help="So many of the least robust.")] = None,
    perturbation: Annotated[str, typer.Option(help="As in tv, chi2 or tv_all.")] = "tv",
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Columns that stay as they are when values are changed."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="A page to write, .html.", metavar="PATH"),
    ] = None,
    delimiter: Delimiter = None,
    encoding: EncodingName = None,
    no_header: NoHeader = False,
    decimal: Decimal = None,
    sheet: SheetName = None,
) -> None:
    """Tell why a prediction is fragile, and what would change it.

    For rows that are named: what speaks for the prediction, the feature it hangs on, the nearest
    model that disagrees, and the smallest changes of values that flip it. Without any: which
    features the predictions of all rows hang on. Of a classifier that is not robustq's own:
    what its probabilities tell.

    Example: [bold]robustq explain model.robustq new.csv --row 17[/bold]
    """
    start_up()
    from robustq.files import hide_secrets, name_file  # noqa: PLC0415 (slow to import)
    from robustq.indicators.finding import find_neighbourhood  # noqa: PLC0415
    from robustq.io import open_sources, read_table  # noqa: PLC0415
    from robustq.report import as_json as write  # noqa: PLC0415
    from robustq.report import write_explanation  # noqa: PLC0415
    from robustq.scoring import find_model  # noqa: PLC0415

    _check_choice(row, where, least)
    sources = open_sources(data, make_csv_options(delimiter, encoding, no_header, decimal, sheet))
    if output is not None:
        check_output(output, [model, *(source.path for source in sources)])
        check_page(output)
    title = name_file(model)
    with showing_progress(f"reading {title}"):
        classifier = find_model(model)
    asked, kept = find_neighbourhood(perturbation), split_list(keep)
    _check_question(classifier, asked, kept)
    with showing_progress("reading") as progress, naming_file(*(source.name for source in sources)):
        table = read_table(sources, infer=False).table
        progress.begin("explaining")
        told = _Told(classifier, table, asked, sources[0].name)
        rows = told.choose(row, where, least)
        found = told.summarise() if rows is None else told.explain(rows, kept)
    title = f"{title} on {sources[0].name}"
    if output is not None:
        write_explanation(found, output, title=title)
    for text in found["cautions"]:
        caution(make_console(stderr=True), text)
    if as_json:
        say_json(write(found))
    else:
        told.show(make_console())
    if output is not None and not as_json:
        make_console().print(f"Page: {hide_secrets(output)}", soft_wrap=True, markup=False)


def _check_choice(row: list[int] | None, where: str | None, least: int | None) -> None:
    from robustq.exceptions import InputError  # noqa: PLC0415

    if sum(one is not None and one != [] for one in (row, where, least)) > 1:
        msg = "give one of --row, --where and --least"
        raise InputError(msg)
    for option, numbers in (("--row", row or []), ("--least", [] if least is None else [least])):
        if any(number < 1 for number in numbers):
            msg = f"{option} must be a whole number from 1 on, got {min(numbers)}"
            raise InputError(msg)
    if max(len(row or []), least or 0) > MOST_ROWS:
        msg = f"at most {MOST_ROWS} rows are explained one by one; without a choice, all of them"
        raise InputError(msg)


def _check_question(classifier: Any, asked: Neighbourhood, keep: tuple[str, ...]) -> None:
    """Raise if a classifier cannot be asked so; before anything is read."""
    from robustq.exceptions import UnsupportedError  # noqa: PLC0415 (slow to import)
    from robustq.scoring import Guest  # noqa: PLC0415

    if not isinstance(classifier, Guest):
        asked.bind(classifier.model_, classifier.encoding_.names)
        return
    classifier.check(asked)
    if keep and not classifier.is_ours:
        msg = f"--keep: {_say_known(classifier)}"
        raise UnsupportedError(msg)


def _say_known(guest: Guest) -> str:
    return (
        f"of {guest.kind} the probabilities of classes are judged, and not what features do: only "
        "robustq's own models are made of what could tell that"
    )


class _Told:
    """What is to be told about some rows of a table."""

    def __init__(self, classifier: Any, table: pa.Table, asked: Neighbourhood, where: str) -> None:
        from robustq.exceptions import InputError  # noqa: PLC0415
        from robustq.scoring import Guest  # noqa: PLC0415

        if not table.num_rows:
            msg = f"{where} has no rows"
            raise InputError(msg)
        self.table, self.asked = table, asked
        target = classifier.training_.get("target")
        self.X = choose_features(classifier, table, target, where)
        self.classifier, self.remarks = classifier, []
        if isinstance(classifier, Guest):
            self.classifier, self.X = classifier.estimator, classifier.adapt(self.X)
            self.remarks += [] if classifier.is_ours else [_say_known(classifier)]
        self.pages: list[tuple[int, Explanation, Counterfactuals | None]] = []
        self.summary: Summary | Turns | None = None

    def choose(self, row: list[int] | None, where: str | None, least: int | None) -> Indices | None:
        """Return the rows that are asked for; None for all of them together."""
        import numpy as np  # noqa: PLC0415 (slow to import)

        from robustq import robustness  # noqa: PLC0415
        from robustq.exceptions import PositionError  # noqa: PLC0415
        from robustq.families.remarks import ignoring_unknown_values  # noqa: PLC0415

        if row:
            if max(row) > self.table.num_rows:
                msg = f"--row {max(row)}: there are {self.table.num_rows:,} rows"
                raise PositionError(msg)
            return np.array(row) - 1
        if where is not None:
            return self._find(where)
        if least is None:
            return None
        with ignoring_unknown_values():
            sizes = robustness(self.classifier, self.X, self.asked)
        return np.argsort(sizes, kind="stable")[:least]

    def _find(self, where: str) -> Indices:
        import numpy as np  # noqa: PLC0415 (slow to import)

        from robustq.exceptions import InputError  # noqa: PLC0415
        from robustq.io import require_columns  # noqa: PLC0415

        name, equals, wanted = where.partition("=")
        name, wanted = name.strip(), wanted.strip()
        if not equals or not name:
            msg = f"--where takes column=value, as in id=17, got {where!r}"
            raise InputError(msg)
        require_columns([name], self.table.column_names, "the data", "which --where names")
        found = [_is_same(value, wanted) for value in self.table[name].to_pylist()]
        rows = np.flatnonzero(found)
        if not len(rows):
            msg = f"--where {where}: no row has {wanted!r} in {name!r}"
            raise InputError(msg)
        if len(rows) > MOST_ROWS:
            msg = f"--where {where}: {len(rows):,} rows have it; at most {MOST_ROWS} are explained"
            raise InputError(msg)
        return rows

    def explain(self, rows: Indices, keep: tuple[str, ...]) -> dict[str, Any]:
        """Return what is told about some rows, as plain data."""
        import numpy as np  # noqa: PLC0415 (slow to import)

        from robustq import explain  # noqa: PLC0415
        from robustq.tables.table import take_rows  # noqa: PLC0415

        X = take_rows(self.X, rows)
        with _catching_cautions() as caught:
            explanations = explain(self.classifier, X, self.asked)
        for i, row in enumerate(rows.tolist()):
            flips = None if self.remarks else self._flip(take_rows(X, np.array([i])), keep)
            self.pages.append((row + 1, explanations[i], flips))
        told = [
            {
                "row": row,
                **one.to_dict(),
                "title": one.title,
                "story": one.story,
                "what_if": None if flips is None else flips.to_dict(),
            }
            for row, one, flips in self.pages
        ]
        return self._gather(caught, rows=told)

    def _flip(self, X: Any, keep: tuple[str, ...]) -> Counterfactuals:
        """Return the smallest changes that flip a row."""
        from robustq import counterfactuals  # noqa: PLC0415 (slow to import)
        from robustq.families.remarks import ignoring_unknown_values  # noqa: PLC0415

        with ignoring_unknown_values():
            found = counterfactuals(self.classifier, X, self.asked, keep=keep, limit=MOST_FLIPS)
        # What flips with one cell does so with another one, too.
        return found.smallest(TOLD_FLIPS)

    def summarise(self) -> dict[str, Any]:
        """Return what all predictions hang on, or would turn into, as plain data."""
        from robustq import explain  # noqa: PLC0415 (slow to import)

        with _catching_cautions() as caught:
            self.summary = explain(self.classifier, self.X, self.asked).summary()
        lines = "turns" if self.remarks else "features"
        told = {"rows": self.summary.rows, lines: self.summary.to_dict()}
        return self._gather(caught, summary=told)

    def _gather(self, caught: list[str], **found: Any) -> dict[str, Any]:
        told = {"perturbation": self.asked.name, "cautions": caught, "remarks": self.remarks}
        return {**told, "rows": [], "summary": None, **found}

    # In a terminal

    def show(self, console: Any) -> None:
        """Print what was found."""
        if self.summary is not None:
            _print(console, self.summary.title, self.summary.cells())
        for row, explanation, flips in self.pages:
            _show_one(console, row, explanation, flips)
        for remark in self.remarks:
            say(console, f"{remark[0].upper()}{remark[1:]}.")


@contextmanager
def _catching_cautions() -> Iterator[list[str]]:
    """Give the list of what is to be said of values never seen, and of other predictions."""
    import warnings  # noqa: PLC0415

    from robustq.exceptions import OtherPredictionWarning, UnknownValueWarning  # noqa: PLC0415

    told: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        for kind in (UnknownValueWarning, OtherPredictionWarning):
            warnings.simplefilter("always", kind)
        yield told
    told += [str(one.message) for one in caught]


def _is_same(value: Any, wanted: str) -> bool:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return value == float(wanted)
        except ValueError:
            return False
    return value is not None and str(value).strip() == wanted


def _show_one(
    console: Any, row: int, explanation: Explanation, flips: Counterfactuals | None
) -> None:
    from rich.text import Text  # noqa: PLC0415 (slow to import)

    console.print(Text(f"Row {row:,}: {explanation.title}", style="bold"))
    for sentence in explanation.story:
        say(console, sentence)
    _print(console, None, explanation.cells())
    # What becomes of a posterior stands in its table already.
    changes = () if explanation.outcomes else explanation.changes
    if changes:
        count = f"{len(changes):,} change{'' if len(changes) == 1 else 's'}"
        table = {
            f"The nearest model that disagrees ({count})": [c.what for c in changes[:CHANGES]],
            "probability": [c.shares for c in changes[:CHANGES]],
        }
        _print(console, None, table)
    elif explanation.note:
        say(console, f"{explanation.note[0].upper()}{explanation.note[1:]}.\n")
    if flips is None:
        return
    cells = {name: cells[:FLIPS] for name, cells in flips.cells().items()}
    if flips.found:
        _print(console, None, {"What if": cells.pop("change"), **cells})
    else:
        say(console, f"{flips.title}.\n")
    if flips.note:
        say(console, flips.note)


def _print(console: Any, title: str | None, cells: dict[str, list[str]]) -> None:
    first, *others = cells
    shrink = others[0] if others and others[0] == "value" else first
    table = make_table(*cells, right=others, title=title, shrink=shrink)
    for line in zip(*cells.values(), strict=True):
        fill_row(table, *line)
    console.print(table)
