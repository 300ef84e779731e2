"""What the balls take: checked, cast to float64 and broadcast, in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.exceptions import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from robustq.arrays import Bools, Floats

__all__ = [
    "against_the_rest",
    "broadcast",
    "mass_functions",
    "not_negative",
    "numbers",
    "probabilities",
    "require_broadcast",
    "values",
]

# How far from one a mass function may sum: what rounding leaves of a long sum,
# far below what a table that was never normalised shows.
SUM_TOLERANCE = 1e-9

# What rounding leaves of a sum of n terms, per term.
ROUNDING = 2.0**-52

SMALLEST_PROBABILITY = float(np.finfo(np.float64).tiny)

# Differences of values must not overflow.
LARGEST_VALUE = float(np.finfo(np.float64).max) / 4


def mass_functions(q: ArrayLike) -> Floats:
    """Return `q` as float64 mass functions along the last axis, or raise.

    They sum to one, up to rounding: what is off by less than `SUM_TOLERANCE` is divided by its sum.
    """
    masses = numbers(q, "q")
    _require_outcomes(masses, "q")
    masses = _as_probabilities(masses, most=1.0 + SUM_TOLERANCE)
    totals = masses.sum(axis=-1)
    error = np.abs(totals - 1.0)
    wrong = error > SUM_TOLERANCE
    if np.any(wrong):
        where = _first(wrong)
        msg = (
            f"q must sum to 1 over its last axis, got a sum of {totals[where]:.12g}{_at(where)}; "
            "divide it by its sum"
        )
        raise InputError(msg)
    off = error > ROUNDING * masses.shape[-1]
    if np.any(off):
        masses = masses / np.where(off, totals, 1.0)[..., None]
    return masses


def probabilities(q: ArrayLike) -> Floats:
    """Return `q` as float64 probabilities of single outcomes, or raise."""
    return _as_probabilities(numbers(q, "q"), most=1.0)


def against_the_rest(q: Floats) -> Floats:
    """Return the mass functions (q, 1 − q) of an outcome and all the others."""
    return np.stack([q, 1.0 - q], axis=-1)


def values(f: ArrayLike) -> Floats:
    """Return `f` as float64 values, one per outcome along the last axis, or raise."""
    checked = numbers(f, "f")
    _require_outcomes(checked, "f")
    _refuse(
        ~(np.abs(checked) <= LARGEST_VALUE),
        checked,
        f"f must be finite and at most {LARGEST_VALUE:.0e} in size",
    )
    return checked


def broadcast(q: Floats, f: Floats, delta: Floats) -> tuple[Floats, Floats, Floats]:
    """Give q and f one shape (..., outcomes) and delta the shape of its leading axes."""
    if q.shape[-1] != f.shape[-1]:
        msg = f"q has {q.shape[-1]} outcomes and f has {f.shape[-1]}: they must be equal"
        raise InputError(msg)
    rows = _common_shape(
        {"q": q.shape[:-1], "f": f.shape[:-1], "delta": delta.shape},
        "the axes before the outcomes",
    )
    full = (*rows, q.shape[-1])
    return np.broadcast_to(q, full), np.broadcast_to(f, full), np.broadcast_to(delta, rows)


def require_broadcast(**arrays: Floats) -> None:
    """Raise if the arrays, named as the user knows them, do not broadcast."""
    _common_shape({name: array.shape for name, array in arrays.items()}, "the axes")


def not_negative(given: ArrayLike, name: str) -> Floats:
    """Return what was given as float64 numbers from 0 on, or raise."""
    array = numbers(given, name)
    _refuse(~(array >= 0.0), array, f"{name} must be 0 or more")
    return array


def _common_shape(shapes: dict[str, tuple[int, ...]], axes: str) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes.values())
    except (RuntimeError, ValueError) as error:
        got = ", ".join(f"{shape} for {name}" for name, shape in shapes.items())
        msg = f"{axes} must be equal or 1 to broadcast, got {got}"
        raise InputError(msg) from error


def numbers(given: ArrayLike, name: str) -> Floats:
    """Return what was given as float64, or raise: text and complex numbers are refused."""
    if given is None or np.ma.is_masked(given):
        raise InputError(_not_numbers(given, name))
    try:
        array = np.asarray(given)
        # numpy itself would cast text; objects may be fractions or decimals.
        if array.dtype.kind in "biufO" and not _holds_text(array):
            with np.errstate(over="ignore"):
                return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(_not_numbers(given, name)) from error
    raise InputError(_not_numbers(given, name))


def _holds_text(array: np.ndarray[Any, Any]) -> bool:
    return array.dtype == object and any(isinstance(x, (str, bytes)) for x in array.flat)


def _not_numbers(given: object, name: str) -> str:
    text = " ".join(repr(given).split())
    shown = text if len(text) <= 80 else f"{text[:80]}…"
    return f"{name} must be a number or an array of numbers, got {shown}"


def _require_outcomes(array: Floats, name: str) -> None:
    if array.ndim == 0 or array.shape[-1] == 0:
        msg = f"{name} needs at least one outcome along its last axis, got shape {array.shape}"
        raise InputError(msg)


def _as_probabilities(array: Floats, most: float) -> Floats:
    # Written so that NaN fails too.
    _refuse(~((array >= 0.0) & (array <= most)), array, "q must hold probabilities, from 0 to 1")
    # Numbers too small to have all their digits, or an inverse, count as 0.
    tiny = (array > 0.0) & (array < SMALLEST_PROBABILITY)
    return np.where(tiny, 0.0, array) if np.any(tiny) else array


def _refuse(wrong: Bools, array: Floats, rule: str) -> None:
    if np.any(wrong):
        where = _first(wrong)
        msg = f"{rule}, got {array[where]!s}{_at(where)}"
        raise InputError(msg)


def _first(wrong: Bools) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(wrong)[0])


def _at(where: tuple[int, ...]) -> str:
    return f" at index {list(where)}" if where else ""
