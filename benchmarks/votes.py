"""scikit-learn's forests as they are: robustness with all parts against their own predict_proba."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from robustq import robustness

from .races import Race, timed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .conditions import Conditions

__all__ = ["races"]

BALLS = ("epsilon", "tv", "chi2")
FEATURES = 20
LEARNED = 2_000
LIMIT = 2.0  # for 100 trees as deep as they grow, which is scikit-learn's default
FORESTS: dict[str, dict[str, int]] = {
    "100 trees": {},
    "10 trees": {"n_estimators": 10},
    "25 trees of depth 5": {"n_estimators": 25, "max_depth": 5},
}


def races(conditions: Conditions) -> Iterator[Race]:
    """Time every ball that a kernel knows, for two, three and five classes."""
    rows = conditions.pick(20_000, quick=5_000)
    for classes in (2, 3, 5):
        X, y = make_classification(
            LEARNED + rows, FEATURES, n_informative=8, n_classes=classes, random_state=0
        )
        for forest, options in FORESTS.items():
            table = f"RandomForest of {forest}, {classes} classes, against its predict_proba"
            model = RandomForestClassifier(n_jobs=conditions.jobs, random_state=0, **options)
            model.fit(X[:LEARNED], y[:LEARNED])
            proba = timed(partial(model.predict_proba, X[LEARNED:]))
            for ball in BALLS:
                yield Race(
                    table,
                    f"robustness {ball}_all",
                    timed(partial(robustness, model, X[LEARNED:], ball, parts="all")),
                    proba,
                    partial(robustness, model, X, ball, parts="all"),  # ties too
                    None if options else LIMIT,
                )
