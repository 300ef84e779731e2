"""What the balls take: checked, cast to float64 and broadcast, in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from robustq.exceptions import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from robustq.arrays import Bools, Floats

__all__ = ["broadcast", "mass_functions", "numbers", "probabilities", "require_broadcast", "values"]

# How far from one a mass function may sum: what rounding leaves of a long sum,
# far below what a table that was never normalised shows.
SUM_TOLERANCE = 1e-9

# Differences of values must not overflow.
LARGEST_VALUE = float(np.finfo(np.float64).max) / 4


def mass_functions(q: ArrayLike) -> Floats:
    """Return `q` as float64 mass functions along the last axis, or raise."""
    masses = numbers(q, "q")
    _require_outcomes(masses, "q")
    _require_probabilities(masses)
    totals = masses.sum(axis=-1)
    wrong = np.abs(totals - 1.0) > SUM_TOLERANCE
    if np.any(wrong):
        where = _first(wrong)
        msg = (
            f"q must sum to 1 over its last axis, got a sum of {totals[where]:.12g}{_at(where)}; "
            "divide it by its sum"
        )
        raise InputError(msg)
    return masses


def probabilities(q: ArrayLike) -> Floats:
    """Return `q` as float64 probabilities of single outcomes, or raise."""
    single = numbers(q, "q")
    _require_probabilities(single)
    _refuse(single > 1.0, single, "q must hold probabilities, at most 1")
    return single


def values(f: ArrayLike) -> Floats:
    """Return `f` as float64 values, one per outcome along the last axis, or raise."""
    checked = numbers(f, "f")
    _require_outcomes(checked, "f")
    _refuse(~(np.abs(checked) <= LARGEST_VALUE), checked, "f must be finite")
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


def require_broadcast(q: Floats, delta: Floats) -> None:
    """Raise if single probabilities and sizes do not broadcast."""
    _common_shape({"q": q.shape, "delta": delta.shape}, "the axes")


def _common_shape(shapes: dict[str, tuple[int, ...]], axes: str) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError as error:
        got = ", ".join(f"{shape} for {name}" for name, shape in shapes.items())
        msg = f"{axes} must be equal or 1 to broadcast, got {got}"
        raise InputError(msg) from error


def numbers(given: ArrayLike, name: str) -> Floats:
    """Return what was given as float64, or raise: text and complex numbers are refused."""
    try:
        array = np.asarray(given)
        # numpy itself would cast text; objects may be fractions or decimals.
        if array.dtype.kind in "biufO":
            return array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(_not_numbers(given, name)) from error
    raise InputError(_not_numbers(given, name))


def _not_numbers(given: object, name: str) -> str:
    text = " ".join(repr(given).split())
    return f"{name} must be a number or an array of numbers, got {text[:80]}"


def _require_outcomes(array: Floats, name: str) -> None:
    if array.ndim == 0 or array.shape[-1] == 0:
        msg = f"{name} needs at least one outcome along its last axis, got shape {array.shape}"
        raise InputError(msg)


def _require_probabilities(array: Floats) -> None:
    # Written so that NaN fails too.
    _refuse(~(array >= 0.0), array, "q must hold probabilities, at least 0")


def _refuse(wrong: Bools, array: Floats, rule: str) -> None:
    if np.any(wrong):
        where = _first(wrong)
        msg = f"{rule}, got {array[where]!s}{_at(where)}"
        raise InputError(msg)


def _first(wrong: Bools) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(wrong)[0])


def _at(where: tuple[int, ...]) -> str:
    return f" at index {list(where)}" if where else ""
