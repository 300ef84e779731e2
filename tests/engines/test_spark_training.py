"""Training on a local Spark gives the model of one machine."""

import itertools

import numpy as np
import pytest

from robustq import BayesianNetworkClassifier, NaiveBayesClassifier, blocks
from robustq.engines.spark import fit
from robustq.engines.spark_training import SparkFilePartitions
from robustq.exceptions import InputError
from robustq.learning import folds
from tests.engines.training_tables import assert_same, make_frame

# PySpark speaks of pandas, which is not asked for anything here.
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet:FutureWarning")


def part(spark, frame, partitions):
    """Return a Spark frame whose partitions are pieces of a frame, in order."""
    frame = frame.astype(object).where(frame.notna(), None)
    cuts = np.linspace(0, len(frame), partitions + 1).astype(int)
    rows = [
        [tuple(row) for row in frame.iloc[a:b].itertuples(index=False)]
        for a, b in itertools.pairwise(cuts)
    ]
    rdd = spark.sparkContext.parallelize(rows, partitions).flatMap(lambda piece: piece)
    kinds = "colour string, size long, amount double, count long, flag boolean, y string"
    return spark.createDataFrame(rdd, kinds)


@pytest.mark.parametrize("make", [NaiveBayesClassifier, lambda: BayesianNetworkClassifier("tan")])
def test_workers_learn_the_model_of_one_machine(make, spark):
    frame = make_frame(rows=folds.FEW + 1000)
    whole = make().fit(frame.drop(columns="y"), frame["y"])
    for partitions in (1, 3):
        assert_same(fit(part(spark, frame, partitions), "y", make()), whole)


def test_empty_partitions_and_few_rows(spark):
    frame = make_frame(rows=7)
    whole = NaiveBayesClassifier(1.0).fit(frame.drop(columns="y"), frame["y"])
    assert_same(fit(part(spark, frame, 12), "y", NaiveBayesClassifier(1.0)), whole)


def test_what_is_wrong_is_said_as_on_one_machine(spark):
    frame = part(spark, make_frame(rows=300), 2)
    with pytest.raises(InputError, match="no column 'z'"):
        fit(frame, "z")


def count_threads(*_):
    return blocks._allowed.get()


def test_a_task_uses_one_thread(spark):
    parts = SparkFilePartitions(spark, [list, list])
    assert parts.run(count_threads, max) == 1
    assert parts.spread(count_threads, [0]) == [1]
