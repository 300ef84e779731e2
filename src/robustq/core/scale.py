"""Numbers too small or too large for a float: mantissa · 2^(STEP · scale)."""

import math

__all__ = ["FILLING", "LOG_STEP", "LOWEST", "NOTHING", "STEP", "UPMOST"]

STEP = 500
LOWEST, UPMOST = 2.0**-STEP, 2.0**STEP  # mantissas are kept between these
LOG_STEP = STEP * math.log(2.0)
NOTHING = -(2**40)  # the scale of 0: far below any other
FILLING = 1e300  # stands for a factor that is none: cut to 1, whatever is taken from it
