"""Means of class leaves, perturbed by ε-contamination, total variation or χ².

For a rival c, each leaf has V = E̲_q[1_ĉ − 1_c], and R_c(δ) = E̲_w[V] over the weights w = 1/T of T
leaves; only two probabilities of each leaf matter, a = q(ĉ) and b = q(c). R falls as δ grows, and
is followed down to 0 by its slope: in δ for total variation, where it is made of parabolas, and in
√δ for χ², where it is nearly straight.
"""

import math

import numpy as np
from numba import types

from robustq.kernels import (
    code_matrix,
    float_matrix,
    float_matrix_out,
    float_vector_out,
    inner,
    int_vector,
    int_vector_out,
    kernel,
)

from .modes import CHI2, EPSILON, TV

__all__ = ["ROOM", "add", "search"]

ENOUGH = 1e-11  # how near, relative, is near enough
NEAR = 1e-5  # leads that are smaller, relative to what they are made of, show their rounding
FARTHEST = 1e6  # roots of sizes of χ² beyond this are left to the recursion
MAX_STEPS = 200
STRAIGHT = 12  # so many steps go by the slope alone
A, B, SPREAD, V, FALL = range(5)  # the rows of the room to work in
ROOM = 5


@kernel(types.void(float_matrix, code_matrix, float_matrix_out))
def add(class_table, leaves, out):
    """Add the class probabilities of the leaves of each row."""
    for row in range(len(leaves)):
        for voice in range(leaves.shape[1]):
            for c in range(class_table.shape[1]):
                out[row, c] += class_table[leaves[row, voice], c]


# Total variation


@inner
def _place(a, b, low, high, place):
    """Order leaves so that those with larger leads a − b stand before a place."""
    while low < high:
        middle = (low + high) // 2
        pivot = a[middle] - b[middle]
        i, j = low, high
        while i <= j:
            while a[i] - b[i] > pivot:
                i += 1
            while a[j] - b[j] < pivot:
                j -= 1
            if i <= j:
                a[i], a[j] = a[j], a[i]
                b[i], b[j] = b[j], b[i]
                i += 1
                j -= 1
        if place <= j:
            high = j
        elif place >= i:
            low = i
        else:
            return


@inner
def _look_tv(of_root, of_leaves, voices, delta, low, high, room):
    """Return R at a size, how fast it falls, and half of how its slope changes.

    The weights of the largest V go to the least one. Where R >= 0 these are the leaves of the
    largest leads at size 0, whatever the size, and otherwise they only make R less negative; of
    those in front and behind, two places are known.
    """
    a, b = room[A], room[B]
    moved = delta * voices if of_root else 0.0
    first = min(int(moved), voices - 1)
    if of_root:
        _place(a, b, low, high, first)
    total, falls, least, least_falls = 0.0, 0.0, math.inf, 0.0
    cut, cut_falls = 0.0, 0.0
    for k in range(first, voices):
        value, fall = a[k] - b[k], 0.0
        if of_leaves:
            value = max(max(a[k] - delta, 0.0) - b[k] - delta, -1.0)
            fall = 2.0 if a[k] > delta else (1.0 if value > -1.0 else 0.0)
        if k == first:
            cut, cut_falls = value, fall
        total += value
        falls += fall
        if value < least:
            least, least_falls = value, fall
    if not of_root:
        return total / voices, falls / voices, 0.0
    gone = moved - first
    height = (total - gone * cut + moved * least) / voices
    return (
        height,
        (falls - gone * cut_falls + moved * least_falls) / voices + cut - least,
        cut_falls - least_falls,
    )


@inner
def _solve_tv(of_root, of_leaves, voices, mean, least, limit, room):
    """Return the size where R is 0; infinity if there is none, or only beyond a limit."""
    if not of_leaves and least > 0.0:
        return math.inf
    # Every leaf loses δ at least.
    low, high = 0.0, min(limit, mean if of_leaves else 1.0)
    before, behind = 0, voices - 1
    x = 0.3 * high
    for step in range(MAX_STEPS):
        value, fall, bend = _look_tv(of_root, of_leaves, voices, x, before, behind, room)
        # Where R is 0 it falls by 1 at least: leaves at −1 need as many that fall by 2.
        if of_leaves and abs(value) <= 0.25 * ENOUGH * x:
            return x
        place = min(int(x * voices), voices - 1)
        if value > 0.0:
            low, before = x, place
        else:
            high, behind = x, place
        if high - low <= ENOUGH * high:
            break
        inside = fall * fall - 4.0 * bend * value
        x = _step(step, x, 2.0 * value / (fall + math.sqrt(max(inside, 0.0))), low, high)
    return 0.5 * (low + high)


