"""How far a prediction is ahead under Kullback–Leibler: H and its derivatives, lane by lane.

A ball's bound on one outcome has no formula, but its inverse has: if mass m goes to an outcome of
probability `up` from what has the `rest`, the divergence is

    K(m) = (up + m) log(1 + m/up) + (rest − m) log(1 − m/rest)

and so have the derivatives of m in σ = √K, in which all bounds are nearly straight. Nobody waits
for K(m) to be δ exactly: H, the logarithm of Π lower over that of Π upper, minus what the prior
makes up for, is continued from where each factor stands to where δ is, by its derivatives, and
with the next step in s = √δ the factors come along. What this leaves out is a cube, as it is of
the step itself, and it is written beside H.

Factors stand in one array, a line each, `LANES` numbers of each kind; first those of ĉ, whose
bounds are what is left of the rest, and then as many of the rival's, whose are up + m.
"""

import math

from robustq.kernels import fused, inner

from ._log_kernels import log1p_of

__all__ = ["continue_factors", "continue_prior"]

LANES = 16  # with fewer, LLVM would not ask at run time whether arrays overlap, and go one by one
# In the line of a factor: both probabilities and one over them, √gain, and the σ at which nothing
# is left of the rest; then how far it has moved, at which σ that is, and its derivatives there.
UP, REST, PER_UP, PER_REST, GAIN, END = range(0, 6 * LANES, LANES)
MOVED, AT, FIRST, SECOND = range(6 * LANES, 10 * LANES, LANES)
WIDTH = 10 * LANES

# What lanes know: s and where it ends at the latest; by how much ĉ is ahead without perturbation; H
# at s, with its derivatives, what is left out of it, and what a step in s will leave out, over its
# cube; of the prior p(ĉ) and p(c), and the lead that it makes up for, as what factors have moved.
S, LAST, GAP, H, SLOPE, BEND, LOST, LOSES = range(0, 8 * LANES, LANES)
PRIOR_A, PRIOR_B, LEAD, LEAD_AT, LEAD_FIRST, LEAD_SECOND = range(8 * LANES, 14 * LANES, LANES)
KINDS = 14

ALMOST_ALL = 1.0 - 2.0**-50  # of the rest, where there is no more


@fused
def continue_factors(factors, lanes):
    """Move every factor to about where s is, and write H with its derivatives and errors."""
    for lane in range(LANES):
        lanes[H + lane], lanes[SLOPE + lane], lanes[BEND + lane] = lanes[GAP + lane], 0.0, 0.0
        lanes[LOST + lane], lanes[LOSES + lane] = 0.0, 0.0
    for k in range(len(factors)):
        line, falls = factors[k], 2 * k < len(factors)
        for lane in range(LANES):
            rest, gain, before = line[REST + lane], line[GAIN + lane], line[MOVED + lane]
            there = lanes[S + lane] * gain
            step = there - line[AT + lane]
            moved = before + step * (line[FIRST + lane] + 0.5 * step * line[SECOND + lane])
            most = rest - 0.1 * (rest - before)
            moved = moved if moved < most else most
            moved = moved if moved > 0.1 * before else 0.1 * before
            full = there >= line[END + lane]
            moved = rest * ALMOST_ALL if full else moved
            high, low = line[UP + lane] + moved, rest - moved
            rise = log1p_of(moved * line[PER_UP + lane])
            fall = log1p_of(-moved * line[PER_REST + lane])
            size, tilt = high * rise + low * fall, rise - fall
            at, turn, bend = math.sqrt(size), 1.0 / tilt, 1.0 / (high * low)
            first = 2.0 * at * turn
            second = 2.0 * turn * (1.0 - 2.0 * size * bend * turn * turn)
            still = full or gain == 0.0
            line[MOVED + lane] = before if still else moved
            line[AT + lane] = line[AT + lane] if still else at
            line[FIRST + lane] = line[FIRST + lane] if still else first
            line[SECOND + lane] = line[SECOND + lane] if still else second
            first, second = 0.0 if still else first, 0.0 if still else second
            step = 0.0 if still else there - at
            # Of log(rest − m), or of −log(up + m).
            rate = bend * (high if falls else low)
            speed, other = first * rate, second * rate
            height = fall if falls else -rise
            curve = -other - speed * speed if falls else speed * speed - other
            lanes[H + lane] += height + step * (0.5 * step * curve - speed)
            lanes[SLOPE + lane] += gain * (step * curve - speed)
            lanes[BEND + lane] += gain * gain * curve
            loses = first * bend
            lost, loses = abs(step) * loses, gain * loses
            lanes[LOST + lane] += lost * lost * lost
            lanes[LOSES + lane] += loses * loses * loses


@inner
def continue_prior(gain, lanes, lane):
    """Do the same for the prior of one lane, `gain` being the root of its own.

    With L the lead that is made up for, and α′ and β′ the shares of α and β, the nearest prior
    that lets the rival catch up has the divergence K = −log Z, Z = p(ĉ) e^(−Lα′) + p(c) e^(Lβ′) +
    the rest.
    """
    a, b, lead = lanes[PRIOR_A + lane], lanes[PRIOR_B + lane], lanes[LEAD + lane]
    there = lanes[S + lane] * gain
    step, first = there - lanes[LEAD_AT + lane], lanes[LEAD_FIRST + lane]
    least, most = 0.3 * lead, 3.0 * lead if lead > 0.0 else math.inf
    turn = 0.5 * step * lanes[LEAD_SECOND + lane] / first
    # The same to third order, but it never turns back.
    lead += step * first * (1.0 + turn if turn > 0.0 else 1.0 / (1.0 - turn))
    lead = min(max(lead, least), most)
    ratio = a / b * math.exp(-lead)
    share, other = 1.0 / (1.0 + ratio), ratio / (1.0 + ratio)
    less = math.expm1(-lead * share)
    gone = -a * less - b * math.expm1(lead * other)
    size = -math.log1p(-gone)
    mean = a * (1.0 + less) / (1.0 - gone) * share
    slope = lead * mean
    bend = mean * (1.0 + lead * (other - share - lead * share * other + slope))
    at = math.sqrt(size)
    first = 2.0 * at / slope
    second = 2.0 / slope * (1.0 - 2.0 * size * bend / (slope * slope))
    lanes[LEAD + lane], lanes[LEAD_AT + lane] = lead, at
    lanes[LEAD_FIRST + lane], lanes[LEAD_SECOND + lane] = first, second
    step = there - at
    lanes[H + lane] -= lead + step * (first + 0.5 * step * second)
    lanes[SLOPE + lane] -= gain * (first + step * second)
    lanes[BEND + lane] -= gain * gain * second
    lanes[LOST + lane] += abs(step * first) ** 3
    lanes[LOSES + lane] += (gain * first) ** 3
