"""Products of factors, one for each class, compared by a kernel: several rows side by side.

See `_height_kernels` for h, and `_root_kernels` for the search of its roots.
"""

import math
from typing import Any

import numpy as np
from numba import types

from robustq.kernels import (
    code_matrix,
    float_matrix,
    float_vector,
    float_vector_out,
    inner,
    int_vector,
    int_vector_out,
    joined,
    kernel,
)
from robustq.vectors import (
    WIDE,
    WIDTH,
    choose,
    fill_wide,
    load_wide,
    look_up,
    some,
    store,
)

from . import _contender_kernels
from ._contender_kernels import ROOM, add_waiting, let_wait, take_waiting
from ._height_kernels import LINE, U_RATE, L, P
from ._place_kernels import CLASS, ITEM, OWN, PLACES, RIVAL, ROW, locate
from ._root_kernels import (
    ABOVE,
    FEW,
    GAP,
    GOING,
    HIGH,
    KNOWN,
    LOW,
    ROOT,
    START,
    TAKEN,
    TOP,
    begin,
    sharpen,
    solve,
)
from .room import make_floats, make_indices

__all__ = ["make_room", "search"]

ALL_BUT_ONE = 1.0 - 1e-5
# Logarithms that are closer, for each factor, need more digits: rounding would show in h.
CLOSE = 1e10 * 2.0**-53
singles = types.Array(types.float32, 2, "C", readonly=True)
TO_SCALES = U_RATE - L, U_RATE - P


def make_room(classes: int, features: int) -> tuple[Any, ...]:
    """Return arrays to work in: what lanes know, who waits, and factors of both sides."""
    factors, whole = 2 * (features + 1) * LINE, PLACES + 2 * WIDE * features
    return (
        *(make_floats(KNOWN), make_indices(whole), _contender_kernels.make_room(classes)),
        *(make_floats(factors), make_floats(factors)),
    )


# Rows come


@inner
def _put(factors, line, value, slope):
    store(factors, line * LINE, value)
    store(factors, line * LINE + WIDE, slope)
    return line + 1


@inner
def _lay_out_upper(features, class_table, table, whole, upper):
    """Write the factors of rivals.

    Return the sum of their rates at 0, that of squares, and the largest; and where the first of
    them is cut off.
    """
    value, rise, fastest, kink = look_up(class_table, whole, RIVAL, 0)
    _put(upper, 0, value, rise)
    total, squares = fastest, fastest * fastest
    for k in range(features):
        value, rise, rate, end = look_up(table, whole, PLACES + (2 * k + 1) * WIDE, 0)
        _put(upper, k + 1, value, rise)
        total, squares, fastest = total + rate, squares + rate * rate, max(fastest, rate)
        kink = min(kink, end)
    return (total, squares, fastest), kink


@inner
def _lay_out_lower(features, class_table, table, whole, lower):
    """Write the factors of the best; return what their rates are, as above."""
    fall, fastest, value, _ = look_up(class_table, whole, OWN, 0)
    _put(lower, 0, value, -fall)
    total, squares = fastest, fastest * fastest
    for k in range(features):
        fall, rate, value, _ = look_up(table, whole, PLACES + 2 * k * WIDE, 0)
        _put(lower, k + 1, value, -fall)
        total, squares, fastest = total + rate, squares + rate * rate, max(fastest, rate)
    return total, squares, fastest


@inner
def _lay_out_scales(features, class_table, table, whole, upper, above, lower, below):
    """Write denominators; return what they add to the derivatives of h at 0.

    1 + x s of a lower factor is a factor of the other side.
    """
    to_own, to_rival = TO_SCALES
    _, _, s, _ = look_up(class_table, whole, OWN, to_own)
    _, _, _, t = look_up(class_table, whole, RIVAL, to_rival)
    _put(upper, above, fill_wide(1.0), s)
    _put(lower, below, fill_wide(1.0), t)
    slope, bend = s - t, (t - s) * (t + s)
    for k in range(features):
        _, _, s, _ = look_up(table, whole, PLACES + 2 * k * WIDE, to_own)
        _, _, _, t = look_up(table, whole, PLACES + (2 * k + 1) * WIDE, to_rival)
        _put(upper, above + k + 1, fill_wide(1.0), s)
        _put(lower, below + k + 1, fill_wide(1.0), t)
        slope, bend = slope + (s - t), bend + (t - s) * (t + s)
    return slope, bend


@inner
def _fill_lane(lane, features, joint, prediction, whole, known):
    """Tell a lane about its row and rival."""
    i, c = whole[ITEM + lane], whole[CLASS + lane]
    best = prediction[i]
    whole[ROW + lane] = i * features
    whole[OWN + lane], whole[RIVAL + lane] = best * WIDTH + L, c * WIDTH + P
    known[GAP + lane], known[TOP + lane] = joint[i, best] - joint[i, c], joint[i, best]


