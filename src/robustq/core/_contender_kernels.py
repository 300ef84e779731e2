"""Rivals that may be ahead where a prediction flips to another one.

Most are still far behind there, which Π upper of all of them tells, where a few digits do. Classes
stand side by side, and of their groups four are looked at at once, of one row or of several: a
product waits for each of its factors, but none for another product.

Of several that are ahead of the runner-up, the one that is most so is searched for first: mostly
nobody is ahead of it.
"""

import math
from typing import TYPE_CHECKING

import numpy as np
from numba import types

from robustq.kernels import float_matrix_out, float_vector_out, int_matrix_out, joined
from robustq.vectors import (
    LANES,
    WIDE,
    choose,
    fill_wide,
    first_lanes,
    lane_is,
    load,
    load_singles,
    load_wide,
    some,
    store,
)

from ._height_kernels import LINE, P
from ._inverse_kernels import about_inverse
from ._place_kernels import CLASS, ITEM, SCOUT
from ._root_kernels import GOING, HIGH, LEVEL, LOW, ROOT, START, TAKEN
from .room import make_floats

__all__ = ["ROOM", "add_waiting", "find_factors", "let_wait", "make_room", "take_waiting"]

if TYPE_CHECKING:
    from robustq.arrays import Floats, Indices

SAFE = 1e-250  # a product above this has not underflowed on the way
AT_ONCE = 4
_, SLOPE, SCALE = range(3)  # of the factors of all classes, see `products.BallTables`
LANE, FIRST = range(2)  # which lane a group of classes is of, and its first class
# What is known of who waits: the row, the class, and whether others wait for it; where it starts,
# its bracket, and how many steps it took.
ITEM_OF, CLASS_OF, SCOUTS = range(3)
START_OF, LOW_OF, HIGH_OF, TAKEN_OF = range(4)


# The types of what `make_room` returns.
ROOM = types.Tuple((int_matrix_out, float_vector_out, int_matrix_out, float_matrix_out))


