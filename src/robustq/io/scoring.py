"""Scoring: for every row a prediction, how far it is from flipping, and to what."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from robustq.exceptions import InputError, UnknownValueWarning
from robustq.core.quantified import Quantified

from .columns import adapt_table, require_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robustq.arrays import Floats, Indices
    from robustq.families.base import GenerativeClassifier
    from robustq.perturbations import Perturbation

    from .sources import Source

__all__ = ["Gate", "Scorer", "unify_types"]


@dataclass(frozen=True)
class Gate:
    """Which predictions are accepted: those whose robustness is large enough.

    Attributes
    ----------
    ball : str
    least : float
    strict : bool
        Whether it must be above `least`; or at least so much.
    """

    ball: str
    least: float
    strict: bool = False

    def accepts(self, robustness: Floats) -> np.ndarray[Any, Any]:
        """Tell which predictions are accepted."""
        return robustness > self.least if self.strict else robustness >= self.least


@dataclass(eq=False)
class Scorer:
    """Turns batches of rows into batches of results.

    Attributes
    ----------
    model : GenerativeClassifier
    balls : sequence of Perturbation
    keep : sequence of str, or None
        The columns of the rows that go into the results; None keeps all.
    gate : Gate, optional
        Its ball must be among `balls`.
    kept_types : dict of str to DataType
        What types kept columns get in the results; their own by default.
    unknown : Counter
        How many values of each column were never seen in training.
    """

    model: GenerativeClassifier
    balls: Sequence[Perturbation]
    keep: Sequence[str] | None = ()
    gate: Gate | None = None
    kept_types: dict[str, pa.DataType] = field(default_factory=dict)
    unknown: Counter[str] = field(default_factory=Counter)

    def choose(self, names: tuple[str, ...], where: str) -> list[str]:
        """Return the columns to read, of those that a file has.

        Raises
        ------
        InputError
            If one that is needed is not there, or kept ones would hide results.
        """
        encoding = self.model.encoding_
        kept = names if self.keep is None else tuple(self.keep)
        needed = encoding.names if encoding.named else names
        require_columns(needed, names, where, "which the model needs")
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
        for ball in self.balls:
            names += [f"robustness_{ball.name}", f"tipping_class_{ball.name}"]
        return [*names, *(["accepted"] if self.gate else [])]

    def score(self, table: pa.Table) -> pa.Table:
        """Return the kept columns and the results of a batch, in the order of its rows."""
        kept = table.column_names if self.keep is None else list(self.keep)
        columns = {
            name: table[name].cast(self.kept_types.get(name, table[name].type)) for name in kept
        }
        if not table.num_rows:
            found = Quantified.empty(len(self.balls), 0)
        else:
            found = self._quantify(table)
        return pa.table({**columns, **self._describe(found)})

    def _quantify(self, table: pa.Table) -> Quantified:
        encoding = self.model.encoding_
        strict = self.model.handle_unknown == "error"
        wanted = table.select(list(encoding.names)) if encoding.named else table
        table = adapt_table(wanted, encoding, strict=strict)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UnknownValueWarning)
            found = self.model.quantify(table, self.balls)
        for warning in caught:
            if isinstance(warning.message, UnknownValueWarning):
                self.unknown.update(warning.message.counts)
        return found

    def _describe(self, found: Quantified) -> dict[str, Any]:
        columns: dict[str, Any] = {
            "prediction": self._labels(found.prediction),
            "probability": found.probability,
            "runner_up": self._labels(found.runner_up),
        }
        for index, ball in enumerate(self.balls):
            columns[f"robustness_{ball.name}"] = found.robustness[index]
            columns[f"tipping_class_{ball.name}"] = self._labels(found.tipping[index])
            if self.gate is not None and self.gate.ball == ball.name:
                columns["accepted"] = self.gate.accepts(found.robustness[index])
        # It comes last, whichever ball it is about.
        if self.gate is not None:
            columns["accepted"] = columns.pop("accepted")
        return columns

    def _labels(self, positions: Indices) -> pa.DictionaryArray:
        classes = pa.array(self.model.classes_.tolist())
        codes = np.asarray(positions, dtype=np.int32)
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), classes)


def unify_types(sources: Sequence[Source], names: Sequence[str]) -> dict[str, pa.DataType]:
    """Return types for columns that all files can give: text, where they differ in kind.

    Parameters
    ----------
    sources : sequence of Source
    names : sequence of str
    """
    found = [source.types(names) for source in sources]
    return {name: _unify([types[i] for types in found], name) for i, name in enumerate(names)}


def _unify(types: list[pa.DataType], name: str) -> pa.DataType:
    different = {kind for kind in types if not pa.types.is_null(kind)}
    if len(different) <= 1:
        return next(iter(different), pa.null())
    if all(pa.types.is_signed_integer(kind) for kind in different):
        return pa.int64()
    if any(pa.types.is_nested(kind) or pa.types.is_binary(kind) for kind in different):
        shown = " and ".join(sorted(map(str, different)))
        msg = f"column {name!r} is {shown} in different files: it cannot be kept"
        raise InputError(msg)
    # Text keeps everything as it is written: 007 is not 7, nor is 2^60 + 1 a float.
    return pa.string()
