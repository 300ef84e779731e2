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
LARGEST = 32 << 20  # bytes of a file; the largest here has 5 MB
DEEPEST = 1  # how many archives within archives
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


def _members(content: bytes, wanted: set[str], depth: int = 0) -> Iterator[tuple[str, bytes]]:
    """Yield the files wanted, also from archives within the archive (bank, student)."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist():
            name = Path(member.filename).name
            if name in wanted:
                yield name, _unpack(archive, member)
            elif name.endswith(".zip") and depth < DEEPEST:
                yield from _members(_unpack(archive, member), wanted, depth + 1)


def _unpack(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Return a member; what an archive says about its size is not believed."""
    with archive.open(member) as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        msg = f"{member.filename} in it expands to more than {LARGEST >> 20} MiB"
        raise zipfile.BadZipFile(msg)
    return content
