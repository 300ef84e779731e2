"""A model as one file that holds data only: safetensors arrays, a JSON header, a checksum.

Nothing in such a file can run, and nothing in it is believed: the checksum tells damage, and every
index, range and sum is checked before anything is computed with it.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from robustq.exceptions import FileError, InputError, UnsupportedError
from robustq.files import explain_os_error, replacing
from robustq.models.checking import check_forest, check_naive_bayes
from robustq.models.forest import Forest
from robustq.models.naive_bayes import Cells, NaiveBayes

from .documents import FORMAT, read_header, write_header
from .forest import GenerativeForestClassifier, GenerativeTreeClassifier
from .naive_bayes import NaiveBayesClassifier
from .parameters import LARGEST_SMOOTHING, is_between

if TYPE_CHECKING:
    from .base import GenerativeClassifier

__all__ = ["ModelFile", "load", "read_file", "save"]

KEY = "robustq"
LONGEST_HEADER = 10**8
TYPES = {"F64": np.float64, "I32": np.int32, "I64": np.int64, "U64": np.uint64}
LABEL_TYPES = {"object", *(np.dtype(kind).str for kind in "?bBhHiIlLqQefd")}
DEEPEST = 10
FACTS = {"rows": int, "date": str, "robustq": str, "target": str, "source": str, "gate": dict}
ESTIMATORS: dict[str, type[GenerativeClassifier]] = {
    estimator.__name__: estimator
    for estimator in (NaiveBayesClassifier, GenerativeForestClassifier, GenerativeTreeClassifier)
}
ARRAYS: dict[str, dict[str, Any]] = {
    "naive_bayes": {"class_probs": np.float64, "feature_probs": np.float64},
    "generative_forest": {
        "roots": np.int32,
        "nodes": np.int32,
        "lists": np.int32,
        "shares": np.float64,
        "class_probs": np.float64,
        "seen": np.uint64,
        "starts": np.int32,
        "entry_codes": np.int32,
        "entry_probs": np.float64,
        "normals": np.float64,
    },
}


@dataclass(frozen=True, eq=False)
class ModelFile:
    """What a model file holds: its header, and its arrays, which are read when they are used."""

    header: dict[str, Any]
    arrays: dict[str, np.ndarray[Any, Any]]


def save(model: GenerativeClassifier, path: str | Path) -> None:
    """Write a fitted model to a file; it appears when it is complete.

    Raises
    ------
    FileError
        If it cannot be written.
    """
    from safetensors import SafetensorError  # noqa: PLC0415 (not needed for anything else)
    from safetensors.numpy import save_file  # noqa: PLC0415

    header, arrays = _describe(model)
    text = json.dumps(header, ensure_ascii=False, allow_nan=False)
    # One entry, because safetensors writes several in any order.
    metadata = {KEY: f"{_checksum(text, arrays)} {text}"}
    with replacing(Path(path)) as part:
        try:
            save_file({name: np.ascontiguousarray(a) for name, a in arrays.items()}, part, metadata)
        except SafetensorError as error:
            msg = f"{path} cannot be written ({error}): choose another place"
            raise FileError(msg) from error


def load(path: str | Path) -> Any:
    """Return the classifier in a model file, or in a JSON document as `to_dict` gives it.

    Large arrays are mapped into memory, not read.

    Parameters
    ----------
    path : path

    Returns
    -------
    NaiveBayesClassifier, GenerativeForestClassifier or GenerativeTreeClassifier

    Raises
    ------
    FileError
        If the file cannot be read.
    InputError
        If it is no model, damaged, or of a newer version.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        msg = f"{path} cannot be read: it is no regular file"
        raise FileError(msg)
    try:
        if _begins_like_json(path):
            return _load_document(_read_json(path.read_bytes()))
        return _restore(read_file(path))
    except InputError as error:
        msg = f"{path}: {error}"
        raise InputError(msg) from error
    except OSError as error:
        if isinstance(error, FileError):
            raise
        msg = f"{path} cannot be read ({explain_os_error(error)})"
        raise FileError(msg) from error


# Writing


def _describe(model: GenerativeClassifier) -> tuple[dict[str, Any], dict[str, Any]]:
    model._require_fitted()  # noqa: SLF001 (one house)
    parameters: Any = getattr(model, "model_", None)
    if isinstance(parameters, NaiveBayes):
        kind, learned = "naive_bayes", {"smoothing": getattr(model, "smoothing_", None)}
    elif isinstance(parameters, Forest):
        kind, learned = "generative_forest", {}
    else:
        msg = f"{type(model).__name__} cannot be saved"
        raise UnsupportedError(msg)
    header = {
        **write_header(kind, model.encoding_, model.classes_),
        "classes_type": _name_type(model.classes_.dtype),
        "estimator": _estimator_name(model),
        "parameters": _plain_parameters(model),
        "learned": learned,
        "training": getattr(model, "training_", {}),
    }
    return header, {name: getattr(parameters, name) for name in ARRAYS[kind]}


def _name_type(kind: np.dtype[Any]) -> str:
    return "object" if kind.hasobject else kind.newbyteorder("<").str


def _estimator_name(model: GenerativeClassifier) -> str:
    for estimator in type(model).__mro__:
        if estimator.__name__ in ESTIMATORS:
            return estimator.__name__
    msg = f"{type(model).__name__} cannot be saved"
    raise UnsupportedError(msg)


