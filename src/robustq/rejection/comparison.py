"""The comparison table: which score is best at which rejection rate, over data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.exceptions import InputError
from robustq.tables.display import as_html, as_text
from robustq.tables.frames import as_arrow, as_pandas, as_polars

from .averages import average_curves, read_grid
from .curves import Curve

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from numpy.typing import ArrayLike
    from rich.console import Group
    from rich.table import Table

    from robustq.arrays import Bools, Floats, Indices

__all__ = ["RATES", "Comparison", "compare"]

RATES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
AREA = "AU-ARC"
WINS = "_wins"
LATEX = str.maketrans(
    {character: "\\" + character for character in "%_&#${}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
)
TIE = 1e-9  # accuracies this near are equal


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Mean accuracies and wins, one row for each rejection rate, the last for AU-ARC.

    Attributes
    ----------
    labels : tuple of str
        What each row is about.
    names : tuple of str
        What is compared.
    data_sets : tuple of str
    values : ndarray of shape (data sets, rows, names)
        The accuracy, or the area, of each.
    """

    labels: tuple[str, ...]
    names: tuple[str, ...]
    data_sets: tuple[str, ...]
    values: Floats

    @property
    def mean(self) -> Floats:
        """The mean over the data sets, (rows, names)."""
        return np.asarray(self.values.mean(axis=0))

    @property
    def wins(self) -> Indices:
        """On how many data sets each is best, (rows, names); those that tie all win."""
        best = self.values.max(axis=2, keepdims=True)
        return np.asarray((self.values >= best - TIE).sum(axis=0))

    @property
    def is_best(self) -> Bools:
        """Which mean is the largest of its row; those that tie all are."""
        return self.mean >= self.mean.max(axis=1, keepdims=True) - TIE

    def to_dict(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the columns by name: for each score its mean and its wins."""
        columns: dict[str, np.ndarray[Any, Any]] = {"rejected": np.array(self.labels, dtype=object)}
        for index, name in enumerate(self.names):
            columns[name] = self.mean[:, index]
            columns[name + WINS] = self.wins[:, index]
        return columns

    def to_arrow(self) -> pa.Table:
        """Return a pyarrow table."""
        return as_arrow(self.to_dict())

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas frame."""
        return as_pandas(self.to_dict())

    def to_polars(self) -> pl.DataFrame:
        """Return a polars frame."""
        return as_polars(self.to_dict())

    def to_markdown(self) -> str:
        """Return a Markdown table; the best means are bold."""
        head = ["rejected", *(name.replace("|", "\\|") for name in self.names)]
        lines = [head, ["---", *("---:" for _ in self.names)]]
        lines += self._cells(lambda text, best: f"**{text}**" if best else text)
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def to_latex(self) -> str:
        r"""Return a LaTeX table (booktabs); the best means are bold."""
        rows = self._cells(lambda text, best: rf"\textbf{{{text}}}" if best else text)
        body = [" & ".join(_escape(row[0:1]) + row[1:]) + r" \\" for row in rows]
        # The last row is about something else.
        body.insert(len(body) - 1, r"\midrule")
        return "\n".join(
            [
                rf"\begin{{tabular}}{{l{'r' * len(self.names)}}}",
                r"\toprule",
                " & ".join(_escape(["rejected", *self.names])) + r" \\",
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}",
            ]
        )

    def to_rich(self, title: str | None = None, width: int = 80) -> Group:
        """Return what rich prints; the best means are bold.

        Parameters
        ----------
        title : str, optional
        width : int, default 80
            Scores that do not fit stand in another table below.
        """
        from rich.console import Group  # noqa: PLC0415 (only where it is shown)
        from rich.text import Text  # noqa: PLC0415

        caption = f"mean accuracy in % / wins on {_plural(len(self.data_sets))}"
        shown: list[Any] = [] if title is None else [Text(title, style="italic")]
        for names in self._group_names(width):
            shown += [self._make_table(names), Text()]
        return Group(*shown, Text(caption, style="dim italic"))

    def _short_cells(self, index: int) -> list[str]:
        cells = zip(self.mean[:, index], self.wins[:, index], strict=True)
        return [f"{100 * mean:.1f}/{wins}" for mean, wins in cells]

    def _group_names(self, width: int) -> list[list[int]]:
        """Return which scores stand side by side."""
        first = max(map(len, ("reject", *self.labels)))
        groups: list[list[int]] = [[]]
        used = first
        for index, name in enumerate(self.names):
            wide = 2 + max(map(len, (name, *self._short_cells(index))))
            if groups[-1] and used + wide > width:
                groups.append([])
                used = first
            groups[-1].append(index)
            used += wide
        return groups

    def _make_table(self, indices: list[int]) -> Table:
        from rich import box  # noqa: PLC0415 (only where it is shown)
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        table.add_column("reject", no_wrap=True)
        columns = []
        for index in indices:
            name = Text(self.names[index], overflow="ellipsis")
            table.add_column(name, justify="right", no_wrap=True, overflow="ellipsis")
            best = ["bold green" if best else "" for best in self.is_best[:, index]]
            columns.append(
                [Text(*cell) for cell in zip(self._short_cells(index), best, strict=True)]
            )
        for row, cells in enumerate(zip(self.labels, *columns, strict=True)):
            table.add_row(*cells, end_section=row == len(self.labels) - 2)
        return table

    def __str__(self) -> str:
        rows = self._cells(lambda text, best: text + "*" * int(best))
        return as_text(dict(zip(["rejected", *self.names], zip(*rows, strict=True), strict=True)))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from markupsafe import Markup  # noqa: PLC0415 (only where it is shown)

        rows = self._cells(lambda text, best: Markup("<b>{}</b>").format(text) if best else text)
        columns = dict(zip(["rejected", *self.names], zip(*rows, strict=True), strict=True))
        return as_html(f"Mean accuracy (wins) on {_plural(len(self.data_sets))}", columns)

    def _cells(self, mark: Any) -> list[list[Any]]:
        """Return the rows as text: mean and wins, the best ones marked."""
        cells = zip(self.labels, self.mean, self.wins, self.is_best, strict=True)
        return [
            [label, *(mark(f"{m:.4f} ({w})", b) for m, w, b in zip(*row, strict=True))]
            for label, *row in cells
        ]


