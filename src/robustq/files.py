"""Files that appear under their name only when they are complete."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from .exceptions import FileError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["explain_os_error", "make_folder", "replacing", "sweep", "write_atomically"]

PART = ".part"
LONGEST = 100  # of a name, so that the rest fits in


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a file to write to; afterwards it takes the place of `path`, if nothing went wrong.

    Raises
    ------
    FileError
        If the folder or the disk refuses.
    """
    # Through a link, to what it leads to.
    path = Path(path).resolve() if Path(path).is_symlink() else Path(path)
    if path.exists() and not path.is_file():
        msg = f"{path} cannot be written: it is no regular file; choose another place"
        raise FileError(msg)
    sweep(path.parent, path.name)
    try:
        handle, name = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.name[:LONGEST]}.{os.getpid()}.", suffix=PART
        )
    except OSError as error:
        raise FileError(_explain(path, error)) from error
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.chmod(0o666 & ~_umask())
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(_explain(path, error)) from error
    finally:
        part.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a file whole, or not at all."""
    with replacing(path) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


def make_folder(path: Path) -> None:
    """Make a folder, if it is not there.

    Raises
    ------
    FileError
        If that cannot be.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(_explain(path, error)) from error


def sweep(folder: Path, name: str = "") -> None:
    """Remove what processes that were killed had begun to write in a folder, for a file or all."""
    beginning = f".{name[:LONGEST]}"
    for part in [path for path in _list(folder) if path.name.startswith(beginning)]:
        process = part.name.removesuffix(PART).split(".")[-2:][0]
        if process.isdecimal() and not _is_alive(int(process)):
            with suppress(OSError):
                part.unlink()


def _list(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.name.endswith(PART)]
    except OSError:
        return []


def _is_alive(process: int) -> bool:
    if os.name != "posix":
        return True  # nobody to ask without disturbing
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def explain_os_error(error: OSError) -> str:
    """Return what the system said, without the number."""
    return error.strerror or str(error) or type(error).__name__


def _explain(path: Path, error: OSError) -> str:
    return f"{path} cannot be written ({explain_os_error(error)}): choose another place"


def _umask() -> int:
    # There is no way to read it but to set it.
    mask = os.umask(0)
    os.umask(mask)
    return mask
