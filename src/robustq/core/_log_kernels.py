"""The natural logarithm as plain arithmetic, which runs on several lanes at once.

A call of the C library's would keep a loop from doing so. By the method of FreeBSD's `e_log.c`:
with x = 2^k (1 + f) and s = f / (2 + f), log(1 + f) = 2 artanh(s) = f − s (f − R(s²)), and
R a polynomial. Off by less than a unit in the last place.
"""

from robustq.kernels import fused, inlined
from robustq.vectors import bits_of, from_bits

from ._inverse_kernels import about_inverse

__all__ = ["about_log", "log1p_of", "log_of"]

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
C1, C2, C3 = 6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01
C4, C5, C6 = 2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01
C7 = 1.479819860511658591e-01
ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of √½: the fraction is taken from there to √2
FRACTION = 0xFFFFFFFFFFFFF
BIAS = 1024 << 52  # keeps what is shifted positive
FLOAT = 2.0**52
WHOLE = 0x4330000000000000  # the bits of 2^52, the first float whose last bit is worth 1


@inlined
def _take_apart(x):
    """Return k and f."""
    bits = bits_of(x) - ROOT_HALF
    # Whole numbers become floats by their bits: there is no instruction for it everywhere.
    k = from_bits(((bits + BIAS) >> 52) + WHOLE) - (FLOAT + 1024.0)
    return k, from_bits((bits & FRACTION) + ROOT_HALF) - 1.0


@inlined
def log_of(x):
    """Return log x, of a float or of floats; x is positive, finite and not subnormal."""
    k, f = _take_apart(x)
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * (C2 + w * (C4 + w * C6))
    odd = z * (C1 + w * (C3 + w * (C5 + w * C7)))
    half = 0.5 * f * f
    return k * LN2_HIGH - ((half - (s * (half + even + odd) + k * LN2_LOW)) - f)


@inlined
def about_log(x):
    """Return log x, off by less than 1e-5; x is as for `log_of`."""
    k, f = _take_apart(x)
    s = f * about_inverse(2.0 + f)
    z = s * s
    return k * (LN2_HIGH + LN2_LOW) + s * (2.0 + z * (C1 + z * C2))


@fused
def log1p_of(x):
    """Return log(1 + x), with all digits also where x is small; 1 + x is as for `log_of`."""
    y = 1.0 + x
    lost = x - (y - 1.0)
    # It matters where y is close to 1, and may be large where it does not.
    return log_of(y) + (lost if abs(x) < 0.5 else 0.0)
