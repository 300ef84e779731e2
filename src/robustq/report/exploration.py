"""A page on which all predictions can be looked through, and each one taken apart, in any browser.

Three steps: gather what the page needs as plain data, lay it out as JSON, and put it into one file
with the style and the scripts of `explore/`, which are allowed by their hashes and nothing else is.
"""

from __future__ import annotations

import base64
import hashlib
import html
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from robustq import __version__
from robustq.core.neighbourhoods import read
from robustq.core.quantified import Quantified
from robustq.exceptions import UnsupportedError
from robustq.families.base import GenerativeClassifier, encode
from robustq.families.table import recipe_of
from robustq.files import write_atomically
from robustq.tables import MISSING, Numeric, Table
from robustq.tables.columns import is_missing
from robustq.tables.table import count_rows, take_rows
from robustq.texts import make_visible

from .packing import as_json, fold, pack

if TYPE_CHECKING:
    from pathlib import Path

    from robustq.arrays import Indices

__all__ = ["LARGE", "MOST_ROWS", "Exploration", "make_exploration"]

MOST_ROWS = 50_000
LARGE = 30  # megabytes
# The documents that method.js reads.
KNOWN = {"naive_bayes", "bayesian_network", "network_mixture", "generative_forest", "circuit"}
SCRIPTS = ("method.js", "page.js")
EXACT = 2**53  # beyond this, whole numbers are no numbers of JavaScript


class Exploration(NamedTuple):
    """A page, ready to be written.

    Attributes
    ----------
    text : str
    rows, total : int
        How many rows are on it, and how many there were.
    closed : str
        Why values cannot be edited; empty if they can.
    """

    text: str
    rows: int
    total: int
    closed: str

    @property
    def megabytes(self) -> float:
        """How large the file is."""
        return len(self.text.encode()) / 2**20

    @property
    def is_large(self) -> bool:
        """Whether that is more than most people can mail."""
        return self.megabytes > LARGE

    def write(self, path: str | Path) -> None:
        """Write it; it appears when it is complete."""
        write_atomically(path, self.text)


def make_exploration(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    title: str = "predictions",
    rows: Indices | None = None,
    seed: int = 0,
) -> Exploration:
    """Return a page on which the predictions of a model can be explored.

    Parameters
    ----------
    model : classifier
        Fitted. Of robustq's own the page holds the model itself, and values can be edited; of any
        other with `predict_proba`, only its posteriors.
    X : frame, Arrow table or array, optional
        Without it the page has one row to fill in.
    y : array_like, optional
        The true labels.
    title : str
        What the page is about, such as the name of a file.
    rows : ndarray of int, optional
        Which rows of a file these are, counted from 0.
    seed : int
        Of the sample that is taken from more than `MOST_ROWS` rows.
    """
    total = 0 if X is None else count_rows(X)
    chosen = _sample(total, seed)
    numbers = np.arange(total) if rows is None else np.asarray(rows)
    if len(chosen) < total:
        X = take_rows(X, chosen)
    told = _describe(model, X)
    classes = np.asarray(model.classes_).tolist()
    data = {
        "title": make_visible(title, lines=False),
        "kind": _name(model),
        "version": __version__,
        "total": total,
        "rows": len(chosen),
        "classes": [_plain(label) for label in classes],
        "numbers": pack(numbers[chosen] + 1),
        "truth": None if y is None else pack(_find_labels(classes, np.asarray(y)[chosen])),
        **told,
    }
    return Exploration(_fill(data), len(chosen), total, data["closed"])


def _sample(total: int, seed: int) -> Indices:
    if total <= MOST_ROWS:
        return np.arange(total)
    return np.sort(np.random.default_rng(seed).choice(total, MOST_ROWS, replace=False))


def _name(model: Any) -> str:
    recipe = recipe_of(model) if isinstance(model, GenerativeClassifier) else None
    return recipe.title if recipe else type(model).__name__


def _find_labels(classes: list[Any], labels: Any) -> Indices:
    place = {label: code for code, label in enumerate(classes)}
    return np.array([place.get(label, -1) for label in labels.tolist()], dtype=np.int64)


# What the page knows of the model


