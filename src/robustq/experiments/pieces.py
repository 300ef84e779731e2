"""One run of one model on one data set: the rows tested, with everything said about them."""

from __future__ import annotations

import hashlib
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sklearn.base import clone

from robustq.families.table import find_recipe
from robustq.indicators import BootstrapEnsemble
from robustq.indicators.finding import find_indicator
from robustq.indicators.scores import examine
from robustq.tables.table import take_rows

if TYPE_CHECKING:
    from robustq.arrays import Indices
    from robustq.datasets import DataSet

    from .plan import Piece, Plan

__all__ = ["count_tests", "digest", "list_columns", "run_piece", "split"]

# What a seed is for; numbers that belong to streams of their own.
SPLIT, MODEL, SAMPLES = range(3)

ABOUT = ("row", "truth", "prediction", "correct", "possible")


def run_piece(plan: Plan, piece: Piece, data: DataSet) -> pa.Table:
    """Return one line for each row tested: its number, truth, prediction, and indicators."""
    train, test = split(plan, piece, data)
    X_train, y_train = take_rows(data.X, train), data.y[train]
    X_test, y_test = take_rows(data.X, test), data.y[test]
    indicators = [find_indicator(name) for name in plan.indicators]
    recipe = find_recipe(piece.model)
    model = recipe.make(recipe.preset(plan), _seed(plan, piece, MODEL)).fit(X_train, y_train)
    ensemble = None
    if any(indicator.needs == "ensemble" for indicator in indicators):
        copy = clone(model).set_params(**recipe.refit(model))
        ensemble = _make_ensemble(plan, piece, copy).fit(X_train, y_train)
    seen = examine(model, X_test, indicators, ensemble)
    prediction = seen.assessment.prediction
    about = (test, y_test, prediction, prediction == y_test, seen.possible)
    return pa.table({**dict(zip(ABOUT, about, strict=True)), **seen.values})


def list_columns(plan: Plan) -> list[str]:
    """Return the columns of every piece."""
    return [*ABOUT, *(find_indicator(name).name for name in plan.indicators)]


def split(plan: Plan, piece: Piece, data: DataSet) -> tuple[Indices, Indices]:
    """Return the rows to learn from and the rows to test on; both models get the same."""
    if data.split is not None:
        return data.split
    tests = count_tests(plan, data)
    shuffled = np.random.RandomState(_seed(plan, piece, SPLIT)).permutation(len(data.y))
    return np.sort(shuffled[tests:]), np.sort(shuffled[:tests])


def count_tests(plan: Plan, data: DataSet) -> int:
    """Return how many rows are tested on."""
    if data.split is not None:
        return len(data.split[1])
    return min(plan.most_tests, max(1, int(np.ceil(plan.test_share * len(data.y)))))


def digest(data: DataSet) -> str:
    """Return a checksum of what a data set holds."""
    content = repr([data.X.to_pydict(), data.y.tolist(), data.split is not None])
    return hashlib.sha256(content.encode()).hexdigest()


def _make_ensemble(plan: Plan, piece: Piece, copy: Any) -> BootstrapEnsemble:
    return BootstrapEnsemble(
        copy, plan.bootstrap_models, random_state=_seed(plan, piece, SAMPLES), n_jobs=1
    )


def _seed(plan: Plan, piece: Piece, stream: int) -> int:
    """Return the seed of one stream: it depends on nothing that happened before."""
    told = [plan.seed, zlib.crc32(piece.data_set.encode()), piece.run, stream]
    return int(np.random.SeedSequence(told).generate_state(1)[0] // 2)
