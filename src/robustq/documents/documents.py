"""Models as plain data, ready for JSON: `to_dict` and `from_dict`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.exceptions import InputError, UnsupportedError
from robustq.tables import Binned, Categorical, Encoding, Numeric

from .checking import SUM_TOLERANCE

if TYPE_CHECKING:
    from robustq.arrays import Floats

__all__ = [
    "FORMAT",
    "VERSION",
    "get",
    "is_deeper",
    "read_header",
    "read_probabilities",
    "read_row_counts",
    "write_header",
    "write_rows",
]

FORMAT, VERSION = "robustq-model", 2
DEEPEST = 20  # lists and dictionaries within each other; whoever follows them has a limit
LARGEST_EDGE = float(np.finfo(np.float64).max)


def write_header(kind: str, encoding: Encoding, classes: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Return what every document begins with."""
    labels = classes.tolist()
    if not all(_is_category(label) for label in labels):
        msg = f"labels of type {classes.dtype} do not fit into JSON: make them text or numbers"
        raise UnsupportedError(msg)
    return {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "classes": labels,
        "named": encoding.named,
        "features": [_write_feature(column) for column in encoding.columns],
    }


def _write_feature(column: Categorical | Binned | Numeric) -> dict[str, Any]:
    if isinstance(column, Numeric):
        return {"name": column.name, "numeric": True}
    feature: dict[str, Any] = {"name": column.name, "categories": list(column.categories)}
    if isinstance(column, Binned):
        feature["edges"] = list(column.edges)
    return feature


def read_header(document: Any, kind: str) -> tuple[Encoding, np.ndarray[Any, Any]]:
    """Return the encoding and the classes of a document of some kind, or raise."""
    _check_header(document, kind)
    classes = _read_classes(document)
    columns = tuple(
        _read_feature(feature, index)
        for index, feature in enumerate(get(document, "features", list))
    )
    named = document.get("named", True)
    if not isinstance(named, bool):
        msg = f"named must be true or false, got {named!r}"
        raise InputError(msg)
    if named and len({column.name for column in columns}) < len(columns):
        msg = "two features have the same name"
        raise InputError(msg)
    return Encoding(columns, named), classes


def _check_header(document: Any, kind: str) -> None:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        msg = f'not a model: expected a dictionary with "format": "{FORMAT}"'
        raise InputError(msg)
    if is_deeper(document, DEEPEST):
        msg = f"not a model: it is nested deeper than {DEEPEST} lists or dictionaries"
        raise InputError(msg)
    version = document.get("version")
    if version not in range(1, VERSION + 1) or isinstance(version, bool):
        msg = (
            f"the model is of version {version!r}, and this robustq reads versions 1 to {VERSION}: "
            "update robustq"
        )
        raise InputError(msg)
    if document.get("kind") != kind:
        msg = f'the model is of kind {document.get("kind")!r}, expected "{kind}"'
        raise InputError(msg)


def is_deeper(value: Any, most: int) -> bool:
    """Tell whether lists and dictionaries lie within each other deeper than so many."""
    level = [value]
    for _ in range(most + 1):
        held = [one.values() if isinstance(one, dict) else one for one in level]
        level = [p for part in held for p in part if isinstance(p, (dict, list, tuple))]
    return bool(level)


def get(document: dict[str, Any], key: str, kind: type, where: str = "the model") -> Any:
    """Return a part of a document, if it is there and of the right type."""
    value = document.get(key)
    if not isinstance(value, kind):
        msg = f"{where} lacks {key!r}, a {kind.__name__}"
        raise InputError(msg)
    return value


def _read_classes(document: dict[str, Any]) -> np.ndarray[Any, Any]:
    labels = get(document, "classes", list)
    plain = all(_is_category(label) for label in labels)
    if not labels or not plain or len(set(labels)) < len(labels):
        msg = f"classes must be different labels, at least one, got {labels!r}"
        raise InputError(msg)
    kinds = {str if isinstance(label, str) else float for label in labels}
    classes = np.array(labels, dtype=object) if len(kinds) > 1 else np.array(labels)
    if classes.dtype == object:
        msg = f"classes must be all text or all numbers of 64 bits, got {labels[:5]!r}"
        raise InputError(msg)
    return classes


