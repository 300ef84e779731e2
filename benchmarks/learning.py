"""How well forests learn: ours against scikit-learn's, with standard errors.

    python -m benchmarks.learning --splits 10 --folder PATH adult bank breast iris glass

Our forests have 25 trees, scikit-learn's 100; all else is left at its default. Every split draws
training and test rows anew, by class. `adult` and `bank` are read from the folder that ROBUSTQ_DATA
names; what is no name of a set here is an ARFF file of `--folder`, its last attribute the class.
With `--keep FILE.csv`, what was measured is kept there, and not measured again. `--fit` times
learning instead: the process time of 25 trees in one thread, ours and scikit-learn's.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import robustq
from robustq import GenerativeForestClassifier
from robustq.rejection import auc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from robustq.arrays import Floats, Indices

__all__ = ["Data", "keep", "load", "measure", "recall", "split"]

TREES = 25
MOST_ROWS = 5_000  # to learn from; and to be tested on
TEST_SHARE = 1 / 3
FEWEST = 6  # rows of a class: it has to be on both sides
SMALLEST = 1e-15  # probability, as for scikit-learn's log loss
ADULT = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
]

PROBABILITIES = ("AUC", "log loss", "log loss > 1%", "Brier", "accuracy")
TRUST = ("epsilon", "tv", "tv_all", "margin", "entropy")
HIGHER_IS_BETTER = ("AUC", "accuracy", *(f"ARC {name}" for name in TRUST))
THEIRS = "scikit-learn"


@dataclass(frozen=True)
class Data:
    """Rows and the positions of their classes."""

    name: str
    X: pd.DataFrame
    y: Indices


def load(name: str, folder: Path | None) -> Data:
    """Return a data set, without classes of a few rows."""
    if name in BUILT_IN:
        X, y = BUILT_IN[name](return_X_y=True, as_frame=True)
    elif name in {"adult", "bank"}:
        X, y = _read_uci(name)
    elif folder is None:
        sys.exit(f"{name} is no set known here: is it an ARFF file of a --folder?")
    else:
        frame = robustq.read(folder / f"{name}.arff").to_pandas()
        X, y = frame.iloc[:, :-1], frame.iloc[:, -1]
    labels, codes = np.unique(np.asarray(y), return_inverse=True)
    kept = np.isin(codes, np.flatnonzero(np.bincount(codes, minlength=len(labels)) >= FEWEST))
    return Data(
        name, X[kept].reset_index(drop=True), np.unique(codes[kept], return_inverse=True)[1]
    )


BUILT_IN: dict[str, Any] = {
    "breast": load_breast_cancer,
    "digits": load_digits,
    "iris_numbers": load_iris,
    "wine_numbers": load_wine,
}


def _read_uci(name: str) -> tuple[pd.DataFrame, pd.Series]:
    folder = Path(os.environ.get("ROBUSTQ_DATA", ""))
    if name == "bank":
        frame = pd.read_csv(folder / "bank-full.csv", sep=";")
    else:
        frame = pd.read_csv(folder / "adult.data", names=ADULT, skipinitialspace=True)
    return frame.iloc[:, :-1], frame.iloc[:, -1]


def split(data: Data, splits: int) -> Iterator[tuple[Indices, Indices]]:
    """Yield training and test rows."""
    rows = len(data.y)
    sizes: dict[str, Any] = {"test_size": TEST_SHARE}
    if rows > 2 * MOST_ROWS:
        sizes = {"train_size": MOST_ROWS, "test_size": MOST_ROWS}
    yield from StratifiedShuffleSplit(splits, random_state=0, **sizes).split(data.y, data.y)


def make_models(names: Iterable[str], seed: int) -> dict[str, Any]:
    """Return unfitted models by name: `scikit-learn`, and ours by their leaves."""
    return {
        name: _make_theirs(seed)
        if name == THEIRS
        else GenerativeForestClassifier(TREES, n_jobs=1, random_state=seed).set_params(leaves=name)
        for name in names
    }


def _make_theirs(seed: int, trees: int = 100) -> Any:
    text = make_column_selector(dtype_exclude="number")
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    encoder = make_column_transformer((codes, text), remainder="passthrough")
    return make_pipeline(encoder, RandomForestClassifier(trees, random_state=seed))


def measure(model: Any, X: pd.DataFrame, y: Indices, trust: Sequence[str]) -> dict[str, float]:
    """Return how good the probabilities of a fitted model are, and how well it knows when not."""
    p = model.predict_proba(X)
    own, right = p[np.arange(len(y)), y], p.argmax(axis=1) == y
    found = {
        "AUC": _rank(p, y),
        "log loss": float(-np.log(np.maximum(own, SMALLEST)).mean()),
        "log loss > 1%": float(-np.log(np.maximum(own, 0.01)).mean()),
        "Brier": float(((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1).mean()),
        "accuracy": float(right.mean()),
    }
    return found | {f"ARC {name}": auc(right, score) for name, score in _score(model, X, p, trust)}


def _rank(p: Floats, y: Indices) -> float:
    """Return the mean area under the curve of each class against the others."""
    present = [c for c in range(p.shape[1]) if 0 < (y == c).sum() < len(y)]
    if p.shape[1] == 2:
        present = [1]
    return float(np.mean([roc_auc_score(y == c, p[:, c]) for c in present]))


def _score(
    model: Any, X: pd.DataFrame, p: Floats, trust: Sequence[str]
) -> Iterator[tuple[str, Any]]:
    for name in trust:
        if name not in {"margin", "entropy"} and isinstance(model, GenerativeForestClassifier):
            yield name, model.robustness(X, name)
    if "margin" in trust:
        top = np.sort(p, axis=1)
        yield "margin", top[:, -1] - top[:, -2]
    if "entropy" in trust:
        yield "entropy", (p * np.log(np.maximum(p, SMALLEST))).sum(axis=1)


def compare(
    data: Data, names: Sequence[str], splits: int, trust: Sequence[str]
) -> dict[str, pd.DataFrame]:
    """Return the measures of each model, one row for each split."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for seed, (train, test) in enumerate(split(data, splits)):
        X, rest = data.X.iloc[train], data.X.iloc[test]
        for name, model in make_models(names, seed).items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X, data.y[train])
                found[name].append(measure(model, rest, data.y[test], trust))
    return {name: pd.DataFrame(rows) for name, rows in found.items()}


