"""Rows in, results out, in Arrow batches: what every way to score is made of."""

from .guests import Guest, find_model
from .scorer import Scorer, number_rows

__all__ = ["Guest", "Scorer", "find_model", "number_rows"]
