"""How far a rival is ahead of a prediction when factors move: h and its derivatives, lane by lane.

A prediction ĉ is robust against a rival c as long as Π lower_k(x) > Π upper_k(x) over the
prior and the features, with bounds that a ball's form gives:

    lower_k = (a_k − x l_k) / (1 + x s_k)
    upper_k = (b_k + x u_k) / (1 + x t_k), at most `cut`

with a_k = p_k(ĉ) and b_k = p_k(c). With h(x) = log Π upper − log Π lower, which never
decreases, the robustness against c is the root of h; −h(0) = Δ is the log of p(ĉ,f)/p(c,f).
Under χ² the prior is special: see `chi2_prior`. Denominators are factors of the other side, which
stand after those of the numerators; most balls have none.

What lanes know stands in one array, `LANES` numbers of each kind, and so do the factors: a line of
each has a, b, l and u of all lanes. Compilers see then that nothing overlaps. The prior is factor
0, feature i factor i + 1, and a feature that is missing or has a single category is the constant
factor 1. The number of factors is even.
"""

import math

from robustq.kernels import fused, inlined, inner

from ._log_kernels import log_of

__all__ = ["chi2_prior", "climb", "weigh"]

# The columns of a ball's tables; see `products.COLUMNS`.
P, L, L_RATE, U, U_RATE, S, T = range(7)

LANES = 32
# Where each kind begins, in what lanes know: x, h and its derivatives; Π upper and Π lower, and
# what the prior gives to them under χ²; how near the nearest cut is; where to go next, how far
# beyond most of the way that is, and how long the step was; the bracket, and where x ends; the
# slope for the last step, how small the last but one has to be, and whether it was taken; and what
# a further rival has to reach.
KINDS = 19
(X, H, SLOPE, BEND, UP, DOWN, PRIOR_UP, PRIOR_DOWN, NEAR, NEXT) = range(0, 10 * LANES, LANES)
(BEYOND, SIZE, LOW, HIGH, END, STEEP, FINE, DONE, FLOORS) = range(10 * LANES, 19 * LANES, LANES)
# And in the line of a factor.
A, B, LOWER, UPPER = range(0, 4 * LANES, LANES)
WIDTH = 4 * LANES

SMALL = 1e-150  # products are kept above this by taking their logarithm in time
SAFE = 1e-250  # a product above this has not underflowed on the way
FLOOR = 1e-300  # stands for 0 in a lower factor


@fused
def _multiply_upper(factors, lanes):
    """Write Π upper and the derivatives of h where nothing falls and nothing is cut off.

    Two factors at a time: they share one division.
    """
    for lane in range(LANES):
        lanes[UP + lane], lanes[SLOPE + lane], lanes[BEND + lane] = 1.0, 0.0, 0.0
    for k in range(0, len(factors), 2):
        one, two = factors[k], factors[k + 1]
        for lane in range(LANES):
            x, u, v = lanes[X + lane], one[UPPER + lane], two[UPPER + lane]
            above, also_above = one[B + lane] + x * u, two[B + lane] + x * v
            ups = above * also_above
            lanes[UP + lane] *= ups
            inverse = 1.0 / ups
            rise = (u * also_above + v * above) * inverse
            lanes[SLOPE + lane] += rise
            lanes[BEND + lane] += 2.0 * u * v * inverse - rise * rise


@fused
def _multiply(cut, factors, lanes):
    """Write Π upper, Π lower and the derivatives of h, for all lanes.

    Two factors of each side at a time: they share one division.
    """
    for lane in range(LANES):
        lanes[UP + lane], lanes[DOWN + lane] = 1.0, 1.0
        lanes[SLOPE + lane], lanes[BEND + lane] = 0.0, 0.0
    for k in range(0, len(factors), 2):
        one, two = factors[k], factors[k + 1]
        for lane in range(LANES):
            x, u, v = lanes[X + lane], one[UPPER + lane], two[UPPER + lane]
            f, g = one[LOWER + lane], two[LOWER + lane]
            above, also_above = one[B + lane] + x * u, two[B + lane] + x * v
            u = u if above < cut else 0.0
            v = v if also_above < cut else 0.0
            above = above if above < cut else cut
            also_above = also_above if also_above < cut else cut
            below, also_below = one[A + lane] - x * f, two[A + lane] - x * g
            below = below if below > FLOOR else FLOOR
            also_below = also_below if also_below > FLOOR else FLOOR
            ups, downs = above * also_above, below * also_below
            lanes[UP + lane] *= ups
            lanes[DOWN + lane] *= downs
            # Should it overflow, the search bisects.
            inverse = 1.0 / (ups * downs)
            ups, downs = ups * inverse, downs * inverse
            rise = (u * also_above + v * above) * downs
            fall = (f * also_below + g * below) * ups
            lanes[SLOPE + lane] += fall + rise
            lanes[BEND + lane] += (fall - rise) * (fall + rise) + 2.0 * (
                u * v * downs - f * g * ups
            )


