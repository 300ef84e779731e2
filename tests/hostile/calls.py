"""Random calls of every public function, with what nobody should give them."""

from __future__ import annotations

import inspect
import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

import robustq
from robustq import datasets, indicators, perturbations, rejection
from robustq.exceptions import RobustqError

if TYPE_CHECKING:
    import random

__all__ = ["call_at_random"]

FRAME = pd.DataFrame({"a": ["x", "y", "x", "z"] * 5, "b": [0.5, 1.5, 2.5, math.nan] * 5})
LABELS = np.array(["no", "yes"] * 10)
MODELS = (
    robustq.NaiveBayesClassifier().fit(FRAME, LABELS),
    robustq.GenerativeForestClassifier(3, random_state=0).fit(FRAME, LABELS),
    robustq.SelectiveClassifier(robustq.NaiveBayesClassifier(), max_error=0.5).fit(FRAME, LABELS),
)
CURVE = rejection.accuracy_rejection_curve([True, False, True], [3.0, 1.0, 2.0])

# Things of all sorts; each is good for something, and wrong almost everywhere.
THINGS: tuple[Any, ...] = (
    *(None, True, 0, 1, -1, 3, 10**30, 0.5, -0.5, math.nan, math.inf, 1e308, 2 + 1j, ...),
    *("", "tv", "chi2", "tv_all", "r_tv", "u_max", "\x1b[31m", "\ud800", "a" * 10_000, b"bytes"),
    *([], (), {}, set(), [1, 2], ["tv"], ["tv", 3], [None], [[1], [2, 3]], {"a": 1}, {"a": [1]}),
    *(object(), object, len, lambda *_: 1 / 0, range(3), iter([1, 2]), np.float64, slice(2)),
    *(np.zeros(0), np.zeros((0, 2)), np.ones((3, 2)), np.ones((2, 2, 2)), np.array(1.0)),
    *(np.array([0.2, 0.8]), np.array([math.nan, 1.0]), np.array(["a", None], dtype=object)),
    *(np.array(["2020-01-01"], dtype="M8[D]"), np.array([1j, 2j]), np.array([b"a", b"b"])),
    *(FRAME, FRAME.iloc[:0], FRAME["a"], FRAME.rename(columns={"a": 3}), FRAME[["a"]], LABELS),
    *(pa.table({"a": ["x"], "b": [1.0]}), pa.array([1, 2]), pa.table({"a": [[1]], "b": [1.0]})),
    *(perturbations.TotalVariation(), perturbations.TotalVariation, CURVE, [CURVE], {"c": CURVE}),
    *MODELS,
    robustq.NaiveBayesClassifier(),
    robustq.NaiveBayesClassifier,
    MODELS[0].to_dict(),
)


def _list_functions() -> dict[str, Any]:
    """Return what users call: functions, methods of fitted models, of balls and of results."""
    found: dict[str, Any] = {}
    owners = {"": robustq, "indicators.": indicators, "rejection.": rejection}
    owners |= {"perturbations.": perturbations, "datasets.": datasets}
    for prefix, module in owners.items():
        for name in module.__all__:
            if not _is_left_out(value := getattr(module, name)):
                found[prefix + name] = value
    holders = [*MODELS, CURVE, MODELS[0].assess(FRAME)]
    holders += [perturbations.get(name) for name in perturbations.names()[:6]]
    for holder in holders:
        for name in dir(holder):
            if not name.startswith("_") and name not in SETTERS and callable(getattr(holder, name)):
                found[f"{type(holder).__name__}.{name}"] = getattr(holder, name)
    return found


# They change what all share, or are scikit-learn's own; writing is tried elsewhere.
SETTERS = {"fit", "partial_fit", "set_params", "get_params", "save", "get_metadata_routing"}


def _is_left_out(value: Any) -> bool:
    abstract = inspect.isabstract(value) or inspect.ismodule(value) or not callable(value)
    is_error = inspect.isclass(value) and issubclass(value, (Exception, Warning))
    return abstract or is_error or value is perturbations.register or value is datasets.load


FUNCTIONS = {k: v for k, v in _list_functions().items() if not k.split(".")[-1].startswith("set_")}


def call_at_random(rng: random.Random) -> str:
    """Call something with random things; return "fine" or "refused", or raise what it raised."""
    name = rng.choice(sorted(FUNCTIONS))
    function = FUNCTIONS[name]
    given = _choose(function, rng)
    if given is None:
        return "fine"
    shown = ", ".join(f"{key}={_show(value)}" for key, value in given.items())
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            made = _call(function, given)
            if inspect.isclass(function) and hasattr(made, "fit"):
                made.fit(rng.choice([FRAME, *THINGS]), rng.choice([LABELS, *THINGS]))
    except RobustqError:
        return "refused"
    except Exception as error:
        error.add_note(f"robustq.{name}({shown})")
        raise
    return "fine"


def _choose(function: Any, rng: random.Random) -> dict[str, Any] | None:
    """Return arguments that a call of this function may have; None where nobody can tell."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    given: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
            continue
        good = GOOD.get(parameter.name)
        needed = parameter.default is parameter.empty
        if needed or rng.random() < 0.25:
            # Mostly right with one thing wrong: what is all wrong is refused at the first glance.
            given[parameter.name] = (
                good if good is not None and rng.random() < 0.6 else rng.choice(THINGS)
            )
    return given


GOOD: dict[str, Any] = {
    "X": FRAME,
    "y": LABELS,
    "model": MODELS[0],
    "estimator": MODELS[0],
    "perturbation": "tv",
    "delta": 0.1,
    "q": np.array([0.2, 0.8]),
    "p": np.array([0.2, 0.8]),
    "f": np.array([1.0, 2.0]),
    "score": np.arange(20.0),
    "correct": LABELS == "yes",
}


def _call(function: Any, given: dict[str, Any]) -> Any:
    parameters = inspect.signature(function).parameters
    only = [n for n in given if parameters[n].kind is inspect.Parameter.POSITIONAL_ONLY]
    return function(*(given[n] for n in only), **{n: v for n, v in given.items() if n not in only})


def _show(value: Any) -> str:
    try:
        return repr(value)[:60]
    except Exception:
        return type(value).__name__