def compare(
    results: Mapping[str, Mapping[str, Curve | Sequence[Curve]]],
    rates: ArrayLike = RATES,
) -> Comparison:
    """Compare scores by their accuracy-rejection curves, over data sets.

    Parameters
    ----------
    results : mapping of data set to mapping of name to Curve or sequence of Curve
        Several curves are those of several runs; they are averaged.
    rates : array_like
        The rejection rates to compare at.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from robustq.rejection import accuracy_rejection_curve
    >>> right = [True, True, False, True]
    >>> curves = {"good": accuracy_rejection_curve(right, [3, 2, 0, 1]),
    ...           "bad": accuracy_rejection_curve(right, [0, 1, 2, 3])}
    >>> print(compare({"toy": curves}, rates=[0, 0.5]))
    rejected         good          bad
          0%  0.7500 (1)*  0.7500 (1)*
         50%  1.0000 (1)*   0.5000 (0)
      AU-ARC  0.9375 (1)*   0.7292 (0)
    """
    grid = read_grid(rates)
    names = _read_names(results)
    values = [
        [_summarise(curves[name], grid, f"{data_set}, {name}") for name in names]
        for data_set, curves in results.items()
    ]
    labels = (*(f"{100 * rate:.3g}%" for rate in grid), AREA)
    return Comparison(labels, names, tuple(results), np.array(values).transpose(0, 2, 1))


def _read_names(results: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    if not isinstance(results, Mapping) or not results:
        msg = "there is nothing to compare: give a dictionary with the curves of each data set"
        raise InputError(msg)
    for data_set, curves in results.items():
        if not isinstance(curves, Mapping) or not all(isinstance(name, str) for name in curves):
            msg = f"the curves of {data_set!r} must be a dictionary with names"
            raise InputError(msg)
    first, *others = results.items()
    names = tuple(first[1])
    if not names:
        msg = f"there is nothing to compare for {first[0]!r}"
        raise InputError(msg)
    for data_set, curves in others:
        if set(curves) != set(names):
            odd = sorted(set(curves) ^ set(names))
            msg = f"{first[0]!r} and {data_set!r} do not have the same curves: {', '.join(odd)}"
            raise InputError(msg)
    columns = ["rejected", *names, *(name + WINS for name in names)]
    if len(set(columns)) < len(columns):
        msg = f"these names would be mixed up in a table: {', '.join(names)}"
        raise InputError(msg)
    return names


def _summarise(curves: Any, rates: Floats, where: str) -> list[float]:
    """Return the accuracies at the rates, and the area."""
    single = isinstance(curves, Curve) or not isinstance(curves, Sequence)
    given = [curves] if single else list(curves)
    if not given or not all(isinstance(curve, Curve) for curve in given):
        msg = f"{where}: expected a Curve or several, got {curves!r}"
        raise InputError(msg)
    average = average_curves(given, rates)
    return [*average.accuracy.tolist(), average.auc]


def _plural(count: int) -> str:
    return f"{count} data set{'' if count == 1 else 's'}"


def _escape(cells: list[str]) -> list[str]:
    return [cell.translate(LATEX) for cell in cells]
