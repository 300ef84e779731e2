"""Rows as products of probabilities, one for each class: their logarithms, and who leads.

Products of several rows are kept side by side, class after class, until all is found about them:
see `make_room`.
"""

import math
from typing import TYPE_CHECKING

import numpy as np
from numba import types

from robustq.kernels import (
    code_vector,
    code_vector_out,
    float_matrix,
    float_matrix_out,
    float_vector,
    float_vector_out,
    inlined,
    inner,
    int_vector_out,
    kernel,
)
from robustq.vectors import LANES, choose, fill, load, some, store

from ._log_kernels import log_of
from .room import align, make_floats

__all__ = [
    "ROWS",
    "SAFE",
    "extend",
    "keep",
    "lay_out",
    "log_joint",
    "make_room",
    "multiply_four",
    "prepare",
    "rank",
    "rank_some",
    "read",
    "take_logs",
    "write_joint",
]

if TYPE_CHECKING:
    from robustq.arrays import Codes, Floats, Indices

    Tables = tuple[Floats, Floats, int]

FEW = 1 << 10  # rows
ROWS = 32  # that are side by side
SMALL_TABLE = 1 << 15  # numbers that fit into a core's own cache
SMALL = 1e-150  # products are kept above this by taking their logarithm in time
SAFE = 1e-250  # a product above this has not underflowed on the way
BEST, SECOND, SHARE, TOP, LEAD, RANKS = range(0, 6 * ROWS, ROWS)  # who leads, as floats


def extend(class_probs: "Floats", feature_probs: "Floats") -> "tuple[Floats, Floats]":
    """Return tables that can be read beyond their last class; then come factors of 1."""
    one = np.ones(len(class_probs) + LANES)
    return np.concatenate([class_probs, one]), np.concatenate([feature_probs, one])


