"""Naive Bayes as plain data and as arrays of a file, checked: nothing in either is believed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.documents.checking import check_shape, check_sums
from robustq.documents.documents import get, read_probabilities, read_row_counts, write_rows
from robustq.exceptions import InputError
from robustq.families.parameters import LARGEST_SMOOTHING, is_between
from robustq.learning.counts import Layout

from .model import NaiveBayes

if TYPE_CHECKING:
    from robustq.tables import Encoding

__all__ = [
    "ARRAYS",
    "OPTIONAL",
    "pack_naive_bayes",
    "read_naive_bayes",
    "unpack_naive_bayes",
    "write_naive_bayes",
]

OPTIONAL = ("prior_rows", "feature_rows", "smoothing")
ARRAYS = dict.fromkeys(("class_probs", "feature_probs", *OPTIONAL), np.float64)


def unpack_naive_bayes(model: NaiveBayes) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a model by name."""
    return {
        "class_probs": model.class_probs,
        "feature_probs": model.feature_probs,
        "prior_rows": np.array([model.prior_rows]),
        "feature_rows": model.feature_rows,
        "smoothing": np.array([model.smoothing]),
    }


def pack_naive_bayes(
    arrays: dict[str, np.ndarray[Any, Any]], encoding: Encoding, classes: int
) -> NaiveBayes:
    """Return the model of the arrays of a file."""
    layout = _lay_out(encoding, classes)
    shape = (len(encoding.columns), classes)
    rows = arrays.get("feature_rows", np.full(shape, np.nan))
    prior_rows = arrays.get("prior_rows", np.array([np.nan]))
    smoothing = arrays.get("smoothing", np.zeros(1))
    check_shape("class_probs", arrays["class_probs"], (classes,))
    check_shape("feature_probs", arrays["feature_probs"], (int(layout.offsets[-1]),))
    check_shape("prior_rows", prior_rows, (1,))
    check_shape("feature_rows", rows, shape)
    check_shape("smoothing", smoothing, (1,))
    counts = np.append(rows, prior_rows)
    if np.any(counts < 0.0) or np.any(np.isinf(counts)):
        msg = "not a model: rows must be counts, at least 0"
        raise InputError(msg)
    model = NaiveBayes(
        *(arrays["class_probs"], arrays["feature_probs"], layout, float(prior_rows[0]), rows),
        smoothing=_check_smoothing(float(smoothing[0])),
    )
    check_sums(model.class_probs[None, :], "class_probs")
    for index, size in enumerate(layout.sizes):
        if size:
            check_sums(model.local_model(index).T, f"feature_probs of feature {index}")
    return model


def _check_smoothing(smoothing: Any) -> float:
    if not is_between(smoothing, 0.0, LARGEST_SMOOTHING, low_included=True):
        msg = f"not a model: smoothing must be from 0 to {LARGEST_SMOOTHING:g}, got {smoothing!r}"
        raise InputError(msg)
    return float(smoothing)


def _lay_out(encoding: Encoding, classes: int) -> Layout:
    if encoding.numeric:
        msg = f"features[{encoding.numeric[0]}] is numeric: naive Bayes has categories and bins"
        raise InputError(msg)
    return Layout(encoding.sizes, classes)


def write_naive_bayes(model: NaiveBayes) -> dict[str, Any]:
    """Return a model as a part of a document."""
    features = range(len(model.layout.sizes))
    return {
        "class_probs": model.class_probs.tolist(),
        "feature_probs": [model.local_model(index).T.tolist() for index in features],
        "rows": {
            "prior": write_rows(model.prior_rows),
            "features": [[write_rows(n) for n in row] for row in model.feature_rows.tolist()],
        },
        # Where nobody tells, there was none.
        **({"smoothing": model.smoothing} if model.smoothing else {}),
    }


def read_naive_bayes(document: dict[str, Any], encoding: Encoding, classes: int) -> NaiveBayes:
    """Return the model of a document."""
    layout, columns = _lay_out(encoding, classes), encoding.columns
    class_probs = read_probabilities(get(document, "class_probs", list), (classes,), "class_probs")
    tables = get(document, "feature_probs", list)
    if len(tables) != len(columns):
        msg = f"feature_probs has {len(tables)} entries for {len(columns)} features"
        raise InputError(msg)
    probs = np.empty(layout.offsets[-1])
    for index, (table, column) in enumerate(zip(tables, columns, strict=True)):
        where = f"feature_probs[{index}] ({column.name!r})"
        shape = (classes, encoding.sizes[index])
        layout.feature(probs, index)[:] = read_probabilities(table, shape, where).T
    rows = {} if document.get("rows") is None else get(document, "rows", dict)
    prior = read_row_counts(rows.get("prior"), (), "rows.prior")
    features = read_row_counts(rows.get("features"), (len(columns), classes), "rows.features")
    smoothing = _check_smoothing(document.get("smoothing", 0.0))
    return NaiveBayes(class_probs, probs, layout, float(prior), features, smoothing)
