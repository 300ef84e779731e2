"""`robustq fit --engine` writes the very file that it writes on one machine."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from robustq.learning import folds
from tests.cli.commands import run
from tests.engines.training_tables import make_frame

pytestmark = pytest.mark.workers

pytest.importorskip("distributed", reason="needs dask: pip install 'robustq[dask]'")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("training")
    (folder / "table").mkdir()
    frame = make_frame(rows=folds.FEW + 600)
    for index, start in enumerate(range(0, len(frame), 4000)):
        table = pa.Table.from_pandas(frame.iloc[start : start + 4000], preserve_index=False)
        pq.write_table(table, folder / "table" / f"{index}.parquet")
    return folder


@pytest.mark.parametrize("model", [("nbc",), ("forest", "--option", "max_samples=1000")])
def test_files_of_models_are_the_same(model, folder):
    fit = ("fit", "table", "--target", "y", "--model", *model)
    for more in (("--no-holdout", "-o", "one.robustq"), ("--engine", "dask", "-o", "dask.robustq")):
        done = run(*fit, *more, cwd=folder)
        assert done.returncode == 0, done.stderr
    assert (folder / "dask.robustq").read_bytes() == (folder / "one.robustq").read_bytes()
