"""What if a value were another: the smallest changes of values that flip a prediction."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, overload

import numpy as np

from robustq.core import engine
from robustq.exceptions import InputError, PositionError, UnknownNameError
from robustq.tables import Encoding, Numeric, Rows
from robustq.tables.display import as_html, as_text

from .explanation import _plain
from .words import clean, say_number, say_value

if TYPE_CHECKING:
    from robustq.arrays import Floats, Indices
    from robustq.core.evidence import Model
    from robustq.core.neighbourhoods import Bound

__all__ = ["Counterfactual", "Counterfactuals", "Search", "choose_columns"]

MOST_PAIRS = 1 << 20  # that are tried one by one
MOST_NUMBERS = 64  # values of one column of numbers
WIDTH = 64  # sets of changes that grow, where not all can
AT_ONCE = 1 << 14
NEAR = 1e-6  # log-odds this close to zero are looked at in exact arithmetic
SHOWN = 20


class Counterfactual(NamedTuple):
    """Changes of values, and what the model says then.

    Attributes
    ----------
    changes : dict of column to value
    prediction : Any
    robustness, probability : float
        Of the new prediction.
    """

    changes: dict[Any, Any]
    prediction: Any
    robustness: float
    probability: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "changes": {name: _plain(value) for name, value in self.changes.items()},
            "prediction": _plain(self.prediction),
            "robustness": self.robustness,
            "probability": self.probability,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Counterfactuals(Sequence[Counterfactual]):
    """Changes that flip a prediction, the fewest first, of as many the most robust first.

    Attributes
    ----------
    prediction : Any
        What is flipped.
    found : tuple of Counterfactual
    exhaustive : bool
        Whether all changes of so many cells were tried; if not, `note` says what was.
    note : str
    """

    prediction: Any
    found: tuple[Counterfactual, ...]
    exhaustive: bool
    note: str = ""

    def __len__(self) -> int:
        return len(self.found)

    @overload
    def __getitem__(self, at: int) -> Counterfactual: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Counterfactual]: ...
    def __getitem__(self, at: int | slice) -> Counterfactual | Sequence[Counterfactual]:
        try:
            return self.found[at]
        except IndexError:
            msg = f"there is no change {at}: {len(self):,} were found"
            raise PositionError(msg) from None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "prediction": _plain(self.prediction),
            "counterfactuals": [one.to_dict() for one in self],
            "exhaustive": self.exhaustive,
            "note": self.note,
        }

    def smallest(self, limit: int) -> Counterfactuals:
        """Return those that do not contain a smaller one, at most so many."""
        kept: list[Counterfactual] = []
        for one in self.found:
            cells = one.changes.items()
            if len(kept) < limit and not any(other.changes.items() <= cells for other in kept):
                kept.append(one)
        return replace(self, found=tuple(kept))

    @property
    def title(self) -> str:
        """How many there are, in a sentence."""
        if not self.found:
            return f"No change that was tried flips {clean(self.prediction)}"
        count = "One change" if len(self) == 1 else f"{len(self):,} changes"
        flip = "flips" if len(self) == 1 else "flip"
        return f"{count} of values that {flip} {clean(self.prediction)}"

    def cells(self) -> dict[str, list[str]]:
        """Return the changes as columns of text."""
        shown = self.found[:SHOWN]
        return {
            "change": [
                ", ".join(f"{clean(k)} = {say_value(v)}" for k, v in one.changes.items())
                for one in shown
            ],
            "prediction": [clean(one.prediction) for one in shown],
            "probability": [say_number(one.probability) for one in shown],
            "robustness": [say_number(one.robustness) for one in shown],
        }

    @property
    def _more(self) -> str:
        more = [f"… {len(self) - SHOWN:,} more"] if len(self) > SHOWN else []
        return " ".join([*more, *([self.note] if self.note else [])])

    def __repr__(self) -> str:
        table = as_text(self.cells()) if self.found else ""
        return "\n".join(filter(None, [self.title, table, self._more]))

    def _repr_html_(self) -> str:
        return as_html(self.title, self.cells(), self._more)


def choose_columns(encoding: Encoding, change: Any = None, keep: Any = None) -> list[int]:
    """Return the positions of the columns that may change.

    Parameters
    ----------
    encoding : Encoding
    change, keep : sequence of str or int, optional
        Columns by name or position: those that may change, and those that may not.
    """
    every = list(range(len(encoding.columns)))
    free = every if change is None else _find_columns(encoding, change, "change")
    held = [] if keep is None else _find_columns(encoding, keep, "keep")
    if change is not None and (both := sorted(set(free) & set(held))):
        msg = f"{encoding.names[both[0]]!r} is in both change and keep: name it once"
        raise InputError(msg)
    return [column for column in every if column in free and column not in held]


def _find_columns(encoding: Encoding, given: Any, option: str) -> list[int]:
    if isinstance(given, str) or not isinstance(given, (Sequence, np.ndarray, set, frozenset)):
        msg = f"{option} must be a list of columns, got {given!r}"
        raise InputError(msg)
    names = encoding.names
    found = []
    for column in given:
        if isinstance(column, str) and column in names:
            found.append(names.index(column))
        elif _is_position(column) and 0 <= int(column) < len(names):
            found.append(int(column))
        else:
            known = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
            msg = f"{option} names {column!r}, which is no column of the model: it has {known}"
            raise UnknownNameError(msg)
    return found


def _is_position(column: object) -> TypeGuard[Integral]:
    return isinstance(column, Integral) and not isinstance(column, bool)


class Options(NamedTuple):
    """Single changes: of each, which feature gets which code, and which number."""

    feature: Indices
    code: Indices
    number: Floats

    @classmethod
    def of(
        cls, model: Model, encoding: Encoding, row: Rows, columns: Sequence[int]
    ) -> tuple[Options, bool]:
        """Return all changes of one cell, and whether numbers were left out."""
        told: list[tuple[int, int, float]] = []
        short = False
        for feature in columns:
            own = int(row.codes[0, feature])
            if feature in encoding.numeric:
                numbers, cut = _list_numbers(model, feature)
                short |= cut
                now = row.numbers[0, encoding.numeric.index(feature)]
                told += [(feature, 0, x) for x in numbers.tolist() if x != now]
            else:
                codes = range(encoding.sizes[feature])
                told += [(feature, code, np.nan) for code in codes if code != own]
        table = np.array(told, dtype=np.float64).reshape(-1, 3)
        return cls(table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2]), short


def _list_numbers(model: Model, feature: int) -> tuple[Floats, bool]:
    """Return numbers that a model tells apart: its thresholds, and one beyond; some if many."""
    tell = getattr(model, "thresholds", None)
    known = np.unique(tell(feature)) if tell is not None else np.zeros(0)
    if not len(known):
        return known, False
    step = (known[-1] - known[0]) / len(known) or 1.0
    known = np.append(known, known[-1] + step)
    if len(known) <= MOST_NUMBERS:
        return known, False
    return known[np.linspace(0, len(known) - 1, MOST_NUMBERS).round().astype(np.int64)], True


class _Level(NamedTuple):
    """Sets of changes of one size that flip, (sets, size), and what becomes of the row."""

    sets: Indices
    prediction: Indices
    robustness: Floats
    probability: Floats

    def best(self, count: int | None) -> _Level:
        """Return the most robust ones."""
        order = np.argsort(-self.robustness, kind="stable")[:count]
        return _Level._make(column[order] for column in self)

    def join(self, other: _Level) -> _Level:
        """Return both."""
        return _Level._make(np.concatenate(pair) for pair in zip(self, other, strict=True))


@dataclass(frozen=True, eq=False)
class Search:
    """Looks for changes of one row.

    Attributes
    ----------
    model : Model
    encoding : Encoding
    classes : ndarray
    row : Rows
        One.
    bound : Bound
        What robustness is measured by.
    columns : sequence of int
        Which may change.
    """

    model: Model
    encoding: Encoding
    classes: np.ndarray[Any, Any]
    row: Rows
    bound: Bound
    columns: Sequence[int]

    @cached_property
    def prediction(self) -> int:
        """What is to be flipped."""
        return int(engine.predict(self.model, self.row)[0])

    @cached_property
    def _options(self) -> tuple[Options, bool]:
        return Options.of(self.model, self.encoding, self.row, self.columns)

    def find(self, max_changes: int, limit: int | None) -> Counterfactuals:
        """Return what flips the prediction, the fewest changes first, then the most robust."""
        options, short = self._options
        notes = [f"Of numbers {MOST_NUMBERS} values were tried."] if short else []
        found: list[Counterfactual] = []
        waiting = np.zeros((1, 0), dtype=np.int64)
        for size in range(1, max_changes + 1):
            left = None if limit is None else limit - len(found)
            if left == 0 or not len(options.feature):
                break
            sets, whole = self._grow(waiting, size)
            if not whole:
                notes.append(f"Changes of {size} cells were searched for, not all tried.")
            level, waiting = self._try(sets, left)
            found += [self._describe(level, i) for i in range(len(level.sets))]
        prediction = self.classes[self.prediction]
        return Counterfactuals(prediction, tuple(found), not notes, " ".join(notes))

    # Sets of changes

    def _grow(self, waiting: Indices, size: int) -> tuple[Iterator[Indices], bool]:
        """Return sets of so many changes in blocks, and whether these are all."""
        count = len(self._options[0].feature)
        if size == 1:
            return iter([np.arange(count)[:, None]]), True
        if size == 2 and count * (count - 1) // 2 <= MOST_PAIRS:
            return self._pair(), True
        # Nearest to flipping first.
        return iter([self._extend(waiting[:WIDTH])]), False

    def _pair(self) -> Iterator[Indices]:
        feature = self._options[0].feature
        count = len(feature)
        rows = max(1, AT_ONCE // max(count, 1))
        for start in range(0, count, rows):
            first = np.arange(start, min(start + rows, count))
            pairs = np.stack(np.meshgrid(first, np.arange(count), indexing="ij"), axis=-1)
            pairs = pairs.reshape(-1, 2)
            # Options stand in the order of their features.
            yield pairs[feature[pairs[:, 0]] < feature[pairs[:, 1]]]

    def _extend(self, sets: Indices) -> Indices:
        feature = self._options[0].feature
        every = np.arange(len(feature))
        grown = [np.zeros((0, sets.shape[1] + 1), dtype=np.int64)]
        for own in sets:
            more = every[~np.isin(feature, feature[own])]
            grown.append(np.column_stack([np.tile(own, (len(more), 1)), more]))
        return np.unique(np.sort(np.concatenate(grown), axis=1), axis=0)

    # What becomes of them

    def _apply(self, sets: Indices) -> Rows:
        options, numeric = self._options[0], list(self.encoding.numeric)
        codes = np.repeat(self.row.codes, len(sets), axis=0)
        numbers = np.repeat(self.row.numbers, len(sets), axis=0)
        every = np.arange(len(sets))
        for column in sets.T:
            codes[every, options.feature[column]] = options.code[column]
            for slot, feature in enumerate(numeric):
                here = options.feature[column] == feature
                numbers[here, slot] = options.number[column[here]]
        return Rows(codes, numbers)

    def _try(self, blocks: Iterator[Indices], limit: int | None) -> tuple[_Level, Indices]:
        """Return the best that flip, and those nearest to it that do not."""
        best: _Level | None = None
        near: list[tuple[Floats, Indices]] = []
        for sets in itertools.chain.from_iterable(map(_split, blocks)):
            rows = self._apply(sets)
            odds = self._log_odds(rows)
            close = np.flatnonzero(~(odds > NEAR))
            found = engine.quantify(self.model, rows[close], [self.bound])
            flips = found.prediction != self.prediction
            level = _Level(
                *(sets[close[flips]], found.prediction[flips]),
                *(found.robustness[0, flips], found.probability[flips]),
            )
            best = (level if best is None else best.join(level)).best(limit)
            rest = np.setdiff1d(np.arange(len(sets)), close[flips])
            order = rest[np.argsort(odds[rest], kind="stable")[:WIDTH]]
            near.append((odds[order], sets[order]))
        assert best is not None  # noqa: S101 (there is at least one block)
        odds, sets = (np.concatenate(column) for column in zip(*near, strict=True))
        return best, sets[np.argsort(odds, kind="stable")]

    def _log_odds(self, rows: Rows) -> Floats:
        """Return by how much the prediction is ahead of all other classes."""
        joint = self.model.log_joint(rows)
        others = np.delete(joint, self.prediction, axis=1)
        with np.errstate(invalid="ignore"):
            return joint[:, self.prediction] - others.max(axis=1, initial=-np.inf)

    def _describe(self, level: _Level, at: int) -> Counterfactual:
        options, changes = self._options[0], {}
        for option in level.sets[at].tolist():
            feature = int(options.feature[option])
            column = self.encoding.columns[feature]
            name = column.name if self.encoding.named else feature
            if isinstance(column, Numeric):
                changes[name] = float(options.number[option])
            else:
                value = column.decode(options.code[option : option + 1].astype(np.int32))[0]
                changes[name] = value.item() if isinstance(value, np.generic) else value
        return Counterfactual(
            *(changes, self.classes[level.prediction[at]]),
            *(float(level.robustness[at]), float(level.probability[at])),
        )


def _split(sets: Indices) -> list[Indices]:
    return [sets[start : start + AT_ONCE] for start in range(0, max(len(sets), 1), AT_ONCE)]
