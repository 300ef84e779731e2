"""What is not installed is said with its remedy; importing the room imports no engine."""

import subprocess
import sys

import pytest

from robustq.engines.extras import require_extra
from robustq.exceptions import UnsupportedError

ENGINES = ("dask", "distributed", "pyspark", "polars", "duckdb")


def test_importing_the_room_imports_no_engine():
    script = f"import robustq.engines, sys; print([e for e in {ENGINES!r} if e in sys.modules])"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_missing_engine_is_named_with_its_remedy():
    with pytest.raises(UnsupportedError, match=r'pip install "robustq\[spark\]"'):
        require_extra("no_such_engine.sql", "spark")


WITHOUT = f"""
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, *where):
        hidden = name.partition(".")[0] in {ENGINES!r}
        return None if hidden else self.finder.find_spec(name, *where)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = map(Without, sys.meta_path)
from robustq.engines import clusters, dask, duckdb, polars, spark
from robustq.exceptions import UnsupportedError

for call, *given in (
    (dask.score, None, "m.robustq"),
    (spark.score, None, "m.robustq"),
    (polars.score, None, "m.robustq"),
    (duckdb.score, None, "m.robustq"),
    (clusters.open_dask(None).__enter__,),
    (clusters.open_spark(None, "name").__enter__,),
):
    try:
        call(*given)
    except UnsupportedError as error:
        print(error)
"""


def test_each_engine_says_what_it_lacks():
    """In a Python that finds none of them, whatever is installed here."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    extras = ("dask", "spark", "polars", "duckdb", "dask", "spark")
    for line, extra in zip(done.stdout.splitlines(), extras, strict=True):
        assert line.endswith(f' is not installed: pip install "robustq[{extra}]"')


def test_what_is_installed_is_imported():
    assert require_extra("json.decoder", "any").JSONDecoder is not None
