"""Scoring: for every row a prediction, how far it is from flipping, and to what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from robustq.blocks import using_threads
from robustq.core.quantified import Quantified
from robustq.credal.sets import predict_sets, write_sets
from robustq.exceptions import DomainError, InputError, UnsupportedError
from robustq.families.parameters import is_count
from robustq.io import adapt_table, gather, list_needed, require_columns

from .guests import Guest
from .kept import cast_kept
from .tallies import Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from robustq.arrays import Floats, Indices
    from robustq.core.neighbourhoods import Neighbourhood
    from robustq.families.base import GenerativeClassifier
    from robustq.selection.gates import Gate

__all__ = ["ALL", "Scorer", "number_rows"]

ALL: Literal["all"] = "all"
BATCH_ROWS = 1 << 17
ROW, HANGS_ON = "row", "hangs_on"


@dataclass(frozen=True, eq=False)
class _Ours:
    """A classifier of ours, asked about tables of files as a `Guest` is."""

    estimator: GenerativeClassifier

    def check(self, neighbourhood: Neighbourhood) -> None:
        neighbourhood.bind(self.estimator.model_, self.estimator.encoding_.names)

    def list_needed(self, names: Sequence[str], where: str) -> tuple[str, ...]:
        return list_needed(self.estimator.encoding_, names, where)

    def adapt(self, table: pa.Table) -> pa.Table:
        strict = self.estimator.handle_unknown == "error"
        return adapt_table(table, self.estimator.encoding_, strict=strict)

    def quantify(
        self, X: Any, neighbourhoods: Sequence[Neighbourhood]
    ) -> tuple[Quantified, dict[str, int], int]:
        return *self.estimator.count_and_quantify(X, neighbourhoods), 0


@dataclass(eq=False)
class Scorer:
    """Turns batches of rows into batches of results.

    Attributes
    ----------
    model : GenerativeClassifier or Guest
    neighbourhoods : sequence of Neighbourhood
    keep : sequence of str, "all" or None
        The columns of the rows that go into the results, before them.
    gate : Gate, optional
        On the robustness in some of the neighbourhoods, the probability, or both.
    kept_types : dict of str to DataType
        What types kept columns get in the results; their own by default.
    delta : float, optional
        A size, to add the set of classes that no other beats for certain in each neighbourhood.
    explain : bool
        Whether to tell which feature each prediction hangs on, in the first neighbourhood.
    threads : int, optional
        How many threads to use, of all that this process may use by default.
    tally : Tally
        What was counted in all that `score` and `stream` were given.

    Raises
    ------
    UnsupportedError, UnknownNameError, DomainError
        If the model cannot be perturbed so; the message says why.
    """

    model: GenerativeClassifier | Guest
    neighbourhoods: Sequence[Neighbourhood]
    keep: Sequence[str] | Literal["all"] | None = None
    gate: Gate | None = None
    kept_types: Mapping[str, pa.DataType] = field(default_factory=dict)
    delta: float | None = None
    explain: bool = False
    threads: int | None = None
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        _check_threads(self.threads)
        if isinstance(self.keep, str) and self.keep != ALL:
            msg = f'keep takes a list of columns, or "{ALL}", got {self.keep!r}'
            raise InputError(msg)
        # What the model cannot answer is refused before anything is read.
        self._asked: Guest | _Ours
        self._asked = self.model if isinstance(self.model, Guest) else _Ours(self.model)
        if self.explain and isinstance(self.model, Guest):
            msg = (
                f"--explain: what predictions of {self.model.kind} hang on is not known, because "
                "it is none of robustq's own models: leave it out"
            )
            raise UnsupportedError(msg)
        for neighbourhood in self.neighbourhoods:
            self._asked.check(neighbourhood)
            domain = neighbourhood.domain
            if self.delta is not None and self.delta not in domain:
                msg = (
                    f"a size of {neighbourhood.name} lies in {domain}, got {self.delta:g}: "
                    "give another --delta, or choose the perturbation"
                )
                raise DomainError(msg)

    def choose(self, names: tuple[str, ...], where: str) -> list[str]:
        """Return the columns to read, of those that a file has.

        Raises
        ------
        InputError
            If one that is needed is not there, or kept ones would hide results.
        """
        kept = self._list_kept(names)
        needed = self._asked.list_needed(names, where)
        require_columns(kept, names, where, "which is to be kept")
        clash = sorted(set(kept) & set(self.result_names))
        if clash:
            msg = f"{where} has a column {clash[0]!r}, as the results do: rename it, or keep others"
            raise InputError(msg)
        wanted = {*needed, *kept}
        return [name for name in names if name in wanted]

    @property
    def result_names(self) -> list[str]:
        """The names of the columns that are added."""
        names = ["prediction", "probability", "runner_up"]
        for neighbourhood in self.neighbourhoods:
            names += [f"robustness_{neighbourhood.name}", f"tipping_class_{neighbourhood.name}"]
            names += [] if self.delta is None else [f"classes_{neighbourhood.name}"]
        names += [HANGS_ON] if self.explain else []
        return [*names, *(["accepted"] if self.gate else [])]

    @property
    def repeating(self) -> frozenset[str]:
        """The columns of categories that are not kept: best read as dictionaries."""
        if isinstance(self.model, Guest) or not self.model.encoding_.named or self.keep == ALL:
            return frozenset()
        return self.model.encoding_.repeating - frozenset(self.keep or ())

    @property
    def endless(self) -> list[str]:
        """The neighbourhoods in which nothing flips any row that was scored."""
        return sorted({one.name for one in self.neighbourhoods} - self.tally.flipped)

    def schema(self, given: pa.Schema | None = None) -> pa.Schema:
        """Return the schema of all results: known before the first row.

        Parameters
        ----------
        given : pyarrow.Schema, optional
            That of the rows, which tells the types of kept columns.
        """
        return self.score_none(given).schema

    def score_none(self, given: pa.Schema | None = None) -> pa.Table:
        """Return results of no rows: unlike a schema, they know all labels."""
        rows = pa.schema([]) if given is None else given
        require_columns(self._list_kept(rows.names), rows.names, "the table", "which is to be kept")
        return self.score_and_count(rows.empty_table())[0]

    def score(self, table: pa.Table | pa.RecordBatch) -> pa.Table:
        """Return the kept columns and the results of a batch, in the order of its rows."""
        scored, tally = self.score_and_count(table)
        self.tally.add(tally)
        return scored

    def score_and_count(self, table: pa.Table | pa.RecordBatch) -> tuple[pa.Table, Tally]:
        """Return what `score` does, and what was counted; changes nothing here."""
        table = pa.table(table) if isinstance(table, pa.RecordBatch) else table
        columns = {
            name: cast_kept(table[name], self.kept_types.get(name), name)
            for name in self._list_kept(table.column_names)
        }
        tally, rows = Tally(table.num_rows), table
        found = Quantified.empty(len(self.neighbourhoods), 0)
        with using_threads(self.threads):
            if table.num_rows:
                rows = self._asked.adapt(table)
                found, unknown, tally.others = self._asked.quantify(rows, self.neighbourhoods)
                tally.unknown.update(unknown)
            columns |= self._describe(found, rows)
        if self.gate is not None:
            tally.accepted = int(np.count_nonzero(columns["accepted"]))
        each = zip(self.neighbourhoods, found.robustness, strict=True)
        tally.flipped = {one.name for one, sizes in each if sizes.min(initial=np.inf) < np.inf}
        return pa.table(columns), tally

    def stream(
        self,
        batches: Iterable[pa.RecordBatch],
        given: pa.Schema,
        batch_rows: int = BATCH_ROWS,
        where: str = "the table",
    ) -> Iterator[pa.RecordBatch]:
        """Yield results of batches of any size, each of the schema that `schema` tells.

        Parameters
        ----------
        batches : iterable of pyarrow.RecordBatch
            Small ones are put together, since each costs a little of its own.
        given : pyarrow.Schema
            What the batches are announced as.
        batch_rows : int
            How many rows to score at a time, at most.
        where : str
            What to call the rows where a column is missing.
        """
        wanted = self.choose(tuple(given.names), where)
        kept = self._list_kept(given.names)
        self.kept_types = {name: given.field(name).type for name in kept} | dict(self.kept_types)
        for table in gather((batch.select(wanted) for batch in batches), batch_rows):
            yield from self.score(table).combine_chunks().to_batches()

    def _list_kept(self, names: Sequence[str]) -> list[str]:
        return list(names if self.keep == ALL else self.keep or ())

    def _describe(self, found: Quantified, rows: Any) -> dict[str, Any]:
        columns: dict[str, Any] = {
            "prediction": self._labels(found.prediction),
            "probability": found.probability,
            "runner_up": self._labels(found.runner_up),
        }
        for index, neighbourhood in enumerate(self.neighbourhoods):
            columns[f"robustness_{neighbourhood.name}"] = found.robustness[index]
            columns[f"tipping_class_{neighbourhood.name}"] = self._labels(found.tipping[index])
            if self.delta is not None:
                sets = predict_sets(
                    *(self._asked.estimator, rows, neighbourhood, self.delta),
                    *(found.prediction, found.robustness[index]),
                )
                words = write_sets(sets, self.model.classes_)
                columns[f"classes_{neighbourhood.name}"] = pa.array(words.tolist(), pa.string())
        if self.explain:
            columns[HANGS_ON] = self._describe_hanging(rows)
        if self.gate is not None:
            columns["accepted"] = self.gate.accepts(self._list_scores(found))
        return columns

    def _describe_hanging(self, rows: pa.Table) -> pa.DictionaryArray:
        assert not isinstance(self.model, Guest)  # noqa: S101 (refused from the start)
        found = np.zeros(0, dtype=np.int64)
        if rows.num_rows:
            found = self.model.find_hanging(rows, self.neighbourhoods[0])
        return _as_dictionary(found, list(self.model.encoding_.names))

    def _list_scores(self, found: Quantified) -> dict[str, Floats]:
        """Return what a gate may go by."""
        each = zip(self.neighbourhoods, found.robustness, strict=True)
        scores = {f"r_{neighbourhood.name}": sizes for neighbourhood, sizes in each}
        return {**scores, "u_max": found.probability - 1.0}

    def _labels(self, positions: Indices) -> pa.DictionaryArray:
        return _as_dictionary(positions, self.model.classes_.tolist())


def _check_threads(threads: Any) -> None:
    if threads is not None and not is_count(threads, 1):
        msg = f"threads must be a whole number from 1, or None for all cores, got {threads!r}"
        raise InputError(msg)


def _as_dictionary(positions: Indices, values: list[Any]) -> pa.DictionaryArray:
    codes = np.asarray(positions, dtype=np.int32)
    mask = codes < 0 if len(codes) and codes.min() < 0 else None
    # Positions need no check: they are those of our own classes.
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=mask), pa.array(values), safe=False)


def number_rows(table: pa.Table, before: int) -> pa.Table:
    """Return results with the number of each row in front, counted from 1.

    Where a column of that name was kept, it is the key already.

    Parameters
    ----------
    table : pyarrow.Table
    before : int
        How many rows came before these.
    """
    if ROW in table.column_names:
        return table
    numbers = np.arange(before + 1, before + 1 + table.num_rows, dtype=np.int64)
    return table.add_column(0, ROW, pa.array(numbers))
