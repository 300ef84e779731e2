"""Workers that all tests share: starting them takes seconds."""

import os
import sys

import pytest

from tests.engines.processes import dask_cluster, need

# Java starts in two thirds of the time, and is stopped before it would have paid to compile more.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# Who shares one of these runs in one process, where tests run in several.
SHARED = ("dask_address", "spark", "stand_in")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks
def pytest_collection_modifyitems(items):
    for item in items:
        for name in SHARED:
            if name in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group(name))


@pytest.fixture(scope="session")
def dask_address(tmp_path_factory):
    """Give the address of a scheduler with two workers, three processes."""
    need("dask")
    with dask_cluster(tmp_path_factory.mktemp("dask")) as (address, _):
        yield address


@pytest.fixture(scope="session")
def cluster(dask_address):
    """Give a client of these, by which all that is computed goes."""
    import distributed  # noqa: PLC0415 (not always installed)

    with distributed.Client(dask_address) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture(scope="session")
def spark():
    """Give a session of Spark: two workers; a task may fail three times."""
    need("spark")
    from pyspark.sql import SparkSession  # noqa: PLC0415 (not always installed)

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.host": "127.0.0.1",
    }
    made = SparkSession.builder.master("local[2,4]").config(map=settings).getOrCreate()
    yield made
    made.stop()
