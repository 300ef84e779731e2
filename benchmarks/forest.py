"""Forests against scikit-learn's random forest on the same codes, input checks included.

Its trees grow as deep as they will, as they do by default; ours are measured at a depth of 11,
and as deep as they will.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

from robustq import GenerativeForestClassifier, UnknownValueWarning

from .adult import load_adult, shuffle_columns, take_distinct
from .made import TABLES
from .races import Race, timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from robustq.arrays import Bools, Indices

    from .adult import Adult
    from .conditions import Conditions

__all__ = ["races"]

TREES = 25
BALLS = ("epsilon", "tv", "chi2")
DEPTHS: dict[str, dict[str, Any]] = {
    "depth 11": {"max_depth": 11},
    "unlimited depth": {"max_depth": None},
}

# Against RandomForest: what is promised.
LIMITS = {
    "depth 11": {"fit": 0.6, "predict_proba": 0.5, "rows that differ": 1.0, "all rows": 0.4},
    "unlimited depth": {
        "fit": 0.7,
        "predict_proba": 0.5,
        "rows that differ": 1.8,
        "all rows": 0.6,
    },
}
EVERYTHING, FIVE_CLASSES, MADE, GAPS = 2.5, 2.0, 3.0, 3.0
LONGEST = 1e-3  # seconds for a row, whichever it is
MISSING = 2  # cells of a row
FEW = 20


def races(conditions: Conditions) -> Iterator[Race]:
    """Time growing on adult, and predicting and quantifying shuffled rows."""
    adult = load_adult()
    rows = shuffle_columns(adult.X, conditions.pick(300_000, quick=30_000))
    theirs = RandomForestClassifier(
        TREES, max_features=1 / 3, n_jobs=conditions.jobs, random_state=0
    ).fit(adult.X, adult.income)
    for depth in DEPTHS:
        yield from _two_classes(adult, rows, theirs, depth, complete=not conditions.quick)
    few = take_distinct(rows)[: conditions.pick(20_000, quick=2_000)]
    yield from _five_classes(adult, few, theirs)
    yield from _missing_cells(adult, few, theirs)
    for name in TABLES:
        yield from _made(name, theirs)


def _two_classes(
    adult: Adult, rows: Indices, theirs: RandomForestClassifier, depth: str, *, complete: bool
) -> Iterator[Race]:
    X, y = adult.X, adult.income
    distinct = take_distinct(rows)
    table = (
        f"forest of {TREES} trees, {depth}, {adult.name}, {len(X):,} rows × {X.shape[1]}, "
        f"{len(rows):,} shuffled rows of which {len(distinct):,} differ, against RandomForest"
    )
    limits, ours = LIMITS[depth], _grow(X, y, depth)
    fits = timed(partial(ours.fit, X, y))
    yield Race(table, "fit", fits, timed(partial(clone(theirs).fit, X, y)), limit=limits["fit"])
    # Of fewer rows more differ.
    limit = limits["all rows"] if complete else None
    for which, some in (("all rows", rows), ("rows that differ", distinct)):
        proba = timed(partial(theirs.predict_proba, some))
        yield _predicts(table, ours, some, proba, limit=limits["predict_proba"], of=which)
        most = limit if which == "all rows" else limits[which]
        for ball in BALLS:
            yield _quantifies(table, ours, ball, some, proba, limit=most, of=f", {which}")
    if depth == "depth 11":
        for ball in BALLS:
            of = ", rows that differ"
            yield _quantifies(table, ours, f"{ball}_all", distinct, proba, limit=EVERYTHING, of=of)


def _grow(X: Indices | pa.Table, y: Indices, depth: str) -> GenerativeForestClassifier:
    return GenerativeForestClassifier(TREES, random_state=0, **DEPTHS[depth]).fit(X, y)


def _five_classes(adult: Adult, rows: Indices, theirs: RandomForestClassifier) -> Iterator[Race]:
    table = (
        f"forest of {TREES} trees, five classes, {adult.name}, {len(rows):,} rows that differ, "
        "against RandomForest"
    )
    theirs = clone(theirs).fit(adult.X, adult.age)
    proba = timed(partial(theirs.predict_proba, rows))
    for depth in DEPTHS:
        ours = _grow(adult.X, adult.age, depth)
        yield _predicts(table, ours, rows, proba, of=depth)
        for ball in BALLS:
            yield _quantifies(table, ours, ball, rows, proba, limit=FIVE_CLASSES, of=f", {depth}")
    yield from _slowest(adult, ours, rows)


def _slowest(adult: Adult, model: GenerativeForestClassifier, rows: Indices) -> Iterator[Race]:
    """Time the rows that need exact arithmetic, and rows with a value never seen."""
    table = f"forest of {TREES} trees, five classes, {adult.name}, the slowest rows, each"
    best = np.sort(model.predict_joint_log_proba(rows), axis=1)
    nearest = rows[np.argsort(best[:, -1] - best[:, -2])[:FEW]]
    unseen = rows[:FEW].copy()
    unseen[:, -1] = adult.X.max() + 1
    for name, some in (("nearest to a tie", nearest), ("with a value never seen", unseen)):
        call = partial(_quietly, partial(model.robustness, some, "tv"))
        yield Race(table, name, partial(_share, timed(call)), prepare=call, limit=LONGEST)


def _share(measure: Callable[[], float]) -> float:
    return measure() / FEW


def _quietly(call: Callable[[], object]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownValueWarning)
        call()


def _made(name: str, theirs: RandomForestClassifier) -> Iterator[Race]:
    make, rows = TABLES[name]
    X, y = make(rows)
    table = (
        f"forest of {TREES} trees, {name}, {len(X):,} rows × {X.shape[1]}, "
        f"{len(np.unique(y))} classes, against RandomForest"
    )
    theirs = clone(theirs).fit(X, y)
    proba = timed(partial(theirs.predict_proba, X))
    for depth in DEPTHS:
        ours = _grow(X, y, depth)
        yield _predicts(table, ours, X, proba, of=depth)
        for ball in BALLS:
            yield _quantifies(table, ours, ball, X, proba, limit=MADE, of=f", {depth}")


def _missing_cells(adult: Adult, rows: Indices, theirs: RandomForestClassifier) -> Iterator[Race]:
    width = rows.shape[1]
    table = (
        f"forest of {TREES} trees, {adult.name}, {len(rows):,} rows with {MISSING} of {width} "
        "cells missing, against the same rows complete"
    )
    missing = np.random.default_rng(0).random(rows.shape).argsort(axis=1) < MISSING
    complete, gaps = _as_table(rows), _as_table(rows, missing)
    theirs = clone(theirs).fit(adult.X, adult.income)
    proba = timed(partial(theirs.predict_proba, rows))
    for depth in DEPTHS:
        model = _grow(_as_table(adult.X), adult.income, depth)
        base = timed(partial(model.robustness, complete, "tv"))
        yield _quantifies(table, model, "tv", gaps, base, limit=GAPS, of=f", {depth}")
        # Complete rows may become faster, and then that ratio tells less of these.
        of = f", {depth}, against RandomForest on the complete rows"
        yield _quantifies(table, model, "tv", gaps, proba, of=of)


def _predicts(
    table: str,
    model: GenerativeForestClassifier,
    rows: Indices,
    theirs: Callable[[], float],
    *,
    limit: float | None = None,
    of: str,
) -> Race:
    call = partial(model.predict_proba, rows)
    # The first call lays out what all others use.
    return Race(table, f"predict_proba, {of}", timed(call), theirs, call, limit)


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
        # All rows: the few that go another way compile it.
        partial(model.robustness, rows, ball),
        limit,
    )


def _as_table(X: Indices, missing: Bools | None = None) -> pa.Table:
    gaps = np.zeros(X.shape, bool) if missing is None else missing
    columns = zip(X.T, gaps.T, strict=True)
    return pa.table({f"f{i}": pa.array(c, mask=gap) for i, (c, gap) in enumerate(columns)})
