"""How far a rival is ahead of a prediction when factors move: h and its derivatives, lane by lane.

A prediction ĉ is robust against a rival c as long as Π lower_k(x) > Π upper_k(x) over the
prior and the features, with bounds that a ball's form gives:

    lower_k = (a_k − x l_k) / (1 + x s_k)
    upper_k = (b_k + x u_k) / (1 + x t_k), at most `cut`

with a_k = p_k(ĉ) and b_k = p_k(c). With h(x) = log Π upper − log Π lower, which never
decreases, the robustness against c is the root of h; −h(0) = Δ is the log of p(ĉ,f)/p(c,f).
Under χ² the prior is special: see `chi2_prior`. Denominators are factors of the other side, which
stand after those of the numerators; most balls have none.

Arrays of the lanes have the factors on the first axis and the lanes on the second; the prior is
factor 0, feature i factor i + 1, and a feature that is missing or has a single category is the
constant factor 1. The number of factors is even.
"""

import math

from robustq.kernels import fused, inlined, inner

from ._log_kernels import log_of

__all__ = ["chi2_prior", "climb", "weigh"]

# The columns of a ball's tables; see `products.COLUMNS`.
P, L, L_RATE, U, U_RATE, S, T = range(7)

LANES = 32
SMALL = 1e-150  # products are kept above this by taking their logarithm in time
SAFE = 1e-250  # a product above this has not underflowed on the way
FLOOR = 1e-300  # stands for 0 in a lower factor


@fused
def _multiply(x, a, b, lower, upper, up, down, slope, bend):
    """Write Π upper, Π lower and what they give to the derivatives of h, for all lanes.

    Two factors of each side at a time: they share one division.
    """
    for lane in range(LANES):
        up[lane], down[lane], slope[lane], bend[lane] = 1.0, 1.0, 0.0, 0.0
    for k in range(0, a.shape[0], 2):
        for lane in range(LANES):
            u, v, f, g = upper[k, lane], upper[k + 1, lane], lower[k, lane], lower[k + 1, lane]
            above, also_above = b[k, lane] + x[lane] * u, b[k + 1, lane] + x[lane] * v
            below, also_below = a[k, lane] - x[lane] * f, a[k + 1, lane] - x[lane] * g
            below = below if below > FLOOR else FLOOR
            also_below = also_below if also_below > FLOOR else FLOOR
            ups, downs = above * also_above, below * also_below
            up[lane] *= ups
            down[lane] *= downs
            # Should it overflow, the search bisects.
            inverse = 1.0 / (ups * downs)
            ups, downs = ups * inverse, downs * inverse
            rise = (u * also_above + v * above) * downs
            fall = (f * also_below + g * below) * ups
            slope[lane] += fall + rise
            bend[lane] += (fall - rise) * (fall + rise) + 2.0 * (u * v * downs - f * g * ups)


@fused
def _multiply_cut(x, cut, a, b, lower, upper, up, down, slope, bend, near):
    """Do the same where upper factors are cut off; write how near the nearest is to that."""
    for lane in range(LANES):
        up[lane], down[lane], slope[lane], bend[lane] = 1.0, 1.0, 0.0, 0.0
        near[lane] = math.inf
    for k in range(0, a.shape[0], 2):
        for lane in range(LANES):
            u, v, f, g = upper[k, lane], upper[k + 1, lane], lower[k, lane], lower[k + 1, lane]
            above, also_above = b[k, lane] + x[lane] * u, b[k + 1, lane] + x[lane] * v
            near[lane] = min(near[lane], abs(above - cut) if u > 0.0 else cut)
            near[lane] = min(near[lane], abs(also_above - cut) if v > 0.0 else cut)
            u = u if above < cut else 0.0
            v = v if also_above < cut else 0.0
            above = above if above < cut else cut
            also_above = also_above if also_above < cut else cut
            below, also_below = a[k, lane] - x[lane] * f, a[k + 1, lane] - x[lane] * g
            below = below if below > FLOOR else FLOOR
            also_below = also_below if also_below > FLOOR else FLOOR
            ups, downs = above * also_above, below * also_below
            up[lane] *= ups
            down[lane] *= downs
            inverse = 1.0 / (ups * downs)
            ups, downs = ups * inverse, downs * inverse
            rise = (u * also_above + v * above) * downs
            fall = (f * also_below + g * below) * ups
            slope[lane] += fall + rise
            bend[lane] += (fall - rise) * (fall + rise) + 2.0 * (u * v * downs - f * g * ups)


