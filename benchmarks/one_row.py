"""How long a single row takes, in every kind of table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa

from robustq import NaiveBayesClassifier

from .naive_bayes import FEATURES, make_rows
from .races import Race, timed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .conditions import Conditions

__all__ = ["races"]


def races(_: Conditions) -> Iterator[Race]:
    """Time `assess` of one row of texts."""
    table = f"naive Bayes, assess of one row of {FEATURES} texts"
    codes, y = make_rows(2, 10_000)
    texts = np.char.add("value ", codes.astype(str)).astype(object)
    names = [f"f{index}" for index in range(FEATURES)]
    frame = pd.DataFrame(texts, columns=names)
    tables = {"pandas": frame, "Arrow": pa.Table.from_pandas(frame), "numpy": texts}
    for kind, whole in tables.items():
        model = NaiveBayesClassifier().fit(whole, y)
        yield Race(table, kind, timed(partial(model.assess, whole[:1])))
