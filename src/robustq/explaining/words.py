"""Local mass functions in the words of the user's table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from robustq.core.evidence import BRANCH, NONE, TREE, About
from robustq.tables import Binned, Encoding
from robustq.tables.display import shorten, show_value
from robustq.texts import make_visible

if TYPE_CHECKING:
    import numpy as np

    from robustq.core.evidence import Condition, Locals
    from robustq.core.witness import Move

__all__ = ["Told", "Words", "clean", "say_number", "say_share", "say_shares", "say_value"]

MOST_VALUES = 4  # that are named one by one
MOST_GIVEN = 3  # conditions that are named
WHOLE = 1e15  # below it, floats have digits for all whole numbers
LONGEST = 40  # letters of a name or value


def clean(value: object) -> str:
    """Return a name or value as one short line that has no power over a terminal."""
    return shorten(make_visible(str(value), lines=False), LONGEST)


def say_number(number: float) -> str:
    """Return a number with four digits."""
    return f"{number:.4g}"


def say_value(value: object) -> str:
    """Return a value of the table, short; a whole number has all of its digits."""
    if isinstance(value, float) and value.is_integer() and abs(value) < WHOLE:
        return f"{value:.0f}"
    return clean(f"{value:.6g}" if isinstance(value, float) else show_value(value))


def say_share(p: float, digits: int = 0) -> str:
    """Return a probability in percent."""
    return f"{100 * p:.{digits}f} %"


def say_shares(before: float, after: float) -> str:
    """Return two probabilities in percent, with as many digits as tell them apart."""
    for digits in (0, 1, 2, 3):
        told = say_share(before, digits), say_share(after, digits)
        if told[0] != told[1]:
            break
    else:
        told = f"{100 * before:.8g} %", f"{100 * after:.8g} %"
    return f"{told[0]} → {told[1]}"


class Told(NamedTuple):
    """A local mass function in words.

    Attributes
    ----------
    about : About
    outcomes : tuple of str
    given : str
        Empty where it is given nothing.
    """

    about: About
    outcomes: tuple[str, ...]
    given: str


@dataclass(frozen=True)
class Words:
    """What the columns, values and classes of a model are called.

    Attributes
    ----------
    encoding : Encoding
    classes : ndarray
    target : str
        What the class is called.
    """

    encoding: Encoding
    classes: np.ndarray[Any, Any]
    target: str = "class"

    def name(self, feature: int) -> str:
        """Return what a column is called."""
        name = self.encoding.columns[feature].name
        return clean(name) if self.encoding.named else f"column {name}"

    def say(self, feature: int, condition: Condition) -> str:
        """Return which values a column has.

        Parameters
        ----------
        feature : int
        condition : tuple of codes, or of two numbers
        """
        name, column = self.name(feature), self.encoding.columns[feature]
        if feature in self.encoding.numeric:
            return _say_range(name, float(condition[0]), float(condition[1]))
        codes = [int(code) for code in condition]
        if isinstance(column, Binned):
            edges = (-math.inf, *column.edges, math.inf)
            if codes and codes == list(range(codes[0], codes[-1] + 1)):
                return _say_range(name, edges[codes[0]], edges[codes[-1] + 1])
        values = [clean(column.categories[code]) for code in codes]  # type: ignore[union-attr]
        if len(values) <= 1:
            return f"{name} = {values[0]}" if values else f"no {name}"
        if len(values) <= MOST_VALUES:
            return f"{name} = {', '.join(values[:-1])} or {values[-1]}"
        return f"{name} = {', '.join(values[: MOST_VALUES - 1])} or {len(values) - 3} others"

    def outcome(self, about: About, position: int) -> str:
        """Return in words an outcome of a local mass function."""
        if about.variable == BRANCH:
            return f"branch {position + 1}"
        if about.variable == TREE and about.outcomes is None:
            return f"tree {position + 1}"
        told = (position,) if about.outcomes is None else about.outcomes[position]
        if about.variable == TREE:
            led = f"network of {self.name(int(told[0]))}" if told else ""
            return led or f"network {position + 1}"
        if about.variable == NONE:
            return f"{clean(self.target)} = {clean(self.classes[int(told[0])])}"
        return self.say(about.variable, told)

    def given(self, about: About) -> str:
        """Return in words what a local mass function is given."""
        told = []
        if about.label != NONE:
            told.append(f"among {clean(self.classes[about.label])}")
        conditions = [self.say(*one) for one in about.given[:MOST_GIVEN]]
        more = len(about.given) - len(conditions)
        conditions += [f"{more} more"] if more else []
        if conditions:
            told.append(f"where {' and '.join(conditions)}")
        if about.tree != NONE:
            told.append(f"in tree {about.tree + 1}")
        if about.node != NONE:
            told.append(f"in node {about.node}")
        return " ".join(told)

    def tell(self, locals_: Locals, move: Move) -> Told:
        """Return in words what a local mass function is about."""
        about = self._find_about(locals_, move)
        outcomes = tuple(self.outcome(about, i) for i in range(len(move.before)))
        return Told(about, outcomes, self.given(about))

    def _find_about(self, locals_: Locals, move: Move) -> About:
        """Return what a local mass function is about, as far as the model tells."""
        tell = getattr(locals_, "about", None)
        if tell is not None:
            found: About = tell(move.local)
            return found
        outcomes = len(move.before)
        if move.feature != NONE and self.encoding.sizes[move.feature] == outcomes:
            return About(move.feature)
        return About(NONE if outcomes == len(self.classes) else TREE)


def _say_range(name: str, low: float, high: float) -> str:
    if math.isinf(low) and math.isinf(high):
        return f"{name} is there"
    if math.isinf(low):
        return f"{name} ≤ {say_number(high)}"
    if math.isinf(high):
        return f"{name} > {say_number(low)}"
    return f"{say_number(low)} < {name} ≤ {say_number(high)}"
