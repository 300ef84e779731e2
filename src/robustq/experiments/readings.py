"""What to take the paper's words for, where they leave a choice: named readings of it."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from robustq.exceptions import UnknownNameError
from robustq.learning.smoothing import SMOOTHING_GRID

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["READINGS", "Reading", "describe_choices", "find_reading"]


@dataclass(frozen=True)
class Reading:
    """The choices that decide which of the paper's findings are seen again.

    Attributes
    ----------
    name : str
    meaning : str
        Why one would read it so.
    nbc_smoothing : "cv", float or tuple of float
        Of naive Bayes; several are chosen from by cross-validation.
    leaf_smoothing : float
        Of the leaves of forests; 0 is maximum likelihood.
    own_splits : bool
        Whether a data set that UCI has split is tested on UCI's own test rows.
    """

    name: str
    meaning: str
    nbc_smoothing: Literal["cv"] | float | tuple[float, ...]
    leaf_smoothing: float
    own_splits: bool

    def place(self, folder: Path) -> Path:
        """Return where the results of this reading stand: the paper's in the folder itself."""
        return folder if self is PAPER else folder / self.name


PAPER = Reading(
    "paper",
    "The paper’s words: predefined splits are kept, leaves are learned by maximum likelihood. It "
    "does not say what smoothing is chosen from: here from robustq’s own grid.",
    nbc_smoothing="cv",
    leaf_smoothing=0.0,
    own_splits=True,
)
NEAREST = Reading(
    "nearest",
    "Found by trying which choices come nearest to the paper’s results, so agreement with it "
    "proves less: SPECT’s two files are pooled and split at random (the paper’s table has another "
    "number of rows for it), smoothing stays small, and leaves have the little smoothing that the "
    "original forests have by default.",
    nbc_smoothing=tuple(float(f"1e{power}") for power in range(-10, 1)),
    leaf_smoothing=1e-6,
    own_splits=False,
)
READINGS: dict[str, Reading] = {reading.name: reading for reading in (PAPER, NEAREST)}


def find_reading(name: str) -> Reading:
    """Return the reading of a name.

    Raises
    ------
    UnknownNameError
    """
    if isinstance(name, str) and name in READINGS:
        return READINGS[name]
    near = difflib.get_close_matches(str(name), READINGS, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    msg = f"unknown reading {name!r}; known are {', '.join(READINGS)}{hint}"
    raise UnknownNameError(msg)


def describe_choices(made: Any) -> dict[str, str]:
    """Return in words what a reading, or a plan, chooses."""
    nbc = SMOOTHING_GRID if made.nbc_smoothing == "cv" else made.nbc_smoothing
    several = isinstance(nbc, tuple)
    leaves = made.leaf_smoothing
    return {
        "SPECT": "UCI’s own split" if made.own_splits else "pooled, split at random",
        "smoothing of naive Bayes": (
            f"by cross-validation, from {min(nbc):g} to {max(nbc):g}" if several else f"{nbc:g}"
        ),
        "leaves of forests": f"smoothed by {leaves:g}" if leaves else "maximum likelihood",
    }
