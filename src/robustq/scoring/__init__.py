"""Rows in, results out, in Arrow batches: what every way to score is made of.

`open_scorer` opens a model by its path, once in each process; its `score` takes batches and its
`stream` an iterator of them. `output_schema` tells what comes out, before the first row.
"""

from .guests import Guest, find_model
from .opening import Parcel, open_model, open_scorer, output_schema, pack
from .scorer import ALL, Scorer, number_rows
from .tallies import Tally

__all__ = [
    "ALL",
    "Guest",
    "Parcel",
    "Scorer",
    "Tally",
    "find_model",
    "number_rows",
    "open_model",
    "open_scorer",
    "output_schema",
    "pack",
]
