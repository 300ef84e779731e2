"""What trees of which everything is perturbed are worth, for rows that reach one leaf of each.

The value of a tree is the lower expectation of 1_ĉ − 1_c at its leaf, times lower bounds of all
factors above and beside it if that is positive, or else upper ones. Bounds are straight lines in y,
cut to [0, 1]; products of them are the same whichever classes are compared.

Trees stand side by side, `LANES` at once. Lanes beyond the last tree repeat it, without a weight.
"""

import math

import numpy as np

from robustq.kernels import inner
from robustq.vectors import LANES, choose, fill, how_many, largest, some, store, total, turn
from robustq.vectors import load as load_lanes

from ._ball_kernels import shift_chi2, shift_tv
from .modes import CHI2, EPSILON, TV

__all__ = [
    "EDGES",
    "PATH",
    "WORK",
    "W",
    "compare",
    "find_ends",
    "find_products",
    "load",
    "look",
    "oppose",
]

SMALLEST = 1e-140  # the largest value of a tree, below which others might underflow
FAINT = 1e-100  # what is left of it
RARE = 1e-9
PATH = START, LENGTH = range(2)  # of the weights above a leaf
# The factors of a row, level by level: probabilities, and under χ² how fast their bounds leave
# them.
EDGES = P, SPREAD = range(2)
# What is known of each tree of a row: the products of all lower and of all upper bounds; the
# probabilities at its leaf of two classes and of all others, and the deviation of 1_ĉ − 1_c; what
# is not perturbed, and the smallest factor; where it ceases to speak for the prediction; its
# weight, its value, and room to move weights in.
WORK = LOWER, UPPER, A, B, REST, DEVIATION, STILL, LEAST, END, W, F, SHIFT, MOVED, *_ = range(16)
MASS, REACH, VARIANCE = range(13, 16)
COMMON = 1e-4  # weights above this are not rare
NARROW = 1e-6  # a variance below this, relative to the square of values, is of nearly equal ones
SMALL = 0.999  # of what empties a tree


# Factors


@inner
def load(row, mode, leaves, paths, features, factors, still, room):
    """Write the factors of a row, trees side by side; tell whether all of them are known.

    First weights, then features, of which each tree has as many; levels that only some trees
    have are filled up. Also write the smallest factor of each tree, the first one that falls to 0.
    """
    spans, weights = paths
    edges, levels, places, work, _ = room
    trees, wide, most, width = factors.shape[1], factors.shape[2], edges.shape[2], work.shape[1]
    clear = True
    for group in range(len(levels)):
        longest, start = np.int64(0), group * most * LANES
        for lane in range(LANES):
            tree = min(group * LANES + lane, trees - 1)
            longest = max(longest, spans[leaves[row, tree], LENGTH])
            work[STILL, group * LANES + lane] = still[row, tree]
            clear &= not math.isnan(still[row, tree])
        for first in range(0, longest, LANES):
            for lane in range(LANES):
                leaf = leaves[row, min(group * LANES + lane, trees - 1)]
                inside = first < spans[leaf, LENGTH]
                places[lane] = spans[leaf, START] + first if inside else len(weights) - LANES
            turn(weights, places, edges, start + first * LANES)
        for first in range(0, features, LANES):
            for lane in range(LANES):
                tree = min(group * LANES + lane, trees - 1)
                places[lane] = (row * trees + tree) * wide + first
            turn(factors, places, edges, start + (longest + first) * LANES)
        levels[group] = longest + features
        least = fill(1.0)
        for level in range(levels[group]):
            q = load_lanes(edges, start + level * LANES)
            least = min(least, q)
            if mode == CHI2:
                at = (len(levels) * most + level) * LANES + start
                store(edges, at, math.sqrt(max(q * (1.0 - q), 0.0)))
        store(work, LEAST * width + group * LANES, least)
    return clear


