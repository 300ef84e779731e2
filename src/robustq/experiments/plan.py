"""What to do: the experiment as data, with the paper's settings as defaults."""

from __future__ import annotations

import hashlib
import inspect
import json
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from robustq import __version__, datasets
from robustq.exceptions import InputError
from robustq.families.parameters import (
    LARGEST_COUNT,
    LARGEST_SMOOTHING,
    SMOOTHINGS,
    is_between,
    is_count,
    is_smoothing,
    require,
)
from robustq.families.table import RECIPES, find_recipe
from robustq.indicators.finding import find_indicator, is_imported
from robustq.rejection.averages import read_grid
from robustq.rejection.comparison import RATES

from .readings import find_reading

__all__ = ["INDICATORS", "MODELS", "Piece", "Plan"]

# Those that the paper has.
MODELS = tuple(name for name, recipe in RECIPES.items() if recipe.paper is not None)
# What decides the result of a piece, beside its data, split or not, and what a model makes of the
# plan. The name of the reading is not among it: what was found before there were names is kept.
DECISIVE = ("indicators", "seed", "test_share", "most_tests", "bootstrap_models")
CHOICES = ("nbc_smoothing", "leaf_smoothing", "own_splits")
INDICATORS = ("r_epsilon", "r_tv", "r_chi2", "u_marg", "u_max", "u_H", "u_t", "u_a", "u_e")


@dataclass(frozen=True)
class Piece:
    """The smallest thing that is run and stored: one data set, one model, one run.

    Attributes
    ----------
    data_set, model : str
    run : int
    """

    data_set: str
    model: str
    run: int

    def __str__(self) -> str:
        return f"{self.data_set}, {find_recipe(self.model).title}, run {self.run + 1}"


@dataclass(frozen=True)
class Plan:
    """An experiment: which data sets, models and indicators, how often, and how.

    Attributes
    ----------
    data_sets : tuple of str
    models : tuple of str
        Names of recipes, or their aliases; by default "nbc" and "gef", the paper's.
    indicators : tuple of str
        Names of indicators, or `module:Class` for the robustness in a ball of one's own.
    runs : int
        With a split of its own, the runs on a data set differ by their seeds only.
    rates : tuple of float
        The rejection rates of the tables.
    seed : int
    test_share, most_tests : float and int
        How much of a data set without a split of its own is kept for testing.
    nbc_smoothing : "cv", float or tuple of float, optional
    leaf_smoothing : float, optional
        0 is maximum likelihood.
    trees : int
    max_depth : int, "auto" or None
        None lets trees grow until their leaves are pure.
    bootstrap_models : int
    reading : str
        How the paper is read, "paper" or "nearest": what is not said is as the reading has it.
    own_splits : bool, optional
        Whether a split of UCI's is kept.
    """

    data_sets: tuple[str, ...] = datasets.names()
    models: tuple[str, ...] = MODELS
    indicators: tuple[str, ...] = INDICATORS
    runs: int = 10
    rates: tuple[float, ...] = RATES
    seed: int = 0
    test_share: float = 0.4
    most_tests: int = 500
    nbc_smoothing: Literal["cv"] | float | tuple[float, ...] | None = None
    leaf_smoothing: float | None = None
    trees: int = 25
    max_depth: int | Literal["auto"] | None = None
    bootstrap_models: int = 10
    reading: str = "paper"
    own_splits: bool | None = None

    def __post_init__(self) -> None:
        reading = find_reading(self.reading)
        for field in CHOICES:
            if getattr(self, field) is None:
                object.__setattr__(self, field, getattr(reading, field))
        for field, value in (
            ("data_sets", _distinct("data sets", [datasets.get(n).name for n in self.data_sets])),
            ("models", _distinct("models", [find_recipe(name).name for name in self.models])),
            ("indicators", _distinct("indicators", list(self.indicators))),
            ("rates", tuple(read_grid(self.rates).tolist())),
            ("nbc_smoothing", _freeze(self.nbc_smoothing)),
        ):
            object.__setattr__(self, field, value)
        names = [find_indicator(name).name for name in self.indicators]
        _distinct("indicators", names)
        require("runs", self.runs, is_count(self.runs, 1, 10_000), "a whole number from 1")
        require(
            "seed", self.seed, is_count(self.seed, 0), f"a whole number from 0 to {LARGEST_COUNT}"
        )
        require("trees", self.trees, is_count(self.trees, 1), "a whole number from 1")
        require(
            "most_tests", self.most_tests, is_count(self.most_tests, 1), "a whole number from 1"
        )
        share = is_between(self.test_share, 0.0, 1.0) and self.test_share < 1.0
        require("test_share", self.test_share, share, "a number between 0 and 1")
        leaf = is_between(self.leaf_smoothing, 0.0, LARGEST_SMOOTHING, low_included=True)
        require("leaf_smoothing", self.leaf_smoothing, leaf, "a number from 0")
        nbc = is_smoothing(self.nbc_smoothing)
        require("nbc_smoothing", self.nbc_smoothing, nbc, SMOOTHINGS)
        own = isinstance(self.own_splits, bool)
        require("own_splits", self.own_splits, own, "True or False")
        depth = self.max_depth in (None, "auto") or is_count(self.max_depth, 1)
        require("max_depth", self.max_depth, depth, 'a whole number from 1, "auto" or None')
        models = is_count(self.bootstrap_models, 1, 10_000)
        require("bootstrap_models", self.bootstrap_models, models, "a whole number from 1")

    @property
    def is_changed(self) -> bool:
        """Whether a choice was made otherwise than the reading makes it."""
        reading = find_reading(self.reading)
        return any(getattr(self, field) != getattr(reading, field) for field in CHOICES)

    def pieces(self) -> list[Piece]:
        """Return everything there is to run."""
        return [
            Piece(data_set, model, run)
            for data_set in self.data_sets
            for model in self.models
            for run in range(self.runs)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    def fingerprint(self, piece: Piece, content: str) -> str:
        """Return a short name for all that decides what a piece's result is.

        Parameters
        ----------
        piece : Piece
        content : str
            A digest of the data set.
        """
        plain = self.to_dict()
        decisive = {name: plain[name] for name in DECISIVE}
        # What only other models use does not count.
        preset = find_recipe(piece.model).preset(self)
        versions = [__version__, version("numpy"), version("scikit-learn")]
        balls = [_digest_module(name) for name in self.indicators if is_imported(name)]
        told = [versions, content, asdict(piece), decisive, preset, balls]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]


@cache
def _digest_module(name: str) -> str:
    """Return a checksum of the file that a ball of one's own is in: it may change."""
    neighbourhood = find_indicator(name).neighbourhood
    file = None if neighbourhood is None else inspect.getsourcefile(type(neighbourhood.ball))
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else ""


def _freeze(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _distinct(what: str, given: list[str]) -> tuple[str, ...]:
    if not given:
        msg = f"there must be {what} to run"
        raise InputError(msg)
    twice = sorted({name for name in given if given.count(name) > 1})
    if twice:
        msg = f"each of the {what} can be named once, got {', '.join(twice)} again"
        raise InputError(msg)
    return tuple(given)
