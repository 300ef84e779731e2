"""Exact arithmetic of what floats can hold: whole numbers times powers of two.

Sums and products of floats are such numbers again, and they need no fractions to be reduced.
"""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["ONE", "ZERO", "Dyadic", "of_float"]


class Dyadic(NamedTuple):
    """The number `digits` · 2^`exponent`."""

    digits: int
    exponent: int

    def times(self, other: Dyadic) -> Dyadic:
        """Return the product."""
        return Dyadic(self[0] * other[0], self[1] + other[1])

    def plus(self, other: Dyadic, sign: int = 1) -> Dyadic:
        """Return the sum, or the difference if the sign is −1."""
        (digits, exponent), (more, place) = self, other
        if not digits:
            return other if sign > 0 else Dyadic(-more, place)
        if exponent >= place:
            return Dyadic((digits << (exponent - place)) + sign * more, place) if more else self
        return Dyadic(digits + sign * (more << (place - exponent)), exponent)

    def minus(self, other: Dyadic) -> Dyadic:
        """Return the difference."""
        return self.plus(other, -1)

    @property
    def scale(self) -> int:
        """The exponent of the first digit, counted from the point."""
        return self.digits.bit_length() + self.exponent

    def to_float(self, scale: int = 0) -> float:
        """Return the nearest float of this number divided by 2^scale, not 0 unless it is 0."""
        if not self.digits:
            return 0.0
        # More digits than a float has would only make the shift expensive.
        excess = max(0, abs(self.digits).bit_length() - 64)
        number = float(self.digits >> excess)
        shift = self.exponent + excess - scale
        value = math.ldexp(number, max(shift, -1200)) if shift < 900 else math.inf
        return value or math.copysign(5e-324, number)


ZERO, ONE = Dyadic(0, 0), Dyadic(1, 0)


def of_float(number: float, exponent: int = 0) -> Dyadic:
    """Return number · 2^exponent, exactly."""
    digits, divisor = float(number).as_integer_ratio()
    return Dyadic(digits, exponent - (divisor.bit_length() - 1))