def lay_out(class_probs: "Floats", feature_probs: "Floats") -> "Tables":
    """Return tables as `extend` does, and how far values are apart in that of the features.

    Where they are few, each begins where a line of the cache does.
    """
    classes = len(class_probs)
    width, values = -(-classes // LANES) * LANES, feature_probs.reshape(-1, classes)
    if len(values) * width > SMALL_TABLE:
        return *extend(class_probs, feature_probs), classes
    padded = np.ones((len(values), width))
    padded[:, :classes] = values
    class_probs, feature_probs = extend(class_probs, padded.ravel())
    return class_probs, align(feature_probs), width


def make_room(classes: int) -> "Floats":
    """Return an array to work in.

    It has the products of each class, rows side by side, then their logarithms, then who leads,
    and then some room for the classes of one row.
    """
    room = make_floats(2 * classes * ROWS + RANKS + LANES)
    room[:] = 1.0
    return room


@inlined
def _best_two(joint):
    """Return the best class and the second, −1 if there is none; the first ones of equals."""
    best, second = np.int64(0), np.int64(-1)
    if len(joint) > 1:
        best = np.int64(joint[1] > joint[0])
        second = 1 - best
    top, next_to = joint[best], joint[second]
    for c in range(2, len(joint)):
        # Nobody could foresee the order: bits take the place of jumps.
        value = joint[c]
        first, other = -np.int64(value > top), -np.int64(value > next_to)
        second = (best & first) | (~first & ((c & other) | (second & ~other)))
        best = (c & first) | (best & ~first)
        next_to, top = max(next_to, min(top, value)), max(top, value)
    return best, second


@inlined
def _share(joint, best):
    """Return p(ĉ | f); all classes are equally likely where p(f) = 0."""
    if joint[best] == -math.inf:
        return 1.0 / len(joint)
    total = 0.0
    for c in range(len(joint)):
        total += math.exp(joint[c] - joint[best])
    return 1.0 / total


@kernel(
    types.void(
        *(float_matrix, int_vector_out, int_vector_out, float_vector_out),
        *(float_vector_out, float_vector_out),
    )
)
def rank(joint, prediction, runner_up, probability, top, lead):
    """Write the best two classes of each row, the probability of the best and its logarithm.

    And by how much that is ahead; infinity if there is only one class.
    """
    for row in range(joint.shape[0]):
        best, second = _best_two(joint[row])
        prediction[row], runner_up[row] = best, second
        probability[row] = _share(joint[row], best)
        top[row] = joint[row, best]
        lead[row] = joint[row, best] - joint[row, second] if second >= 0 else math.inf


@inner
def _log_product(codes, row, c, class_probs, feature_probs, width, firsts):
    """Return the logarithm of a product that may underflow."""
    part, total, features = class_probs[c], 0.0, len(firsts) // ROWS
    for feature in range(features):
        code = codes[row * features + feature]
        if code >= 0:
            factor = feature_probs[(firsts[feature] + code) * width + c]
            if part < SMALL or factor < SMALL:
                total += math.log(part) if part > 0.0 else -math.inf
                part = factor
            else:
                part *= factor
    return total + (math.log(part) if part > 0.0 else -math.inf)


@inner
def _locate(codes, firsts, width, classes, nothing, places, cells):
    """Write where the factors of rows that follow each other stand.

    Places are those in a table whose values are a width apart: of what is missing, those of factors
    of 1. In cells they are as many numbers apart as there are classes; what is missing is −1.
    """
    for i in range(len(codes)):
        value = np.int32(firsts[i] + codes[i])
        places[i] = np.int32(value * width) if codes[i] >= 0 else nothing
        cells[i] = np.int32(value * classes) if codes[i] >= 0 else np.int32(-1)


@inner
def keep(products, first, classes, lane, room):
    """Write the products of a row, from a class on, to its lane."""
    spare = len(room) - LANES
    store(room, spare, products)
    for c in range(first, min(first + LANES, classes)):
        room[c * ROWS + lane] = room[spare + c - first]


@inner
def multiply_four(places, lane, features, classes, class_probs, feature_probs, room):
    """Write the products of all classes of four rows: none of them waits for another."""
    of_one = places[lane * features : (lane + 1) * features]
    of_two = places[(lane + 1) * features : (lane + 2) * features]
    of_three = places[(lane + 2) * features : (lane + 3) * features]
    of_four = places[(lane + 3) * features : (lane + 4) * features]
    for first in range(0, classes, LANES):
        one = load(class_probs, first)
        two, three, four = one, one, one
        for k in range(features):
            one *= load(feature_probs, of_one[k] + first)
            two *= load(feature_probs, of_two[k] + first)
            three *= load(feature_probs, of_three[k] + first)
            four *= load(feature_probs, of_four[k] + first)
        keep(one, first, classes, lane, room)
        keep(two, first, classes, lane + 1, room)
        keep(three, first, classes, lane + 2, room)
        keep(four, first, classes, lane + 3, room)


@inner
def take_logs(classes, room):
    """Write the logarithms of products; tell whether one is so small that it may have underflowed.

    The logarithm of a product, not a sum of logarithms: faster, and closer.
    """
    tiny = fill(0.0)
    for place in range(0, classes * ROWS, LANES):
        product = load(room, place)
        # Products of probabilities only fall: one that is not tiny has never been.
        tiny = choose(product > SAFE, tiny, 1.0)
        store(room, classes * ROWS + place, log_of(max(product, SAFE)))
    return some(tiny > 0.0)


@inner
def write_joint(start, count, room, joint):
    """Write the logarithms of some rows."""
    classes = joint.shape[1]
    for lane in range(count):
        for c in range(classes):
            joint[start + lane, c] = room[(classes + c) * ROWS + lane]


@inner
def _find_joint(
    start, count, codes, class_probs, feature_probs, width, firsts, places, cells, to, room, joint
):
    """Write log p(c, f) of some rows, and where their factors stand."""
    classes, features = joint.shape[1], len(firsts) // ROWS
    nothing = np.int32(len(feature_probs) - classes - LANES)
    some_codes = codes[start * features : (start + count) * features]
    _locate(some_codes, firsts, width, np.int32(classes), nothing, places, cells[to:])
    for lane in range(0, count, 4):
        multiply_four(places, lane, features, classes, class_probs, feature_probs, room)
    if take_logs(classes, room):
        for lane in range(count):
            for c in range(classes):
                if not room[c * ROWS + lane] > SAFE:
                    room[(classes + c) * ROWS + lane] = _log_product(
                        codes, start + lane, c, class_probs, feature_probs, width, firsts
                    )
    write_joint(start, count, room, joint)


@inner
def _rank_lanes(first, classes, room):
    """Write who leads, of `LANES` rows from one on; see `rank`. A share is NaN where it is tiny."""
    logs, ranks = classes * ROWS + first, 2 * classes * ROWS + first
    top, share = load(room, logs), load(room, first)
    best, second, below = fill(0.0), fill(1.0 if classes > 1 else -1.0), fill(-math.inf)
    total = share
    for c in range(1, classes):
        value, product = load(room, logs + c * ROWS), load(room, first + c * ROWS)
        ahead, closer = value > top, value > below
        second = choose(ahead, best, choose(closer, np.float64(c), second))
        below = choose(ahead, top, choose(closer, value, below))
        best, share = choose(ahead, np.float64(c), best), choose(ahead, product, share)
        top, total = choose(ahead, value, top), total + product
    store(room, ranks + BEST, best)
    store(room, ranks + SECOND, second)
    store(room, ranks + SHARE, choose(share > SAFE, share / total, math.nan))
    store(room, ranks + TOP, top)
    store(room, ranks + LEAD, top - below if classes > 1 else fill(math.inf))


@inner
def rank_some(start, count, room, joint, prediction, runner_up, probability, top, lead):
    """Write what `rank` does for some rows, given their products and logarithms."""
    classes = joint.shape[1]
    ranks = room[2 * classes * ROWS :]
    for first in range(0, ROWS, LANES):
        _rank_lanes(first, classes, room)
    for lane in range(count):
        row = start + lane
        prediction[row] = np.int64(ranks[BEST + lane])
        runner_up[row] = np.int64(ranks[SECOND + lane])
        top[row], lead[row] = ranks[TOP + lane], ranks[LEAD + lane]
        probability[row] = ranks[SHARE + lane]
    for lane in range(count):
        row = start + lane
        if math.isnan(probability[row]):
            probability[row] = _share(joint[row], prediction[row])


@kernel(
    types.void(
        *(code_vector, float_vector, float_vector, types.int32, code_vector, float_vector_out),
        *(code_vector_out, code_vector_out, float_matrix_out),
    )
)
def _log_joint(codes, class_probs, feature_probs, width, firsts, room, places, cells, joint):
    for start in range(0, joint.shape[0], ROWS):
        count = min(ROWS, joint.shape[0] - start)
        _find_joint(
            *(start, count, codes, class_probs, feature_probs, width, firsts, places, cells, 0),
            *(room, joint),
        )


def log_joint(
    codes: "Codes",
    tables: "Tables",
    offsets: "Indices",
    joint: "Floats",
) -> None:
    """Write log p(c, f) for each row and class, given tables from `lay_out`; see `prepare`."""
    given = prepare(codes, tables, offsets, joint.shape[1])
    if len(codes) > FEW:
        _log_joint(*given, np.empty_like(given[-1]), joint)
        return
    # What else `read` finds takes no time, and who asks for this mostly asks for that, too: one
    # kernel less to compile.
    found = (np.empty(len(codes), dtype) for dtype in (np.int64, np.int64, *[np.float64] * 3))
    read(*given, np.empty(codes.size, dtype=np.int32), joint, *found)


def prepare(
    codes: "Codes", tables: "Tables", offsets: "Indices", classes: int
) -> "tuple[Codes, Floats, Floats, int, Codes, Floats, Codes]":
    """Return the first arguments of `read`.

    Parameters
    ----------
    codes : (rows, features); negative where missing
    tables : of a naive Bayes model, from `lay_out`
    offsets : where each feature begins in the table, see `learning.counts.Layout`
    classes : how many there are
    """
    flat = np.ascontiguousarray(codes, dtype=np.int32).ravel()
    # As many as rows are looked at at once: one loop goes over all their codes.
    repeated = np.tile((offsets // classes).astype(np.int32), ROWS)
    # Zeros, since the places of rows beyond the last are read as well.
    room, places = make_room(classes), np.zeros_like(repeated)
    return flat, *tables, repeated, room, places


@kernel(
    types.void(
        *(code_vector, float_vector, float_vector, types.int32, code_vector, float_vector_out),
        *(code_vector_out, code_vector_out, float_matrix_out, int_vector_out, int_vector_out),
        *(float_vector_out, float_vector_out, float_vector_out),
    )
)
def read(
    codes,
    class_probs,
    feature_probs,
    width,
    firsts,
    room,
    places,
    cells,
    joint,
    prediction,
    runner_up,
    probability,
    top,
    lead,
):
    """Write log p(c, f), where the factors stand, and who leads, in one pass over the rows.

    Parameters
    ----------
    codes … places : from `prepare`
    cells : like codes, written: where factors of the first class stand; −1 where there is no value
    joint : (rows, classes), written
    prediction, runner_up, probability, top, lead : (rows,), written; see `rank`
    """
    features = len(firsts) // ROWS
    for start in range(0, joint.shape[0], ROWS):
        count = min(ROWS, joint.shape[0] - start)
        _find_joint(
            *(start, count, codes, class_probs, feature_probs, width, firsts, places),
            *(cells, start * features, room, joint),
        )
        rank_some(start, count, room, joint, prediction, runner_up, probability, top, lead)
