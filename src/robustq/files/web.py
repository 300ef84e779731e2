"""Files behind http:// and https://: they are read, in ranges where the server gives them."""

from __future__ import annotations

import io
import re
import shutil
import tempfile
import time
from contextlib import contextmanager
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

from robustq.exceptions import FileError

from .ranges import BLOCK, RangeFile
from .urls import hide_secrets, name_file, scrub

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["WebPlace"]

ATTEMPTS = 5
PATIENCE = (10, 60)  # seconds: for a connection, and for the next bytes
BUSY = (429, 500, 502, 503, 504)
STATUS = {
    401: "no permission: the server asks who you are (user:password@ in the URL, or ~/.netrc)",
    403: "no permission: the server refuses it; is a signed URL too old?",
    404: "it does not exist",
    410: "it does not exist any more",
}


class _About(NamedTuple):
    """What a server tells of a file: its size, whether it gives ranges, and which version it is."""

    size: int | None
    ranges: bool
    version: str


class WebPlace:
    """A file behind a URL that is read only.

    Parameters
    ----------
    path : str
    """

    def __init__(self, path: str) -> None:
        self.path, self.name = path, hide_secrets(path)
        self.identity = path.partition("#")[0]

    def is_file(self) -> bool:
        """Tell whether it is there."""
        return self._about is not None

    def is_folder(self) -> bool:
        """Tell whether it is a folder: nobody can list one."""
        return False

    def exists(self) -> bool:
        """Tell whether it is there."""
        return self.is_file()

    def size(self) -> int:
        """Return how many bytes it has, 0 if the server does not tell."""
        return self._about.size or 0

    def list_files(self) -> list[str]:
        """Return the files in it: none."""
        return []

    def match(self) -> list[str]:
        """Return the files that it stands for as a pattern: none."""
        return []

    def open(self, *, seekable: bool = False) -> IO[bytes]:
        """Open it for reading.

        Parameters
        ----------
        seekable : bool, default False
            Whether it is read here and there: it is loaded whole where the server gives no ranges.
        """
        if self._about.ranges:
            return cast("IO[bytes]", io.BufferedReader(self._open_ranges(), BLOCK))
        stream = io.BufferedReader(_Stream(self), BLOCK)
        if not seekable:
            return cast("IO[bytes]", stream)
        whole = tempfile.TemporaryFile()  # noqa: SIM115 (whoever asked closes it)
        with stream:
            shutil.copyfileobj(stream, whole, BLOCK)
        whole.seek(0)
        return cast("IO[bytes]", whole)

    @contextmanager
    def for_arrow(self) -> Iterator[Any]:
        """Give a file without a buffer."""
        with self._open_ranges() if self._about.ranges else self.open(seekable=True) as file:
            yield file

    def _open_ranges(self) -> RangeFile:
        return RangeFile(self._fetch, self._about.size or 0)

    def check_writable(self) -> None:
        """Raise: nothing is written there."""
        msg = (
            f"{self.name} cannot be written: what is behind http:// is only read; write to s3://, "
            "gs://, hdfs:// or a file of this machine"
        )
        raise FileError(msg)

    @contextmanager
    def writing(self) -> Iterator[IO[bytes]]:
        """Raise: nothing is written there."""
        self.check_writable()
        yield io.BytesIO()

    @cached_property
    def _about(self) -> _About:
        with self.asking("bytes=0-0") as response:
            told = re.fullmatch(
                r"bytes (?:0-0|\*)/(\d+)", response.headers.get("Content-Range", "")
            )
            if response.status_code in (206, 416) and told:
                return _About(int(told[1]), int(told[1]) > 0, _version(response))
            length = response.headers.get("Content-Length", "")
            return _About(int(length) if length.isdecimal() else None, False, _version(response))

    def _fetch(self, start: int, end: int) -> bytes:
        """Return the bytes of a range, after another attempt where a connection broke."""
        why = ""
        for attempt in range(ATTEMPTS):
            try:
                return self._fetch_once(start, end)
            except _breaks() as error:
                why = _say(error)
            time.sleep(0.1 * 2**attempt)
        msg = f"the connection broke at byte {start:,} of {self.size():,}: {why}"
        raise self.refusal(msg)

    def _fetch_once(self, start: int, end: int) -> bytes:
        with self.asking(f"bytes={start}-{end - 1}") as response:
            if response.status_code != 206 or _version(response) != self._about.version:
                msg = "it was changed while it was read: begin anew"
                raise self.refusal(msg)
            content = response.raw.read(end - start)
        if len(content) < end - start:
            msg = "the server sent less than it promised"
            raise ConnectionError(msg)
        return content

    @contextmanager
    def asking(self, wanted: str | None) -> Iterator[Any]:
        """Give the answer of the server, whatever is left of it unread."""
        headers = {"Accept-Encoding": "identity"} | ({"Range": wanted} if wanted else {})
        response = self._ask(headers)
        try:
            if response.status_code >= 400 and response.status_code != 416:
                what = f"the server says {response.status_code}"
                raise self.refusal(STATUS.get(response.status_code, what))
            packed = response.headers.get("Content-Encoding", "identity") != "identity"
            if packed and not name_file(self.path).endswith(".gz"):
                msg = "the server sends it compressed, though asked not to"
                raise self.refusal(msg)
            yield response
        finally:
            response.close()

    def _ask(self, headers: dict[str, str]) -> Any:
        import requests  # noqa: PLC0415 (slow to import)

        for attempt in range(ATTEMPTS):
            last = attempt == ATTEMPTS - 1
            try:
                response = self._session.get(
                    self.path, headers=headers, stream=True, timeout=PATIENCE
                )
            except (requests.ConnectionError, requests.Timeout) as error:
                if last:
                    what = f"no connection to the server: {_say(error)}"
                    raise self.refusal(what) from None
            except (requests.RequestException, ValueError) as error:
                raise self.refusal(_say(error)) from None
            else:
                if response.status_code not in BUSY or last:
                    return response
                response.close()
            time.sleep(0.1 * 2**attempt)
        raise AssertionError  # the last attempt returns or raises

    @cached_property
    def _session(self) -> Any:
        import requests  # noqa: PLC0415 (slow to import)

        return requests.Session()

    def refusal(self, what: str) -> FileError:
        """Return what to raise; not from an error of somebody else's, which would show the URL."""
        return FileError(f"{self.name} cannot be read ({what})")


