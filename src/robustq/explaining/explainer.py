"""What explanations are made of, for many rows at once."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from robustq.core import engine
from robustq.core.coupled import Coupled
from robustq.core.neighbourhoods import Perturbed
from robustq.core.quantified import Quantified
from robustq.core.witness import Move, find_moves
from robustq.exceptions import UnsupportedError
from robustq.tables import MISSING, Rows
from robustq.tables.columns import is_missing

from .explanation import Explanation, Feature, Without
from .summary import Summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robustq.arrays import Bools, Floats, Indices
    from robustq.core.evidence import Model
    from robustq.core.neighbourhoods import Bound, Neighbourhood
    from robustq.tables import Encoding, Table

    from .words import Told, Words

__all__ = ["Findings", "find_hanging", "forget"]

MOVED_AT_ONCE = 256  # rows whose witnesses are found together
WHOLE = "local models are not perturbed each on its own here: no model of the same kind is nearest"


@dataclass(eq=False)
class Findings:
    """What was found for rows, (rows,) or (features, rows), with positions for classes.

    Attributes
    ----------
    model : Model
    words : Words
    table : Table
        As it was given, for the values.
    rows : Rows
    neighbourhood : Neighbourhood
    base : Quantified
    support, alone : ndarray of shape (features, rows)
    without, without_prediction : ndarray of shape (features, rows)
        Robustness and prediction with a cell missing.
    possible : ndarray of bool, of shape (features, rows)
        Where the model can do without the cell.
    records : ndarray of shape (rows,)
        How many training records flip predictions, where the model can tell.
    brief : bool
        Whether only a summary is asked for: then nobody finds `without` and `records`.
    """

    model: Model
    words: Words
    table: Table
    rows: Rows
    neighbourhood: Neighbourhood
    base: Quantified
    support: Floats
    alone: Floats
    without: Floats
    without_prediction: Indices
    possible: Bools
    records: Floats
    brief: bool = False
    _moves: dict[int, tuple[list[list[Move]], str]] = field(default_factory=dict)
    _told: dict[int, Told] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def empty(
        cls,
        model: Model,
        words: Words,
        table: Table,
        neighbourhood: Neighbourhood,
        *,
        brief: bool = False,
    ) -> Findings:
        """Return room for the rows of a table."""
        rows, shape = table.rows, (table.width, table.rows)
        return cls(
            model=model,
            words=words,
            table=table,
            rows=Rows.empty(rows, table.width, len(words.encoding.numeric)),
            neighbourhood=neighbourhood,
            base=Quantified.empty(1, rows),
            support=np.empty(shape),
            alone=np.empty(shape),
            without=np.empty(shape),
            without_prediction=np.empty(shape, dtype=np.int64),
            possible=np.ones(shape, dtype=bool),
            records=np.empty(rows),
            brief=brief,
        )

    @cached_property
    def bound(self) -> Bound:
        """What the neighbourhood means for the model."""
        return self.neighbourhood.bind(self.model, self.words.encoding.names)

    @cached_property
    def coupled(self) -> Coupled | None:
        """What counts training records, where the model has any that it can count."""
        try:
            return Coupled.of(self.model)
        except UnsupportedError:
            return None

    @property
    def prediction(self) -> Indices:
        """The predicted classes."""
        return self.base.prediction

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What the features are called."""
        return self.words.encoding.names

    @property
    def name(self) -> str:
        """What the neighbourhood is called."""
        return self.neighbourhood.name

    @property
    def target(self) -> str:
        """What the class is called."""
        return self.words.target

    def part_of(self, move: Move) -> str:
        """Return the name of the part that a local mass function belongs to."""
        return self.model.locals.parts[move.part]

    def fill(self, block: slice, rows: Rows) -> None:
        """Find what there is to find about a block of rows."""
        self.rows.fill(block, rows)
        base = engine.quantify(self.model, rows, [self.bound])
        self.base.put(block, base)
        self.alone[:, block] = find_alone(self.model, rows, self.neighbourhood)
        numeric = self.words.encoding.numeric
        self.support[:, block] = find_support(self.model, rows, base, numeric)
        for feature in range(self.rows.codes.shape[1]):
            lost = forget(rows, feature, numeric)
            bounds = [] if self.brief and _are_taken(self.model, lost) else [self.bound]
            found, possible = quantify_possible(self.model, lost, bounds)
            self.without[feature, block] = found.robustness[0] if bounds else np.nan
            self.without_prediction[feature, block] = found.prediction
            self.possible[feature, block] = possible
        if not self.brief and self.coupled is not None:
            self.records[block] = engine.quantify(self.model, rows, [self.coupled]).robustness[0]

    @cached_property
    def hangs_on(self) -> Indices:
        """For each row the position of the feature it hangs on, −1 if there is none."""
        return find_weakest(self.alone, self.support)

    # One row

    def explain(self, row: int) -> Explanation:
        """Return the explanation of a row."""
        base, classes = self.base, self.words.classes
        tipping = int(base.tipping[0, row])
        return Explanation(
            prediction=classes[base.prediction[row]],
            probability=float(base.probability[row]),
            tipping_class=None if tipping < 0 else classes[tipping],
            robustness=float(base.robustness[0, row]),
            perturbation=self.name,
            features=tuple(self._explain(row, i) for i in range(len(self.names))),
            _findings=self,
            _row=row,
        )

    def list_outcomes(self, row: int) -> tuple[()]:  # noqa: ARG002
        """Return nothing: more is known than a posterior."""
        return ()

    def summarise(self, rows: Indices) -> Summary:
        """Return which features predictions hang on, over some rows."""
        return Summary.of(self, rows)

    def count_records(self, row: int) -> float | None:
        """Return how many training records flip a prediction; None where nobody knows."""
        if self.coupled is None:
            return None
        best = int(self.base.prediction[row])
        return self.coupled.count_whole(self.rows.codes[row], best, float(self.records[row]))

    def _explain(self, row: int, feature: int) -> Feature:
        without = None
        if self.possible[feature, row]:
            label = self.words.classes[self.without_prediction[feature, row]]
            without = Without(label, float(self.without[feature, row]))
        alone = float(self.alone[feature, row])
        return Feature(
            name=self.names[feature],
            value=self.value(row, feature),
            support=float(self.support[feature, row]),
            alone=None if math.isnan(alone) else alone,
            without=without,
        )

    def value(self, row: int, feature: int) -> Any:
        """Return a value as it stands in the table; None where it is missing."""
        value = self._columns[feature][row]
        value = value.as_py() if isinstance(value, pa.Scalar) else value
        value = value.item() if isinstance(value, np.generic) else value
        return None if is_missing(value) else value

    @cached_property
    def _columns(self) -> list[Any]:
        return [self.table.column(feature) for feature in range(self.table.width)]

    def tell(self, move: Move) -> Told:
        """Return in words what a local mass function is about."""
        if move.local not in self._told:
            self._told[move.local] = self.words.tell(self.model.locals, move)
        return self._told[move.local]

    def moves(self, row: int) -> tuple[list[Move], str]:
        """Return what a witness changes, and why nothing if there is none."""
        first = row - row % MOVED_AT_ONCE
        with self._lock:
            if first not in self._moves:
                self._moves[first] = self._find_moves(slice(first, first + MOVED_AT_ONCE))
        found, note = self._moves[first]
        return found[row - first], note

    def _find_moves(self, block: slice) -> tuple[list[list[Move]], str]:
        tipping = self.base.tipping[0, block]
        found: list[list[Move]] = [[] for _ in tipping]
        if not isinstance(self.bound, Perturbed):
            return found, WHOLE
        some = np.flatnonzero((tipping >= 0) & np.isfinite(self.base.robustness[0, block]))
        at = some + block.start
        pair = self.base.prediction[at], tipping[some]
        try:
            moves = find_moves(
                self.model, self.rows[at], self.bound, *pair, self.base.robustness[0, at]
            )
        except UnsupportedError as error:
            return found, str(error)
        for row, own in zip(some.tolist(), moves, strict=True):
            found[row] = own
        return found, ""