def _plain_parameters(model: GenerativeClassifier) -> dict[str, Any]:
    """Return the parameters that fit into JSON; what was only needed for fitting may be lost."""
    plain = {}
    for name, value in model.get_params(deep=False).items():
        given = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
        given = list(given) if isinstance(given, tuple) else given
        try:
            json.dumps(given, allow_nan=False)
        except (TypeError, ValueError):
            continue
        plain[name] = given
    return plain


def _checksum(text: str, arrays: dict[str, np.ndarray[Any, Any]]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


# Reading


def read_file(path: Path) -> ModelFile:
    """Return header and arrays of a model file, undamaged, but not checked otherwise.

    Raises
    ------
    InputError
        If it is no model file, or damaged.
    """
    from safetensors import SafetensorError, safe_open  # noqa: PLC0415 (not needed otherwise)

    try:
        # The format's own checks: lengths, offsets, no gaps.
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
    except (SafetensorError, ValueError, OverflowError) as error:
        _refuse(f"not a model file, or a damaged one ({error})")
    except FileNotFoundError:
        msg = f"{path} does not exist"
        raise FileError(msg) from None
    checksum, _, text = metadata.get(KEY, "").partition(" ")
    if not text:
        _refuse("a safetensors file, but no model of robustq")
    header = _read_json(text.encode())
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        _refuse("a safetensors file, but no model of robustq")
    arrays = _map_arrays(path)
    if _checksum(text, arrays) != checksum:
        _refuse("the file is damaged: its checksum is wrong; take another copy")
    return ModelFile(header, arrays)


def _map_arrays(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays, mapped: the system reads what is used."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > LONGEST_HEADER:
            _refuse("not a model file: its header is too long")
        index = _read_json(file.read(length))
    content = np.memmap(path, dtype=np.uint8, mode="r")
    arrays = {}
    for name, entry in index.items():
        if name != "__metadata__":
            arrays[name] = _view(content, 8 + length, name, entry)
    return arrays


def _view(content: Any, offset: int, name: str, entry: dict[str, Any]) -> np.ndarray[Any, Any]:
    kind = TYPES.get(entry["dtype"])
    if kind is None:
        _refuse(f"the array {name!r} has the type {entry['dtype']}, which no model has")
    begin, end = entry["data_offsets"]
    part = np.asarray(content[offset + begin : offset + end])
    if len(part) != math.prod(entry["shape"]) * np.dtype(kind).itemsize:
        _refuse(f"the array {name!r} is not as long as its shape says")
    if part.ctypes.data % np.dtype(kind).itemsize:
        part = part.copy()  # kernels need aligned numbers
    return part.view(kind).reshape(entry["shape"])


def _restore(file: ModelFile) -> Any:
    header = file.header
    # Whatever it is: an unknown version is told first, then an unknown kind.
    kind = str(header.get("kind"))
    encoding, classes = read_header(header, kind if kind in ARRAYS else "naive_bayes")
    _check_names(file.arrays, ARRAYS[kind])
    model: NaiveBayes | Forest
    if kind == "naive_bayes":
        if encoding.numeric:
            _refuse("naive Bayes has categories and bins, not numbers")
        cells = Cells(encoding.sizes, len(classes))
        model = NaiveBayes(**file.arrays, cells=cells)
        check_naive_bayes(model)
    else:
        model = Forest(encoding.sizes, encoding.numeric, **file.arrays)
        check_forest(model, len(classes))
    classifier = _make_estimator(header, kind)
    classifier._set_model(model, encoding, _cast(classes, header.get("classes_type")))  # noqa: SLF001
    _set_facts(classifier, header)
    return classifier


def _check_names(arrays: dict[str, np.ndarray[Any, Any]], expected: dict[str, Any]) -> None:
    if set(arrays) != set(expected):
        odd = ", ".join(sorted(set(arrays) ^ set(expected)))
        _refuse(f"the arrays are not those of this kind of model: {odd}")
    for name, kind in expected.items():
        if arrays[name].dtype != kind:
            _refuse(f"the array {name!r} has the type {arrays[name].dtype}")


def _make_estimator(header: dict[str, Any], kind: str) -> Any:
    estimator: Any = ESTIMATORS.get(str(header.get("estimator")))
    wanted = NaiveBayesClassifier if kind == "naive_bayes" else GenerativeForestClassifier
    parameters = header.get("parameters")
    if estimator is None or not issubclass(estimator, wanted) or not isinstance(parameters, dict):
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
    if _measure_depth(training) > DEEPEST:
        _refuse("what it says about the training is nested too deeply")
    gate = training.get("gate")
    if gate is not None:
        above = gate.get("above")
        number = is_between(above, -1.0, 1e300, low_included=True)
        if not isinstance(gate.get("ball"), str) or not (above is None or number):
            _refuse(f"its gate cannot be used: {gate!r}")


def _measure_depth(value: Any) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        parts = [part.values() if isinstance(part, dict) else part for part in level]
        level = [
            p for part in parts if not isinstance(part, (str, int, float, type(None))) for p in part
        ]
    return depth


def _load_document(document: Any) -> Any:
    kind = document.get("kind") if isinstance(document, dict) else None
    estimator = GenerativeForestClassifier if kind == "generative_forest" else NaiveBayesClassifier
    classifier = estimator.from_dict(document)
    classifier.training_ = {}
    return classifier


def _begins_like_json(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"["))


def _read_json(content: bytes) -> Any:
    try:
        return json.loads(content, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        _refuse(f"not a model: its JSON cannot be read ({error})")


def _refuse_constant(name: str) -> NoReturn:
    msg = f"{name} is no number of JSON"
    raise ValueError(msg)


def _refuse(what: str) -> NoReturn:
    raise InputError(what)
