"""Fetching an archive from UCI, once; pooch does the work."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pooch
import requests

from robustq.exceptions import FileError, RobustqError

from .archives import how_to_get, open_archive
from .checksums import holds_what_it_should

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .sources import Source

__all__ = ["fetch", "is_intact"]

RETRIES = 2
TIMEOUT = 30


def fetch(source: Source, folder: Path, *, progress: bool = False) -> Path:
    """Return the archive of a data set, downloaded into a folder.

    It must hold the records that are known; the checksum of the first download is kept beside it,
    and a later one must agree.

    Raises
    ------
    FileError
        If it cannot be had; the message says what to do by hand.
    """
    archive, kept = folder / source.archive, _kept(folder / source.archive)
    known = _read_checksum(archive)
    if known is None:
        # Left by a process that was ended before it knew what it had.
        archive.unlink(missing_ok=True)
    store = pooch.create(
        folder,
        base_url="",
        registry={source.archive: known},
        urls={source.archive: source.url},
        retry_if_failed=RETRIES,
    )
    pooch.get_logger().setLevel("ERROR")
    try:
        with _bar(source, progress) as bar:
            downloader = pooch.HTTPDownloader(progressbar=bar, timeout=TIMEOUT)
            store.fetch(source.archive, downloader=downloader)
    # Some of requests' errors are ValueErrors, as is a wrong checksum.
    except (requests.RequestException, OSError) as error:
        why = f"could not be fetched ({_explain(error)})"
        msg = f"{source.name} {why}. By hand: {how_to_get(source)}"
        raise FileError(msg) from error
    except ValueError as error:
        msg = (
            f"what UCI sends as {source.url} is not what it sent at first (the checksum differs); "
            f"if it has a new version that you trust, delete {kept} and try again"
        )
        raise FileError(msg) from error
    try:
        right = holds_what_it_should(source, open_archive(source, archive))
    except RobustqError:
        right = False
    if not right:
        archive.unlink(missing_ok=True)
        why = f"what {source.url} sent is not the archive it should be"
        msg = f"{why}. By hand: {how_to_get(source)}"
        raise FileError(msg)
    if known is None:
        kept.write_text(f"{_checksum(archive)}\n")
    return archive


def is_intact(archive: Path) -> bool:
    """Tell whether a kept archive is what was downloaded at first."""
    return archive.is_file() and _read_checksum(archive) in {None, _checksum(archive)}


def _kept(archive: Path) -> Path:
    return archive.with_name(archive.name + ".sha256")


def _read_checksum(archive: Path) -> str | None:
    kept = _kept(archive)
    return kept.read_text().strip() or None if kept.is_file() else None


def _checksum(archive: Path) -> str:
    return hashlib.sha256(archive.read_bytes()).hexdigest()


def _explain(error: Exception) -> str:
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answered {error.response.status_code}"
    if isinstance(error, requests.Timeout):
        return f"no answer within {TIMEOUT} s"
    if isinstance(error, (requests.ConnectionError, requests.exceptions.ChunkedEncodingError)):
        return "there is no connection to the server, or it broke"
    return str(error) or type(error).__name__


class _Bar:
    """What pooch asks of a progress bar, shown by rich."""

    def __init__(self, shown: Any, title: str) -> None:
        self.shown = shown
        self.task = shown.add_task(title, total=None)

    @property
    def total(self) -> int:
        return int(self.shown.tasks[0].total or 0)

    @total.setter
    def total(self, total: int) -> None:
        self.shown.update(self.task, total=total or None)

    def update(self, step: int) -> None:
        self.shown.advance(self.task, step)

    def reset(self) -> None:
        # pooch resets to fill the bar up at the end.
        self.shown.update(self.task, completed=0)

    def close(self) -> None:
        self.shown.refresh()


@contextmanager
def _bar(source: Source, progress: bool) -> Iterator[Any]:
    if not progress:
        yield False
        return
    from rich import progress as parts  # noqa: PLC0415 (only where it is shown)
    from rich.console import Console  # noqa: PLC0415

    columns = (
        parts.TextColumn("{task.description}"),
        parts.BarColumn(),
        parts.DownloadColumn(),
        parts.TransferSpeedColumn(),
    )
    with parts.Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        yield _Bar(shown, f"fetching {source.title}")
