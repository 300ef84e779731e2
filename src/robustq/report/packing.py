"""Numbers as a page holds them: as short as they can be written without losing a digit.

A model document is a tree of small lists and dictionaries, whose names and digits are written out
again for each node of each tree. Here alike values are laid out as columns (`fold`), and a column
of numbers is an array in base64, or a list, whatever is shorter. `unfold` of `page.js` undoes it.
"""

from __future__ import annotations

import base64
import itertools
import json
from typing import Any

import numpy as np

__all__ = ["as_json", "fold", "pack"]

WHOLE = (np.int8, np.uint8, np.int16, np.uint16, np.int32)
CLOSE = 1e-6  # more digits than a page shows


def as_json(data: Any) -> str:
    """Return data as JSON without a space in it."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def pack(numbers: np.ndarray[Any, Any], *, shown: bool = False) -> Any:
    """Return the shortest of the ways to write an array.

    Parameters
    ----------
    numbers : ndarray of shape (n,)
    shown : bool, default False
        Whether numbers are only looked at and sorted by: half of the digits do, if that leaves
        them in the same order.

    Returns
    -------
    list, or dict with "type" and "data", or dict with "values" and "at"
        Numbers; bytes in base64; or packed different values, and which of them each number is.
    """
    numbers = _shorten(numbers) if shown else numbers
    numbers = _as_whole(numbers)
    ways = [_encode(numbers), *_list(numbers)]
    values, at = np.unique(numbers, return_inverse=True)
    # NaN is as unlike itself, and so would a zero be its negative.
    if len(values) < len(numbers) and not np.isnan(values).any() and not _has_minus(numbers):
        ways.append({"values": _encode(values), "at": _encode(_as_whole(at.reshape(-1)))})
    return min(ways, key=_measure)


def _encode(numbers: np.ndarray[Any, Any]) -> dict[str, str]:
    little = np.ascontiguousarray(numbers, dtype=numbers.dtype.newbyteorder("<"))
    return {"type": numbers.dtype.name, "data": base64.b64encode(little.tobytes()).decode()}


def _list(numbers: np.ndarray[Any, Any]) -> list[list[Any]]:
    """Return the numbers as JSON has them, if it does."""
    known = np.isfinite(numbers).all() and not _has_minus(numbers)
    return [numbers.tolist()] if known and numbers.dtype != np.float32 else []


def _as_whole(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return whole numbers as the smallest type that holds them, others as they are."""
    if numbers.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            whole = np.isfinite(numbers).all() and (numbers == np.rint(numbers)).all()
        if not whole or _has_minus(numbers):
            return numbers
    low, high = numbers.min(initial=0), numbers.max(initial=0)
    for kind in WHOLE:
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return numbers.astype(kind)
    return numbers.astype(np.float64)


def _has_minus(numbers: np.ndarray[Any, Any]) -> bool:
    """Tell whether a zero has a sign."""
    return (
        bool(np.any((numbers == 0) & np.signbit(numbers))) if numbers.dtype.kind == "f" else False
    )


def _shorten(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return half of the digits, where the rest makes no difference."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        half = numbers.astype(np.float32)
    same = np.allclose(half, numbers, rtol=CLOSE, atol=0.0, equal_nan=True)
    return half if same and len(np.unique(half)) == len(np.unique(numbers)) else numbers


def fold(values: list[Any]) -> dict[str, Any]:
    """Return a list as columns: of numbers, of lists laid end to end, or of dictionaries.

    Returns
    -------
    dict
        With "plain": the values as they are; with "numbers": packed ones; with "lengths": those of
        lists, and their items as "of"; or with "records": for each set of names the columns, and
        "which" set each dictionary has.
    """
    kinds = {type(value) for value in values}
    if kinds and kinds <= {int, float}:
        return {"numbers": pack(np.array(values))}
    if kinds == {list}:
        lengths = np.array([len(value) for value in values])
        return {"lengths": pack(lengths), "of": fold(list(itertools.chain.from_iterable(values)))}
    if kinds == {dict}:
        return _fold_records(values)
    return {"plain": values}


def _fold_records(values: list[dict[str, Any]]) -> dict[str, Any]:
    place: dict[tuple[str, ...], int] = {}
    which = [place.setdefault(tuple(value), len(place)) for value in values]
    own: list[list[dict[str, Any]]] = [[] for _ in place]
    for k, value in zip(which, values, strict=True):
        own[k].append(value)
    records = [
        {"names": list(names), "of": [fold([value[name] for value in some]) for name in names]}
        for names, some in zip(place, own, strict=True)
    ]
    return {"which": pack(np.array(which)), "records": records}


def _measure(told: Any) -> int:
    if isinstance(told, list):
        return len(as_json(told))
    return sum(len(value) if isinstance(value, str) else _measure(value) for value in told.values())
