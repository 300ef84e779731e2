"""Forests against scikit-learn's random forest on the same codes, input checks included.

Its trees grow as deep as they will, as they do by default; ours are smaller by default, and are
measured in both ways.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

from robustq import GenerativeForestClassifier

from .adult import load_adult, shuffle_columns, take_distinct
from .races import Race, timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from robustq.arrays import Bools, Indices

    from .adult import Adult
    from .conditions import Conditions

__all__ = ["races"]

TREES = 25
BALLS = ("epsilon", "tv", "chi2")
DEPTHS: dict[str, dict[str, Any]] = {"default depth": {}, "unlimited depth": {"max_depth": None}}

# Against RandomForest: what was measured in 0.1, and a third more.
LIMITS = {
    "default depth": {"fit": 0.6, "predict_proba": 1.3, "robustness": 2.0},
    "unlimited depth": {"fit": 0.7, "predict_proba": 2.3, "robustness": 4.3},
}
MISSING = 2  # cells of a row


def races(conditions: Conditions) -> Iterator[Race]:
    """Time growing on adult, and predicting and quantifying shuffled rows."""
    adult = load_adult()
    rows = shuffle_columns(adult.X, conditions.pick(300_000, quick=30_000))
    theirs = RandomForestClassifier(
        TREES, max_features=1 / 3, n_jobs=conditions.jobs, random_state=0
    ).fit(adult.X, adult.income)
    for depth, options in DEPTHS.items():
        ours = GenerativeForestClassifier(TREES, random_state=0, **options)
        yield from _two_classes(adult, rows, ours, theirs, depth)
    few = conditions.pick(20_000, quick=2_000)
    yield from _five_classes(adult, take_distinct(rows)[:few], theirs)
    yield from _missing_cells(adult, rows[:few])


def _two_classes(
    adult: Adult,
    rows: Indices,
    ours: GenerativeForestClassifier,
    theirs: RandomForestClassifier,
    depth: str,
) -> Iterator[Race]:
    X, y = adult.X, adult.income
    distinct = take_distinct(rows)
    table = (
        f"forest of {TREES} trees, {depth}, {adult.name}, {len(X):,} rows × {X.shape[1]}, "
        f"{len(rows):,} shuffled rows of which {len(distinct):,} differ, against RandomForest"
    )
    limits = LIMITS[depth]
    ours.fit(X, y)
    fits = timed(partial(ours.fit, X, y))
    yield Race(table, "fit", fits, timed(partial(theirs.fit, X, y)), limit=limits["fit"])
    proba = timed(partial(theirs.predict_proba, rows))
    predicts = timed(partial(ours.predict_proba, rows))
    yield Race(table, "predict_proba", predicts, proba, limit=limits["predict_proba"])
    quantifies = partial(_quantifies, table, ours)
    for ball in BALLS:
        yield quantifies(ball, rows, proba, limit=limits["robustness"])
    if depth == "default depth":
        for ball in BALLS:
            yield quantifies(f"{ball}_all", rows, proba, limit=8.0)
    proba = timed(partial(theirs.predict_proba, distinct))
    for ball in BALLS:
        yield quantifies(ball, distinct, proba, of=", rows that differ")
    if depth == "default depth":
        yield quantifies("tv_all", distinct, proba, of=", rows that differ")


def _five_classes(adult: Adult, rows: Indices, theirs: RandomForestClassifier) -> Iterator[Race]:
    table = (
        f"forest of {TREES} trees, five classes, {adult.name}, {len(rows):,} rows that differ, "
        "against RandomForest"
    )
    theirs = clone(theirs).fit(adult.X, adult.age)
    proba = timed(partial(theirs.predict_proba, rows))
    for depth, options in DEPTHS.items():
        ours = GenerativeForestClassifier(TREES, random_state=0, **options)
        ours.fit(adult.X, adult.age)
        predicts = timed(partial(ours.predict_proba, rows))
        yield Race(table, f"predict_proba, {depth}", predicts, proba)
        for ball in BALLS:
            yield _quantifies(table, ours, ball, rows, proba, of=f", {depth}")


def _missing_cells(adult: Adult, rows: Indices) -> Iterator[Race]:
    width = rows.shape[1]
    table = (
        f"forest of {TREES} trees, {adult.name}, {len(rows):,} rows with {MISSING} of {width} "
        "cells missing, against the same rows complete"
    )
    missing = np.random.default_rng(0).random(rows.shape).argsort(axis=1) < MISSING
    complete, gaps = _as_table(rows), _as_table(rows, missing)
    for depth, options in DEPTHS.items():
        model = GenerativeForestClassifier(TREES, random_state=0, **options)
        model.fit(_as_table(adult.X), adult.income)
        base = timed(partial(model.robustness, complete, "tv"))
        limit = 10.0 if depth == "default depth" else None
        yield _quantifies(table, model, "tv", gaps, base, limit=limit, of=f", {depth}")


def _quantifies(
    table: str,
    model: GenerativeForestClassifier,
    ball: str,
    rows: Indices | pa.Table,
    theirs: Callable[[], float],
    *,
    limit: float | None = None,
    of: str = "",
) -> Race:
    return Race(
        table,
        f"robustness {ball}{of}",
        timed(partial(model.robustness, rows, ball)),
        theirs,
        partial(model.robustness, rows[:100], ball),
        limit,
    )


def _as_table(X: Indices, missing: Bools | None = None) -> pa.Table:
    gaps = np.zeros(X.shape, bool) if missing is None else missing
    columns = zip(X.T, gaps.T, strict=True)
    return pa.table({f"f{i}": pa.array(c, mask=gap) for i, (c, gap) in enumerate(columns)})
