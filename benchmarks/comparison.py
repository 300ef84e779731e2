"""Telling change from noise: figures beside those of another day."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .figures import Figure

__all__ = ["Comparison", "is_worse", "tolerance"]

# Where code and data come to lie in memory differs from process to process, which rounds within
# one process do not show: no spread counts as less than this share of the figure.
LEAST_SPREAD = 0.05


class Comparison:
    """Old figures, to be asked about new ones.

    Parameters
    ----------
    old : list of Figure
    """

    def __init__(self, old: list[Figure]) -> None:
        self._old = {figure.key: figure for figure in old if figure.value is not None}

    def find(self, new: Figure) -> Figure | None:
        """Return the old figure of the same thing."""
        return self._old.get(new.key)

    def judge(self, new: Figure) -> str:
        """Return "SLOWER", "faster", "same", "new" or "GONE"."""
        old = self.find(new)
        if old is None:
            return "new"
        if new.value is None:
            return "GONE"
        if is_worse(old, new):
            return "SLOWER"
        return "faster" if is_worse(new, old) else "same"

    def __len__(self) -> int:
        return len(self._old)


def is_worse(old: Figure, new: Figure) -> bool:
    """Tell whether a figure is higher than another by more than both spreads together."""
    assert old.value is not None  # noqa: S101
    assert new.value is not None  # noqa: S101
    return new.value - old.value > tolerance(old) + tolerance(new)


def tolerance(figure: Figure) -> float:
    """Return how far a figure may be off."""
    return max(figure.spread or 0.0, LEAST_SPREAD * (figure.value or 0.0))