@inner
def _step(step, x, move, low, high):
    """Return where to look next: a move away, and if it is tiny then beyond the root."""
    tiny = 0.5 * ENOUGH * x
    if abs(move) < tiny:
        move = tiny if x == low else -tiny
    there = x + move
    if not low < there < high or (step > STRAIGHT and step % 2):
        return 0.5 * (low + high)
    return there


# χ², by the root of its size


@inner
def _fall_chi2(a, b, x):
    """Return V of a leaf, and how fast it falls, where ĉ has no probability left."""
    rest = 1.0 - a
    if rest <= 0.0:
        return 1.0, 0.0
    share = min(b / rest, 1.0)
    left = max(rest * (1.0 + x * x) - 1.0, 0.0)
    if left * share < 1.0 - share:
        spread = share * (1.0 - share)
        fall = rest * x * math.sqrt(spread / left) if left > 0.0 else math.sqrt(spread)
        return -share - math.sqrt(left * spread), fall
    return (-1.0, 0.0) if b > 0.0 else (0.0, 0.0)


@inner
def _look_chi2(of_root, of_leaves, voices, x, room):
    """Return R at a size x², and how fast it falls."""
    a, b, spread, values, falls = room[A], room[B], room[SPREAD], room[V], room[FALL]
    total, fall = 0.0, 0.0
    for k in range(voices):
        lead = a[k] - b[k]
        if not of_leaves:
            values[k], falls[k] = lead, 0.0
        elif a[k] > 0.0 and x * (1.0 - lead) < spread[k]:
            values[k], falls[k] = lead - x * spread[k], spread[k]
        else:
            values[k], falls[k] = _fall_chi2(a[k], b[k], x)
        total += values[k]
        fall += falls[k]
    if not of_root or voices == 1:
        return total / voices, fall / voices
    return _mix_chi2(voices, x, total, fall, values, falls)


@inner
def _mix_chi2(voices, x, total, fall, values, falls):
    """Return the lower mean of V, and how fast it falls.

    Weights are left to values below a bar, which depends on them: it comes down from above all.
    """
    count, bar = voices, math.inf
    while True:
        mean = total / count
        square, turn, most = 0.0, 0.0, -math.inf
        for k in range(voices):
            if values[k] < bar:
                away = values[k] - mean
                square += away * away
                turn += away * falls[k]
                most = max(most, values[k])
        left = x * x if count == voices else max(count / voices * (1.0 + x * x) - 1.0, 0.0)
        if square <= 0.0 or (left <= 0.0 and count < voices):
            return mean, fall / count
        square, turn = square / count, turn / count
        if left * (most - mean) ** 2 < square:
            break
        bar = mean + math.sqrt(square / left)
        # What stands at the bar goes, even where rounding has it below.
        bar = min(bar, most)
        total, fall, count = 0.0, 0.0, 0
        for k in range(voices):
            if values[k] < bar:
                total += values[k]
                fall += falls[k]
                count += 1
    more = left**0.5
    grows = x / more * (count / voices) if more > 0.0 else 1.0
    root = math.sqrt(square)
    return mean - more * root, fall / count + grows * root - more * turn / root


@inner
def _find_end(of_root, of_leaves, voices, room):
    """Return what R comes down to in the largest balls of χ²."""
    total, least = 0.0, math.inf
    for k in range(voices):
        value = room[A, k] - room[B, k]
        if of_leaves:
            # What has no probability stays without.
            value = -1.0 if room[B, k] > 0.0 else (0.0 if room[A, k] < 1.0 else 1.0)
        total += value
        least = min(least, value)
    return least if of_root else total / voices


