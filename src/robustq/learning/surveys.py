"""What is in the parts of a table, and how the whole is understood."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from robustq.exceptions import InputError
from robustq.tables import Categorical, Encoding, Numeric, as_numbers
from robustq.tables.columns import cut, share_out
from robustq.tables.encoding import find_positions
from robustq.tables.giveaways import place_looks
from robustq.tables.order_statistics import Histogram, Search, Window
from robustq.tables.summaries import ColumnSummary, unify_types
from robustq.tables.table import join_chunks
from robustq.tables.understanding import FEW_ROWS, Verdict, judge, look_for_giveaway

from .partitions import add

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from robustq.arrays import Indices

    from .partitions import Partitions, Piece, Reader

__all__ = ["Survey", "make_survey", "understand_parts", "with_types"]

MOST_LABELS = 1 << 20  # different ones: more are no classes


@dataclass
class Survey:
    """What is in some parts of a table.

    Attributes
    ----------
    rows, counted : dict of int to int
        How many rows of each part have a label, and how many of these a weight above 0.
    unlabelled : int
        How many have no label.
    columns : dict of str to ColumnSummary
        Of the rows that count.
    labels : dict of label to (rows, weight)
    label_type : pyarrow.DataType
    whole : bool
        Whether all weights are whole numbers.
    """

    rows: dict[int, int] = field(default_factory=dict)
    counted: dict[int, int] = field(default_factory=dict)
    unlabelled: int = 0
    columns: dict[str, ColumnSummary] = field(default_factory=dict)
    labels: dict[Any, tuple[int, float]] = field(default_factory=dict)
    label_type: pa.DataType = field(default_factory=pa.null)
    whole: bool = True

    def __add__(self, other: Survey) -> Survey:
        """Return what is in both, the other parts after these."""
        names = dict.fromkeys([*self.columns, *other.columns])
        labels = dict(self.labels)
        for label, (rows, weight) in other.labels.items():
            known = labels.get(label, (0, 0.0))
            labels[label] = known[0] + rows, known[1] + weight
        if len(labels) > MOST_LABELS:
            msg = f"the target has more than {MOST_LABELS:,} different values: is it a number?"
            raise InputError(msg)
        return Survey(
            _add_rows(self.rows, other.rows),
            _add_rows(self.counted, other.counted),
            self.unlabelled + other.unlabelled,
            {name: _join(name, self.columns.get(name), other.columns.get(name)) for name in names},
            labels,
            _join_label_types(self.label_type, other.label_type),
            self.whole and other.whole,
        )

    @property
    def total(self) -> int:
        """How many rows have a label."""
        return sum(self.rows.values())

    def offsets(self, *, counted: bool = False) -> dict[int, int]:
        """Return the number of the first row of each part, or of the first that counts."""
        rows = self.counted if counted else self.rows
        order = sorted(rows)
        starts = np.cumsum([0, *(rows[index] for index in order)]).tolist()
        return dict(zip(order, starts, strict=False))

    def schema(self) -> dict[str, pa.DataType]:
        """Return the types of the features in all parts."""
        return {name: column.kind for name, column in self.columns.items()}

    def classes(self) -> np.ndarray[Any, Any]:
        """Return the different labels, sorted."""
        found = np.array(list(self.labels))
        return np.unique(found.astype(float) if pa.types.is_floating(self.label_type) else found)

    def tally(self, classes: np.ndarray[Any, Any]) -> tuple[Indices, Any]:
        """Return how many rows each class has, and their weight."""
        found = [self.labels[label] for label in classes.tolist()]
        rows, weights = zip(*found, strict=True)
        return np.array(rows, dtype=np.int64), np.array(weights)


def _add_rows(one: dict[int, int], other: dict[int, int]) -> dict[int, int]:
    return {index: one.get(index, 0) + other.get(index, 0) for index in {**one, **other}}


def _join(name: str, one: ColumnSummary | None, other: ColumnSummary | None) -> Any:
    try:
        return add(one, other)
    except (pa.ArrowException, TypeError) as error:
        kinds = " and ".join(str(part.kind) for part in (one, other) if part is not None)
        msg = f"column {name!r} is {kinds} in different parts of the table, which do not fit"
        raise InputError(msg) from error


def _join_label_types(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    texts = {pa.types.is_string(kind) for kind in (one, other) if not pa.types.is_null(kind)}
    if len(texts) > 1:
        msg = f"y mixes labels of different types ({one}, {other}): make them all text"
        raise InputError(msg)
    return unify_types([one, other])


def make_survey(
    parts: Partitions, reader: Reader, categorical: Iterable[Any], numeric: Iterable[Any]
) -> Survey:
    """Return what is in all parts.

    Parameters
    ----------
    parts : Partitions
    reader : Reader
    categorical, numeric : iterable of str or int
        Columns, by name or position, whose kind is not to be inferred.
    """
    found = parts.run(
        partial(_look_around, reader, (frozenset(categorical), frozenset(numeric))), add
    )
    if not found.total:
        msg = f"no row has a value in column {reader.target!r}: there is nothing to learn from"
        raise InputError(msg)
    if not sum(found.counted.values()):
        msg = "the weight is zero for every row: there is nothing to learn from"
        raise InputError(msg)
    if not found.columns:
        msg = f"there is no column but {reader.target!r}: there is nothing to learn from"
        raise InputError(msg)
    return found


def _look_around(
    reader: Reader, given: tuple[frozenset[Any], ...], index: int, tables: Iterable[pa.Table]
) -> Survey:
    found = Survey({index: 0}, {index: 0})
    for table in tables:
        piece = reader.read_one(table)
        found = found + _look(piece, index, table.num_rows, *given)
    return found


def _look(
    piece: Piece, index: int, rows: int, categorical: frozenset[Any], numeric: frozenset[Any]
) -> Survey:
    X, y, weights = piece
    codes = y.dictionary_encode()
    at, values = codes.indices.to_numpy(), codes.dictionary.to_pylist()
    counts, sums = np.bincount(at, minlength=len(values)), np.bincount(at, weights, len(values))
    labels = dict(zip(values, zip(counts.tolist(), sums.tolist(), strict=True), strict=True))
    counted = np.flatnonzero(weights)
    if len(counted) < len(weights):
        X = X.take(pa.array(counted))
    columns = {
        name: ColumnSummary.of(
            *(join_chunks(X[name]), f"column {name!r}"),
            keep=bool({name, place} & categorical),
            numeric=bool({name, place} & numeric),
        )
        for place, name in enumerate(X.column_names)
    }
    whole = bool(np.all(weights == np.floor(weights)))
    kind = y.type if len(y) else pa.null()
    places = {index: len(y)}, {index: len(counted)}
    return Survey(*places, rows - len(y), columns, labels, kind, whole)


# How it is understood


class _Looked(NamedTuple):
    """What parts show of some rows, and of the distribution of their numbers.

    Attributes
    ----------
    X : list of pyarrow.Table
    y : list of Arrow array
    numbers : dict of str to Histogram
    """

    X: list[pa.Table]
    y: list[Any]
    numbers: dict[str, Histogram]

    def __add__(self, other: _Looked) -> _Looked:  # type: ignore[override]
        names = dict.fromkeys([*self.numbers, *other.numbers])
        numbers = {name: add(self.numbers.get(name), other.numbers.get(name)) for name in names}
        return _Looked(self.X + other.X, self.y + other.y, numbers)


def understand_parts(
    parts: Partitions,
    reader: Reader,
    survey: Survey,
    *,
    bins: int | None,
    tails: bool = False,
    categorical: Sequence[str | int] = (),
    numeric: Sequence[str | int] = (),
) -> Encoding:
    """Return what `Encoding.learn` returns for the whole table.

    Parameters
    ----------
    parts : Partitions
    reader : Reader
        That knows the types of all columns.
    survey : Survey
    bins, tails, categorical, numeric
        See `Encoding.learn`.
    """
    names, rows = tuple(survey.columns), sum(survey.counted.values())
    given = find_positions(names, len(names), categorical, numeric)
    verdicts = {
        name: judge(column.tell(rows), name, given=given.get(index))
        for index, (name, column) in enumerate(survey.columns.items())
    }
    cuts = {
        name: Search.begin(share_out(bins))
        for name, column in survey.columns.items()
        if bins is not None and verdicts[name].numeric and column.present
    }
    verdicts = _find_quantiles(parts, reader, survey, verdicts, cuts)
    columns: list[Any] = []
    for name, column in survey.columns.items():
        label = f"column {name!r}"
        if not verdicts[name].numeric:
            columns.append(column.categories(name, label))
        elif not column.present and (bins is None or tails):
            columns.append(Categorical(name, ()))
        elif bins is None:
            columns.append(Numeric(name))
        else:
            low, high = column.order[:2]
            edges = cuts[name].quantiles if name in cuts else np.empty(0)
            columns.append(cut(name, edges, low, high, tails=tails))
    return Encoding(tuple(columns), True, tuple(verdicts.values()))


def _find_quantiles(
    parts: Partitions,
    reader: Reader,
    survey: Survey,
    verdicts: dict[str, Verdict],
    cuts: dict[str, Search],
) -> dict[str, Verdict]:
    """Look at the parts until all quantiles are known; find giveaways on the way."""
    places = place_looks(sum(survey.counted.values()))
    offsets = survey.offsets(counted=True)
    found = verdicts
    while len(places) or not all(search.done for search in cuts.values()):
        windows = {name: search.window for name, search in cuts.items() if not search.done}
        looked = parts.run(partial(_look_closer, reader, offsets, places, windows), add)
        for name, window in windows.items():
            cuts[name].narrow(window, looked.numbers[name])
        if len(places):
            found = _find_giveaways(survey, verdicts, looked)
            places = places[:0]
    return found


def _look_closer(
    reader: Reader,
    offsets: dict[int, int],
    places: Indices,
    windows: dict[str, Window],
    index: int,
    tables: Iterable[pa.Table],
) -> _Looked:
    found, first = _Looked([], [], {}), offsets.get(index, 0)
    for piece in reader.read(tables):
        X, y, weights = piece
        counted = np.flatnonzero(weights)
        if len(counted) < len(weights):
            X, y, weights = X.take(pa.array(counted)), y.take(pa.array(counted)), weights[counted]
        own = places[(places >= first) & (places < first + len(y))] - first
        first += len(y)
        numbers = {
            name: window.count(as_numbers(join_chunks(X[name]), f"column {name!r}"), weights)
            for name, window in windows.items()
        }
        some = ([X.take(pa.array(own))], [y.take(pa.array(own))]) if len(own) else ([], [])
        found = found + _Looked(*some, numbers)
    return found


def _find_giveaways(
    survey: Survey, verdicts: dict[str, Verdict], looked: _Looked
) -> dict[str, Verdict]:
    X = pa.concat_tables(looked.X).unify_dictionaries().combine_chunks()
    classes = survey.classes()
    labels = np.searchsorted(classes, np.array(pa.concat_arrays(looked.y).to_pylist()))
    found = {}
    for name, verdict in verdicts.items():
        found[name] = verdict
        if not verdict.remark and survey.columns[name].present >= FEW_ROWS:
            column, label = join_chunks(X[name]), f"column {name!r}"
            found[name] = look_for_giveaway(verdict, column, name, label, labels)
    return found


def with_types(reader: Reader, survey: Survey) -> Reader:
    """Return a reader that knows what the columns are in all parts."""
    return replace(reader, schema=survey.schema(), label_type=survey.label_type)
