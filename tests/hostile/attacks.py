"""All attacks by name: each takes random numbers and a folder, and tells what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tests.cli.commands import call

from .calls import call_at_random
from .damage import damage_document, damage_file, damage_inside
from .tables import read_bad_table

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ATTACKS", "prepare"]

# Each returns "fine" or "refused"; whatever it raises is wrong.
ATTACKS = {
    "calls": lambda rng, _: call_at_random(rng),
    "documents": damage_document,
    "files": damage_file,
    "insides": damage_inside,
    "tables": read_bad_table,
}


def prepare(folder: Path) -> None:
    """Write a table and a model that is right."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.choice(["x", "z", "1"], 60) for name in "ab"})
    frame["y"] = np.where(frame["a"] == "x", "yes", "no")
    frame.to_csv(folder / "train.csv", index=False)
    done = call(
        *("fit", folder / "train.csv", "--target", "y", "--model", "nbc"),
        *("-o", folder / "good.robustq"),
    )
    assert done.returncode == 0, done.output
