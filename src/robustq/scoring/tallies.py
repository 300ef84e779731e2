"""What is counted while rows are scored: added up over batches, partitions and machines."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from robustq.exceptions import UnknownValueWarning, warn_caller
from robustq.families.remarks import describe_unknown
from robustq.texts import make_visible, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Tally"]


@dataclass
class Tally:
    """What was found in some rows.

    Attributes
    ----------
    rows : int
    unknown : Counter
        How many values of each column were never seen in training.
    accepted : int
        How many predictions the gate accepted.
    others : int
        In how many rows a classifier of somebody else predicts another class than the most
        probable one.
    flipped : set of str
        The neighbourhoods in which something flips some row.
    """

    rows: int = 0
    unknown: Counter[str] = field(default_factory=Counter)
    accepted: int = 0
    others: int = 0
    flipped: set[str] = field(default_factory=set)

    def add(self, more: Tally) -> None:
        """Count what was found in other rows too."""
        self.rows += more.rows
        self.unknown.update(more.unknown)
        self.accepted += more.accepted
        self.others += more.others
        self.flipped |= more.flipped

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**vars(self), "unknown": dict(self.unknown), "flipped": sorted(self.flipped)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the tally that `to_dict` described."""
        made = cls(**data)
        made.unknown, made.flipped = Counter(data["unknown"]), set(data["flipped"])
        return made

    def describe_unknown(self) -> str:
        """Return in words how many values were never seen; nothing if there are none.

        In the order of names: that of partitions is nobody's.
        """
        return describe_unknown(dict(sorted(self.unknown.items()))) if self.unknown else ""

    def warn(self) -> None:
        """Warn of values that were never seen, if there are any."""
        if self.unknown:
            msg = shorten(make_visible(self.describe_unknown()))
            warn_caller(UnknownValueWarning(msg, dict(sorted(self.unknown.items()))))
