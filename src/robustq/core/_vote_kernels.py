"""Means of class leaves, perturbed by ε-contamination, total variation or χ².

For a rival c, each leaf has V = E̲_q[1_ĉ − 1_c], and R_c(δ) = E̲_w[V] over the weights w = 1/T of T
leaves; only two probabilities of each leaf matter, a = q(ĉ) and b = q(c).
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

from ._circuit_kernels import _interpolate as interpolate
from .modes import CHI2, EPSILON, TV

__all__ = ["add", "search"]

ENOUGH = 1e-11  # how near, relative, is near enough
NEAR = 1e-5  # leads that are smaller, relative to what they are made of, show their rounding
FARTHEST = 1e12  # sizes of χ² beyond this are left to the recursion
MAX_STEPS = 100
A, B, V, SORTED = range(4)  # the rows of the room to work in


@kernel(types.void(float_matrix, code_matrix, float_matrix_out))
def add(class_table, leaves, out):
    """Add the class probabilities of the leaves of each row."""
    for row in range(len(leaves)):
        for voice in range(leaves.shape[1]):
            for c in range(class_table.shape[1]):
                out[row, c] += class_table[leaves[row, voice], c]


@inner
def _lower(mode, a, b, delta):
    """Return E̲_q[1_ĉ − 1_c] in the ball of a size around one leaf."""
    if mode == TV:
        return a - b - 2.0 * delta if delta <= a else max(-b - delta, -1.0)
    mean = a - b
    spread = a + b - mean * mean
    if a > 0.0 and delta * (1.0 - mean) ** 2 < spread:
        return mean - math.sqrt(delta * spread)
    rest = 1.0 - a
    if rest <= 0.0:
        return 1.0
    share = min(b / rest, 1.0)
    left = max(rest * (1.0 + delta) - 1.0, 0.0)
    if left * share < 1.0 - share:
        return -share - math.sqrt(left * share * (1.0 - share))
    return -1.0 if b > 0.0 else 0.0


@inner
def _place(values, count, place):
    """Order values so that the larger ones stand before a place, and the smaller ones behind."""
    low, high = 0, count - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if place <= j:
            high = j
        elif place >= i:
            low = i
        else:
            return


@inner
def _sort(values, count):
    """Sort values, by ever smaller steps: numpy's sort would make arrays."""
    step = 1
    while 9 * step < 4 * count:
        step = 9 * step // 4 + 1
    while step > 0:
        for i in range(step, count):
            value, j = values[i], i
            while j >= step and values[j - step] > value:
                values[j] = values[j - step]
                j -= step
            values[j] = value
        step = 4 * step // 9


@inner
def _mix_tv(room, voices, least, delta):
    """Return the mean after the largest values have lost delta of the mass to the least."""
    moved = delta * voices
    whole = min(int(moved), voices)
    if whole >= voices:
        return least
    _place(room[SORTED], voices, whole)
    # What is left, not what is gone: where that is 0, nothing may be left over by rounding.
    left = (1.0 - (moved - whole)) * room[SORTED, whole] + moved * least
    for k in range(whole + 1, voices):
        left += room[SORTED, k]
    return left / voices


@inner
def _mix_chi2(room, voices, total, delta):
    """Return the lower mean, by the level sets {V <= v}, v from the largest one downward."""
    values = room[SORTED]
    mean, square, most = total / voices, 0.0, -math.inf
    for k in range(voices):
        square += (values[k] - mean) ** 2
        most = max(most, values[k])
    if delta * (most - mean) ** 2 < square / voices:
        return mean - math.sqrt(delta * square / voices)
    _sort(values, voices)
    # Means and squares of ever fewer values, the largest ones left out.
    for count in range(voices, 0, -1):
        if count < voices:
            gone = values[count]
            before = mean
            mean += (mean - gone) / count
            square = max(square - (gone - mean) * (gone - before), 0.0)
            if values[count - 1] == gone:
                continue
        left = max(count / voices * (1.0 + delta) - 1.0, 0.0)
        if left * (values[count - 1] - mean) ** 2 < square / count:
            return mean - math.sqrt(left * square / count)
    return values[0]


@inner
def _evaluate(mode, of_root, of_leaves, voices, delta, room):
    """Return R at a size."""
    total, least = 0.0, math.inf
    for k in range(voices):
        if of_leaves:
            room[V, k] = _lower(mode, room[A, k], room[B, k], delta)
        else:
            room[V, k] = room[A, k] - room[B, k]
        total += room[V, k]
        least = min(least, room[V, k])
    if not of_root or voices == 1:
        return total / voices
    for k in range(voices):
        room[SORTED, k] = room[V, k]
    if mode == TV:
        return _mix_tv(room, voices, least, delta)
    return _mix_chi2(room, voices, total, delta)


@inner
def _solve_epsilon(of_root, of_leaves, mean, least):
    """Return the root of (1 − δ)²D + δ(1 − δ)m − δ, or of what is left of it."""
    if of_root and of_leaves:
        x = 2.0 * mean / (1.0 - least + math.sqrt((1.0 - least) ** 2 + 4.0 * mean))
        return x / (1.0 + x)
    if of_leaves:
        return mean / (1.0 + mean)
    return mean / (mean - least) if least <= 0.0 else math.inf


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
def _solve(mode, of_root, of_leaves, voices, mean, limit, room):
    """Return the size where R is 0, infinity if it lies beyond a limit; NaN if that is too far."""
    if mode == CHI2 and _find_end(of_root, of_leaves, voices, room) > 0.0:
        return math.inf
    low, at_low, high = 0.0, mean, min(limit, 1.0 if mode == TV else FARTHEST)
    # Of total variation every leaf loses δ at least; of χ² mostly a size below 1 will do.
    start = min(mean, high) if mode == TV and of_leaves else min(1.0, high)
    at_high = _evaluate(mode, of_root, of_leaves, voices, start, room)
    while at_high > 0.0 and start < high:
        low, at_low = start, at_high
        start = high if mode == TV else min(16.0 * start, high)
        at_high = _evaluate(mode, of_root, of_leaves, voices, start, room)
    if at_high > 0.0:
        return math.inf if mode == TV or limit < FARTHEST else math.nan
    x1, x2, f1, f2 = start, low, at_high, at_low
    x3, f3, share = x1, f1, f1 / (f1 - f2)
    for _ in range(MAX_STEPS):
        smallest = 0.5 * ENOUGH * max(x1, x2) / abs(x2 - x1)
        if smallest >= 0.5:
            break
        share = min(max(share, smallest), 1.0 - smallest)
        x = x1 + share * (x2 - x1)
        height = _evaluate(mode, of_root, of_leaves, voices, x, room)
        if (height > 0.0) == (f1 > 0.0):
            x3, f3 = x1, f1
        else:
            x3, f3 = x2, f2
            x2, f2 = x1, f1
        x1, f1 = x, height
        share = interpolate(x1, x2, x3, f1, f2, f3)
    return 0.5 * (x1 + x2)


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
    room : (4, voices), to work in
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
            if mode == EPSILON:
                x = _solve_epsilon(of_root, of_leaves, mean, least)
            elif (
                turn > 0
                and found[row] < math.inf
                and (_evaluate(mode, of_root, of_leaves, voices, found[row], room) > 0.0)
            ):
                continue
            else:
                x = _solve(mode, of_root, of_leaves, voices, mean, found[row], room)
            if math.isnan(x):
                found[row], tipping[row] = x, rival
                break
            if x < found[row]:
                found[row], tipping[row] = x, rival
