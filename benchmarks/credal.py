"""The naive credal classifier against its published figures: `python -m benchmarks.credal FOLDER`.

The folder (or `ROBUSTQ_CREDAL`) has ARFF files, the class last, and a README.md with a table of
published figures: file, data set, determinacy, u65, u80, in percent. Here the classifier is `idm`
with s = 1 on naive Bayes without smoothing, as Zaffalon (2002) defines it, in ten runs of
stratified ten-fold cross-validation. As in the literature, the classes and values are those that
the files declare: a class nobody has ever seen may be right, and a value never seen in
training leaves all classes possible (robustq itself takes it for missing).
"""

import argparse
import os
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sklearn.model_selection import StratifiedKFold

from robustq import NaiveBayesClassifier, credal
from robustq.io import open_sources, read_table

FOLDER = "ROBUSTQ_CREDAL"
FOLDS = 10
NAMES = ("determinacy", "u65", "u80")
CLOSE = 1.0  # points: what differs by more is marked


class Published(NamedTuple):
    """What is known of a file: how it is called, and its figures; a star marks another binning."""

    title: str
    figures: list[float]


def read_published(folder: Path) -> dict[str, Published]:
    """Return the figures of the table in a folder's README.md, by file."""
    found = {}
    for line in (folder / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 5 and cells[0].endswith(".arff"):
            found[cells[0]] = Published(cells[1], [float(cell) for cell in cells[2:]])
    return found


def classify(X: Any, y: Any, classes: Any, train: Any, test: Any, s: float) -> Any:
    """Return the sets of classes of test rows, as booleans."""
    model = NaiveBayesClassifier(smoothing=0.0, categorical=X.column_names)
    model.partial_fit(X.take(train), y[train], classes=classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sets = model.credal_predict(X.take(test), "idm", s)
    for name in X.column_names:
        known = pc.unique(X[name].take(train).cast(pa.string()))
        new = pc.invert(pc.is_in(X[name].take(test).cast(pa.string()), known))
        sets[new.to_numpy()] = True
    return sets


def cross_validate(path: Path, runs: int, s: float) -> list[float]:
    """Return determinacy, u65 and u80, in percent, of all rows of all runs."""
    table = read_table(open_sources([str(path)])).table
    target = table.column(table.num_columns - 1).combine_chunks()
    classes = np.array(sorted(target.dictionary.to_pylist()))
    y = np.array(target.to_pylist())
    X = table.select(table.column_names[:-1])
    found = []
    for run in range(runs):
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=run)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # rare classes are not in every fold
            parts = list(folds.split(np.zeros(len(y)), y))
        for train, test in parts:
            sets = classify(X, y, classes, train, test, s)
            measures = credal.measure(sets, y[test], classes)
            found.append([100.0 * getattr(measures, name) for name in NAMES])
    return np.mean(found, axis=0).tolist()


def show(published: Published, found: list[float]) -> None:
    """Print a line: published and found, and where they are apart."""
    apart = max(abs(a - b) for a, b in zip(published.figures, found, strict=True))
    pairs = "  ".join(f"{a:6.2f} {b:6.2f}" for a, b in zip(published.figures, found, strict=True))
    print(f"{published.title[:27]:27}  {pairs}  {'' if apart <= CLOSE else f'{apart:5.1f} apart'}")
    sys.stdout.flush()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", default=os.environ.get(FOLDER))
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--s", type=float, default=1.0)
    parser.add_argument("--files", nargs="*", help="Some of them only.")
    given = parser.parse_args()
    if not given.folder:
        parser.error(f"give the folder with the data, or set {FOLDER}")
    folder = Path(given.folder)
    heads = "  ".join(f"{name:^13}" for name in NAMES)
    print(f"{'':27}  {heads}\n{'':27}  " + "  ".join(["  publ.  found"] * len(NAMES)))
    for file, published in read_published(folder).items():
        if not given.files or file in given.files:
            show(published, cross_validate(folder / file, given.runs, given.s))


if __name__ == "__main__":
    main()
