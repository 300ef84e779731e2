"""How much leaves are shrunk: what predicts the rows best that a tree did not grow on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .model import find_parents, measure_depth, split_kinds, start_bases
from .nodes import CHILD, FEATURE, LEAF
from .planting import BASE_COUNT, Shrinkage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robustq.arrays import Bools, Codes, Floats

    from .planting import Counted, Features, Sample, Structure

__all__ = ["Grown", "choose_shrinkage"]

STRENGTHS = (5.0, 20.0, 50.0, 200.0, 1000.0)
CLASS_STRENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
SURE = 2.0  # standard errors
MOST_TRIED = 700  # rows
MOST_TOTALS = 1 << 22


class Grown(NamedTuple):
    """A tree, what its leaves count in all rows, and the rows that it did not grow on."""

    structure: Structure
    counted: Counted
    out_of_bag: Bools


def choose_shrinkage(
    grown: Sequence[Grown], sample: Sample, features: Features
) -> Shrinkage | None:
    """Return the strengths with the least log loss of out-of-bag rows, None where there are none.

    Leaves learn from all rows; a row is taken out of those that judge it.
    """
    sizes = len(STRENGTHS), len(CLASS_STRENGTHS), sample.classes
    rows = len(sample.labels)
    count = min(rows, MOST_TRIED, max(1, MOST_TOTALS // int(np.prod(sizes))))
    tried = np.linspace(0, rows - 1, count).astype(np.intp)
    totals, tops = np.zeros((count, *sizes)), np.full((count, len(STRENGTHS)), -np.inf)
    for tree in grown:
        places = np.full(rows, -1, dtype=np.int32)
        places[tried] = np.where(tree.out_of_bag[tried], np.arange(count), -1)
        _rate(tree, places, sample, features, tops, totals)
    judged = totals.sum(axis=(1, 2, 3)) > 0.0
    if not judged.any():
        return None
    tried, totals = tried[judged], totals[judged]
    own = totals[np.arange(len(tried)), :, :, sample.labels[tried]] / totals.sum(axis=3)
    return _pick(-np.log(own), sample.weights[tried])


def _pick(loss: Floats, weights: Floats) -> Shrinkage:
    """Return the strengths of the least loss, if they are better than the usual ones for sure."""
    usual = Shrinkage()
    mean = np.average(loss, axis=0, weights=weights)
    s, c = np.unravel_index(int(np.argmin(mean)), mean.shape)
    gain = loss[:, STRENGTHS.index(usual.features), CLASS_STRENGTHS.index(usual.classes)]
    gain = gain - loss[:, s, c]
    share = weights / weights.sum()
    error = np.sqrt((share**2) @ (gain - share @ gain) ** 2)
    if share @ gain <= SURE * error:
        return usual
    return Shrinkage(STRENGTHS[s], CLASS_STRENGTHS[c])


def _rate(
    grown: Grown, places: Codes, sample: Sample, features: Features, tops: Floats, totals: Floats
) -> None:
    from . import _shrinking_kernels  # noqa: PLC0415 (numba is imported when it is needed)

    tree, structure = grown.counted.tree, grown.structure
    parents = find_parents(tree.nodes)
    at = np.flatnonzero(tree.nodes[:, FEATURE] == LEAF)
    leaf_nodes = np.empty(len(at), dtype=np.int64)
    leaf_nodes[tree.nodes[at, CHILD]] = at
    _shrinking_kernels.rate(
        *(np.ascontiguousarray(sample.rows.codes), sample.labels, sample.weights, places),
        *(split_kinds(features.sizes, features.numeric), structure.order, structure.leaf_starts),
        *(leaf_nodes, parents, tree.class_probs, np.zeros((len(tree.nodes), sample.classes))),
        *(tree.seen, tree.starts, tree.entry_codes, tree.entry_probs),
        *(grown.counted.masses, features.base, start_bases(features.sizes, features.numeric)),
        *(np.array(STRENGTHS) * sample.unit, np.array(CLASS_STRENGTHS) * sample.unit),
        *(BASE_COUNT * sample.unit, np.empty(measure_depth(parents) + 1, dtype=np.int64)),
        *(np.empty(sample.classes), np.empty(len(STRENGTHS)), tops, totals),
    )
