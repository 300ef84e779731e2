"""Drawing rows from the joint distribution of a forest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

from robustq.core.scale import STEP
from robustq.tables import Rows

from .cells import allowed_values
from .nodes import NARROW, NARROW_SIZE

if TYPE_CHECKING:
    from robustq.arrays import Codes, Floats, Indices

    from .model import Forest

__all__ = ["draw"]


def draw(forest: Forest, n: int, rng: np.random.Generator) -> tuple[Rows, Indices]:
    """Return n rows and the positions of their classes."""
    mass = np.ldexp(forest.arrays.reach, STEP * forest.arrays.reach_scale)
    leaves = rng.choice(forest.leaves, size=n, p=mass / mass.sum())
    labels = _pick(forest.class_probs[leaves], rng)
    rows = Rows.empty(n, len(forest.sizes), len(forest.numeric))
    for feature in forest.categorical:
        rows.codes[:, feature] = _draw_codes(forest, leaves, feature, rng)
    for slot, feature in enumerate(forest.numeric):
        normals = forest.normals[leaves * len(forest.numeric) + slot]
        rows.numbers[:, slot] = _draw_normals(normals, rng)
        rows.codes[:, feature] = 0
    return rows, labels


def _pick(probs: Floats, rng: np.random.Generator) -> Indices:
    """Draw a position for each row of probabilities."""
    ends = probs.cumsum(axis=1)
    # Rounding may leave the last end below 1.
    drawn = rng.random(len(probs))[:, None] * ends[:, -1:]
    return np.asarray((drawn >= ends).sum(axis=1))


def _draw_normals(normals: Floats, rng: np.random.Generator) -> Floats:
    mean, sd, low, high = normals.T[:4]
    # Probabilities near 1 have few digits: what lies above the mean is mirrored.
    sign = np.where(low > mean, -1.0, 1.0)
    ends = np.sort([sign * (low - mean) / sd, sign * (high - mean) / sd], axis=0)
    start, stop = ndtr(ends)
    drawn = mean + sign * sd * ndtri(start + rng.random(len(mean)) * (stop - start))
    return np.asarray(np.clip(drawn, low, high))


def _draw_codes(forest: Forest, leaves: Indices, feature: int, rng: np.random.Generator) -> Codes:
    """Draw a category at each leaf: mostly one with a probability of its own."""
    if forest.sizes[feature] == 0:
        return np.full(len(leaves), -1, dtype=np.int32)
    cells = leaves * len(forest.categorical) + int(forest.slots[feature])
    starts = forest.starts[cells].astype(np.int64) + 1
    lengths = forest.starts[cells + 1] - starts
    # All probabilities of all cells in one row, and their sums within each cell.
    owner = np.repeat(np.arange(len(cells)), lengths)
    first = np.cumsum(lengths) - lengths
    entry = np.arange(len(owner)) - first[owner] + starts[owner]
    seen = _list_seen(forest, cells, entry - starts[owner], owner, feature)
    probs = forest.entry_probs[entry]
    if len(forest.base):
        probs = probs * forest.base[forest.base_starts[forest.slots[feature]] + seen]
    sums = np.cumsum(probs)
    before = np.concatenate([[0.0], sums])[first]
    drawn = rng.random(len(cells))
    rank = np.bincount(owner, drawn[owner] >= sums - before[owner], len(cells)).astype(np.int64)
    codes = np.full(len(cells), -1, dtype=np.int32)
    found = rank < lengths
    codes[found] = seen[first[found] + rank[found]]
    for i in np.flatnonzero(~found):
        own = seen[first[i] : first[i] + lengths[i]]
        codes[i] = _draw_unseen(forest, int(leaves[i]), own, feature, rng)
    return codes


def _list_seen(
    forest: Forest, cells: Indices, rank: Indices, owner: Indices, feature: int
) -> Codes:
    """Return the categories seen in cells, one cell after another."""
    if forest.kinds[feature] != NARROW:
        return forest.entry_codes[forest.seen[cells].astype(np.int64)[owner] + rank]
    words = forest.seen[cells].astype("<u8").view(np.uint8).reshape(-1, NARROW_SIZE // 8)
    return np.nonzero(np.unpackbits(words, axis=1, bitorder="little"))[1].astype(np.int32)


def _draw_unseen(
    forest: Forest, leaf: int, seen: Codes, feature: int, rng: np.random.Generator
) -> int:
    """Draw one of the categories that a cell allows and has not seen."""
    allowed = allowed_values(forest, leaf, feature)
    rest = np.setdiff1d(allowed, seen)
    probs = np.array([forest.probability(leaf, feature, int(code)) for code in rest])
    if probs.sum() > 0.0:
        return int(rng.choice(rest, p=probs / probs.sum()))
    # Where rounding alone led here, the likeliest will do.
    every = [forest.probability(leaf, feature, int(code)) for code in allowed]
    return int(allowed[int(np.argmax(every))])