def find_alone(model: Model, rows: Rows, neighbourhood: Neighbourhood) -> Floats:
    """Return at which size each feature's local models flip predictions, (features, rows).

    NaN where a structure gives no exact answer.
    """
    features = range(rows.codes.shape[1])
    own = [Perturbed(neighbourhood.ball, (), (i,), neighbourhood.sizes) for i in features]
    found, possible = quantify_possible(model, rows, own)
    return np.where(possible, found.robustness, np.nan)


def find_support(model: Model, rows: Rows, base: Quantified, numeric: tuple[int, ...]) -> Floats:
    """Return how each cell changes the log-odds against the tipping class, (features, rows).

    Where nothing tips, the runner-up takes its place.
    """
    rival = np.where(base.tipping[0] < 0, base.runner_up, base.tipping[0])
    odds = _log_odds(model.log_joint(rows), base.prediction, rival)
    found = np.empty((rows.codes.shape[1], len(rows)))
    for feature in range(len(found)):
        joint = model.log_joint(forget(rows, feature, numeric))
        with np.errstate(invalid="ignore"):
            gain = odds - _log_odds(joint, base.prediction, rival)
        # Odds that are infinite with and without a cell owe it nothing.
        found[feature] = np.where(np.isnan(gain), 0.0, gain)
    return found


