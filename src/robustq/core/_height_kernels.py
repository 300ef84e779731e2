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
from robustq.vectors import LANES, choose, fill, load, multiply_add

from ._log_kernels import log_of

__all__ = ["chi2_prior", "climb", "find_cut", "follow", "weigh"]

# The columns of a ball's tables; see `products.COLUMNS`.
L, L_RATE, P, U, U_RATE, S, T = range(7)

LINE = 2 * LANES
CHUNK = 16  # factors whose product is taken before its logarithm
SAFE = 1e-300  # a product above this has not underflowed on the way
FLOOR = 1e-200  # stands for 0 in a lower factor


@inlined
def _log(product):
    """Return the logarithm of a product; NaN where it may have underflowed."""
    sound = (product > SAFE) & (product < 1.0 / SAFE)
    return choose(sound, log_of(choose(sound, product, 1.0)), math.nan)


@joined
def climb(x, factors, count):
    """Return the logarithm of a product, and its first two derivatives.

    With the derivatives of products, there is one division for all factors of a chunk.
    """
    height, slope, bend = fill(0.0), fill(0.0), fill(0.0)
    for start in range(0, count, CHUNK):
        product, first, half_second = fill(1.0), fill(0.0), fill(0.0)
        for k in range(start, min(start + CHUNK, count)):
            w = load(factors, k * LINE + LANES)
            factor = load(factors, k * LINE) + x * w
            half_second = multiply_add(half_second, factor, first * w)
            first = multiply_add(first, factor, product * w)
            product *= factor
        inverse = 1.0 / product
        rate = first * inverse
        height += _log(product)
        slope += rate
        bend += 2.0 * half_second * inverse - rate * rate
    return height, slope, bend


@joined
def follow(x, factors, count, cut):
    """Return what `climb` does, of factors that stay above 0 and are cut off."""
    height, slope, bend = fill(0.0), fill(0.0), fill(0.0)
    for start in range(0, count, CHUNK):
        product, first, half_second = fill(1.0), fill(0.0), fill(0.0)
        for k in range(start, min(start + CHUNK, count)):
            w = load(factors, k * LINE + LANES)
            factor = max(load(factors, k * LINE) + x * w, FLOOR)
            w = choose(factor < cut, w, 0.0)
            factor = min(factor, cut)
            half_second = multiply_add(half_second, factor, first * w)
            first = multiply_add(first, factor, product * w)
            product *= factor
        inverse = 1.0 / product
        rate = first * inverse
        height += _log(product)
        slope += rate
        bend += 2.0 * half_second * inverse - rate * rate
    return height, slope, bend


@joined
def weigh(x, factors, count, cut):
    """Return the logarithm of a product, and the product."""
    height, whole = fill(0.0), fill(1.0)
    for start in range(0, count, CHUNK):
        product = fill(1.0)
        for k in range(start, min(start + CHUNK, count)):
            factor = load(factors, k * LINE) + x * load(factors, k * LINE + LANES)
            product *= min(max(factor, FLOOR), cut)
        height += _log(product)
        whole *= product
    return height, whole


@joined
def find_cut(x, factors, count, cut):
    """Return how near a factor that moves is to where it is cut off."""
    near = fill(math.inf)
    for k in range(count):
        w = load(factors, k * LINE + LANES)
        factor = load(factors, k * LINE) + x * w
        near = min(near, choose(w > 0.0, abs(factor - cut), math.inf))
    return near


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