def keep(results: dict[str, dict[str, pd.DataFrame]], path: Path | None) -> None:
    """Write what was measured to a file, if there is one."""
    if path is not None and results:
        parts = {(s, m): table for s, tables in results.items() for m, table in tables.items()}
        pd.concat(parts, names=["set", "model", "split"]).to_csv(path)


def recall(path: Path | None) -> dict[str, dict[str, pd.DataFrame]]:
    """Return what was kept in a file."""
    if path is None or not path.is_file():
        return {}
    found: dict[str, dict[str, pd.DataFrame]] = {}
    for (name, model), table in pd.read_csv(path).groupby(["set", "model"], sort=False):
        rows = table.drop(columns=["set", "model", "split"]).reset_index(drop=True)
        found.setdefault(str(name), {})[str(model)] = rows.dropna(axis=1, how="all")
    return found


def time_fits(data: Data, rounds: int) -> str:
    """Return how long 25 trees take to be learned, in a line."""
    ours = GenerativeForestClassifier(TREES, n_jobs=1, random_state=0)
    theirs = _make_theirs(0, TREES)
    X = theirs[0].fit_transform(data.X)
    races = {
        "ours": lambda: ours.fit(data.X, data.y),
        "scikit-learn's": lambda: theirs[1].fit(X, data.y),
        "with its encoder": lambda: theirs.fit(data.X, data.y),
    }
    ours.fit(data.X, data.y)  # compiles
    best = dict.fromkeys(races, float("inf"))
    for _, (name, fit) in itertools.product(range(rounds), races.items()):
        start = time.process_time()
        fit()
        best[name] = min(best[name], time.process_time() - start)
    seconds = ", ".join(f"{name} {value:.3f} s" for name, value in best.items())
    ratios = " and ".join(f"{best['ours'] / best[name]:.2f}" for name in list(races)[1:])
    return f"{data.name}, {len(data.y):,} rows: {seconds}; {ratios} times"


def show(results: dict[str, dict[str, pd.DataFrame]], against: str) -> Iterator[str]:
    """Yield the lines of a Markdown table for each model: its measures, and what it gains."""
    for name in next(iter(results.values())):
        measures = next(iter(results.values()))[name].columns
        about = f" (difference to {against} ± standard error; + is better)"
        yield f"\n{name}: mean{'' if name == against else about}\n"
        yield f"| set | {' | '.join(measures)} |"
        yield f"|---|{'---:|' * len(measures)}"
        means, gains = [], []
        for data, tables in results.items():
            gain = _gain(tables[name], tables[against]) if name != against else pd.DataFrame()
            means.append(tables[name].mean())
            gains.append(gain.mean())
            yield _say(data, means[-1], gain)
        yield _say(f"all {len(means)}", pd.DataFrame(means).mean(), pd.DataFrame(gains))


def _gain(ours: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    shared = [m for m in ours.columns if m in theirs.columns]
    signs = [1.0 if m in HIGHER_IS_BETTER else -1.0 for m in shared]
    return (ours[shared] - theirs[shared]) * signs


def _say(title: str, means: pd.Series, gains: pd.DataFrame) -> str:
    """Return a line: means, and of what is compared the mean gain and its standard error."""
    cells = [title]
    for measure, mean in means.items():
        cells.append(f"{mean:.4f}")
        if measure in gains:
            gain = gains[measure]
            cells[-1] += f" ({gain.mean():+.4f} ± {gain.std() / np.sqrt(len(gain)):.4f})"
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Run the comparison that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("sets", nargs="*", default=["breast", "digits", "iris_numbers"])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--models", nargs="+", default=["shrunk", "additive", THEIRS])
    parser.add_argument("--no-trust", action="store_true", help="only probabilities")
    parser.add_argument("--keep", type=Path, metavar="FILE.csv")
    parser.add_argument("--fit", action="store_true", help="only how long learning takes")
    given = parser.parse_args()
    if given.fit:
        for name in given.sets:
            print(time_fits(load(name, given.folder), given.splits), flush=True)
        return
    trust = () if given.no_trust else TRUST
    results = recall(given.keep)
    for name in given.sets:
        if name not in results:
            results[name] = compare(load(name, given.folder), given.models, given.splits, trust)
            print(name, "done", file=sys.stderr, flush=True)
            keep(results, given.keep)
    print(*show({name: results[name] for name in given.sets}, given.models[-1]), sep="\n")


if __name__ == "__main__":
    main()