def find_hanging(
    model: Model, rows: Rows, neighbourhood: Neighbourhood, encoding: Encoding
) -> Indices:
    """Return for each row the position of the feature it hangs on, −1 if there is none."""
    base = engine.quantify(model, rows, [neighbourhood.bind(model, encoding.names)])
    alone = find_alone(model, rows, neighbourhood)
    return find_weakest(alone, find_support(model, rows, base, encoding.numeric))


def find_weakest(alone: Floats, support: Floats) -> Indices:
    """Return where `alone` is smallest, of several the feature with the most support; −1 if none.

    Parameters
    ----------
    alone, support : ndarray of shape (features, rows)
    """
    alone = np.where(np.isnan(alone), np.inf, alone)
    least = alone.min(axis=0, initial=np.inf)
    if not len(alone):
        return np.full(len(least), -1)
    first = np.where(alone == least, np.abs(support), -1.0).argmax(axis=0)
    return np.where(np.isinf(least), -1, first)


def forget(rows: Rows, feature: int, numeric: tuple[int, ...]) -> Rows:
    """Return rows with the cells of one feature missing."""
    codes, numbers = rows.codes.copy(), rows.numbers
    codes[:, feature] = MISSING
    if feature in numeric:
        numbers = numbers.copy()
        numbers[:, numeric.index(feature)] = np.nan
    return Rows(codes, numbers)


def quantify_possible(
    model: Model, rows: Rows, bounds: Sequence[Bound]
) -> tuple[Quantified, Bools]:
    """Return what can be quantified, and for which rows that is possible."""
    possible = np.ones(len(rows), dtype=bool)
    try:
        return engine.quantify(model, rows, bounds), possible
    except UnsupportedError:
        if len(rows) <= 1 or _are_refused(model, rows, bounds):
            return _nothing(len(bounds), len(rows)), ~possible
    found = _nothing(len(bounds), len(rows))
    for part in _part(rows):
        own, possible[part] = quantify_possible(model, rows[part], bounds)
        found.put(part, own)
    return found, possible


def _are_taken(model: Model, rows: Rows) -> bool:
    """Tell whether rows that lack the same cells are sure to be quantified."""
    reading = model.read(rows[:1])
    return reading.check is None and bool(reading.shapes)


def _are_refused(model: Model, rows: Rows, bounds: Sequence[Bound]) -> bool:
    """Tell whether rows that lack the same cells are refused for that."""
    gaps = rows.codes < 0
    check = model.read(rows[:1]).check if np.all(gaps == gaps[0]) else None
    try:
        for bound in bounds:
            if check is not None and isinstance(bound, Perturbed):
                check(bound)
    except UnsupportedError:
        return True
    return False


def _part(rows: Rows) -> list[Indices]:
    """Return rows apart that lack different cells, or else two halves."""
    _, which = np.unique(rows.codes < 0, axis=0, return_inverse=True)
    which = which.reshape(-1)
    if which.max() == 0:
        return np.array_split(np.arange(len(rows)), 2)
    return [np.flatnonzero(which == pattern) for pattern in range(which.max() + 1)]


def _nothing(balls: int, rows: int) -> Quantified:
    none = np.zeros(rows, dtype=np.int64)
    return Quantified(
        *(none, none, np.zeros(rows)),
        *(np.full((balls, rows), np.inf), np.full((balls, rows), -1, dtype=np.int64)),
    )


def _log_odds(joint: Floats, ahead: Indices, behind: Indices) -> Floats:
    every = np.arange(len(joint))
    with np.errstate(invalid="ignore"):
        odds = joint[every, ahead] - joint[every, behind]
    # Without a rival, and where neither class is possible, nothing speaks for either.
    return np.where(np.isnan(odds) | (behind < 0), 0.0, odds)
