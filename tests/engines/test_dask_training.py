"""Training on two worker processes of Dask gives the model of one machine."""

import os
import signal

import numpy as np
import pandas as pd
import pytest

from robustq import BayesianNetworkClassifier, NaiveBayesClassifier, blocks
from robustq.engines.dask import fit
from robustq.engines.dask_training import DaskPartitions
from robustq.exceptions import InputError, TableWarning
from robustq.learning import folds
from tests.engines.training_tables import assert_same, make_frame

dask = pytest.importorskip("dask", reason="needs dask: pip install 'robustq[dask]'")
dd = pytest.importorskip("dask.dataframe", reason="needs dask: pip install 'robustq[dask]'")
pytest.importorskip("distributed")


MAKE = {
    "naive Bayes": NaiveBayesClassifier,
    "tan": lambda: BayesianNetworkClassifier("tan", "cv"),
    "aode": lambda: BayesianNetworkClassifier("aode"),
}


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.usefixtures("cluster")
def test_workers_learn_the_model_of_one_machine(name):
    frame = make_frame(rows=folds.FEW + 2000)
    whole = MAKE[name]().fit(frame.drop(columns="y"), frame["y"])
    for partitions in (1, 5):
        parted = fit(dd.from_pandas(frame, npartitions=partitions), "y", MAKE[name]())
        assert_same(parted, whole)


def test_a_worker_that_dies_changes_nothing(cluster, tmp_path):
    frame, marker = make_frame(rows=folds.FEW + 500), tmp_path / "died"

    def die_once(part, number):
        if len(part) and part.index[0] > 5000 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return part

    parts = dd.from_pandas(frame, npartitions=4)
    parts = parts.map_partitions(die_once, 0, meta=parts._meta)
    whole = NaiveBayesClassifier(1.0).fit(frame.drop(columns="y"), frame["y"])
    assert_same(fit(parts, "y", NaiveBayesClassifier(1.0)), whole)
    assert marker.exists()
    cluster.wait_for_workers(2, timeout=60)


def count_threads(*_):
    return blocks._allowed.get()


@pytest.mark.usefixtures("cluster")
def test_a_task_uses_one_thread():
    parts = DaskPartitions([list, list])
    assert parts.run(count_threads, max) == 1
    assert parts.spread(count_threads, [{}, ()]) == [1, 1]


@pytest.mark.usefixtures("cluster")
def test_few_rows_and_empty_partitions():
    frame = make_frame(rows=300)
    parts = dd.from_pandas(frame, npartitions=4)
    parts = parts[parts["size"] > 2].repartition(npartitions=4)
    chosen = frame[frame["size"] > 2]
    whole = NaiveBayesClassifier().fit(chosen.drop(columns="y"), chosen["y"])
    assert_same(fit(parts, "y"), whole)


def test_weights_without_a_cluster():
    frame = make_frame(rows=folds.FEW + 500)
    weights = np.random.default_rng(0).integers(0, 3, len(frame))
    whole = NaiveBayesClassifier(1.0).fit(frame.drop(columns="y"), frame["y"], weights)
    parts = dd.from_pandas(frame.assign(w=weights), npartitions=3)
    assert_same(fit(parts, "y", NaiveBayesClassifier(1.0), sample_weight="w"), whole)


@pytest.mark.usefixtures("cluster")
def test_what_is_wrong_is_said_as_on_one_machine():
    frame = dd.from_pandas(make_frame(rows=300), npartitions=2)
    with pytest.raises(InputError, match="no column 'z'"):
        fit(frame, "z")
    with pytest.raises(InputError, match="Unknown label type: continuous"):
        fit(frame, "amount")


@pytest.mark.usefixtures("cluster")
def test_an_id_is_remarked_on():
    frame = make_frame(rows=folds.FEW + 500).assign(customer_id=range(folds.FEW + 500))
    with pytest.warns(TableWarning, match="customer_id.*looks like an id"):
        fit(dd.from_pandas(frame, npartitions=3), "y", NaiveBayesClassifier(1.0))


def test_partitions_of_different_types():
    """A gap makes floats of whole numbers in one partition; the whole table has floats."""
    first, second = pd.DataFrame({"n": [1, 2, 3, 1] * 9}), pd.DataFrame({"n": [1, None, 2, 4] * 9})
    frame = pd.concat([first, second], ignore_index=True).assign(y=["a", "b"] * 36)
    parts = dd.from_delayed(
        [
            dask.delayed(first.assign(y=["a", "b"] * 18)),
            dask.delayed(second.assign(y=["a", "b"] * 18)),
        ],
        meta=frame.iloc[:0],
        verify_meta=False,
    )
    whole = NaiveBayesClassifier(1.0).fit(frame[["n"]], frame["y"])
    assert_same(fit(parts, "y", NaiveBayesClassifier(1.0)), whole)
