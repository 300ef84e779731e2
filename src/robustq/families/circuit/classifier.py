"""A classifier that is a circuit, whoever made it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from robustq.exceptions import InputError, UnsupportedError
from robustq.families.base import GenerativeClassifier
from robustq.families.kinds import Kind
from robustq.families.parameters import is_one_of

from .document import read_circuit, write_circuit

if TYPE_CHECKING:
    from robustq.tables import Encoding

    from .model import Circuit

__all__ = ["KIND", "CircuitClassifier", "as_circuit"]


class CircuitClassifier(GenerativeClassifier):
    """A circuit of local mass functions, with the robustness of every prediction.

    It is made of a document, with `from_dict`, or of a model, with its `to_circuit`; it does not
    learn. By default every part that its nodes name is perturbed, or those of `default_parts`.

    Parameters
    ----------
    handle_unknown : {"missing", "error"}, default "missing"
        What to do with a value that the circuit does not know.

    Attributes
    ----------
    classes_ : ndarray
    model_ : Circuit
        The nodes, as flat arrays.
    encoding_ : Encoding

    Examples
    --------
    >>> document = {
    ...     "format": "robustq-model", "version": 2, "kind": "circuit", "classes": ["in", "out"],
    ...     "features": [{"name": "sky", "categories": ["rain", "sun"]}], "root": 6, "nodes": [
    ...         {"class_probs": [1, 0]}, {"feature": 0, "probs": [0.75, 0.25], "part": "features"},
    ...         {"class_probs": [0, 1]}, {"feature": 0, "probs": [0.2, 0.8], "part": "features"},
    ...         {"product": [0, 1]}, {"product": [2, 3]},
    ...         {"sum": [4, 5], "weights": [0.5, 0.5], "part": "prior"}]}
    >>> model = CircuitClassifier.from_dict(document)
    >>> model.predict([["sun"]]).tolist(), model.robustness([["sun"]], "tv").round(4).tolist()
    (['out'], [0.1341])
    """

    categorical = numeric = None

    def __init__(self, handle_unknown: str = "missing") -> None:
        self.handle_unknown = handle_unknown

    def fit(self, X: Any, y: Any) -> NoReturn:  # noqa: ARG002 (scikit-learn calls it so)
        """Refuse: a circuit is given, not learned.

        Raises
        ------
        UnsupportedError
        """
        msg = "a circuit is not learned: use from_dict, or to_circuit of a fitted model"
        raise UnsupportedError(msg)

    def to_circuit(self) -> CircuitClassifier:
        """Return itself."""
        return self

    def _check_parameters(self) -> None:
        if not is_one_of(self.handle_unknown, "missing", "error"):
            msg = f'handle_unknown must be "missing" or "error", got {self.handle_unknown!r}'
            raise InputError(msg)


def as_circuit(classifier: GenerativeClassifier) -> CircuitClassifier:
    """Return a fitted classifier as a circuit, equal in every probability and robustness.

    A model that is one has a method `to_circuit`, which returns what the document holds beside its
    header.

    Raises
    ------
    UnsupportedError
        If its model is no circuit.
    """
    write = getattr(classifier.model_, "to_circuit", None)
    if write is None:
        msg = (
            f"{type(classifier).__name__} has no circuit: its local models would stand in several "
            "places of it, pushed both ways"
        )
        raise UnsupportedError(msg)
    circuit = CircuitClassifier(handle_unknown=classifier.handle_unknown)
    model = read_circuit(write(), classifier.encoding_, len(classifier.classes_))
    circuit._set_model(model, classifier.encoding_, classifier.classes_)  # noqa: SLF001 (one house)
    circuit.training_ = dict(getattr(classifier, "training_", {}))
    return circuit


# Files hold the document: what is read is checked by one reader.


def _unpack(model: Circuit) -> dict[str, np.ndarray[Any, Any]]:
    text = json.dumps(write_circuit(model), ensure_ascii=False, separators=(",", ":"))
    return {"document": np.frombuffer(text.encode(), dtype=np.uint8)}


def _pack(arrays: dict[str, np.ndarray[Any, Any]], encoding: Encoding, classes: int) -> Circuit:
    try:
        document = json.loads(arrays["document"].tobytes())
    except (ValueError, RecursionError) as error:
        msg = "not a model: its circuit cannot be read"
        raise InputError(msg) from error
    if not isinstance(document, dict):
        msg = "not a model: its circuit is no dictionary"
        raise InputError(msg)
    return read_circuit(document, encoding, classes)


KIND = Kind(
    "circuit",
    arrays={"document": np.uint8},
    unpack=_unpack,
    pack=_pack,
    write=write_circuit,
    read=read_circuit,
    estimators=(CircuitClassifier,),
)
