"""What trees of which everything is perturbed are worth, for rows that reach one leaf of each.

The value of a tree is the lower expectation of 1_ĉ − 1_c at its leaf, times lower bounds of all
factors above and beside it if that is positive, or else upper ones. Bounds are straight lines in y,
cut to [0, 1]; products of them are the same whichever classes are compared.
"""

import math

import numpy as np

from robustq.kernels import inner
from robustq.vectors import LANES, fill, store
from robustq.vectors import load as load_lanes

from ._ball_kernels import shift_chi2, shift_tv, sort
from .modes import CHI2, EPSILON, TV

__all__ = [
    "CONTEST",
    "EDGES",
    "WORK",
    "compare",
    "find_ends",
    "find_products",
    "load",
    "look",
    "oppose",
]

SMALLEST = 1e-150  # the largest value of a tree, below which others might underflow
FAINT = 1e-100  # what is left of it
RARE = 1e-9
# The rows of what is known of two classes at the leaves: both probabilities, that of all others,
# and the deviation of 1_ĉ − 1_c.
CONTEST = A, B, REST, DEVIATION = range(4)
# The factors of a row, one column for each tree: probabilities, and under χ² how fast their bounds
# leave them. What fills up is cut to 1, whatever is taken from it.
EDGES = P, SPREAD = range(2)
FILLING = 1e300
LOWER, UPPER = range(2)  # products
# Weights, values, shifts and moved weights of trees, three rows for χ², and the smallest factors.
WORK = W, F, SHIFT, MOVED, MASS, REACH, VARIANCE, LEAST = range(8)


# Factors


@inner
def load(row, mode, p, counts, edges, least):
    """Write the factors of a row, trees side by side; return how many levels there are.

    Short paths are filled up. Also write the smallest factor of each tree, the first one that falls
    to 0.
    """
    trees, levels = counts.shape[1], np.int64(0)
    for tree in range(trees):
        levels = max(levels, counts[row, tree])
    for tree in range(trees):
        smallest = 1.0
        for k in range(counts[row, tree]):
            edges[P, k, tree] = p[row, tree, k]
            smallest = min(smallest, p[row, tree, k])
        for k in range(counts[row, tree], levels):
            edges[P, k, tree] = FILLING
        least[tree] = smallest
    if mode == CHI2:
        for k in range(levels):
            for tree in range(trees):
                q = edges[P, k, tree]
                edges[SPREAD, k, tree] = math.sqrt(max(q * (1.0 - q), 0.0))
    return levels


@inner
def find_products(y, machine):
    """Write the products of all lower and of all upper bounds of every tree, several at once."""
    mode, levels, edges, products = machine[0][0], machine[1], machine[2], machine[3]
    most, width = edges.shape[1], products.shape[1]
    keep = 1.0 - y if mode == EPSILON else 1.0
    fall = 0.0 if mode == EPSILON else y
    for tree in range(0, width, LANES):
        lower, upper = fill(1.0), fill(1.0)
        for k in range(levels):
            q = load_lanes(edges, (P * most + k) * width + tree)
            falls, rises = q * keep - fall, q * keep + y
            if mode == CHI2:
                part = load_lanes(edges, (SPREAD * most + k) * width + tree) * y
                falls, rises = q - part, q + part
            lower *= min(max(falls, 0.0), 1.0)
            upper *= min(rises, 1.0)
        store(products, LOWER * width + tree, lower)
        store(products, UPPER * width + tree, upper)


# Classes


@inner
def oppose(best, rival, class_probs, leaves, contest):
    """Write what the leaves of a row say of two classes."""
    classes = class_probs.shape[1]
    for tree in range(len(leaves)):
        leaf = leaves[tree]
        a, b = class_probs[leaf, best], class_probs[leaf, rival]
        rest = 1.0 - a - b if classes > 2 else 0.0
        if classes > 2 and rest < RARE:
            # Others may be there or not: a difference does not tell.
            rest = 0.0
            for c in range(classes):
                rest += class_probs[leaf, c] if c != best and c != rival else 0.0
        contest[A, tree], contest[B, tree], contest[REST, tree] = a, b, rest
        contest[DEVIATION, tree] = math.sqrt((a + b) * rest + 4.0 * a * b)


@inner
def _contrast_chi2(y, a, b, rest, deviation):
    """Return the lower expectation of 1_ĉ − 1_c: μ − σy, until ĉ is empty; see `ChiSquared`."""
    if y == 0.0 or deviation == 0.0:
        return a - b
    if y * (1.0 - a + b) < deviation and a > 0.0:
        return a - b - y * deviation
    if b == 0.0:
        return 0.0
    mass = rest + b
    excess = max(y * y * mass - a, 0.0)
    if excess * b >= rest:
        return -1.0
    return -(b + math.sqrt(excess * b * rest)) / mass