@inner
def find_products(y, machine):
    """Write the products of all lower and of all upper bounds of every tree."""
    mode = machine[0][0]
    edges, levels, _, work, _ = machine[1]
    most, width = edges.shape[2], work.shape[1]
    keep = 1.0 - y if mode == EPSILON else 1.0
    fall = 0.0 if mode == EPSILON else y
    for group in range(len(levels)):
        lower, upper = fill(1.0), fill(1.0)
        for level in range(levels[group]):
            at = (group * most + level) * LANES
            q = load_lanes(edges, at)
            falls, rises = q * keep - fall, q * keep + y
            if mode == CHI2:
                part = load_lanes(edges, len(levels) * most * LANES + at) * y
                falls, rises = q - part, q + part
            lower *= min(max(falls, 0.0), 1.0)
            upper *= min(rises, 1.0)
        store(work, LOWER * width + group * LANES, lower)
        store(work, UPPER * width + group * LANES, upper)


# Classes


@inner
def oppose(mode, row, best, rival, class_probs, leaves, work):
    """Write what the leaves of a row say of two classes."""
    classes, (trees, width) = class_probs.shape[1], (leaves.shape[1], work.shape[1])
    for lane in range(width):
        leaf = leaves[row, min(lane, trees - 1)]
        a, b = class_probs[leaf, best], class_probs[leaf, rival]
        rest = 1.0 - a - b if classes > 2 else 0.0
        if classes > 2 and rest < RARE:
            # Others may be there or not: a difference does not tell.
            rest = 0.0
            for c in range(classes):
                rest += class_probs[leaf, c] if c != best and c != rival else 0.0
        work[A, lane], work[B, lane], work[REST, lane] = a, b, rest
    for lane in range(0, width if mode == CHI2 else 0, LANES):
        a, b = load_lanes(work, A * width + lane), load_lanes(work, B * width + lane)
        rest = load_lanes(work, REST * width + lane)
        store(work, DEVIATION * width + lane, math.sqrt((a + b) * rest + 4.0 * a * b))


@inner
def _contrast_chi2(y, a, b, rest, deviation):
    """Return the lower expectation of 1_ĉ − 1_c: μ − σy, until ĉ is empty; see `ChiSquared`."""
    value = a - b - y * deviation
    whole = (deviation == 0.0) | ((y * (1.0 - a + b) < deviation) & (a > 0.0))
    if not some(~whole):
        return value
    mass = rest + b
    excess = max(y * y * mass - a, 0.0)
    partly = -(b + math.sqrt(excess * b * rest)) / mass
    emptied = choose(excess * b >= rest, -1.0, partly)
    return choose(whole, value, choose(b > 0.0, emptied, 0.0))


@inner
def _contrast(mode, y, a, b, rest, deviation):
    if mode == EPSILON:
        return (1.0 - y) * (a - b) - y
    if mode == TV:
        # Of equal classes, whatever is moved counts.
        return a - b - (min(a, y) + min(1.0 - b, y))
    return a - b if y == 0.0 else _contrast_chi2(y, a, b, rest, deviation)


@inner
def _find_values(y, machine):
    """Write what each tree is worth; return the largest and the smallest value."""
    mode, classes_move, _ = machine[0]
    work = machine[1][3]
    width, size = work.shape[1], y if classes_move else 0.0
    top, bottom = fill(-math.inf), fill(-math.inf)
    for lane in range(0, width, LANES):
        value = _contrast(
            *(mode, size, load_lanes(work, A * width + lane), load_lanes(work, B * width + lane)),
            load_lanes(work, REST * width + lane),
            load_lanes(work, DEVIATION * width + lane),
        )
        lower = load_lanes(work, LOWER * width + lane)
        upper = load_lanes(work, UPPER * width + lane)
        value = value * choose(value > 0.0, lower, upper) * load_lanes(work, STILL * width + lane)
        store(work, F * width + lane, value)
        top, bottom = max(top, value), max(bottom, -value)
    return largest(top), -largest(bottom)


# The root


@inner
def _weigh_epsilon(y, low, work):
    """Return what is gained and lost where y of all weight goes to the smallest value."""
    width, gained, lost = work.shape[1], fill(0.0), fill(0.0)
    for lane in range(0, width, LANES):
        part = load_lanes(work, W * width + lane) * load_lanes(work, F * width + lane)
        gained += max(part, 0.0)
        lost += max(-part, 0.0)
    gained, lost = (1.0 - y) * total(gained), (1.0 - y) * total(lost)
    return gained + y * max(low, 0.0), lost + y * max(-low, 0.0)


