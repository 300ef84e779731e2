"""Learning from files that need not fit into memory."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import robustq
from robustq import BayesianNetworkClassifier, InputError, NaiveBayesClassifier
from robustq.io.columns import infer_types
from robustq.io.streaming import TextLook
from robustq.learning import folds


def make_part(rng, rows):
    label = rng.integers(0, 2, rows)
    columns = {f"x{i}": rng.integers(0, 20, rows) + label * (i % 3) for i in range(2)}
    return pa.table({**columns, "z0": np.round(rng.normal(label, 1, rows), 3), "y": label})


TABLES = {
    "text that is numbers": ["1", "+2", " 3", None, "4"],
    "text that is fractions": ["1.5", "2", "NA", "4e3"],
    "prices": ["$1,001", "$5", "$1,200.50"],
    "percents": ["45%", "5%", "?"],
    "mixed units": ["45%", "$5"],
    "thousands or decimals": ["1,001", "2,002"],
    "names": ["007", "12"],
    "beyond 64 bits": ["9999999999999999999", "1"],
    "nothing": ["NA", None, "?"],
    "words": ["a", "b", "nan"],
}


@pytest.mark.parametrize("name", TABLES)
def test_text_means_in_parts_what_it_means_at_once(name):
    column = pa.chunked_array([pa.array(TABLES[name], pa.string())])
    whole = infer_types(pa.table({"c": column}))[0]["c"]
    for cut in range(len(column) + 1):
        parts = [column.slice(0, cut), column.slice(cut)]
        kind = (TextLook.of(parts[0]) + TextLook.of(parts[1])).decide()
        read = pa.chunked_array([chunk for part in parts for chunk in kind.read(part).chunks])
        assert read.type == whole.type
        assert read.to_pylist() == whole.to_pylist()


@pytest.mark.parametrize("rows", [60, folds.FEW + 500])
@pytest.mark.parametrize("make", [NaiveBayesClassifier, lambda: BayesianNetworkClassifier("kdb")])
def test_files_give_the_model_of_the_table(rows, make, tmp_path):
    rng = np.random.default_rng(rows)
    table = make_part(rng, rows)
    table = table.append_column("price", pa.array([f"${n}" for n in rng.integers(1, 90, rows)]))
    for start in range(0, rows, 7000):
        pq.write_table(table.slice(start, 7000), tmp_path / f"{start:09}.parquet")
    with pytest.warns(robustq.TableWarning, match="was read as"):
        parted = robustq.fit_files(tmp_path, "y", make())
    with pytest.warns(robustq.TableWarning, match="was read as"):
        read = robustq.read(tmp_path)
    whole = make().fit(read.drop_columns("y"), read["y"].to_numpy())
    assert parted.to_dict() == whole.to_dict()


def test_a_file_without_the_target_is_refused(tmp_path):
    pq.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="has no column 'z'"):
        robustq.fit_files(tmp_path / "t.parquet", "z")
