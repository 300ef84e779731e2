"""How far a rival is ahead of a prediction when factors move: h and its derivatives.

A prediction ĉ is robust against a rival c as long as Π lower_k(x) > Π upper_k(x) over the
prior and the features, with bounds that a ball's form gives:

    lower_k = (a_k − x l_k) / (1 + x s_k)
    upper_k = (b_k + x u_k) / (1 + x t_k), at most `cut`

with a_k = p_k(ĉ) and b_k = p_k(c). With h(x) = log Π upper − log Π lower, which never
decreases, the robustness against c is the root of h; −h(0) is the log of p(ĉ,f)/p(c,f). Under χ²
the prior is special: see `chi2_prior`.

Factors are laid out in two lists, one for each side, of values v and slopes w: a factor is v + x w.
Denominators are factors of the other side. A line has v of all lanes, and then w.
"""

import math

from robustq.kernels import inlined, joined
from robustq.vectors import WIDE, choose, multiply_add
from robustq.vectors import fill_wide as fill
from robustq.vectors import load_wide as load

from ._inverse_kernels import about_inverse
from ._log_kernels import log_of

__all__ = ["chi2_prior", "climb", "is_smooth"]

# The columns of a ball's tables; see `products.COLUMNS`.
L, L_RATE, P, U, U_RATE, CUT, S, T = range(8)

LINE = 2 * WIDE
CHUNK = 16  # factors whose product is taken before its logarithm
SAFE = 1e-300  # a product above this has not underflowed on the way
FLOOR = 1e-200  # stands for 0 in a lower factor


@joined
def _multiply(x, factors, start, stop, falls, cut):
    """Return the product of factors, its slope, and half its bend.

    Those that fall stay above 0; others are cut off. What is said of both is known when this is
    compiled.
    """
    product, first, half_second = fill(1.0), fill(0.0), fill(0.0)
    for k in range(start, stop):
        w = load(factors, k * LINE + WIDE)
        factor = load(factors, k * LINE) + x * w
        if falls:
            factor = max(factor, FLOOR)
        if cut < math.inf:
            w, factor = choose(factor < cut, w, 0.0), min(factor, cut)
        half_second = multiply_add(half_second, factor, first * w)
        first = multiply_add(first, factor, product * w)
        product *= factor
    return product, first, half_second


@joined
def is_smooth(low, high, cut, lists):
    """Tell whether no upper factor is cut off between two points."""
    upper, above, kinks = lists[0], lists[1], fill(0.0)
    for k in range(above):
        value, slope = load(upper, k * LINE), load(upper, k * LINE + WIDE)
        kinks = choose((value + low * slope < cut) & (value + high * slope >= cut), 1.0, kinks)
    return kinks == 0.0


@joined
def climb(x, base, cut, chi2, lists):
    """Return h, its first two derivatives, and Π upper; h is NaN where something may underflow.

    With the derivatives of products, there is one inverse for all factors of a chunk, and one
    logarithm for both sides. Of derivatives, which only tell where to look next, a few digits are
    enough. The base is what h has beside the factors.
    """
    upper, above, lower, below = lists
    height, slope, bend, whole = -base, fill(0.0), fill(0.0), fill(1.0)
    for start in range(0, max(above, below), CHUNK):
        stop = min(start + CHUNK, above)
        if cut < math.inf:
            up, first, half_second = _multiply(x, upper, start, stop, False, cut)
        else:
            up, first, half_second = _multiply(x, upper, start, stop, False, math.inf)
        inverse = about_inverse(up)
        rate = first * inverse
        slope += rate
        bend += 2.0 * half_second * inverse - rate * rate
        sound, ratio = (up > SAFE) & (up < 1.0 / SAFE), up
        if below > 0:
            end = min(start + CHUNK, below)
            low, first, half_second = _multiply(x, lower, start, end, True, math.inf)
            inverse = about_inverse(low)
            rate = first * inverse
            slope -= rate
            bend -= 2.0 * half_second * inverse - rate * rate
            if chi2 > 0.0 and start == 0:
                gain, loss, more, bent = chi2_prior(x, chi2, load(lower, 0), load(upper, 0))
                slope, bend, whole = slope + more, bend + bent, 1.0 + gain
                ratio, low = ratio * (1.0 + gain), low * max(1.0 - loss, FLOOR)
            sound = sound & (low > SAFE) & (low < 1.0 / SAFE)
            ratio /= low
            sound = sound & (ratio > SAFE) & (ratio < 1.0 / SAFE)
        height += choose(sound, log_of(choose(sound, ratio, 1.0)), math.nan)
        whole *= up
    return height, slope, bend, whole


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
    square = w * rest * inverse
    root = math.sqrt(square)
    per_root = about_inverse(root)
    g = s * root
    steep = w * w * inverse * per_root
    d_g = (rest - kappa) * steep
    per_rest = w * inverse * per_root * per_root
    dd_g = d_g * (0.5 * d_kappa * per_rest - 3.0 * s * w) - 2.0 * d_kappa * steep
    # One inverse for both.
    both = about_inverse((1.0 + g) * left)
    part, per_left = left * both, (1.0 + g) * both
    gain, loss = d_g * part, d_kappa * per_left
    bend = dd_g * part - gain * gain + dd_kappa * per_left + loss * loss
    return g, min(kappa * b * inverse, 1.0), scale * (gain + loss), scale * scale * bend
