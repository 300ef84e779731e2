"""The script that repeats the published experiment does what the literature says."""

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.credal import classify, cross_validate, read_published

from tests.core.idm import count, zaffalon_dominates

CLASSES = np.array(["a", "b", "never"])


def made_table(rng, rows=40):
    y = np.array(["a", "b"])[rng.integers(0, 2, rows)]
    cells = [
        [str(value) for value in (rng.integers(0, 3, rows) + (y == "b")) % 4] for _ in range(3)
    ]
    return pa.table(dict(zip("uvw", cells, strict=True))), y


def test_sets_are_those_of_the_formula_with_declared_classes_and_values():
    rng = np.random.default_rng(4)
    X, y = made_table(rng)
    train, test = np.arange(8, 40), np.arange(8)
    # A value that training has never seen.
    X = X.set_column(2, "w", pa.array(["new", *X["w"].to_pylist()[1:]]))
    sets = classify(X, y, CLASSES, train, test, 1.0)
    rows = [list(row.values()) for row in X.to_pylist()]
    known = [rows[index] for index in train]
    labels = y[train].tolist()
    for index, found in zip(test, sets, strict=True):
        counts = [count(known, labels, c, rows[index]) for c in CLASSES]
        seen = [[n for n, _ in cells] for _, cells in counts]
        wanted = [
            not any(
                zaffalon_dominates(counts[a][0], counts[b][0], seen[a], seen[b], 1.0)
                for a in range(3)
                if a != b and counts[a][0]
            )
            for b in range(3)
        ]
        assert found.tolist() == wanted
    assert sets[0].all()
    assert sets[:, 2].any()


def test_a_folder_is_read_and_cross_validated(tmp_path):
    X, y = made_table(np.random.default_rng(1))
    rows = [",".join([*row.values(), label]) for row, label in zip(X.to_pylist(), y, strict=True)]
    head = "@relation r\n" + "".join(f"@attribute {name} {{0,1,2,3}}\n" for name in "uvw")
    text = head + "@attribute class {a,b,never}\n@data\n" + "\n".join(rows) + "\n"
    (tmp_path / "made.arff").write_text(text)
    told = "# Data\n\n| file | data set | d | u65 | u80 |\n|---|---|---|---|---|\n"
    (tmp_path / "README.md").write_text(told + "| made.arff | made* | 99.5 | 80 | 81 |\n")
    published = read_published(tmp_path)
    assert published["made.arff"].title == "made*"
    assert published["made.arff"].figures == [99.5, 80.0, 81.0]
    determinacy, u65, u80 = cross_validate(tmp_path / "made.arff", 1, 1.0)
    assert 0.0 < determinacy < 100.0
    assert u65 <= u80
    (precise, *_) = cross_validate(tmp_path / "made.arff", 1, 0.0)
    assert precise == pytest.approx(100.0, abs=15.0)
    assert precise > determinacy
