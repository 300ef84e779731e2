"""Accuracy of networks beside naive Bayes and forests: `python -m benchmarks.accuracy`.

Each data set is split at random several times, 60 % to learn from, at most 2,000 of the other rows
to be tried on; every model sees the same splits. Shown is the mean accuracy, in per cent.
pyAgrum's column is empty where it is not installed.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from robustq import (
    BayesianNetworkClassifier,
    GenerativeForestClassifier,
    NaiveBayesClassifier,
    datasets,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DATA_SETS = (
    *("german", "australian", "npha", "breast-cancer-wisconsin", "adult", "bank"),
    *("solar-flare-small", "solar-flare-big"),
)
MOST_TRIED = 2_000
WORST = 0.5  # points that fan and aode may lie behind naive Bayes


def _make_sklearn_forest() -> Any:
    encoder = OneHotEncoder(handle_unknown="ignore")
    columns = make_column_transformer((encoder, lambda X: list(X.columns)))
    return make_pipeline(columns, RandomForestClassifier(random_state=0))


MODELS: dict[str, Callable[[], Any]] = {
    "NB": NaiveBayesClassifier,
    "TAN": partial(BayesianNetworkClassifier, "tan"),
    "FAN": partial(BayesianNetworkClassifier, "fan"),
    "2-DB": partial(BayesianNetworkClassifier, "kdb"),
    "AODE": partial(BayesianNetworkClassifier, "aode"),
    "forest": partial(GenerativeForestClassifier, random_state=0),
    "sklearn": _make_sklearn_forest,
}


def measure(name: str, splits: int) -> dict[str, float]:
    """Return the mean accuracy of each model on one data set."""
    data = datasets.load(name)
    X = data.X.to_pandas().astype(str)
    y = np.asarray(data.y).astype(str)
    found: dict[str, list[float]] = {model: [] for model in (*MODELS, "pyAgrum")}
    for split in range(splits):
        parts = train_test_split(X, y, train_size=0.6, random_state=split, stratify=y)
        X_train, X_test, y_train, y_test = parts
        X_test, y_test = X_test[:MOST_TRIED], y_test[:MOST_TRIED]
        for model, make in MODELS.items():
            right = make().fit(X_train, y_train).predict(X_test) == y_test
            found[model].append(float(right.mean()))
        found["pyAgrum"].append(_try_pyagrum(X_train, y_train, X_test, y_test))
    return {model: 100 * float(np.mean(scores)) for model, scores in found.items()}


def _try_pyagrum(X_train: Any, y_train: Any, X_test: Any, y_test: Any) -> float:
    """Return the accuracy of pyAgrum's tree, by its own `predict`; NaN without pyAgrum."""
    try:
        from pyagrum.lib.discreteTypeProcessor import (  # noqa: PLC0415 (not a dependency)
            DiscreteTypeProcessor,
        )
        from pyagrum.skbn import BNClassifier  # noqa: PLC0415
    except ImportError:
        return float("nan")
    names = {column: f"x{index}" for index, column in enumerate(X_train.columns)}
    # It knows no values beyond those it learned from: the most frequent one stands in.
    known = {column: set(X_train[column]) for column in names}
    mended = pd.DataFrame(
        {
            new: X_test[old].where(X_test[old].isin(known[old]), X_train[old].mode()[0])
            for old, new in names.items()
        }
    )
    classes, codes = np.unique(y_train, return_inverse=True)
    model = BNClassifier(
        learningMethod="TAN",
        prior="Smoothing",
        priorWeight=1.0,
        type_processor=DiscreteTypeProcessor(discretizationThreshold=10**9),
    )
    model.fit(X_train.rename(columns=names), pd.Series(codes, name="target"))
    got = np.asarray(model.predict(mended)).astype(int)
    return float((classes[got] == y_test).mean())


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; fail if fan or aode lie too far behind naive Bayes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("names", nargs="*", default=DATA_SETS, metavar="NAME")
    parser.add_argument("--splits", type=int, default=10)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # of values never seen in training
    columns = (*MODELS, "pyAgrum")
    print(f"{'':24}" + "".join(f"{name:>9}" for name in columns))
    behind = []
    for name in options.names:
        found = measure(name, options.splits)
        print(f"{name:24}" + "".join(f"{found[model]:9.2f}" for model in columns), flush=True)
        behind += [
            f"{model} on {name}" for model in ("FAN", "AODE") if found[model] < found["NB"] - WORST
        ]
    for which in behind:
        print(f"more than {WORST} points behind naive Bayes: {which}", file=sys.stderr)
    return int(bool(behind))


if __name__ == "__main__":
    sys.exit(main())
