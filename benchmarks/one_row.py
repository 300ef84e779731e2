"""How long a single row takes, in every kind of table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from robustq import NaiveBayesClassifier

from .naive_bayes import FEATURES, make_rows
from .races import Race, timed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .conditions import Conditions

__all__ = ["races"]

# Seconds, once everything is compiled.
LIMITS = {"numpy": 0.001, "Arrow": 0.001, "dictionary": 0.001, "pandas": 0.0015, "polars": 0.0015}


def races(_: Conditions) -> Iterator[Race]:
    """Time `assess` of one row of texts."""
    table = f"naive Bayes, assess of one row of {FEATURES} texts"
    codes, y = make_rows(2, 10_000)
    texts = np.char.add("value ", codes.astype(str)).astype(object)
    names = [f"f{index}" for index in range(FEATURES)]
    frame = pd.DataFrame(texts, columns=names)
    tables = {
        "numpy": texts,
        "Arrow": pa.Table.from_pandas(frame),
        "pandas": frame,
        "polars": pl.from_pandas(frame),
    }
    for kind, whole in tables.items():
        model = NaiveBayesClassifier(1).fit(whole, y)
        yield Race(table, kind, timed(partial(model.assess, whole[:1])), limit=LIMITS[kind])
    model = NaiveBayesClassifier(1).fit(frame, y)
    row = dict(zip(names, texts[0].tolist(), strict=True))
    name = "dictionary"
    yield Race(table, name, timed(partial(model.assess, row)), limit=LIMITS[name])
