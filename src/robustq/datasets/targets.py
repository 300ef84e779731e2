"""How the class of a row is read off its cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["AnyPositive", "AtLeast", "Column", "Target"]


class Target(Protocol):
    """What gives each row its label, as text."""

    def read(self, row: Mapping[str, str]) -> str:
        """Return the label of a row."""


@dataclass(frozen=True)
class Column:
    """The label is what stands in a column."""

    name: str

    def read(self, row: Mapping[str, str]) -> str:
        """Return the label of a row."""
        # UCI's adult.test ends its labels with a full stop.
        return row[self.name].rstrip(".")


@dataclass(frozen=True)
class AtLeast:
    """One label if a column is at least so much, another if not."""

    name: str
    least: int
    yes: str
    no: str

    def read(self, row: Mapping[str, str]) -> str:
        """Return the label of a row."""
        return self.yes if int(row[self.name]) >= self.least else self.no


@dataclass(frozen=True)
class AnyPositive:
    """One label if any of some columns is above zero, another if none is."""

    names: tuple[str, ...]
    yes: str
    no: str

    def read(self, row: Mapping[str, str]) -> str:
        """Return the label of a row."""
        return self.yes if any(int(row[name]) > 0 for name in self.names) else self.no
