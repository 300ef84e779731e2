"""A model as one file that holds data only: safetensors arrays, a JSON header, a checksum.

Nothing in such a file can run, and nothing in it is believed: the checksum tells damage, and who
makes a model of it checks every index, range and sum before anything is computed with it.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from robustq.exceptions import FileError, InputError
from robustq.files import replacing

from .documents import FORMAT

__all__ = ["ModelFile", "begins_like_json", "read_file", "read_json", "write_file"]

KEY = "robustq"
LONGEST_HEADER = 10**8
TYPES = {"F64": np.float64, "I32": np.int32, "I64": np.int64, "U64": np.uint64, "U8": np.uint8}


@dataclass(frozen=True, eq=False)
class ModelFile:
    """What a model file holds: its header, and its arrays, which are read when they are used."""

    header: dict[str, Any]
    arrays: dict[str, np.ndarray[Any, Any]]


def write_file(file: ModelFile, path: str | Path) -> None:
    """Write a model file; it appears when it is complete. The same content gives the same bytes.

    Raises
    ------
    FileError
        If it cannot be written.
    """
    from safetensors import SafetensorError  # noqa: PLC0415 (not needed for anything else)
    from safetensors.numpy import save_file  # noqa: PLC0415

    text = json.dumps(file.header, ensure_ascii=False, allow_nan=False)
    # One entry, because safetensors writes several in any order.
    metadata = {KEY: f"{_checksum(text, file.arrays)} {text}"}
    arrays = {name: np.ascontiguousarray(array) for name, array in file.arrays.items()}
    with replacing(Path(path)) as part:
        try:
            save_file(arrays, part, metadata)
        except SafetensorError as error:
            msg = f"{path} cannot be written ({error}): choose another place"
            raise FileError(msg) from error


def _checksum(text: str, arrays: dict[str, np.ndarray[Any, Any]]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


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
    header = read_json(text.encode())
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
        index = read_json(file.read(length))
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


def begins_like_json(path: Path) -> bool:
    """Tell whether a file may hold a JSON document."""
    with path.open("rb") as file:
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
