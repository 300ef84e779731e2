"""`robustq score --engine`: the same output as without."""

import shutil
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from .tables import make_table, save_model

pytestmark = pytest.mark.workers

ROBUSTQ = [sys.executable, "-m", "robustq"]


def run(*arguments):
    command = [*ROBUSTQ, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("command")
    save_model(made)
    pq.write_table(make_table(), made / "rows.parquet")
    done = run(*list_arguments(made, "plain.parquet"))
    assert done.returncode == 0, done.stderr
    return made


def list_arguments(folder, output):
    rows = folder / "rows.parquet"
    return [
        *("score", folder / "nbc.robustq", rows, rows, "-o", folder / output),
        *("--keep", "id", "--batch-rows", "300"),
    ]


@pytest.mark.parametrize("engine", ["dask", "spark"])
def test_the_output_is_that_of_the_plain_command(folder, engine):
    pytest.importorskip({"dask": "distributed", "spark": "pyspark"}[engine])
    if engine == "spark" and shutil.which("java") is None:
        pytest.skip("Spark runs on Java")
    done = run(*list_arguments(folder, f"{engine}.parquet"), "--engine", engine)
    assert done.returncode == 0, done.stderr
    found, known = (pq.read_table(folder / f"{one}.parquet") for one in (engine, "plain"))
    assert found.equals(known)
    assert found["row"].to_pylist() == list(range(1, 2001))
    words = " ".join(done.stderr.split())
    assert "never seen in training, taken as missing: 2 in column 'code', 6 in column" in words


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--engine", "ray"], "--engine must be dask or spark, got 'ray'"),
        (["--address", "local[2]"], "Add --engine dask or --engine spark"),
        (["--engine", "dask", "--address", "nowhere"], "no Dask scheduler answers there"),
    ],
)
def test_what_is_wrong_is_said_with_its_remedy(folder, options, said):
    done = run(*list_arguments(folder, "none.parquet"), *options)
    assert done.returncode == 2
    assert said in done.stderr
    assert not (folder / "none.parquet").exists()


def test_errors_of_workers_name_the_file(folder):
    table = make_table().set_column(3, "size", make_table()["colour"])
    pq.write_table(table, folder / "wrong.parquet")
    arguments = ["score", folder / "nbc.robustq", folder / "wrong.parquet"]
    done = run(*arguments, "-o", folder / "none.parquet", "--engine", "dask")
    assert done.returncode == 2
    assert "wrong.parquet: column 'size' holds" in done.stderr
    assert not (folder / "none.parquet").exists()
