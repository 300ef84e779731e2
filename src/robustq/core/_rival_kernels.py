"""Rivals of a prediction: which of them may flip it first.

One look at all classes tells which of them no tree prefers: against these the prediction holds
until P vanishes. At the flip that was found so far, the bounds of all paths tell which others it
still beats: their flip comes later. So only those few that may come first are searched for.
"""

import math

import numpy as np

from robustq.kernels import inner

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

# What is known of each class: see `survey`, `clear_some`.
RIVALS = LEAD, AGAINST, LAST, DONE, MARGIN, SIZE = range(6)
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
    for tree in range(bounds.shape[1]):
        bounds[LOWER, tree] = bounds[UPPER, tree] = 1.0
    for level in range(levels):
        for tree in range(bounds.shape[1]):
            lower = paths[W, level, tree] - x * paths[FALL, level, tree]
            upper = paths[W, level, tree] + x * paths[RISE, level, tree]
            bounds[LOWER, tree] *= lower if lower > 0.0 else 0.0
            bounds[UPPER, tree] *= upper if upper < 1.0 else 1.0


@inner
def survey(class_probs, ends, reach, leaves, mass, row, best, rivals):
    """Write for each class by how much the prediction leads, how many trees mind, and the end of P.

    Where no tree minds, that is where the prediction flips.
    """
    classes = class_probs.shape[1]
    for c in range(classes):
        rivals[LEAD, c] = rivals[AGAINST, c] = rivals[LAST, c] = rivals[DONE, c] = 0.0
    for tree in range(len(leaves)):
        leaf = leaves[tree]
        part, own, end = mass[tree, row], class_probs[leaf, best], ends[leaf, VANISHES]
        share = part * reach[leaf]
        for c in range(classes):
            gap = own - class_probs[leaf, c]
            rivals[LEAD, c] += gap * share
            rivals[AGAINST, c] += 1.0 if gap * part < 0.0 else 0.0
            last = end if gap * part > 0.0 else 0.0
            rivals[LAST, c] = max(rivals[LAST, c], last)


@inner
def clear_some(class_probs, leaves, mass, scale, row, best, bounds, near, rivals):
    """Let those classes be done that the prediction still beats, clearly, within the bounds."""
    classes = class_probs.shape[1]
    for c in range(classes):
        rivals[MARGIN, c] = rivals[SIZE, c] = 0.0
    for tree in range(len(leaves)):
        # Who needs smaller scales is looked at by itself.
        part = mass[tree, row] if scale[tree, row] == 0 else math.nan
        lower, upper = part * bounds[LOWER, tree], part * bounds[UPPER, tree]
        leaf = leaves[tree]
        own = class_probs[leaf, best]
        for c in range(classes):
            gap = own - class_probs[leaf, c]
            value = gap * (lower if gap > 0.0 else upper)
            rivals[MARGIN, c] += value
            rivals[SIZE, c] += abs(value)
    for c in range(classes):
        if rivals[MARGIN, c] > max(near * rivals[SIZE, c], TINY):
            rivals[DONE, c] = 1.0


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
