"""Where the files of a data set are, or can be had."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from robustq.exceptions import FileError, InputError

from . import shipping
from .archives import VARIABLE, how_to_get, open_archive
from .sources import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Place", "cache_folder", "find", "locate"]


@dataclass(frozen=True)
class Place:
    """A place that has a data set: a folder with its files or its archive, or the package.

    Attributes
    ----------
    where : str
        What to call it.
    files : dict of str to Path or bytes
        The raw files; nothing for the package, which has tables of its own.
    """

    where: str
    files: dict[str, Path | bytes]

    def read(self, file: str) -> bytes:
        """Return the content of a raw file."""
        found = self.files[file]
        if isinstance(found, bytes):
            return found
        try:
            return found.read_bytes()
        except OSError as error:
            msg = f"{found} cannot be read ({error.strerror}): check its permissions"
            raise FileError(msg) from error

    def __str__(self) -> str:
        return self.where


def find(
    source: Source, data_dir: str | Path | None = None, *, download: bool, progress: bool = False
) -> Place:
    """Return the first place that has a data set; fetch it from UCI if there is none.

    Raises
    ------
    FileError
        If it is nowhere, and cannot be fetched.
    """
    place = locate(source, data_dir)
    if place is not None:
        return place
    if not download:
        msg = f"{source.name} is not here: {how_to_get(source)}"
        raise FileError(msg)
    from .download import fetch  # noqa: PLC0415 (slow to import)

    return _in_archive(source, fetch(source, cache_folder(), progress=progress))


def locate(source: Source, data_dir: str | Path | None = None) -> Place | None:
    """Return the first place on this machine that has a data set, or None."""
    if not isinstance(source, Source):
        msg = f"source must be one of robustq.datasets, as get(name) returns it, got {source!r}"
        raise InputError(msg)
    for folder in _folders(data_dir):
        place = _in_folder(source, folder)
        if place is not None:
            return place
    shipped = Place(shipping.HERE, {}) if shipping.is_shipped(source) else None
    return _in_cache(source) or shipped


def cache_folder() -> Path:
    """Return where downloads are kept."""
    import pooch  # noqa: PLC0415 (slow to import)

    return Path(pooch.os_cache("robustq"))


def _folders(data_dir: str | Path | None) -> Iterator[Path]:
    for given, what in ((data_dir, "data_dir"), (os.environ.get(VARIABLE), VARIABLE)):
        if given is not None and not (isinstance(given, str) and not given):
            if not _is_folder(given):
                msg = f"{what}={str(given)!r} is not a folder: give one that has UCI's files"
                raise InputError(msg)
            yield Path(given).expanduser()


def _is_folder(given: str | Path) -> bool:
    try:
        return Path(given).expanduser().is_dir()
    except (OSError, RuntimeError, TypeError, ValueError):
        return False  # too long a name, or no such user


def _in_cache(source: Source) -> Place | None:
    from .download import is_intact  # noqa: PLC0415 (slow to import)

    archive = cache_folder() / source.archive
    try:
        return _in_archive(source, archive) if is_intact(archive) else None
    except OSError:
        return None  # damaged, or out of reach: it is fetched again


def _in_folder(source: Source, folder: Path) -> Place | None:
    files: dict[str, Path | bytes] = {file: folder / file for file in source.files}
    if all(isinstance(path, Path) and path.is_file() for path in files.values()):
        return Place(str(folder), files)
    archive = folder / source.archive
    return _in_archive(source, archive) if archive.is_file() else None


def _in_archive(source: Source, archive: Path) -> Place:
    return Place(str(archive.parent), dict(open_archive(source, archive)))
