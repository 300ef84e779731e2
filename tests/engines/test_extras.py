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


def test_what_is_installed_is_imported():
    assert require_extra("json.decoder", "any").JSONDecoder is not None
