"""Models that somebody damaged: bytes of files, what a right checksum covers, documents."""

from __future__ import annotations

import copy
import json
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import load, save

import robustq
from robustq.documents import files
from robustq.exceptions import RobustqError

from .calls import FRAME, MODELS

if TYPE_CHECKING:
    import random
    from pathlib import Path

__all__ = ["damage_document", "damage_file", "damage_inside"]

FITTED = MODELS[:2]
WORDS = ("", "\x1b[2J", "\ud800", "NaN", "tv", "naive_bayes", "<U9", "__class__")
ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2**31, 2**63, 10**40, 0.5, -0.0, 1e308, float("nan"), float("inf")),
    *([], {}, [[]], [1], {"a": 1}, *WORDS),
)
DEEP = 3000


def damage_file(rng: random.Random, folder: Path) -> str:
    """Load a file of which bytes were changed, cut out, doubled or put in."""
    content = bytearray(_content(rng.choice(FITTED), folder))
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(content))
        # Half of the damage at the beginning, where lengths, offsets and the header are.
        at = at % 3000 if rng.random() < 0.5 else at
        length = rng.choice((1, 1, 8, 100))
        way = rng.randrange(4)
        if way == 0:
            content[at] ^= 1 << rng.randrange(8)
        elif way == 1:
            del content[at : at + length]
        elif way == 2:
            content[at:at] = content[at : at + length]
        else:
            content[at : at + length] = rng.randbytes(length)
        if not content:
            break
    return _try_file(bytes(content), folder)


def damage_inside(rng: random.Random, folder: Path) -> str:
    """Load a file whose checksum is right, whatever its header and arrays hold."""
    content = _content(rng.choice(FITTED), folder)
    length = struct.unpack("<Q", content[:8])[0]
    text = json.loads(content[8 : 8 + length])["__metadata__"]["robustq"]
    header, arrays = json.loads(text.partition(" ")[2]), load(content)
    arrays = {name: array.copy() for name, array in arrays.items()}
    if rng.random() < 0.4:
        _change(header, rng)
    else:
        _change_array(arrays[rng.choice(sorted(arrays))], rng)
    try:
        text = json.dumps(header)
    except RecursionError:
        return "refused"  # no such file can be
    checksum = files._checksum(text, arrays)
    try:
        content = save(arrays, {"robustq": f"{checksum} {text}"})
    except UnicodeEncodeError:
        return "refused"  # no such file can be
    return _try_file(content, folder)


def damage_document(rng: random.Random, folder: Path) -> str:
    """Read a document of which something was replaced, dropped, doubled, or nested deeply."""
    model = rng.choice(FITTED)
    document = copy.deepcopy(DOCUMENTS[type(model).__name__])
    for _ in range(rng.choice((1, 1, 3))):
        _change(document, rng)
    try:
        read = type(model).from_dict(document)
    except RobustqError:
        return "refused"
    _use(read, folder)
    return "fine"


DOCUMENTS = {type(model).__name__: model.to_dict() for model in FITTED}


def _content(model: Any, folder: Path) -> bytes:
    path = folder / f"{type(model).__name__}.robustq"
    if not path.exists():
        model.save(path)
    return path.read_bytes()


def _try_file(content: bytes, folder: Path) -> str:
    path = folder / "damaged.robustq"
    path.write_bytes(content)
    try:
        model = robustq.load(path)
    except RobustqError as error:
        if "damaged.robustq" not in str(error):
            raise AssertionError(str(error)) from error
        return "refused"
    _use(model, folder)
    return "fine"


def _use(model: Any, folder: Path) -> None:
    """Do all that a model can, twice: what one reader takes, the other must take too."""
    frame = FRAME if list(model.encoding_.names) == list(FRAME.columns) else None
    document = model.to_dict()
    again = type(model).from_dict(document)
    assert again.to_dict() == document
    again.save(folder / "again.robustq")
    assert robustq.load(folder / "again.robustq").to_dict() == document
    if frame is not None:
        try:
            found = model.assess(frame).to_arrow()
        except RobustqError:
            return
        assert found.num_rows == len(frame)


def _change_array(array: np.ndarray[Any, Any], rng: random.Random) -> None:
    if not array.size:
        return
    flat = array.reshape(-1)
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(array.size)
        if rng.random() < 0.5:
            flat[at] = flat[rng.randrange(array.size)]
        elif array.dtype.kind == "f":
            flat[at] = rng.choice((0.0, -0.0, 1.0, 0.5, -1.0, 1e308, 5e-324, np.nan, np.inf))
        else:
            info = np.iinfo(array.dtype)
            flat[at] = rng.choice((0, 1, 2, info.min, info.max, info.max // 2))


def _change(document: Any, rng: random.Random) -> None:
    """Change one thing somewhere within."""
    where = document
    while True:
        keys = list(where) if isinstance(where, dict) else list(range(len(where)))
        if not keys:
            return
        key = rng.choice(keys)
        inner = where[key]
        if isinstance(inner, (dict, list)) and inner and rng.random() < 0.8:
            where = inner
            continue
        way = rng.random()
        if way < 0.15:
            del where[key]
        elif way < 0.25 and isinstance(where, list):
            where.append(inner)
        elif way < 0.3:
            where[key] = _nest(inner)
        else:
            where[key] = copy.deepcopy(rng.choice(ODD))
        return


def _nest(inner: Any) -> Any:
    for _ in range(DEEP):
        inner = [inner]
    return inner
