"""Where a file is: on this machine, behind http://, or in a store."""

from __future__ import annotations

import os
import re
from typing import IO, TYPE_CHECKING, Any, Protocol

from robustq.exceptions import InputError

from .local import LocalPlace
from .stores import StoredPlace
from .urls import find_protocol
from .web import WebPlace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

__all__ = ["Place", "check_output", "find_place", "write_atomically"]


class Place(Protocol):
    """A file, a folder or a pattern, wherever it is.

    Attributes
    ----------
    path, name, identity : str
    """

    @property
    def path(self) -> str:
        """As it was given."""

    @property
    def name(self) -> str:
        """What to call it: without secrets."""

    @property
    def identity(self) -> str:
        """The same for two names of one file."""

    def exists(self) -> bool:
        """Tell whether anything is there."""

    def is_file(self) -> bool:
        """Tell whether it is a file, which can be opened twice."""

    def is_folder(self) -> bool:
        """Tell whether it is a folder."""

    def size(self) -> int:
        """Return how many bytes it has, 0 if nobody knows."""

    def list_files(self) -> list[str]:
        """Return the paths of all files in a folder, however deep, sorted."""

    def match(self) -> list[str]:
        """Return the paths of the files that a pattern stands for, sorted."""

    def open(self, *, seekable: bool = False) -> IO[bytes]:
        """Open it for reading, with a buffer; so that it can be read from anywhere, or not."""

    def for_arrow(self) -> AbstractContextManager[Any]:
        """Give what pyarrow reads here and there, no more of it than it needs."""

    def check_writable(self) -> None:
        """Raise if it is plain that nothing can be written there."""

    def writing(self) -> AbstractContextManager[IO[bytes]]:
        """Give a file to write to; it appears under its name if nothing went wrong."""


def find_place(path: str | os.PathLike[str]) -> Place:
    """Return where a file is.

    Raises
    ------
    UnsupportedError
        If what it needs is not installed.
    InputError
        If it is a URL nobody knows.
    """
    text = os.fspath(path)
    if not isinstance(path, str) and re.match("(s3|gs|gcs|hdfs|https?):/[^/]", text):
        msg = f"give {text} as text: as a Path, a URL loses one of its slashes"
        raise InputError(msg)
    protocol = find_protocol(text)
    if protocol is None:
        return LocalPlace(text)
    return WebPlace(text) if protocol in {"http", "https"} else StoredPlace(text)


def check_output(output: str | os.PathLike[str], inputs: Sequence[str]) -> None:
    """Raise if one would write where nothing can be written, or over what one reads."""
    place = find_place(output)
    place.check_writable()
    for given in inputs:
        if find_place(given).identity == place.identity and place.exists():
            msg = f"{place.name} is read and would be written over: choose another name"
            raise InputError(msg)


def write_atomically(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write a file whole, or not at all."""
    with find_place(path).writing() as file:
        file.write(content.encode() if isinstance(content, str) else content)