@fused
def _weigh(cut, factors, lanes):
    """Write Π upper and Π lower, for all lanes, and how near an upper factor is to its cut."""
    for lane in range(LANES):
        lanes[UP + lane], lanes[DOWN + lane], lanes[NEAR + lane] = 1.0, 1.0, math.inf
    for k in range(len(factors)):
        line = factors[k]
        for lane in range(LANES):
            x, u = lanes[X + lane], line[UPPER + lane]
            above, below = line[B + lane] + x * u, line[A + lane] - x * line[LOWER + lane]
            near = abs(above - cut) if u > 0.0 else cut
            lanes[NEAR + lane] = near if near < lanes[NEAR + lane] else lanes[NEAR + lane]
            lanes[UP + lane] *= above if above < cut else cut
            lanes[DOWN + lane] *= below if below > FLOOR else FLOOR


@inner
def _times(product, total, factor):
    """Multiply; before the product could underflow, move its logarithm to the total."""
    if product < SMALL or factor < SMALL:
        return factor, total + _log(product)
    return product * factor, total


@inner
def _log(x):
    return math.log(x) if x > 0.0 else -math.inf


@inner
def _log_ratio(x, cut, factors, lane):
    """Return log Π upper − log Π lower of a lane whose products may underflow."""
    up, low, log_up, log_low = 1.0, 1.0, 0.0, 0.0
    for k in range(len(factors)):
        line = factors[k]
        up, log_up = _times(up, log_up, min(line[B + lane] + x * line[UPPER + lane], cut))
        low, log_low = _times(low, log_low, max(line[A + lane] - x * line[LOWER + lane], FLOOR))
    return (log_up + _log(up)) - (log_low + _log(low))


@inlined
def chi2_prior(x, scale, a, b):
    """Return what the prior does under χ²: it adds log(1+g) − log(1−f) to h.

    Given are g, f and what is added to the derivatives, beyond the constant log(b/a). The size is
    δ = (x · scale)².

    With κ = δ/(1+δ), the lower expectation of α1_ĉ − β1_c is positive if and only if
    α (a − κ) > β (b + √(κ (a+b−κ) b/a)): that is μ > σ√δ, solved for α/β.
    """
    s = x * scale
    w = 1.0 / (1.0 + s * s)
    kappa, d_kappa, dd_kappa = s * s * w, 2.0 * s * w * w, 2.0 * w * w * (1.0 - 4.0 * s * s * w)
    left = max(a - kappa, FLOOR)
    rest = left + b
    inverse = 1.0 / (a * b)
    root, sqrt_w = math.sqrt(rest * inverse), math.sqrt(w)
    g = s * sqrt_w * root
    steep = inverse / root * w * sqrt_w
    d_g = (rest - kappa) * steep
    dd_g = d_g * (0.5 * d_kappa / rest - 3.0 * s * w) - 2.0 * d_kappa * steep
    part = 1.0 / (1.0 + g)
    gain, loss = d_g * part, d_kappa / left
    bend = dd_g * part - gain * gain + dd_kappa / left + loss * loss
    return g, min(kappa / a, 1.0), scale * (gain + loss), scale * scale * bend


@inner
def _move_prior(chi2, factors, lanes):
    """Let the prior do what it does under χ²."""
    prior = factors[0]
    for lane in range(LANES):
        gain, loss, slope, bend = chi2_prior(
            lanes[X + lane], chi2, prior[A + lane], prior[B + lane]
        )
        lanes[PRIOR_UP + lane], lanes[PRIOR_DOWN + lane] = 1.0 + gain, 1.0 - loss
        lanes[UP + lane] *= 1.0 + gain
        lanes[DOWN + lane] *= 1.0 - loss
        lanes[SLOPE + lane] += slope
        lanes[BEND + lane] += bend


@inner
def _is_safe(up, down):
    return min(up, down) > SAFE and max(up, down) < 1.0 / SAFE


@inner
def _take_logs(cut, chi2, factors, lanes):
    """Write h, given the products of all lanes."""
    unsafe = 0
    for lane in range(LANES):
        up, down = lanes[UP + lane], lanes[DOWN + lane]
        lanes[H + lane] = log_of(up / down)
        unsafe += 0 if _is_safe(up, down) else 1
    if unsafe == 0:
        return
    for lane in range(LANES):
        if not _is_safe(lanes[UP + lane], lanes[DOWN + lane]):
            h = _log_ratio(lanes[X + lane], cut, factors, lane)
            if chi2 > 0.0:
                h += _log(lanes[PRIOR_UP + lane]) - _log(lanes[PRIOR_DOWN + lane])
            lanes[H + lane] = h


@inner
def climb(cut, chi2, one_sided, factors, lanes):
    """Write h(x) and its derivatives for all lanes; if one-sided, Π lower is given."""
    if one_sided:
        _multiply_upper(factors, lanes)
    else:
        _multiply(cut, factors, lanes)
    if chi2 > 0.0:
        _move_prior(chi2, factors, lanes)
    _take_logs(cut, chi2, factors, lanes)


@inner
def weigh(cut, chi2, factors, lanes):
    """Write h(x) alone for all lanes, a third of the work, and how near a cut is."""
    _weigh(cut, factors, lanes)
    if chi2 > 0.0:
        _move_prior(chi2, factors, lanes)
    _take_logs(cut, chi2, factors, lanes)