def _read_feature(feature: Any, index: int) -> Categorical | Binned | Numeric:
    where = f"features[{index}]"
    name = feature.get("name") if isinstance(feature, dict) else None
    if not isinstance(name, str) or not _is_category(name):
        msg = f"{where} must be a dictionary with a name"
        raise InputError(msg)
    if feature.get("numeric") is True:
        return Numeric(name)
    if "edges" in feature:
        return Binned(name, _read_edges(feature["edges"], where))
    categories = feature.get("categories")
    if not isinstance(categories, list) or not all(_is_category(c) for c in categories):
        msg = f"{where} ({name!r}) must list its categories: text or finite numbers"
        raise InputError(msg)
    if len(set(categories)) < len(categories):
        msg = f"{where} ({name!r}) lists a category twice"
        raise InputError(msg)
    return Categorical(name, tuple(categories))


def _is_category(value: Any) -> bool:
    if isinstance(value, str):
        # Half a character, as "\\ud800" is, cannot be written anywhere.
        return not any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, int):
        return -(2**63) <= value < 2**64
    return isinstance(value, float) and math.isfinite(value)


def _read_edges(edges: Any, where: str) -> tuple[float, ...]:
    numbers = isinstance(edges, list) and all(isinstance(e, (int, float)) for e in edges)
    if (
        not numbers
        or not all(_is_category(e) and abs(e) <= LARGEST_EDGE for e in edges)
        or sorted(set(edges)) != edges
    ):
        msg = f"the edges of {where} must be finite numbers that increase"
        raise InputError(msg)
    return tuple(float(edge) for edge in edges)


def write_rows(rows: float) -> float | None:
    """Return how many rows were counted, None where none were."""
    return None if math.isnan(rows) else rows


def read_row_counts(given: Any, shape: tuple[int, ...], where: str) -> Floats:
    """Return counts of rows of a given shape, NaN where there is null, or raise."""
    if given is None:
        return np.full(shape, np.nan)
    try:
        rows = np.array(given, dtype=object)
        rows = np.where(rows == None, np.nan, rows).astype(np.float64)  # noqa: E711 (an array)
    except (TypeError, ValueError) as error:
        msg = f"{where} must be counts, at least 0, or null"
        raise InputError(msg) from error
    if rows.shape != shape and not (rows.size == 0 and 0 in shape):
        msg = f"{where} has shape {rows.shape}, expected {shape}"
        raise InputError(msg)
    if np.any(rows < 0.0) or np.any(np.isinf(rows)) or _holds_other(given):
        msg = f"{where} must be counts, at least 0, or null"
        raise InputError(msg)
    return rows.reshape(shape)


def _holds_other(given: Any) -> bool:
    if isinstance(given, list):
        return any(_holds_other(part) for part in given)
    return isinstance(given, (bool, str)) or not isinstance(given, (int, float, type(None)))


def read_probabilities(given: Any, shape: tuple[int, ...], where: str) -> Floats:
    """Return probabilities of a given shape that sum to 1 over the last axis, or raise."""
    try:
        probs = np.array(given)
    except ValueError as error:
        msg = f"{where} must be a table of numbers"
        raise InputError(msg) from error
    if probs.size and probs.dtype.kind not in "iuf":
        msg = f"{where} must hold numbers"
        raise InputError(msg)
    probs = probs.astype(np.float64)
    if probs.shape != shape:
        # An empty list of categories has no second axis to show.
        if probs.size == 0 and 0 in shape:
            return np.empty(shape)
        msg = f"{where} has shape {probs.shape}, expected {shape}"
        raise InputError(msg)
    if probs.size and not np.all((probs >= 0.0) & (probs <= 1.0)):
        msg = f"{where} must hold probabilities, from 0 to 1"
        raise InputError(msg)
    if probs.size and np.any(np.abs(probs.sum(axis=-1) - 1.0) > SUM_TOLERANCE):
        msg = f"{where} must sum to 1"
        raise InputError(msg)
    return probs
