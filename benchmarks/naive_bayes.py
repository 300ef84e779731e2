"""Naive Bayes against scikit-learn's CategoricalNB on the same rows, input checks included."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from sklearn.naive_bayes import CategoricalNB

from robustq import NaiveBayesClassifier

from .clock import best_time
from .first_use import measure_first_use
from .table import Limits

if TYPE_CHECKING:
    from robustq.arrays import Indices

__all__ = ["measure_ratios", "measure_start"]

ROWS, FEATURES = 1_000_000, 13
BALLS = ("epsilon", "tv", "chi2")

# Everything a user calls first, in a process of its own; prints seconds.
SCRIPT = """
import time
import numpy as np
import sklearn.base, sklearn.naive_bayes
start = time.perf_counter()
import robustq
rng = np.random.default_rng(0)
X, y = rng.integers(0, 3, (50, 4)), rng.integers(0, 2, 50)
model = robustq.NaiveBayesClassifier().fit(X, y)
model.predict_proba(X)
model.assess(X)
print(time.perf_counter() - start)
"""


def measure_ratios() -> Limits:
    """Time learning, predicting and quantifying a million rows, as ratios."""
    table = Limits(
        f"{ROWS:,} rows × {FEATURES} features of 2–10 values, against CategoricalNB",
        ("what", "seconds", "CategoricalNB", "ratio", "rows per second"),
    )
    for classes in (2, 5):
        X, y = make_rows(classes)
        theirs, ours = CategoricalNB().fit(X, y), NaiveBayesClassifier().fit(X, y)
        ours.assess(X[:100])  # compiles, if it is the first time
        fit = best_time(partial(CategoricalNB().fit, X, y))
        proba = best_time(partial(theirs.predict_proba, X))
        add = partial(_add, table, classes)
        add("fit", best_time(partial(NaiveBayesClassifier().fit, X, y)), fit, 1.0)
        add("predict_proba", best_time(partial(ours.predict_proba, X)), proba, 1.0)
        for ball in BALLS:
            seconds = best_time(partial(ours.robustness, X, ball))
            add(f"robustness {ball}", seconds, proba, 0.75)
        add("assess, all three", best_time(partial(ours.assess, X)), proba, 2.0)
    return table


def measure_start() -> Limits:
    """Time the first use, which compiles, and the next process, which finds it on disk."""
    return measure_first_use("naive Bayes", SCRIPT, compiling=10.0, starting=1.0)


def make_rows(classes: int) -> tuple[Indices, Indices]:
    """Draw rows from a random naive Bayes model."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, ROWS)
    columns = []
    for size in rng.integers(2, 11, FEATURES):
        edges = rng.dirichlet(np.full(size, 2.0), size=classes).cumsum(axis=1)[:, :-1]
        columns.append((rng.random(ROWS)[:, None] > edges[y]).sum(axis=1))
    return np.stack(columns, axis=1), y


def _add(
    table: Limits, classes: int, what: str, seconds: float, baseline: float, limit: float
) -> None:
    ratio = seconds / baseline
    table.add(
        f"{what}, {classes} classes",
        f"{seconds:.3f}",
        f"{baseline:.3f}",
        f"{ratio:.2f}",
        f"{ROWS / seconds:,.0f}",
        measured=ratio,
        limit=limit,
    )