@joined
def _fill_lanes(first, features, prediction, runner_up, top, lead, whole, known):
    """Let lanes have rows side by side, each with its runner-up; tell whether all are searched for.

    As `_fill_lane` and `_has_rival`, which take one row at a time, and several times as long.
    """
    gaps, scores = load_wide(lead, first), load_wide(top, first)
    # False also where nothing is to be found: there the gap is no number, or there is none.
    if some(~(gaps >= CLOSE * ((features + 1.0) + abs(scores)))):
        return False
    for lane in range(WIDE):
        i = np.uint64(first + lane)
        whole[ITEM + lane], whole[ROW + lane] = i, i * np.uint64(features)
        whole[CLASS + lane] = runner_up[i]
        whole[OWN + lane], whole[RIVAL + lane] = prediction[i] * WIDTH + L, runner_up[i] * WIDTH + P
    store(known, GAP, gaps)
    store(known, TOP, scores)
    for kind in (START, LOW, TAKEN):
        store(known, kind, fill_wide(0.0))
    store(known, HIGH, fill_wide(math.inf))
    return True


@joined
def _search_lanes(filled, again, cells, class_table, table, form, whole, known, upper, lower):
    """Write the roots of all lanes; those that wait again know where to start."""
    cut, limit, keeps_zero, chi2, fractional, falls = form
    for lane in range(filled, WIDE):
        # Those that are left over do what the first does.
        for kind in range(0, PLACES, WIDE):
            whole[kind + lane] = whole[kind]
        for kind in range(0, KNOWN, WIDE):
            known[kind + lane] = known[kind]
    features = cells.shape[1]
    count = features + 1
    locate(cells, len(table) - len(class_table), whole)
    nothing = fill_wide(0.0)
    rises, kink = _lay_out_upper(features, class_table, table, whole, upper)
    above, below, end, drops = count, 0, fill_wide(math.inf), (nothing, nothing, nothing)
    if falls:
        below = count
        drops = _lay_out_lower(features, class_table, table, whole, lower)
        end = 1.0 / drops[2]
        # Both products move: their ratio is 1 at the root.
        store(known, TOP, nothing)
    slope, bend = rises[0] + drops[0], drops[1] - rises[1]
    if fractional:
        more, bent = _lay_out_scales(
            features, class_table, table, whole, upper, above, lower, below
        )
        slope, bend, above, below = slope + more, bend + bent, above + count, below + count
    if chi2 > 0.0:
        # As `chi2_prior` has it at 0; a prior so near to 1 leaves no digits to what κ leaves of it.
        a, b = load_wide(lower, 0), load_wide(upper, 0)
        rate = chi2 * math.sqrt(1.0 / a + 1.0 / b)
        rises = rises[0] + rate, rises[1] + rate * rate, max(rises[2], rate)
        slope, bend = slope + rate, bend + chi2 * chi2 * (1.0 / a - 1.0 / b)
        end = choose(a < 1.0, min(end, math.sqrt(a / (1.0 - a)) / chi2), end)
        slope = choose(a > ALL_BUT_ONE, math.nan, slope)
    end, gap = min(end, limit), load_wide(known, GAP)
    guess = load_wide(known, START)
    if not again:
        guess = begin(gap, slope, bend, end)
        if not fractional:
            guess = sharpen(guess, gap, rises, drops, falls, end)
    vague = choose(slope == slope, fill_wide(0.0), 1.0)  # noqa: PLR0124 (NaN)
    lists = upper, above, lower, below
    few = 0 if again else FEW
    solve(guess, end, kink, vague, keeps_zero, cut, chi2, lists, few, known)
    return above, below


@inner
def _has_rival(i, factors, joint, prediction, runner_up, found, tipping):
    """Tell whether there is something to search for; what is found else is written."""
    c = runner_up[i]
    score = joint[i, prediction[i]]
    found[i], tipping[i] = math.inf, -1
    if score == -math.inf:
        found[i], tipping[i] = 0.0, c
        return False
    if score - joint[i, c] < CLOSE * (factors + abs(score)):
        found[i], tipping[i] = math.nan, c
        return False
    return True


@joined
def _wait_again(waiting, lane, i, c, known, room):
    """Let a lane's row wait as it is; return how many wait."""
    bracket = known[LOW + lane], known[ABOVE + lane]
    return add_waiting(waiting, i, c, 0, known[ROOT + lane], bracket, known[TAKEN + lane], room)


