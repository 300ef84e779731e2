"""Forests against scikit-learn's random forest on the same codes, input checks included.

The trees of both grow as deep as they will; ours would be smaller by default.
"""

from __future__ import annotations

from functools import partial

from sklearn.ensemble import RandomForestClassifier

from robustq import GenerativeForestClassifier

from .adult import load_adult, shuffle_columns
from .clock import best_time
from .first_use import measure_first_use
from .table import Limits

__all__ = ["measure_growth", "measure_ratios", "measure_start"]

TREES, ROWS = 25, 300_000
BALLS = ("epsilon", "tv", "chi2")

# Everything a user calls first, in a process of its own; prints seconds.
SCRIPT = """
import time
import numpy as np
import sklearn.base, sklearn.ensemble
start = time.perf_counter()
import robustq
rng = np.random.default_rng(0)
X, y = rng.integers(0, 3, (50, 4)), rng.integers(0, 2, 50)
model = robustq.GenerativeForestClassifier(3, random_state=0).fit(X, y)
model.predict_proba(X)
model.assess(X)
print(time.perf_counter() - start)
"""


def measure_start() -> Limits:
    """Time the first use, which compiles, and the next process, which finds it on disk."""
    return measure_first_use("a forest", SCRIPT, compiling=15.0, starting=1.0)


def measure_ratios() -> Limits:
    """Time growing on adult, and predicting and quantifying shuffled rows, as ratios."""
    X, y = load_adult()
    rows = shuffle_columns(X, ROWS)
    table = Limits(
        f"adult, {len(X):,} rows × {X.shape[1]}, {TREES} trees; {ROWS:,} shuffled rows",
        ("what", "seconds", "RandomForest", "ratio", "rows per second"),
    )
    theirs = RandomForestClassifier(TREES, max_features=1 / 3, n_jobs=2, random_state=0)
    ours = GenerativeForestClassifier(TREES, max_depth=None, random_state=0)
    ours.fit(X, y).assess(rows[:100])  # compiles, if it is the first time
    fit = best_time(partial(theirs.fit, X, y))
    _add(table, "fit", best_time(partial(ours.fit, X, y)), fit, 1.5, len(X))
    proba = best_time(partial(theirs.predict_proba, rows))
    seconds = best_time(partial(ours.predict_proba, rows))
    _add(table, "predict_proba", seconds, proba, 2.0, ROWS)
    for ball in BALLS:
        seconds = best_time(partial(ours.robustness, rows, ball))
        _add(table, f"robustness {ball}", seconds, proba, 4.0, ROWS)
    by_default = GenerativeForestClassifier(TREES, random_state=0)
    _add(table, "fit, default depth", best_time(partial(by_default.fit, X, y)), fit, 1.5, len(X))
    seconds = best_time(partial(by_default.robustness, rows, "tv"))
    _add(table, "robustness tv, default depth", seconds, proba, 4.0, ROWS)
    return table


def measure_growth() -> Limits:
    """Time more and more rows and trees: the cost of each must not rise."""
    X, y = load_adult()
    table = Limits(
        "robustness tv: seconds per row and tree, relative to 10,000 rows and 25 trees",
        ("rows", "trees", "seconds", "ns per row and tree", "relative"),
    )
    base = None
    for count, trees in ((10_000, 25), (100_000, 25), (1_000_000, 25), (100_000, 100)):
        rows = shuffle_columns(X, count)
        model = GenerativeForestClassifier(trees, max_depth=None, random_state=0).fit(X, y)
        model.robustness(rows[:100])
        seconds = best_time(partial(model.robustness, rows), repeats=2)
        each = seconds / count / trees
        base = base or each
        table.add(
            f"{count:,}",
            str(trees),
            f"{seconds:.2f}",
            f"{1e9 * each:.0f}",
            f"{each / base:.2f}",
            measured=each / base,
            limit=2.0,
        )
    return table


def _add(
    table: Limits, what: str, seconds: float, baseline: float, limit: float, rows: int
) -> None:
    table.add(
        what,
        f"{seconds:.3f}",
        f"{baseline:.3f}",
        f"{seconds / baseline:.2f}",
        f"{rows / seconds:,.0f}",
        measured=seconds / baseline,
        limit=limit,
    )
