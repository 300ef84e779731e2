"""The archives that UCI hands out."""

from __future__ import annotations

import io
import lzma
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from robustq.exceptions import FileError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .sources import Source

__all__ = ["VARIABLE", "how_to_get", "open_archive"]

VARIABLE = "ROBUSTQ_DATA"
UNREADABLE = (
    OSError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)


def how_to_get(source: Source) -> str:
    """Return what a user can do to have a data set."""
    return (
        f"download {source.url} and put it, or the files in it ({', '.join(source.files)}), into a "
        f"folder, then give that folder as --data-dir (data_dir=) or in {VARIABLE}"
    )


def open_archive(source: Source, archive: Path) -> dict[str, bytes]:
    """Return the raw files in one of UCI's archives.

    Raises
    ------
    FileError
        If it is no archive, is damaged, or lacks a file.
    """
    try:
        found = dict(_members(archive.read_bytes(), set(source.files)))
    except UNREADABLE as error:
        msg = f"{archive} is no archive that can be read ({error}): delete it and fetch it again"
        raise FileError(msg) from error
    missing = [file for file in source.files if file not in found]
    if missing:
        msg = f"{archive} lacks {', '.join(missing)}: delete it and take {source.url}"
        raise FileError(msg)
    return found


def _members(content: bytes, wanted: set[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the files wanted, also from archives within the archive (bank, student)."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.namelist():
            name = Path(member).name
            if name in wanted:
                yield name, archive.read(member)
            elif name.endswith(".zip"):
                yield from _members(archive.read(member), wanted)