@joined
def _settle(filled, runner_up, waiting, whole, known, room, found, tipping):
    """Write what was found, of rows that may have been found before; let others wait.

    Of rivals that come at once, the runner-up counts, and then the first. Return how many wait.
    """
    for lane in range(filled):
        i, c, x = whole[ITEM + lane], whole[CLASS + lane], known[ROOT + lane]
        if known[GOING + lane] > 0.0:
            waiting = _wait_again(waiting, lane, i, c, known, room)
        elif x != x:  # noqa: PLR0124 (NaN)
            found[i] = math.nan
        elif known[LOW + lane] < known[HIGH + lane]:
            same = x == found[i] and tipping[i] != runner_up[i] and c < tipping[i]
            if x < found[i] or same:
                found[i], tipping[i] = x, c
    return waiting


@joined
def _settle_abreast(first, runner_up, waiting, known, room, found, tipping):
    """Write what was found, of rows side by side and their runners-up; as `_settle` does."""
    going = load_wide(known, GOING) > 0.0
    store(found, first, load_wide(known, ROOT))
    for lane in range(WIDE):
        tipping[np.uint64(first + lane)] = runner_up[np.uint64(first + lane)]
    if some(going):
        for lane in range(WIDE):
            if known[GOING + lane] > 0.0:
                i = first + lane
                found[i], tipping[i] = math.inf, -1
                waiting = _wait_again(waiting, lane, i, runner_up[i], known, room)
    return waiting


@kernel(
    types.void(
        *(code_matrix, float_matrix, int_vector, int_vector, float_vector, float_vector),
        *(float_matrix, float_matrix, singles, singles),
        *(types.float64, types.float64, types.float64, types.float64),
        *(types.boolean, types.boolean, float_vector_out, int_vector_out),
        *(ROOM, float_vector_out, float_vector_out, float_vector_out, int_vector_out),
    )
)
def search(
    cells,
    joint,
    prediction,
    runner_up,
    top,
    lead,
    class_table,
    feature_table,
    class_sides,
    feature_sides,
    cut,
    limit,
    keeps_zero,
    chi2,
    fractional,
    falls,
    known,
    whole,
    room,
    upper,
    lower,
    found,
    tipping,
):
    """Write for each row the smallest root against any rival, and which rival's it is.

    The runner-up comes first. Most others are still behind at its root, all classes side by side;
    those that are not wait until there are enough of them.

    Parameters
    ----------
    cells : where the factors of the first class stand; −1 where they are constant
    joint : log p(c, f) for each row and class
    prediction, runner_up, top, lead : (rows,), see `_joint_kernels.rank`
    class_table, feature_table : (probabilities, `COLUMNS`); the last line of features never moves
    class_sides, feature_sides : (3, probabilities and more), see `BallTables`
    cut : what upper factors are cut off at
    limit : where x ends at the latest
    keeps_zero : not 0 if an outcome of probability 0 stays there
    chi2 : not 0 if the prior is special: what x is multiplied by there
    fractional : whether factors have denominators
    falls : whether lower factors fall, or have another product than the joint
    known, whole, room, upper, lower : to work in, see `make_room`
    found, tipping : (rows,), written; infinite and −1 where there is no root, NaN where the
        classes are so close that rounding would show, or none was found
    """
    classes, rows, count = joint.shape[1], len(cells), cells.shape[1] + 1
    form = cut, limit, keeps_zero, chi2, fractional, falls
    features = cells.shape[1]
    fresh, waiting = 0, 0
    while fresh < rows or waiting > 0:
        filled, again, abreast = 0, waiting >= WIDE or fresh == rows, False
        while filled < WIDE and (waiting > 0 if again else fresh < rows):
            if again:
                waiting = take_waiting(waiting, filled, whole, known, room)
                _fill_lane(filled, features, joint, prediction, whole, known)
                filled += 1
            elif (
                filled == 0
                and fresh + WIDE <= rows
                and _fill_lanes(*(fresh, features, prediction, runner_up, top, lead, whole, known))
            ):
                filled, fresh, abreast = WIDE, fresh + WIDE, True
            else:
                if _has_rival(fresh, count, joint, prediction, runner_up, found, tipping):
                    waiting = add_waiting(
                        waiting, fresh, runner_up[fresh], 0, 0.0, (0.0, math.inf), 0.0, room
                    )
                    waiting = take_waiting(waiting, filled, whole, known, room)
                    _fill_lane(filled, features, joint, prediction, whole, known)
                    filled += 1
                fresh += 1
        if filled == 0:  # the last rows had nobody to search for; rivals of others may still wait
            continue
        above, below = _search_lanes(
            *(filled, again, cells, class_table, feature_table, form),
            *(whole, known, upper, lower),
        )
        if abreast:
            waiting = _settle_abreast(fresh - WIDE, runner_up, waiting, known, room, found, tipping)
        else:
            waiting = _settle(filled, runner_up, waiting, whole, known, room, found, tipping)
        if classes > 2:
            waiting = let_wait(
                *(waiting, filled, cells, prediction, runner_up, class_table),
                *(class_sides, feature_sides, form, (upper, above, lower, below)),
                *(whole, known, room),
            )
