"""Which fold of a cross-validation a row belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from robustq.arrays import Codes, Floats, Indices

__all__ = ["FEW", "FOLDS", "deal", "draw_folds", "draw_numbers"]

FOLDS = 5
FEW = 10_000  # rows: so many are dealt, of more each is drawn by its own number
MOST_COPIES = 10**7  # of rows with whole numbers for weights
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def draw_folds(seed: int, first: int, rows: int) -> Indices:
    """Return the folds of rows from a number on: a hash of the seed and the number of each.

    Whoever has some of the rows can tell their folds without the others.

    Examples
    --------
    >>> draw_folds(7, 0, 6)[4:].tolist() == draw_folds(7, 4, 2).tolist()
    True
    """
    return (draw_numbers(seed, first, rows) % np.uint64(FOLDS)).astype(np.int64)


def draw_numbers(seed: int, first: int, rows: int) -> np.ndarray[Any, Any]:
    """Return a number of 64 bits for each row, as if it were random (splitmix64)."""
    start = np.array(seed % 2**64, dtype=np.uint64)
    z = start + (np.arange(first, first + rows, dtype=np.uint64) + np.uint64(1)) * GOLDEN
    # Twice: seeds that differ by the constant would only shift the rows.
    for _ in range(2):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = (z ^ (z >> np.uint64(31))) ^ start
    return z


def deal(codes: Codes, labels: Indices, weights: Floats, rng: np.random.Generator) -> Floats:
    """Deal the rows of each class, shuffled, to the folds in turn; (rows, folds), their weight.

    A row of weight 2 is dealt as two rows are, one of weight 0 not at all; a row whose weight is
    no whole number as one. The shuffling goes by what is in the rows, not by their order.
    """
    whole = np.all(weights == np.floor(weights)) and weights.sum() <= MOST_COPIES
    copies = weights.astype(np.int64) if whole else (weights > 0.0).astype(np.int64)
    mix = rng.integers(1, 2**63, size=codes.shape[1] + 2, dtype=np.uint64) | np.uint64(1)
    keys = np.zeros(len(codes), dtype=np.uint64)
    for column, factor in zip([labels, *codes.T], mix, strict=False):
        keys = _mix(keys, column, factor)
    # Equal rows side by side: each copy is told from the others by its number.
    dealt = np.repeat(
        *(array[np.argsort(keys, kind="stable")] for array in (np.arange(len(codes)), copies))
    )
    place = np.arange(len(dealt))
    begins = np.diff(keys[dealt], prepend=~keys[dealt[:1]]) != 0
    number = place - np.maximum.accumulate(np.where(begins, place, 0))
    order = np.lexsort((_mix(keys[dealt], number, mix[-1]), labels[dealt]))
    folds = np.zeros((len(codes), FOLDS))
    np.add.at(folds, (dealt[order], place % FOLDS), 1.0)
    return folds * (weights / np.maximum(copies, 1))[:, None]


def _mix(keys: np.ndarray[Any, Any], more: Indices, factor: np.uint64) -> np.ndarray[Any, Any]:
    """Return keys that depend on more, as if they were random."""
    mixed = (keys ^ more.astype(np.uint64)) * factor
    return mixed ^ (mixed >> np.uint64(29))
