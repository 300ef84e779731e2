"""Classifiers in files and documents: every kind of model by one reader and one writer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from robustq.documents.documents import is_deeper, read_header, write_header
from robustq.documents.files import (
    ModelFile,
    begins_like_json,
    read_file,
    read_json,
    write_file,
)
from robustq.exceptions import FileError, InputError, UnsupportedError
from robustq.files import explain_os_error, find_place
from robustq.tables import Verdict

from .parameters import LARGEST_SMOOTHING, is_between
from .table import KINDS, find_kinds, kind_of

if TYPE_CHECKING:
    from .base import GenerativeClassifier
    from .kinds import Kind

__all__ = ["describe", "load", "restore", "save"]

LABEL_TYPES = {"object", *(np.dtype(kind).str for kind in "?bBhHiIlLqQefd")}
DEEPEST = 10
FACTS = {"rows": int, "date": str, "robustq": str, "target": str, "source": str, "gate": dict}

Estimator = TypeVar("Estimator", bound="GenerativeClassifier")


def describe(classifier: GenerativeClassifier) -> dict[str, Any]:
    """Return a fitted classifier as a document."""
    kind = _kind_of(classifier)
    return {
        **write_header(kind.name, classifier.encoding_, classifier.classes_),
        **kind.write(classifier.model_),
    }


def restore(document: Any, estimator: type[Estimator]) -> Estimator:
    """Return the classifier that a document describes, or raise."""
    kinds = find_kinds(estimator)
    if not kinds:
        msg = f"{estimator.__name__} cannot be made of a document"
        raise UnsupportedError(msg)
    name = document.get("kind") if isinstance(document, dict) else None
    kind = next((one for one in kinds if one.name == name), kinds[0])
    encoding, classes = read_header(document, kind.name)
    model = kind.read(document, encoding, len(classes))
    classifier = estimator()
    classifier._suit(model)  # noqa: SLF001 (one house)
    classifier._set_model(model, encoding, classes)  # noqa: SLF001
    return classifier


def save(classifier: GenerativeClassifier, path: str | Path) -> None:
    """Write a fitted classifier to a file; it appears when it is complete.

    Raises
    ------
    FileError
        If it cannot be written.
    """
    kind = _kind_of(classifier)
    header = {
        **write_header(kind.name, classifier.encoding_, classifier.classes_),
        "classes_type": _name_type(classifier.classes_.dtype),
        "estimator": _estimator_name(classifier, kind),
        "parameters": _plain_parameters(classifier),
        "learned": {"smoothing": getattr(classifier, "smoothing_", None)},
        "training": getattr(classifier, "training_", {}),
        "verdicts": [list(verdict) for verdict in classifier.encoding_.verdicts],
    }
    write_file(ModelFile(header, kind.unpack(classifier.model_)), path)


def load(path: str | Path) -> Any:
    """Return the classifier in a model file, or in a JSON document as `to_dict` gives it.

    All of it is read: what becomes of the file afterwards does not touch the classifier.

    Parameters
    ----------
    path : path

    Returns
    -------
    NaiveBayesClassifier, GenerativeForestClassifier, GenerativeTreeClassifier or
    BayesianNetworkClassifier

    Raises
    ------
    FileError
        If the file cannot be read.
    InputError
        If it is no model, damaged, or of a newer version.
    """
    if not isinstance(path, (str, Path)):
        msg = f"path must be the name of a file, got {path!r}"
        raise InputError(msg)
    place = find_place(path)
    try:
        if place.exists() and not place.is_file():
            msg = f"{place.name} cannot be read: it is no regular file"
            raise FileError(msg)
        if begins_like_json(place):
            with place.open() as file:
                return _load_document(read_json(file.read()))
        return _load_file(read_file(place))
    except InputError as error:
        msg = f"{place.name}: {error}"
        raise InputError(msg) from error
    except (OSError, UnicodeError) as error:
        if isinstance(error, FileError):
            raise
        why = explain_os_error(error) if isinstance(error, OSError) else "no name of a file"
        msg = f"{place.name} cannot be read ({why})"
        raise FileError(msg) from error


def _kind_of(classifier: GenerativeClassifier) -> Kind:
    classifier._require_fitted()  # noqa: SLF001 (one house)
    kind = kind_of(classifier)
    if kind is None:
        msg = f"{type(classifier).__name__} cannot be saved: no kind of model is known for it"
        raise UnsupportedError(msg)
    return kind


# Writing


def _name_type(kind: np.dtype[Any]) -> str:
    return "object" if kind.hasobject else kind.newbyteorder("<").str


def _estimator_name(classifier: GenerativeClassifier, kind: Kind) -> str:
    known = {estimator.__name__ for estimator in kind.estimators}
    return next(base.__name__ for base in type(classifier).__mro__ if base.__name__ in known)


def _plain_parameters(classifier: GenerativeClassifier) -> dict[str, Any]:
    """Return the parameters that fit into JSON; what was only needed for fitting may be lost."""
    plain = {}
    for name, value in classifier.get_params(deep=False).items():
        given = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
        given = _as_lists(given)
        try:
            told = json.loads(json.dumps(given, allow_nan=False))
        except (TypeError, ValueError):
            continue
        # The labels of `class_weight` may be numbers, and those of JSON's objects are text.
        if told == given:
            plain[name] = given
    return plain


def _as_lists(value: Any) -> Any:
    return [_as_lists(part) for part in value] if isinstance(value, (list, tuple)) else value


# Reading


def _load_file(file: ModelFile) -> Any:
    header = file.header
    # Whatever it is: an unknown version is told first, then an unknown kind.
    kind = KINDS.get(str(header.get("kind")), next(iter(KINDS.values())))
    encoding, classes = read_header(header, kind.name)
    encoding = replace(encoding, verdicts=_read_verdicts(header, len(encoding.columns)))
    arrays = {kind.renamed.get(name, name): array for name, array in file.arrays.items()}
    _check_names(arrays, kind)
    model = kind.pack(arrays, encoding, len(classes))
    classifier = _make_estimator(header, kind)
    classifier._suit(model)  # noqa: SLF001
    classifier._set_model(model, encoding, _cast(classes, header.get("classes_type")))  # noqa: SLF001
    _set_facts(classifier, header)
    return classifier


def _read_verdicts(header: dict[str, Any], columns: int) -> tuple[Verdict, ...]:
    """Return why columns were taken as what they are; older files do not say."""
    given = header.get("verdicts") or []
    listed = isinstance(given, list) and all(isinstance(verdict, list) for verdict in given)
    types = [list(map(type, verdict)) for verdict in (given if listed else ())]
    if not listed or types not in ([], [[bool, str, str]] * columns):
        _refuse("what it says about its columns is odd")
    return tuple(Verdict(*verdict) for verdict in given)


def _check_names(arrays: dict[str, np.ndarray[Any, Any]], kind: Kind) -> None:
    odd = (set(arrays) ^ set(kind.arrays)) - (set(kind.optional) - set(arrays))
    if odd:
        _refuse(f"the arrays are not those of this kind of model: {', '.join(sorted(odd))}")
    for name, array in arrays.items():
        if array.dtype != kind.arrays[name]:
            _refuse(f"the array {name!r} has the type {array.dtype}")


def _make_estimator(header: dict[str, Any], kind: Kind) -> Any:
    name, parameters = str(header.get("estimator")), header.get("parameters")
    estimator: Any = next((one for one in kind.estimators if one.__name__ == name), None)
    if estimator is None or not isinstance(parameters, dict):
        _refuse("its header does not tell what made it")
    unknown = set(parameters) - set(estimator().get_params())
    if unknown:
        _refuse(f"{estimator.__name__} has no parameter {sorted(unknown)[0]!r}")
    classifier = estimator(**parameters)
    classifier._check_parameters()  # noqa: SLF001
    return classifier


def _cast(classes: np.ndarray[Any, Any], kind: Any) -> np.ndarray[Any, Any]:
    """Return the labels as the type they had."""
    if isinstance(kind, str) and kind.startswith("<U") and classes.dtype.kind == "U":
        return classes
    if not isinstance(kind, str) or kind not in LABEL_TYPES:
        _refuse(f"classes_type {kind!r} is no type of labels")
    with np.errstate(all="ignore"):
        try:
            cast = classes.astype(kind)
        except (TypeError, ValueError, OverflowError) as error:
            _refuse(f"the classes are not of the type {kind!r} ({error})")
    if cast.tolist() != classes.tolist():
        _refuse(f"the classes are not of the type {kind!r}")
    return cast


def _set_facts(classifier: Any, header: dict[str, Any]) -> None:
    learned: Any = header.get("learned")
    training: Any = header.get("training")
    if not isinstance(learned, dict) or not isinstance(training, dict):
        _refuse("its header lacks what it says about the training")
    _check_training(training)
    smoothing: Any = learned.get("smoothing")
    if is_between(smoothing, 0.0, LARGEST_SMOOTHING, low_included=True):
        classifier.smoothing_ = float(smoothing)
    classifier.training_ = training


def _check_training(training: dict[str, Any]) -> None:
    """Refuse facts of a type that nobody who shows or uses them expects."""
    for name, kind in FACTS.items():
        value = training.get(name, kind())
        if not isinstance(value, kind) or isinstance(value, bool):
            _refuse(f"what it says about the training is odd: {name} is {value!r}")
    if is_deeper(training, DEEPEST):
        _refuse("what it says about the training is nested too deeply")
    edges = training.get("target_edges", [])
    if not _are_edges(edges):
        _refuse(f"what it says about the training is odd: target_edges is {edges!r}")
    gate = training.get("gate")
    if gate is not None:
        above, names = gate.get("above"), gate.get("indicators", [gate.get("ball")])
        number = above is None or is_between(above, -2.0, 1e300, low_included=True)
        named = isinstance(names, list) and names and all(isinstance(name, str) for name in names)
        if not named or not number:
            _refuse(f"its gate cannot be used: {str(gate)[:200]}")


def _are_edges(edges: Any) -> bool:
    return (
        isinstance(edges, list)
        and all(is_between(edge, -1e300, 1e300) for edge in edges)
        and sorted(set(edges)) == edges
    )


def _load_document(document: Any) -> Any:
    name = document.get("kind") if isinstance(document, dict) else None
    kind = KINDS.get(str(name), next(iter(KINDS.values())))
    classifier = restore(document, kind.estimators[0])
    classifier.training_ = {}
    return classifier


def _refuse(what: str) -> NoReturn:
    raise InputError(what)