def make_room(classes: int) -> "tuple[Indices, Floats, Indices, Floats]":
    """Return arrays to work in: groups of classes, their products, and who waits."""
    groups, most = WIDE * -(-classes // LANES) + AT_ONCE, 2 * WIDE * (classes + 1)
    return (
        *(np.zeros((2, groups), dtype=np.int64), make_floats(groups * LANES)),
        *(np.zeros((3, most), dtype=np.int64), np.zeros((4, most))),
    )


@joined
def add_waiting(waiting, i, c, scouts, start, bracket, taken, room):
    """Let a row's rival wait; return how many wait."""
    _, _, queue, begun = room
    queue[ITEM_OF, waiting], queue[CLASS_OF, waiting], queue[SCOUTS, waiting] = i, c, scouts
    begun[START_OF, waiting], begun[TAKEN_OF, waiting] = start, taken
    begun[LOW_OF, waiting], begun[HIGH_OF, waiting] = bracket
    return waiting + 1


@joined
def take_waiting(waiting, lane, whole, known, room):
    """Let a lane have the last who waits, as far as that is known here; return how many wait."""
    _, _, queue, begun = room
    waiting -= 1
    whole[ITEM + lane], whole[CLASS + lane] = queue[ITEM_OF, waiting], queue[CLASS_OF, waiting]
    whole[SCOUT + lane] = queue[SCOUTS, waiting]
    known[START + lane], known[TAKEN + lane] = begun[START_OF, waiting], begun[TAKEN_OF, waiting]
    known[LOW + lane], known[HIGH + lane] = begun[LOW_OF, waiting], begun[HIGH_OF, waiting]
    return waiting


@joined
def _find_floors(count, fractional, upper, above, lower, below, known):
    """Write what a product must reach not to be behind for certain."""
    floors = load_wide(known, LEVEL) * math.exp(-3e-4 * count)
    if fractional:
        # What stands in for the denominators of both sides.
        x, under = load_wide(known, ROOT), fill_wide(1.0)
        for k in range(1, count + 1):
            under *= 1.0 + x * load_wide(upper, (above - k) * LINE + WIDE)
            under *= 1.0 + x * load_wide(lower, (below - k) * LINE + WIDE)
        floors = floors / under * (1.0 - 1e-3)
    store(known, LEVEL, choose(floors > SAFE, floors, 0.0))


@joined
def _list_groups(filled, classes, runner_up, whole, known, groups):
    """Write the groups of all lanes that found a root which no other rival has been held to.

    Return how many they are.
    """
    count = np.int64(0)
    for lane in range(filled):
        x, first_time = known[ROOT + lane], whole[CLASS + lane] == runner_up[whole[ITEM + lane]]
        asks = first_time or whole[SCOUT + lane] > 0
        if asks and known[GOING + lane] <= 0.0 and x == x:  # noqa: PLR0124 (NaN)
            for first in range(0, classes, LANES):
                groups[LANE, count], groups[FIRST, count] = lane, first
                count += 1
    for more in range(count, count + AT_ONCE):
        groups[LANE, more] = groups[FIRST, more] = 0
    return count


@joined
def find_factors(x, at, cut, fractional, sides):
    """Return the upper probabilities of a value, of a group of classes."""
    stride = sides.shape[1]
    factor = load_singles(sides, at) + x * load_singles(sides, SLOPE * stride + at)
    if fractional:
        scale = 1.0 + x * load_singles(sides, SCALE * stride + at)
        return min(factor, cut * scale) * about_inverse(scale)
    return min(factor, cut)


@joined
def _begin(x, first, classes, best, second, leading_prior, chi2, fractional, sides):
    """Return the upper priors of a group of classes; −1 for the two that lead, and beyond the last.

    Under χ² with what the prior does there: see `chi2_prior`.
    """
    product = find_factors(x, first, math.inf, fractional, sides)
    if chi2 > 0.0:
        kappa = x * chi2 * x * chi2 / (1.0 + x * chi2 * x * chi2)
        prior = load_singles(sides, first)
        rest = max(prior + (leading_prior - kappa), 0.0)
        product += math.sqrt(rest * prior * (kappa / leading_prior))
    here = first_lanes(classes - first) & ~(lane_is(best - first) | lane_is(second - first))
    return choose(here, product, -1.0)


@joined
def _begin_all(count, pairs, class_table, chi2, fractional, sides, whole, known, room):
    """Write the priors of all groups."""
    (groups, products, _, _), (prediction, runner_up) = room, pairs
    for k in range(count):
        lane, first = groups[LANE, k], groups[FIRST, k]
        i, x = whole[ITEM + lane], known[ROOT + lane]
        best, second, classes = prediction[i], runner_up[i], len(class_table)
        begun = _begin(
            x, first, classes, best, second, class_table[best, P], chi2, fractional, sides
        )
        store(products, k * LANES, begun)


@joined
def _multiply_four(start, cells, nothing, cut, fractional, sides, whole, known, room):
    """Multiply four products by the factors of all features."""
    groups, products, _, _ = room
    lanes, firsts, at = groups[LANE, start:], groups[FIRST, start:], start * LANES
    of_one, of_two = cells[whole[ITEM + lanes[0]]], cells[whole[ITEM + lanes[1]]]
    of_three, of_four = cells[whole[ITEM + lanes[2]]], cells[whole[ITEM + lanes[3]]]
    x_one, x_two = known[ROOT + lanes[0]], known[ROOT + lanes[1]]
    x_three, x_four = known[ROOT + lanes[2]], known[ROOT + lanes[3]]
    one, two = load(products, at), load(products, at + LANES)
    three, four = load(products, at + 2 * LANES), load(products, at + 3 * LANES)
    for k in range(cells.shape[1]):
        a, b, c, d = of_one[k], of_two[k], of_three[k], of_four[k]
        a, b = a if a >= 0 else nothing, b if b >= 0 else nothing
        c, d = c if c >= 0 else nothing, d if d >= 0 else nothing
        one *= find_factors(x_one, a + firsts[0], cut, fractional, sides)
        two *= find_factors(x_two, b + firsts[1], cut, fractional, sides)
        three *= find_factors(x_three, c + firsts[2], cut, fractional, sides)
        four *= find_factors(x_four, d + firsts[3], cut, fractional, sides)
    store(products, at, one)
    store(products, at + LANES, two)
    store(products, at + 2 * LANES, three)
    store(products, at + 3 * LANES, four)


@joined
def _keep(waiting, lane, at, classes, best, second, whole, known, room):
    """Let those wait that are not behind; return how many wait.

    If they are several, the first time all others wait for the one that is most ahead. Then they
    start where it started: of equal ones nobody is ahead by a digit.
    """
    i, floor, products = whole[ITEM + lane], known[LEVEL + lane], room[1]
    asked, before, most, most_product = whole[CLASS + lane], waiting, np.int64(-1), math.nan
    start = known[ROOT + lane] if asked == second else known[START + lane]
    for c in range(classes):
        product = products[at + c]
        if c not in (best, second, asked) and not product < floor:
            waiting = add_waiting(waiting, i, c, 0, start, (0.0, start), 0.0, room)
            if waiting == before + 1 or product > most_product:
                most, most_product = np.int64(c), product
    if asked == second and waiting > before + 1:
        waiting = add_waiting(before, i, most, 1, start, (0.0, start), 0.0, room)
    return waiting


@joined
def let_wait(
    waiting,
    filled,
    cells,
    prediction,
    runner_up,
    class_table,
    class_sides,
    feature_sides,
    form,
    lists,
    whole,
    known,
    room,
):
    """Let rivals wait that may be ahead where lanes found a root; return how many wait.

    Parameters are those of `_product_kernels.search`; `lists` are the factors of both sides, and
    how many.
    """
    (cut, _, _, chi2, fractional, _), (groups, products, _, _) = form, room
    features, classes, pairs = cells.shape[1], len(class_table), (prediction, runner_up)
    nothing = feature_sides.shape[1] - class_sides.shape[1]
    _find_floors(features + 1, fractional, *lists, known)
    count = _list_groups(filled, classes, runner_up, whole, known, groups)
    _begin_all(count, pairs, class_table, chi2, fractional, class_sides, whole, known, room)
    for start in range(0, count, AT_ONCE):
        if fractional:
            _multiply_four(start, cells, nothing, cut, True, feature_sides, whole, known, room)
        else:
            _multiply_four(start, cells, nothing, cut, False, feature_sides, whole, known, room)
    each = (classes + LANES - 1) // LANES
    for k in range(0, count, each):
        lane, ahead = groups[LANE, k], False
        i, floor = whole[ITEM + lane], known[LEVEL + lane]
        for group in range(k, k + each):
            ahead = ahead or some(~(load(products, group * LANES) < floor))
        if ahead:
            waiting = _keep(
                *(waiting, lane, k * LANES, classes, prediction[i], runner_up[i]),
                *(whole, known, room),
            )
    return waiting