@inner
def _contrast(mode, y, a, b, rest, deviation):
    if mode == EPSILON:
        return (1.0 - y) * (a - b) - y
    if mode == TV:
        return max(a - y, 0.0) - min(b + y, 1.0)
    return _contrast_chi2(y, a, b, rest, deviation)


# The root


@inner
def _move_weights(mode, y, work, order, count):
    """Write the weights of trees that make the expectation of their values smallest."""
    w, f, shift, moved = work[W], work[F], work[SHIFT], work[MOVED]
    if mode == TV:
        shift_tv(y, w, f, count, order, shift, moved)
    elif mode == CHI2:
        shift_chi2(y, w, f, count, order, shift, moved, work[MASS], work[REACH], work[VARIANCE])
    else:
        lowest = 0
        for i in range(count):
            lowest = i if f[i] < f[lowest] else lowest
            moved[i] = (1.0 - y) * w[i]
        moved[lowest] += y


@inner
def _fall_of(mode, p):
    """Return how fast a lower bound falls."""
    if mode == TV:
        return 1.0
    return p if mode == EPSILON else math.sqrt(p * (1.0 - p))


@inner
def _vanishes(y, machine):
    """Tell whether all values that count are 0, and none of them only too small for a float."""
    still, work = machine[5], machine[6]
    f, moved = work[F], work[MOVED]
    for tree in range(len(still)):
        least = work[LEAST, tree] if still[tree] > 0.0 else 0.0
        falls = least - y * _fall_of(machine[0][0], least) > 0.0
        if moved[tree] > 0.0 and (f[tree] != 0.0 or falls):
            return False
    return True


@inner
def compare(y, machine):
    """Return log P − log N, of what is gained and lost; NaN where either may have underflowed."""
    mode, classes_move, root_moves = machine[0]
    products, contest, still, work, order = machine[3:]
    count = len(still)
    w, f, moved = work[W], work[F], work[MOVED]
    size, largest = y if classes_move else 0.0, 0.0
    for i in range(count):
        v = _contrast(
            mode, size, contest[A, i], contest[B, i], contest[REST, i], contest[DEVIATION, i]
        )
        f[i] = v * (products[LOWER, i] if v > 0.0 else products[UPPER, i]) * still[i]
        largest, moved[i] = max(largest, abs(f[i])), w[i]
    if not largest > SMALLEST:
        return -math.inf if largest == 0.0 and _vanishes(y, machine) else math.nan
    for i in range(count):
        f[i] /= largest
    if root_moves:
        _move_weights(mode, y, work, order, count)
    gained, lost = 0.0, 0.0
    for i in range(count):
        part = moved[i] * f[i]
        gained += part if part > 0.0 else 0.0
        lost -= part if part < 0.0 else 0.0
    if max(gained, lost) < FAINT:
        return -math.inf if max(gained, lost) == 0.0 and _vanishes(y, machine) else math.nan
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
    if mode == TV:
        return 0.5 * (a - b)
    return (a - b) / deviation if deviation > 0.0 else math.inf


@inner
def _threshold(mode, root_moves, dead, trees):
    """Return from where on the weights of all living trees can be moved to those dead."""
    if dead == trees:
        return 0.0
    if not root_moves or mode == EPSILON:
        return math.inf
    return (trees - dead) / trees if mode == TV else math.sqrt((trees - dead) / dead)


@inner
def find_ends(machine):
    """Return up to where no tree speaks against the prediction, and from where none speaks for it.

    Trees stop to do so one after the other; the last ones may lose their weights before.
    """
    mode, classes_move, root_moves = machine[0]
    contest, still, work, order = machine[4:]
    trees, ends, birth = len(still), work[SHIFT], math.inf
    for tree in range(trees):
        a, b, ends[tree] = contest[A, tree], contest[B, tree], 0.0
        if still[tree] > 0.0 and a <= b:
            birth = 0.0 if a < b or (classes_move and b > 0.0) else birth
        elif still[tree] > 0.0:
            turn = _turn(mode, a, b, contest[DEVIATION, tree]) if classes_move else math.inf
            # Under χ² a class of probability 0 stays one.
            if mode != CHI2 or b > 0.0:
                birth = min(birth, turn)
            least = work[LEAST, tree]
            if least < 1.0:
                turn = min(turn, least / _fall_of(mode, least)) if least > 0.0 else 0.0
            ends[tree] = turn
    sort(ends, trees, order)
    death = math.inf
    for k in range(trees):
        end = max(ends[order[k]], _threshold(mode, root_moves, k + 1, trees))
        death = min(death, end)
    return birth, death
