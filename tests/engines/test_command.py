"""`robustq score --engine`: the same output as without."""

import gc
import time

import pyarrow.parquet as pq
import pytest

from robustq.engines import clusters
from tests.cli.commands import call, run

from .processes import need
from .tables import make_table, save_model

pytestmark = pytest.mark.workers


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("command")
    save_model(made)
    pq.write_table(make_table(), made / "rows.parquet")
    done = call(*list_arguments(made, "plain.parquet"))
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
    need(engine)
    # Of Spark a process has one session, which other tests use.
    command = call if engine == "dask" else run
    done = command(*list_arguments(folder, f"{engine}.parquet"), "--engine", engine)
    assert done.returncode == 0, done.stderr
    found, known = (pq.read_table(folder / f"{one}.parquet") for one in (engine, "plain"))
    assert found.equals(known)
    assert found["row"].to_pylist() == list(range(1, 2001))
    words = " ".join(done.stderr.split())
    assert "never seen in training, taken as missing: 2 in column 'code', 6 in column" in words


def count_open_clients():
    """Return how many wait to be closed by whoever collects them: it may be at a bad moment."""
    distributed = pytest.importorskip("distributed")
    made = [one for one in gc.get_objects() if isinstance(one, distributed.Client)]
    return sum(one.status != "closed" for one in made)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--engine", "ray"], "--engine must be dask or spark, got 'ray'"),
        (["--address", "local[2]"], "Add --engine dask or --engine spark"),
        (["--engine", "dask", "--address", "nowhere"], "no Dask scheduler answers there"),
        (["--engine", "dask", "--address", "tcp://127.0.0.1:9"], "no Dask scheduler answers there"),
        (["--engine", "dask", "--address", "https://127.0.0.1"], "no Dask scheduler answers there"),
    ],
)
def test_what_is_wrong_is_said_with_its_remedy(folder, options, said, monkeypatch):
    monkeypatch.setattr(clusters, "PATIENCE", "1s")
    before = count_open_clients()
    done = call(*list_arguments(folder, "none.parquet"), *options)
    assert done.returncode == 2
    assert said in done.stderr
    assert count_open_clients() <= before
    assert not (folder / "none.parquet").exists()


def test_errors_of_workers_name_the_file(folder, dask_address):
    table = make_table().set_column(3, "size", make_table()["colour"])
    pq.write_table(table, folder / "wrong.parquet")
    arguments = ["score", folder / "nbc.robustq", folder / "wrong.parquet"]
    where = ("--engine", "dask", "--address", dask_address)
    done = call(*arguments, "-o", folder / "none.parquet", *where)
    assert done.returncode == 2, done.output
    assert "wrong.parquet: column 'size' holds" in done.stderr
    assert not (folder / "none.parquet").exists()


def test_a_cluster_without_workers_is_told_of(monkeypatch):
    need("dask")
    import distributed  # noqa: PLC0415 (not always installed)

    monkeypatch.setattr(clusters, "CALM", 0.01)
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as place:
        address = place.scheduler_address
        with pytest.warns(UserWarning, match="has no workers yet"), clusters.open_dask(address):
            time.sleep(0.5)
