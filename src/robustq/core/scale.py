"""Numbers too small or too large for a float: mantissa · 2^(STEP · scale)."""

import math

__all__ = ["LOG_STEP", "LOWEST", "STEP", "UPMOST"]

STEP = 500
LOWEST, UPMOST = 2.0**-STEP, 2.0**STEP  # mantissas are kept between these
LOG_STEP = STEP * math.log(2.0)
