"""A model as one file that holds data only: safetensors arrays, a JSON header, a checksum.

Nothing in such a file can run, and nothing in it is believed: the checksum tells damage, and who
makes a model of it checks every index, range and sum before anything is computed with it.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

import numpy as np

from robustq.exceptions import InputError
from robustq.files import Place, write_atomically

from .documents import FORMAT

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ModelFile", "begins_like_json", "read_file", "read_json", "write_file"]

KEY = "robustq"
LONGEST_HEADER = 10**8
MOST_AXES = 8
TYPES = {"F64": np.float64, "I32": np.int32, "I64": np.int64, "U64": np.uint64, "U8": np.uint8}


@dataclass(frozen=True, eq=False)
class ModelFile:
    """What a model file holds: its header, and its arrays."""

    header: dict[str, Any]
    arrays: dict[str, np.ndarray[Any, Any]]


def write_file(file: ModelFile, path: str | Path) -> None:
    """Write a model file; it appears when it is complete. The same content gives the same bytes.

    Raises
    ------
    FileError
        If it cannot be written.
    """
    from safetensors.numpy import save  # noqa: PLC0415 (not needed for anything else)

    text = json.dumps(file.header, ensure_ascii=False, allow_nan=False)
    # One entry, because safetensors writes several in any order.
    metadata = {KEY: f"{_checksum(text, file.arrays)} {text}"}
    arrays = {name: np.ascontiguousarray(array) for name, array in file.arrays.items()}
    write_atomically(path, save(arrays, metadata))


def _checksum(text: str, arrays: dict[str, np.ndarray[Any, Any]]) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def read_file(place: Place) -> ModelFile:
    """Return header and arrays of a model file, undamaged, but not checked otherwise.

    The file is read, not mapped: whatever becomes of it afterwards, the model stays as it is.

    Raises
    ------
    InputError
        If it is no model file, or damaged.
    """
    with place.open() as file:
        content = np.frombuffer(file.read(), dtype=np.uint8)
    length = int.from_bytes(content[:8].tobytes(), "little")
    if length > min(LONGEST_HEADER, len(content) - 8):
        _refuse("not a model file, or a damaged one: it has no header, or not all of it")
    index = read_json(content[8 : 8 + length].tobytes())
    checksum, text = _find_metadata(index)
    header = read_json(text.encode("utf-8", "surrogatepass"))
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        _refuse("a safetensors file, but no model of robustq")
    arrays = _cut_arrays(content[8 + length :], index)
    if _checksum(text, arrays) != checksum:
        _refuse("the file is damaged: its checksum is wrong; take another copy")
    return ModelFile(header, arrays)


def _find_metadata(index: Any) -> tuple[str, str]:
    """Return the checksum, and the text that it is about."""
    metadata = index.get("__metadata__") if isinstance(index, dict) else None
    told = metadata.get(KEY) if isinstance(metadata, dict) else None
    checksum, _, text = told.partition(" ") if isinstance(told, str) else ("", "", "")
    if not text:
        _refuse("a safetensors file, but no model of robustq")
    return checksum, text


def _cut_arrays(data: Any, index: dict[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays, which lie one after another, as the index says."""
    entries = {name: entry for name, entry in index.items() if name != "__metadata__"}
    for name, entry in entries.items():
        _check_entry(name, entry)
    end, arrays = 0, {}
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        begin, after = entry["data_offsets"]
        if begin != end or after > len(data):
            _refuse(f"the file is damaged: the array {name!r} is not where it should be")
        arrays[name], end = _view(data[begin:after], name, entry), after
    if end != len(data):
        _refuse("the file is damaged: it is longer than its arrays")
    return arrays


def _check_entry(name: str, entry: Any) -> None:
    parts = entry if isinstance(entry, dict) else {}
    offsets, shape = parts.get("data_offsets"), parts.get("shape")
    if not _are_sizes(offsets) or len(offsets) != 2 or not _are_sizes(shape):
        _refuse(f"the file is damaged: the array {name!r} has no shape, or no place")


def _are_sizes(given: Any) -> TypeGuard[list[int]]:
    return isinstance(given, list) and all(type(n) is int and 0 <= n < 2**48 for n in given)


def _view(part: Any, name: str, entry: dict[str, Any]) -> np.ndarray[Any, Any]:
    kind = TYPES.get(str(entry.get("dtype")))
    if kind is None:
        _refuse(f"the array {name!r} has the type {entry.get('dtype')}, which no model has")
    shape, size = entry["shape"], np.dtype(kind).itemsize
    if len(part) != math.prod(shape) * size or len(shape) > MOST_AXES:
        _refuse(f"the array {name!r} is not as long as its shape says")
    if part.ctypes.data % size:
        part = part.copy()  # kernels need aligned numbers
    return part.view(kind).reshape(shape)


def begins_like_json(place: Place) -> bool:
    """Tell whether a file may hold a JSON document."""
    with place.open() as file:
        return file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"["))


def read_json(content: bytes) -> Any:
    """Return what JSON says, or raise."""
    try:
        return json.loads(content, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        _refuse(f"not a model: its JSON cannot be read ({error})")


def _refuse_constant(name: str) -> NoReturn:
    msg = f"{name} is no number of JSON"
    raise ValueError(msg)


def _refuse(what: str) -> NoReturn:
    raise InputError(what)
