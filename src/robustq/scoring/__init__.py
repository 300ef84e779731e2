"""Rows in, results out, in Arrow batches: what every way to score is made of."""

from .scorer import Scorer, number_rows

__all__ = ["Scorer", "number_rows"]
