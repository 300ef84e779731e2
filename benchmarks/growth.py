"""More and more rows and trees: the cost of each must not rise."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from robustq import GenerativeForestClassifier

from .adult import load_adult, shuffle_columns
from .races import Race, timed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .conditions import Conditions

__all__ = ["races"]

ROWS, TREES = 10_000, 25
LARGER = ((100_000, 25), (1_000_000, 25), (100_000, 100))
QUICK = ((40_000, 25), (10_000, 100))


def races(conditions: Conditions) -> Iterator[Race]:
    """Time more rows and trees against fewer."""
    adult = load_adult()
    table = (
        f"forest, unlimited depth, {adult.name}, robustness tv: seconds per row and tree, "
        f"against {ROWS:,} rows and {TREES} trees"
    )
    models = {
        trees: GenerativeForestClassifier(trees, max_depth=None, random_state=0)
        for trees in (25, 100)
    }
    for model in models.values():
        model.fit(adult.X, adult.income)
    few = shuffle_columns(adult.X, ROWS)
    base = timed(partial(models[TREES].robustness, few))
    for count, trees in QUICK if conditions.quick else LARGER:
        rows = shuffle_columns(adult.X, count)
        yield Race(
            table,
            f"{count:,} rows, {trees} trees",
            timed(partial(models[trees].robustness, rows)),
            base,
            limit=2.0,
            scale=ROWS * TREES / (count * trees),
        )
