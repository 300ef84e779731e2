"""Rivals of a prediction: which of them may flip it first.

One look at all classes tells which of them no tree prefers: against these the prediction holds
until P vanishes. At the flip that was found so far, the bounds of all paths tell which others it
still beats: their flip comes later. So only those few that may come first are searched for.
"""

import math

import numpy as np

from robustq.kernels import inner
from robustq.vectors import LANES, choose, fill, first_lanes, load, load_some, store

from ._path_kernels import FALL, RISE, SETTLES, VANISHES, W

__all__ = [
    "RIVALS",
    "bound_paths",
    "clear_some",
    "pick_next",
    "settle",
    "survey",
    "take_calm",
]

# What is known of each class, and of more that are none and done: see `survey`.
RIVALS = LEAD, AGAINST, LAST, DONE = range(4)
LOWER, UPPER = range(2)  # the products of a path
TINY = 1e-250  # what is smaller may have underflowed


@inner
def settle(ends, leaves):
    """Return where nothing changes any more, whoever the rival is."""
    settles = 0.0
    for leaf in leaves:
        settles = max(settles, ends[leaf, SETTLES])
    return settles


@inner
def bound_paths(x, levels, paths, bounds):
    """Write the lower and the upper product of each path."""
    most, width = paths.shape[1:]
    for lane in range(len(levels)):
        below, above = fill(1.0), fill(1.0)
        for level in range(levels[lane]):
            at = level * width + lane * LANES
            weight = load(paths, W * most * width + at)
            below *= max(weight - x * load(paths, FALL * most * width + at), 0.0)
            above *= min(weight + x * load(paths, RISE * most * width + at), 1.0)
        store(bounds, LOWER * width + lane * LANES, below)
        store(bounds, UPPER * width + lane * LANES, above)


@inner
def survey(class_probs, ends, reach, leaves, mass, row, best, rivals):
    """Write for each class by how much the prediction leads, how many trees mind, and the end of P.

    Where no tree minds, that is where the prediction flips.
    """
    classes, width = class_probs.shape[1], rivals.shape[1]
    for first in range(0, classes, LANES):
        some = min(classes - first, LANES)
        lead, against, last = fill(0.0), fill(0.0), fill(0.0)
        for tree in range(len(leaves)):
            leaf = leaves[tree]
            part, own, end = mass[tree, row], class_probs[leaf, best], ends[leaf, VANISHES]
            gap = own - load_some(class_probs, leaf * classes + first, some)
            value = gap * part
            lead += gap * (part * reach[leaf])
            against += choose(value < 0.0, 1.0, 0.0)
            last = max(last, choose(value > 0.0, end, 0.0))
        store(rivals, LEAD * width + first, lead)
        store(rivals, AGAINST * width + first, against)
        store(rivals, LAST * width + first, last)
        store(rivals, DONE * width + first, choose(first_lanes(some), fill(0.0), 1.0))


@inner
def clear_some(class_probs, leaves, mass, scale, row, best, bounds, near, rivals):
    """Let those classes be done that the prediction still beats, clearly, within the bounds."""
    classes, width = class_probs.shape[1], rivals.shape[1]
    for first in range(0, classes, LANES):
        some, margin, size = min(classes - first, LANES), fill(0.0), fill(0.0)
        for tree in range(len(leaves)):
            # Who needs smaller scales is looked at by itself.
            part = mass[tree, row] if scale[tree, row] == 0 else math.nan
            leaf = leaves[tree]
            own = class_probs[leaf, best]
            gap = own - load_some(class_probs, leaf * classes + first, some)
            value = gap * choose(gap > 0.0, part * bounds[LOWER, tree], part * bounds[UPPER, tree])
            margin += value
            size += abs(value)
        clear = margin > max(near * size, TINY)
        done = load(rivals, DONE * width + first)
        store(rivals, DONE * width + first, choose(clear, 1.0, done))


@inner
def pick_next(rivals):
    """Return the class that is not done over which the lead is smallest, −1 if all are done."""
    rival = np.int64(-1)
    for c in range(rivals.shape[1]):
        if rivals[DONE, c] == 0.0 and (rival < 0 or rivals[LEAD, c] < rivals[LEAD, rival]):
            rival = np.int64(c)
    return rival


@inner
def take_calm(rivals, limit, x, rival):
    """Return the first flip to a class that no tree minds to leave behind, if before x; and it."""
    for c in range(rivals.shape[1]):
        if rivals[DONE, c] == 0.0 and rivals[AGAINST, c] == 0.0:
            rivals[DONE, c] = 1.0
            last = rivals[LAST, c]
            if last <= limit and last < x:
                x, rival = last, np.int64(c)
    return x, rival