@inner
def _weigh_tv(y, high, low, work):
    """Return the same where the largest value has more weight than y."""
    width, gained, lost, tops = work.shape[1], fill(0.0), fill(0.0), fill(0.0)
    for lane in range(0, width, LANES):
        w, f = load_lanes(work, W * width + lane), load_lanes(work, F * width + lane)
        tops += choose(f < high, 0.0, w)
        part = choose(f < high, w * f, 0.0)
        gained += max(part, 0.0)
        lost += max(-part, 0.0)
    top, bottom = (total(tops) - y) * high, y * low
    gained, lost = total(gained) + max(top, 0.0), total(lost) + max(-top, 0.0)
    return gained + max(bottom, 0.0), lost + max(-bottom, 0.0)


@inner
def _weigh_chi2(y, high, size, work):
    """Return the same where no tree is emptied, and no difference of values is small; else NaN."""
    width, mean, spread = work.shape[1], fill(0.0), fill(0.0)
    unit = 1.0 / size
    for lane in range(0, width, LANES):
        w, f = load_lanes(work, W * width + lane), load_lanes(work, F * width + lane)
        mean += w * (f * unit)
    middle = total(mean)
    for lane in range(0, width, LANES):
        w, f = load_lanes(work, W * width + lane), load_lanes(work, F * width + lane)
        gap = f * unit - middle
        spread += w * gap * gap
    variance, above = total(spread), y * (high * unit - middle)
    if not (variance > NARROW and above * above < SMALL * variance):
        return math.nan, math.nan
    tilt, gained, lost = y / math.sqrt(variance), fill(0.0), fill(0.0)
    for lane in range(0, width, LANES):
        w, f = load_lanes(work, W * width + lane), load_lanes(work, F * width + lane)
        part = w * f * (1.0 - tilt * (f * unit - middle))
        gained += max(part, 0.0)
        lost += max(-part, 0.0)
    return total(gained), total(lost)


@inner
def _weigh(y, high, low, machine):
    """Return what is gained and lost, where that is simple; or else NaN."""
    mode, _, root_moves = machine[0]
    work = machine[1][3]
    weight = work[W, 0]
    if not root_moves or mode == EPSILON:
        return _weigh_epsilon(y if root_moves else 0.0, low, work)
    if mode == TV:
        return _weigh_tv(y, high, low, work) if y <= weight else (math.nan, math.nan)
    if weight <= COMMON:
        return math.nan, math.nan
    return _weigh_chi2(y, high, max(high, -low), work)


@inner
def _weigh_moved(y, size, machine):
    """Return the same, tree after tree, in units of the largest value."""
    mode, _, root_moves = machine[0]
    work, order = machine[1][3], machine[1][4]
    trees, f, moved = len(order) - 1, work[F], work[MOVED]
    for i in range(trees):
        f[i] /= size
        moved[i] = work[W, i]
    if root_moves and mode == TV:
        shift_tv(y, work[W], f, trees, order, work[SHIFT], moved)
    elif root_moves and mode == CHI2:
        w, shift = work[W], work[SHIFT]
        shift_chi2(y, w, f, trees, order, shift, moved, work[MASS], work[REACH], work[VARIANCE])
    elif root_moves:
        lowest = 0
        for i in range(trees):
            lowest = i if f[i] < f[lowest] else lowest
            moved[i] *= 1.0 - y
        moved[lowest] += y
    gained, lost = 0.0, 0.0
    for i in range(trees):
        part = moved[i] * f[i]
        gained += part if part > 0.0 else 0.0
        lost -= part if part < 0.0 else 0.0
    return gained, lost


@inner
def _fall_of(mode, p):
    """Return how fast a lower bound falls."""
    if mode == TV:
        return 1.0
    return p if mode == EPSILON else math.sqrt(p * (1.0 - p))


@inner
def _vanishes(y, weights, machine):
    """Tell whether all values that count are 0, and none of them only too small for a float."""
    work = machine[1][3]
    for tree in range(len(machine[1][4]) - 1):
        least = work[LEAST, tree] if work[STILL, tree] > 0.0 else 0.0
        falls = least - y * _fall_of(machine[0][0], least) > 0.0
        if weights[tree] > 0.0 and (work[F, tree] != 0.0 or falls):
            return False
    return True


