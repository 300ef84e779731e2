"""Networks against naive Bayes on the same rows, and learning a tree against pyAgrum."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from robustq import BayesianNetworkClassifier, NaiveBayesClassifier

from .adult import load_adult
from .naive_bayes import BALLS, FEATURES, LEAN, make_rows
from .races import Race, timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .conditions import Conditions

__all__ = ["races"]

# Times naive Bayes' own: averaged networks are as many as there are features.
LIMITS = {"tan": 1.5, "aode": 13.0}
FIT_LIMIT = 3.0  # times pyAgrum's


def races(conditions: Conditions) -> Iterator[Race]:
    """Time robustness, and learning."""
    rows = conditions.pick(300_000, quick=50_000)
    table = f"networks, 2 classes, {rows:,} rows × {FEATURES}, against naive Bayes"
    for kind, lean in (("easy", 0.0), ("informative", LEAN)):
        X, y = make_rows(2, rows, lean=lean)
        plain = NaiveBayesClassifier().fit(X, y)
        for structure, limit in LIMITS.items():
            model = BayesianNetworkClassifier(structure).fit(X, y)
            for ball in BALLS:
                name = f"{structure}: robustness {ball}, {kind} rows"
                ours, theirs = (timed(partial(one.robustness, X, ball)) for one in (model, plain))
                warm = partial(model.robustness, X[:100], ball)
                yield Race(table, name, ours, theirs, warm, limit=limit)
    yield from _learn(conditions)


def _learn(_: Conditions) -> Iterator[Race]:
    adult = load_adult()
    names = [f"x{index}" for index in range(adult.X.shape[1])]
    X = pd.DataFrame(adult.X.astype(str), columns=names)
    y = pd.Series(adult.income, name="income")
    model = BayesianNetworkClassifier("tan")
    table = f"learning a tree, {adult.name}, {len(X):,} rows × {len(names)}, against pyAgrum"
    ours = timed(partial(model.fit, X, y))
    theirs = _find_pyagrum(X, y)
    if theirs is not None:
        yield Race(table, "tan: fit", ours, timed(theirs), limit=FIT_LIMIT)


def _find_pyagrum(X: Any, y: Any) -> Callable[[], object] | None:
    """Return what learns pyAgrum's tree; None where it is not installed."""
    try:
        from pyagrum.lib.discreteTypeProcessor import (  # noqa: PLC0415 (not a dependency)
            DiscreteTypeProcessor,
        )
        from pyagrum.skbn import BNClassifier  # noqa: PLC0415
    except ImportError:
        return None
    processor = DiscreteTypeProcessor(discretizationThreshold=10**9)

    def fit() -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = BNClassifier(learningMethod="TAN", prior="Smoothing", type_processor=processor)
            return model.fit(X, y)

    return fit
