"""Two worker processes of Dask, which all tests share: starting them takes seconds."""

import pytest


@pytest.fixture(scope="session")
def cluster():
    distributed = pytest.importorskip("distributed", reason="needs pip install 'robustq[dask]'")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as place,
        distributed.Client(place) as client,
    ):
        yield client
