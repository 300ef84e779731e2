"""Files of this machine, which appear under their name only when they are complete."""

from __future__ import annotations

import glob
import os
import secrets
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from robustq.exceptions import FileError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LocalPlace", "explain_os_error", "make_folder", "replacing", "sweep"]

PART = ".part"
LONGEST = 100  # of a name, so that the rest fits in


class LocalPlace:
    """A file, a folder or a pattern of this machine.

    Parameters
    ----------
    path : str
    """

    def __init__(self, path: str) -> None:
        self.path = self.name = path
        self._path = Path(path)

    def __getstate__(self) -> dict[str, object]:
        # Whoever reads it in another process may stand in another folder.
        path = self._path.absolute()
        return {"path": os.fspath(path), "name": self.name, "_path": path}

    @property
    def identity(self) -> str:
        """The same for two names of one file, through links too."""
        try:
            found = self._path.stat()
        except (OSError, ValueError):
            return os.path.abspath(self.path)  # noqa: PTH100 (of what is not there, too)
        return f"{found.st_dev}:{found.st_ino}"

    def exists(self) -> bool:
        """Tell whether anything is there."""
        return self._path.exists()

    def is_file(self) -> bool:
        """Tell whether it is a file; pipes are none."""
        return self._path.is_file()

    def is_folder(self) -> bool:
        """Tell whether it is a folder."""
        return self._path.is_dir()

    def size(self) -> int:
        """Return how many bytes it has, 0 if nobody knows."""
        return self._path.stat().st_size if self.is_file() else 0

    def list_files(self) -> list[str]:
        """Return all files in it, however deep."""
        return [os.fspath(file) for file in sorted(self._path.rglob("*")) if file.is_file()]

    def match(self) -> list[str]:
        """Return the files that it stands for as a pattern."""
        found = sorted(glob.glob(self.path, recursive=True))  # noqa: PTH207 (absolute ones too)
        return [file for file in found if Path(file).is_file()]

    def open(self, *, seekable: bool = False) -> IO[bytes]:  # noqa: ARG002 (it always is)
        """Open it for reading."""
        return self._path.open("rb")

    @contextmanager
    def for_arrow(self) -> Iterator[str]:
        """Give its path."""
        yield self.path

    def check_writable(self) -> None:
        """Raise if there is no folder to write to."""
        if not self._path.parent.is_dir():
            msg = f"{self.path} cannot be written: there is no folder {self._path.parent}"
            raise FileError(msg)

    @contextmanager
    def writing(self) -> Iterator[IO[bytes]]:
        """Give a file to write to; it appears under its name if nothing went wrong."""
        with replacing(self._path) as part, part.open("wb") as file:
            yield file


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
    # Named before it is there: an interrupt must not come between, and leave it behind.
    token = secrets.token_hex(4)
    part = path.parent / f".{path.name[:LONGEST]}.{os.getpid()}.{token}{PART}"
    try:
        part.touch(0o600, exist_ok=False)
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