@inner
def compare(y, machine):
    """Return log P − log N, of what is gained and lost; NaN where either may have underflowed."""
    work = machine[1][3]
    high, low = _find_values(y, machine)
    size = max(high, -low)
    if not size > SMALLEST:
        return -math.inf if size == 0.0 and _vanishes(y, work[W], machine) else math.nan
    gained, lost = _weigh(y, high, low, machine)
    if not max(gained, lost) >= FAINT * size:
        gained, lost = _weigh_moved(y, size, machine)
        if max(gained, lost) < FAINT:
            nothing = max(gained, lost) == 0.0 and _vanishes(y, work[MOVED], machine)
            return -math.inf if nothing else math.nan
    if gained == 0.0:
        return -math.inf
    return math.log(gained / lost) if lost > 0.0 else math.inf


@inner
def look(y, machine):
    find_products(y, machine)
    return compare(y, machine)


# Where trees change sides


@inner
def _turn(mode, a, b, deviation):
    """Return where the lower expectation of 1_ĉ − 1_c, positive before, is 0."""
    if mode == EPSILON:
        return (a - b) / (1.0 + a - b)
    return 0.5 * (a - b) if mode == TV else (a - b) / deviation


@inner
def _emptied(mode, least):
    """Return where the smallest factor falls to 0."""
    if mode == TV:
        return choose(least < 1.0, least, math.inf)
    falls = choose(least < 1.0, least * (1.0 - least), 0.0)
    speed = math.sqrt(falls) if mode == CHI2 else least
    return choose(falls > 0.0, least / speed, choose(least > 0.0, math.inf, 0.0))


@inner
def _threshold(mode, root_moves, dead, trees):
    """Return from where on the weights of all living trees can be moved to those dead."""
    if dead == trees:
        return 0.0
    if not root_moves or mode == EPSILON:
        return math.inf
    return (trees - dead) / trees if mode == TV else math.sqrt((trees - dead) / dead)


@inner
def _count_dead(end, work):
    """Return how many lanes hold trees that have ceased to speak for the prediction."""
    dead, width = np.int64(0), work.shape[1]
    for lane in range(0, width, LANES):
        dead += how_many(load_lanes(work, END * width + lane) <= end)
    return dead


@inner
def find_ends(machine):
    """Return up to where no tree speaks against the prediction, and from where none speaks for it.

    Trees stop to do so one after the other; the last ones may lose their weights before.
    """
    mode, classes_move, root_moves = machine[0]
    work, trees = machine[1][3], len(machine[1][4]) - 1
    width, birth, last = work.shape[1], fill(-math.inf), fill(-math.inf)
    for lane in range(0, width, LANES):
        a, b = load_lanes(work, A * width + lane), load_lanes(work, B * width + lane)
        alive = load_lanes(work, STILL * width + lane) > 0.0
        turns = fill(math.inf)
        if classes_move:
            turns = _turn(mode, a, b, load_lanes(work, DEVIATION * width + lane))
        # Under χ² a class of probability 0 stays one.
        born = choose(b > 0.0, turns, math.inf) if mode == CHI2 else turns
        against = b > a
        if classes_move:
            against = b > 0.0 if mode == CHI2 else b >= 0.0
        born = choose(a > b, born, choose((b > a) | against, 0.0, math.inf))
        birth = max(birth, choose(alive, -born, -math.inf))
        end = min(turns, _emptied(mode, load_lanes(work, LEAST * width + lane)))
        end = choose(alive & (a > b), end, 0.0)
        store(work, END * width + lane, end)
        last = max(last, end)
    first, death = -largest(birth), largest(last)
    if root_moves and mode != EPSILON:
        beyond = width - trees
        for tree in range(trees):
            end = work[END, tree]
            dead = _count_dead(end, work) - (beyond if work[END, trees - 1] <= end else 0)
            death = min(death, max(end, _threshold(mode, root_moves, dead, trees)))
    return first, death