@inlined
def _times(product, total, factor):
    """Multiply; before the product could underflow, move its logarithm to the total."""
    if product < SMALL or factor < SMALL:
        return factor, total + _log(product)
    return product * factor, total


@inlined
def _log(x):
    return math.log(x) if x > 0.0 else -math.inf


@inner
def _log_ratio(x, cut, a, b, lower, upper, lane):
    """Return log Π upper − log Π lower of a lane whose products may underflow."""
    up, low, log_up, log_low = 1.0, 1.0, 0.0, 0.0
    for k in range(a.shape[0]):
        up, log_up = _times(up, log_up, min(b[k, lane] + x * upper[k, lane], cut))
        low, log_low = _times(low, log_low, max(a[k, lane] - x * lower[k, lane], FLOOR))
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
def _take_logs(x, cut, chi2, a, b, lower, upper, h, up, down):
    """Write h, given the products of all lanes."""
    safe = True
    for lane in range(LANES):
        h[lane] = log_of(up[lane] / down[lane])
        safe &= min(up[lane], down[lane]) > SAFE
        safe &= max(up[lane], down[lane]) < 1.0 / SAFE
    if safe:
        return
    for lane in range(LANES):
        if not (min(up[lane], down[lane]) > SAFE and max(up[lane], down[lane]) < 1.0 / SAFE):
            h[lane] = _log_ratio(x[lane], cut, a, b, lower, upper, lane)
            if chi2 > 0.0:
                gain, loss, _, _ = chi2_prior(x[lane], chi2, a[0, lane], b[0, lane])
                h[lane] += math.log1p(gain) - math.log1p(-loss)


@fused
def _weigh(x, cut, a, b, lower, upper, up, down):
    """Write Π upper and Π lower, for all lanes."""
    for lane in range(LANES):
        up[lane], down[lane] = 1.0, 1.0
    for k in range(0, a.shape[0], 2):
        for lane in range(LANES):
            above, below = (
                b[k, lane] + x[lane] * upper[k, lane],
                a[k, lane] - x[lane] * lower[k, lane],
            )
            also_above = b[k + 1, lane] + x[lane] * upper[k + 1, lane]
            also_below = a[k + 1, lane] - x[lane] * lower[k + 1, lane]
            up[lane] *= min(above, cut) * min(also_above, cut)
            down[lane] *= max(below, FLOOR) * max(also_below, FLOOR)


@inner
def weigh(x, cut, chi2, a, b, lower, upper, h, up, down):
    """Write h(x) alone for all lanes: a third of the work."""
    _weigh(x, cut, a, b, lower, upper, up, down)
    if chi2 > 0.0:
        for lane in range(LANES):
            gain, loss, _, _ = chi2_prior(x[lane], chi2, a[0, lane], b[0, lane])
            up[lane] *= 1.0 + gain
            down[lane] *= 1.0 - loss
    _take_logs(x, cut, chi2, a, b, lower, upper, h, up, down)


@inner
def climb(x, cut, chi2, a, b, lower, upper, h, slope, bend, up, down, near):
    """Write h(x) and its derivatives for all lanes; `near` says how near a cut is."""
    if cut < math.inf:
        _multiply_cut(x, cut, a, b, lower, upper, up, down, slope, bend, near)
    else:
        _multiply(x, a, b, lower, upper, up, down, slope, bend)
    if chi2 > 0.0:
        for lane in range(LANES):
            gain, loss, more_slope, more_bend = chi2_prior(x[lane], chi2, a[0, lane], b[0, lane])
            up[lane] *= 1.0 + gain
            down[lane] *= 1.0 - loss
            slope[lane] += more_slope
            bend[lane] += more_bend
    _take_logs(x, cut, chi2, a, b, lower, upper, h, up, down)
