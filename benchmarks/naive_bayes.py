"""Naive Bayes against scikit-learn's CategoricalNB on the same rows, input checks included."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import CategoricalNB

from robustq import NaiveBayesClassifier
from robustq.learning.smoothing import SMOOTHING_GRID

from .races import Race, timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from robustq.arrays import Indices

    from .conditions import Conditions

__all__ = ["FEATURES", "make_rows", "races"]

FEATURES = 13
BALLS = ("epsilon", "tv", "chi2")
LEAN = 0.5

# Against CategoricalNB.
LIMITS = {"fit": 1.0, "predict_proba": 0.8, "robustness": 0.4, "assess": 1.0, "wide": 0.5}
WIDE = {"classes": 25, "features": 60}

# The most that a neighbourhood may take, as a multiple of another one's time.
RELATIVE = {
    "kl": ("epsilon", 20.0),
    "odds_ratio": ("epsilon", 3.0),
    "epsilon_rows": ("epsilon", 1.5),
    "tv_rows": ("tv", 1.5),
    "chi2_rows": ("chi2", 1.5),
}


def races(conditions: Conditions) -> Iterator[Race]:
    """Time learning, predicting and quantifying."""
    rows = conditions.pick(1_000_000, quick=100_000)
    for classes in (2, 5):
        yield from _learn(rows, classes)
        for kind, lean in (("easy", 0.0), ("informative", LEAN)):
            yield from _against_categorical(rows, classes, kind, lean)
    yield from _against_categorical(
        conditions.pick(100_000, quick=10_000),
        WIDE["classes"],
        "informative",
        LEAN,
        WIDE["features"],
    )
    yield from _against_itself(conditions.pick(100_000, quick=20_000))


def _learn(rows: int, classes: int) -> Iterator[Race]:
    table = f"naive Bayes, {classes} classes, {rows:,} rows × {FEATURES} features, learning"
    X, y = make_rows(classes, rows)
    ours = timed(partial(NaiveBayesClassifier(1).fit, X, y))
    theirs = timed(partial(CategoricalNB(alpha=1).fit, X, y))
    warm = partial(NaiveBayesClassifier(1).fit, X[:100], y[:100])
    name = "fit, smoothing 1, against CategoricalNB"
    yield Race(table, name, ours, theirs, warm, limit=LIMITS["fit"])
    # The same candidates and folds; ours keeps the counts of each fold.
    grid = {"alpha": list(SMOOTHING_GRID)}
    search = GridSearchCV(CategoricalNB(force_alpha=True), grid, cv=5, n_jobs=1)
    ours = timed(partial(NaiveBayesClassifier("cv").fit, X, y))
    name = 'fit, smoothing "cv", against GridSearchCV'
    yield Race(table, name, ours, timed(partial(search.fit, X, y)), limit=LIMITS["fit"], rounds=2)


def _against_categorical(
    rows: int, classes: int, kind: str, lean: float, features: int = FEATURES
) -> Iterator[Race]:
    table = (
        f"naive Bayes, {classes} classes, {rows:,} {kind} rows × {features} features of 2–10 "
        "values, against CategoricalNB"
    )
    X, y = make_rows(classes, rows, lean=lean, features=features)
    theirs, ours = CategoricalNB().fit(X, y), NaiveBayesClassifier(1).fit(X, y)
    proba = timed(partial(theirs.predict_proba, X))
    predicts = timed(partial(ours.predict_proba, X))
    yield Race(table, "predict_proba", predicts, proba, limit=LIMITS["predict_proba"])
    limit = LIMITS["robustness" if features == FEATURES else "wide"]
    for ball in BALLS:
        race = partial(Race, table, f"robustness {ball}", limit=limit)
        yield race(timed(_quantify(ours, X, ball)), proba, _quantify(ours, X[:100], ball))
    assesses = timed(partial(ours.assess, X))
    yield Race(table, "assess, all three", assesses, proba, limit=LIMITS["assess"])


def _against_itself(rows: int) -> Iterator[Race]:
    table = f"naive Bayes, 2 classes, {rows:,} rows × {FEATURES}, one neighbourhood against another"
    for kind, lean in (("easy", 0.0), ("informative", LEAN)):
        X, y = make_rows(2, rows, lean=lean)
        model = NaiveBayesClassifier(1).fit(X, y)
        for ball, (other, limit) in RELATIVE.items():
            race = partial(Race, table, f"{ball} / {other}, {kind} rows", limit=limit)
            both = timed(_quantify(model, X, ball)), timed(_quantify(model, X, other))
            yield race(*both, _quantify(model, X[:100], ball))


def _quantify(model: NaiveBayesClassifier, X: Indices, ball: str) -> Callable[[], object]:
    return partial(model.robustness, X, ball)


def make_rows(
    classes: int, rows: int, lean: float = 0.0, features: int = FEATURES
) -> tuple[Indices, Indices]:
    """Draw rows from a random naive Bayes model.

    Parameters
    ----------
    classes, rows : int
    lean : float
        How much of its mass each class puts on a value of its own, in every feature: the more, the
        more a row tells of its class, and the further from flipping it is.
    features : int
    """
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, rows)
    columns = []
    for size in rng.integers(2, 11, features):
        masses = rng.dirichlet(np.full(size, 2.0), size=classes)
        if lean:
            masses *= 1 - lean
            masses[np.arange(classes), rng.integers(0, size, classes)] += lean
        edges = masses.cumsum(axis=1)[:, :-1]
        columns.append((rng.random(rows)[:, None] > edges[y]).sum(axis=1))
    return np.stack(columns, axis=1), y