@inner
def _solve_chi2(of_root, of_leaves, voices, limit, room):
    """Return the size where R is 0, infinity if there is none; NaN if that is too far."""
    if _find_end(of_root, of_leaves, voices, room) > 0.0:
        return math.inf
    low, high = 0.0, min(math.sqrt(limit), FARTHEST)
    known, x = limit < math.inf, 0.0
    for step in range(MAX_STEPS):
        value, fall = _look_chi2(of_root, of_leaves, voices, x, room)
        if value > 0.0:
            low = x
        else:
            high, known = x, True
        if high - low <= ENOUGH * high:
            break
        # As long as nobody knows where R is below 0, not too far at once.
        move, most = value / fall, 15.0 * x + 1.0
        if not known and not 0.0 < move < most:
            move = most
        x = _step(step, x, move, low, high)
    if not known:
        return math.nan
    return (0.5 * (low + high)) ** 2


@inner
def _improve_tv(of_root, of_leaves, voices, mean, least, best, room):
    """Return where a rival catches up, infinity where that is beyond the best so far."""
    if best < math.inf:
        height, _, _ = _look_tv(of_root, of_leaves, voices, best, 0, voices - 1, room)
        if height > 0.0:
            return math.inf
    return _solve_tv(of_root, of_leaves, voices, mean, least, best, room)


@inner
def _improve_chi2(of_root, of_leaves, voices, best, room):
    """Return where a rival catches up, infinity where that is beyond the best so far."""
    for k in range(voices):
        lead = room[A, k] - room[B, k]
        room[SPREAD, k] = math.sqrt(max(room[A, k] + room[B, k] - lead * lead, 0.0))
    if best < math.inf:
        height, _ = _look_chi2(of_root, of_leaves, voices, math.sqrt(best), room)
        if height > 0.0:
            return math.inf
    return _solve_chi2(of_root, of_leaves, voices, best, room)


# All of them


@inner
def _solve_epsilon(of_root, of_leaves, mean, least):
    """Return the root of (1 − δ)²D + δ(1 − δ)m − δ, or of what is left of it."""
    if of_root and of_leaves:
        x = 2.0 * mean / (1.0 - least + math.sqrt((1.0 - least) ** 2 + 4.0 * mean))
        return x / (1.0 + x)
    if of_leaves:
        return mean / (1.0 + mean)
    return mean / (mean - least) if least <= 0.0 else math.inf


@kernel(
    types.void(
        *(types.int64, types.boolean, types.boolean, float_matrix, code_matrix),
        *(int_vector, int_vector, float_matrix_out, float_vector_out, int_vector_out),
    ),
)
def search(
    mode, of_root, of_leaves, class_table, leaves, prediction, runner_up, room, found, tipping
):
    """Write the size where each prediction flips, infinity where none does, and the tipping class.

    NaN where rounding would show, or the size is too far away.

    Parameters
    ----------
    mode : EPSILON, TV or CHI2
    of_root, of_leaves : what is perturbed
    class_table : (leaves, classes)
    leaves : (rows, voices)
    prediction, runner_up : (rows,)
    room : (ROOM, voices), to work in
    """
    voices, classes = leaves.shape[1], class_table.shape[1]
    for row in range(len(leaves)):
        best = prediction[row]
        found[row], tipping[row] = math.inf, -1
        for turn in range(classes + 1):
            # The runner-up is the first: who comes after mostly needs one look.
            rival = runner_up[row] if turn == 0 else np.int64(turn - 1)
            if rival < 0 or rival == best or (turn > 0 and rival == runner_up[row]):
                continue
            total, size, least = 0.0, 0.0, math.inf
            for voice in range(voices):
                a, b = class_table[leaves[row, voice], best], class_table[leaves[row, voice], rival]
                room[A, voice], room[B, voice] = a, b
                total += a - b
                size += a + b
                least = min(least, a - b)
            mean = total / voices
            if total <= NEAR * size:
                found[row], tipping[row] = math.nan, rival
                break
            # No leaf loses more than 2δ, or √δ times its spread, and the weights no more again.
            if mode == TV and mean > 4.0 * found[row]:
                continue
            if mode == CHI2 and mean > math.sqrt(found[row]) * (1.0 + math.sqrt(size / voices)):
                continue
            if mode == EPSILON:
                x = _solve_epsilon(of_root, of_leaves, mean, least)
            elif mode == TV:
                x = _improve_tv(of_root, of_leaves, voices, mean, least, found[row], room)
            else:
                x = _improve_chi2(of_root, of_leaves, voices, found[row], room)
            if math.isnan(x):
                found[row], tipping[row] = x, rival
                break
            # Who catches up at the same size comes second.
            if x < found[row] * (1.0 - 2.0 * ENOUGH):
                found[row], tipping[row] = x, rival
