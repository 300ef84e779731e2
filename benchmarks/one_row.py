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
    from collections.abc import Callable, Iterator

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
        yield _assesses(table, kind, partial(model.assess, whole[:1]))
    model = NaiveBayesClassifier(1).fit(frame, y)
    row = dict(zip(names, texts[0].tolist(), strict=True))
    yield _assesses(table, "dictionary", partial(model.assess, row))


def _assesses(table: str, kind: str, call: Callable[[], object]) -> Race:
    return Race(table, kind, timed(call), prepare=call, limit=LIMITS[kind])