def _describe(model: Any, X: Any) -> dict[str, Any]:
    """Return the model and its answers, or only the answers, and why."""
    if not isinstance(model, GenerativeClassifier):
        if X is None:
            msg = f"{type(model).__name__} tells nothing without rows: give X"
            raise UnsupportedError(msg)
        return _describe_posteriors(
            model, X, f"of {type(model).__name__} only its probabilities are known here"
        )
    document = model.to_dict()
    if document["kind"] not in KNOWN:
        return _describe_posteriors(
            model, X, f"this page has no recursion for models of the kind {document['kind']}"
        )
    name = "tv" if set(model.model_.default_parts) == set(model.parts) else "tv_all"
    try:
        found = Quantified.empty(1, 0) if X is None else model.quantify(X, [read(name)])
    except UnsupportedError as error:
        return _describe_posteriors(model, X, str(error))
    features = [_describe_feature(feature) for feature in document.pop("features")]
    counted = zip(model.parts, model.model_.locals.counted.tolist(), strict=True)
    return {
        "closed": "",
        "model": {
            "document": _fold_document(document),
            "parts": list(model.parts),
            "default_parts": list(model.model_.default_parts),
            "counted": dict(counted),
            "by_frequency": model.model_.by_frequency.tolist(),
        },
        "features": features,
        "columns": _encode_columns(model, X),
        "hood": name,
        "prediction": pack(found.prediction),
        "probability": pack(found.probability, shown=True),
        "robustness": pack(found.robustness[0], shown=True),
        "tipping": pack(found.tipping[0]),
    }


def _describe_feature(feature: dict[str, Any]) -> dict[str, Any]:
    if "categories" not in feature:
        return feature
    return {**feature, "categories": [_plain(value) for value in feature["categories"]]}


def _plain(value: Any) -> Any:
    """Return a category that JavaScript holds without loss: large whole numbers are text."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if whole and abs(value) > EXACT else value


def _encode_columns(model: GenerativeClassifier, X: Any) -> list[Any]:
    encoding = model.encoding_
    if X is None:
        return [pack(np.zeros(0)) for _ in encoding.columns]
    rows = encode(encoding, encoding.arrange(Table.read(X), type(model).__name__))
    return [
        pack(rows.numbers[:, encoding.numeric.index(index)] if numeric else rows.codes[:, index])
        for index, column in enumerate(encoding.columns)
        for numeric in [isinstance(column, Numeric)]
    ]


def _describe_posteriors(model: Any, X: Any, why: str) -> dict[str, Any]:
    """Return columns as they are shown, and p(c | f) of each row."""
    table = Table.read(X)
    features, columns = [], []
    for index in range(table.width):
        column = table.column(index)
        values = column.to_pylist() if hasattr(column, "to_pylist") else column.tolist()
        texts = ["" if is_missing(value) else str(_plain(value)) for value in values]
        categories, codes = np.unique(
            np.array(texts, dtype=object).astype(str), return_inverse=True
        )
        missing = np.flatnonzero(categories == "")
        name = table.names[index] if table.names else str(index)
        features.append({"name": name, "categories": categories.tolist()})
        columns.append(pack(np.where(np.isin(codes, missing), MISSING, codes)))
    proba = np.asarray(model.predict_proba(X), dtype=np.float64)
    return {
        "closed": why,
        "model": None,
        "features": features,
        "columns": columns,
        "hood": "tv_posterior",
        "proba": pack(proba.ravel()),
    }


# From data to text


def _fold_document(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document whose long lists are columns where that is shorter."""
    told = {}
    for name, value in document.items():
        folded = {"folded": fold(value)} if isinstance(value, list) else value
        told[name] = min(value, folded, key=lambda one: len(as_json(one)))
    return told


def _fill(data: dict[str, Any]) -> str:
    """Return the page. Nothing in the data is markup, and only our own scripts run."""
    folder = files("robustq.report").joinpath("explore")
    style, *scripts = (
        folder.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", *SCRIPTS)
    )
    allowed = " ".join(_hash(script) for script in scripts)
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    text = as_json(data)
    # Data is text to a browser as long as it holds no tag.
    text = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    page = folder.joinpath("page.html").read_text(encoding="utf-8")
    parts = {
        "policy": html.escape(policy),
        "title": html.escape(data["title"]),
        "style": style,
        "data": text,
        "method": scripts[0],
        "page": scripts[1],
    }
    pieces = page.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        filled += [parts[name], rest]
    return "".join(filled)


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
