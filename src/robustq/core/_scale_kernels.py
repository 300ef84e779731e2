"""Numbers too small for a float, in kernels: see `scale`."""

from robustq.kernels import inner

from .scale import LOWEST, UPMOST

__all__ = ["shrink", "times"]


@inner
def shrink(steps):
    """Return what a number shrinks by if its scale is that much below that of others."""
    # Powers take long to compile.
    if steps <= 0:
        return 1.0
    return LOWEST if steps == 1 else (LOWEST * LOWEST if steps == 2 else 0.0)


@inner
def times(mass, scale, factor):
    """Multiply; keep the mantissa where it neither underflows nor overflows."""
    if factor < LOWEST:
        factor *= UPMOST
        scale -= 1
    elif factor > UPMOST:
        factor *= LOWEST
        scale += 1
    mass *= factor
    if mass < LOWEST:
        mass *= UPMOST
        scale -= 1
    elif mass > UPMOST:
        mass *= LOWEST
        scale += 1
    return mass, scale
