"""`fit` and `score` with `--engine` and `--address`: the very files of one machine."""

import json
import shutil
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from robustq.learning import folds
from tests.cli.commands import call
from tests.engines.processes import LONG, need, read_logs, spark_cluster, start
from tests.engines.training_tables import make_frame

pytestmark = pytest.mark.workers

FIT = ("fit", "table", "--target", "y")
MODELS = {
    "nbc": ("--model", "nbc"),
    "tan": ("--model", "tan"),
    "forest": ("--model", "forest", "--option", "max_samples=1000", "--option", "n_estimators=5"),
}
SCORE = ("score", "nbc.robustq", "table", "-o")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Give a table in files, models of it and scores, all made without an engine."""
    folder = tmp_path_factory.mktemp("addresses")
    (folder / "table").mkdir()
    frame = make_frame(rows=folds.FEW + 600)
    for index, first in enumerate(range(0, len(frame), 4000)):
        table = pa.Table.from_pandas(frame.iloc[first : first + 4000], preserve_index=False)
        pq.write_table(table, folder / "table" / f"{index}.parquet")
    for name, options in MODELS.items():
        done = call(*FIT, *options, "--no-holdout", "-o", f"{name}.robustq", cwd=folder)
        assert done.returncode == 0, done.output
    done = call(*SCORE, "scored.parquet", cwd=folder)
    assert done.returncode == 0, done.output
    return folder


@pytest.mark.parametrize("name", MODELS)
def test_a_dask_cluster_learns_the_same_file(dask_address, folder, tmp_path, name):
    where = ("--engine", "dask", "--address", dask_address)
    done = call(*FIT, *MODELS[name], *where, "-o", tmp_path / "there", cwd=folder)
    assert done.returncode == 0, done.output
    assert (tmp_path / "there").read_bytes() == (folder / f"{name}.robustq").read_bytes()


def test_workers_of_this_machine_learn_the_same_file(folder, tmp_path):
    need("dask")
    done = call(*FIT, *MODELS["nbc"], "--engine", "dask", "-o", tmp_path / "there", cwd=folder)
    assert done.returncode == 0, done.output
    assert (tmp_path / "there").read_bytes() == (folder / "nbc.robustq").read_bytes()


def test_a_dask_cluster_scores_the_same(dask_address, folder, tmp_path):
    where = ("--engine", "dask", "--address", dask_address, "--batch-rows", 3000)
    done = call(*SCORE, tmp_path / "there.parquet", *where, cwd=folder)
    assert done.returncode == 0, done.output
    found, known = tmp_path / "there.parquet", folder / "scored.parquet"
    assert pq.read_table(found).equals(pq.read_table(known))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (
            lambda path: path.write_bytes(path.read_bytes()[:-100]),
            "1.parquet cannot be read as a table",
        ),
        (
            lambda path: pq.write_table(pq.read_table(path).drop("y"), path),
            "1.parquet has no column 'y'",
        ),
        (lambda path: path.unlink(), "matches no file"),
    ],
    ids=["cut off", "without the target", "not there"],
)
def test_what_is_wrong_with_a_file_is_told(dask_address, folder, tmp_path, spoil, said):
    shutil.copytree(folder / "table", tmp_path / "table")
    spoil(tmp_path / "table" / "1.parquet")
    where = ("--engine", "dask", "--address", dask_address, "-o", "m.robustq")
    table = ("fit", "table/1.*" if "match" in said else "table", "--target", "y", "--model", "nbc")
    done = call(*table, *where, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "0.parquet" not in done.stderr  # nothing is wrong with it
    assert not (tmp_path / "m.robustq").exists()


# Both in one process: its Java starts once.
SEVERAL = """
import json, sys
from robustq.cli.main import app
for arguments in json.loads(sys.argv[1]):
    app(arguments, standalone_mode=False)
"""


def test_a_spark_cluster_learns_and_scores_the_same(folder, tmp_path):
    need("spark")
    model, scored = tmp_path / "m.robustq", tmp_path / "there.parquet"
    with spark_cluster(tmp_path) as (address, _):
        where = ("--engine", "spark", "--address", address)
        steps = [(*FIT, *MODELS["forest"], *where, "-o", str(model)), (*SCORE, str(scored), *where)]
        with start(sys.executable, "-c", SEVERAL, json.dumps(steps), cwd=folder) as process:
            said, _ = process.communicate(timeout=LONG)
        assert process.returncode == 0, said.decode() + read_logs(tmp_path)
    assert model.read_bytes() == (folder / "forest.robustq").read_bytes()
    assert pq.read_table(scored).equals(pq.read_table(folder / "scored.parquet"))