class _Stream(io.RawIOBase):
    """What a server sends that gives no ranges: it is read once, from the beginning."""

    def __init__(self, place: WebPlace) -> None:
        self.place, self.position = place, 0
        self.asked = place.asking(None)
        self.response = self.asked.__enter__()

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def readinto(self, room: Any) -> int:
        try:
            content = self.response.raw.read(len(room))
        except _breaks() as error:
            what = f"the connection broke after {self.position:,} bytes: {_say(error)}"
            remedy = "the server cannot resume: try again, or load it to a file first"
            msg = f"{what}; {remedy}"
            raise self.place.refusal(msg) from None
        room[: len(content)] = content
        self.position += len(content)
        return len(content)

    def close(self) -> None:
        if not self.closed:
            self.asked.__exit__(None, None, None)
        super().close()


def _breaks() -> tuple[type[Exception], ...]:
    """Return what is raised where a connection breaks."""
    import requests  # noqa: PLC0415 (slow to import)
    from urllib3.exceptions import HTTPError  # noqa: PLC0415

    return (HTTPError, requests.RequestException, ConnectionError, TimeoutError)


def _version(response: Any) -> str:
    return response.headers.get("ETag") or response.headers.get("Last-Modified", "")


def _say(error: Exception) -> str:
    """Return why there is no connection, without addresses in memory."""
    cause: BaseException = error
    while (inner := cause.__cause__ or cause.__context__) is not None:
        cause = inner
    text = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(cause)
    return scrub(re.sub(r"<[^>]* object at 0x\w+>:? ?", "", text)) or type(cause).__name__
