"""Scoring: for every row a prediction, how far it is from flipping, and to what."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from robustq.core.quantified import Quantified
from robustq.credal.sets import predict_sets, write_sets
from robustq.exceptions import DomainError, InputError, UnsupportedError
from robustq.io import adapt_table, list_needed, require_columns

from .guests import Guest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from robustq.arrays import Floats, Indices
    from robustq.core.neighbourhoods import Neighbourhood
    from robustq.families.base import GenerativeClassifier
    from robustq.selection.gates import Gate

__all__ = ["Scorer", "number_rows"]

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
    ) -> tuple[Quantified, dict[str, int]]:
        return self.estimator.count_and_quantify(X, neighbourhoods)


@dataclass(eq=False)
class Scorer:
    """Turns batches of rows into batches of results.

    Attributes
    ----------
    model : GenerativeClassifier or Guest
    neighbourhoods : sequence of Neighbourhood
    keep : sequence of str, or None
        The columns of the rows that go into the results; None keeps all.
    gate : Gate, optional
        On the robustness in some of the neighbourhoods, the probability, or both.
    delta : float, optional
        A size, to add the set of classes that no other beats for certain in each neighbourhood.
    kept_types : dict of str to DataType
        What types kept columns get in the results; their own by default.
    explain : bool
        Whether to tell which feature each prediction hangs on, in the first neighbourhood.
    unknown : Counter
        How many values of each column were never seen in training, in all that `score` was given.
    accepted : int
        How many predictions the gate accepted, in all that `score` was given.
    endless : set of str
        The neighbourhoods in which nothing flips any row that `score` was given.

    Raises
    ------
    UnsupportedError, UnknownNameError, DomainError
        If the model cannot be perturbed so; the message says why.
    """

    model: GenerativeClassifier | Guest
    neighbourhoods: Sequence[Neighbourhood]
    keep: Sequence[str] | None = ()
    gate: Gate | None = None
    kept_types: Mapping[str, pa.DataType] = field(default_factory=dict)
    delta: float | None = None
    explain: bool = False
    unknown: Counter[str] = field(default_factory=Counter)
    accepted: int = 0
    endless: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.endless = {neighbourhood.name for neighbourhood in self.neighbourhoods}
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
        kept = names if self.keep is None else tuple(self.keep)
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

    def score(self, table: pa.Table) -> pa.Table:
        """Return the kept columns and the results of a batch, in the order of its rows."""
        scored, unknown = self.score_and_count(table)
        self.unknown.update(unknown)
        if self.gate is not None:
            self.accepted += int(np.count_nonzero(scored["accepted"].to_numpy()))
        for name in sorted(self.endless):
            if not np.isinf(scored[f"robustness_{name}"].to_numpy()).all():
                self.endless.remove(name)
        return scored

    def score_and_count(self, table: pa.Table) -> tuple[pa.Table, dict[str, int]]:
        """Return what `score` does, and the number of unknown values; changes nothing here."""
        kept = table.column_names if self.keep is None else list(self.keep)
        columns = {
            name: table[name].cast(self.kept_types.get(name, table[name].type)) for name in kept
        }
        unknown: dict[str, int]
        if not table.num_rows:
            found, unknown, rows = Quantified.empty(len(self.neighbourhoods), 0), {}, table
        else:
            rows = self._asked.adapt(table)
            found, unknown = self._asked.quantify(rows, self.neighbourhoods)
        return pa.table({**columns, **self._describe(found, rows)}), unknown

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


def _as_dictionary(positions: Indices, values: list[Any]) -> pa.DictionaryArray:
    codes = np.asarray(positions, dtype=np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(values))


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
