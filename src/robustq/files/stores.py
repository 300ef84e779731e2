"""Files in stores that fsspec knows: s3://, gs://, hdfs:// and others.

Not by pyarrow's own file systems, though they are built in: theirs cannot abort an upload, and what
was begun would appear under its name when it is let go.
"""

from __future__ import annotations

import importlib
import io
import re
import secrets
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any, cast

from robustq.exceptions import FileError, InputError, RobustqError, UnsupportedError

from .ranges import BLOCK, RangeFile
from .urls import find_protocol, hide_secrets, scrub

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["StoredPlace"]

EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs", "hdfs": "hdfs"}
BUCKETS = ("s3", "s3a", "gs", "gcs")
# Where an upload can be aborted; elsewhere, a file is written beside and then renamed.
UPLOADS = BUCKETS
REMEDIES = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE, or FSSPEC_S3_ANON=true "
    "for what is public",
    "gcs": "set GOOGLE_APPLICATION_CREDENTIALS, or FSSPEC_GCS_TOKEN=anon for what is public",
    "hdfs": "Hadoop's client is needed: set JAVA_HOME, HADOOP_HOME and CLASSPATH=$(hadoop "
    "classpath --glob)",
}
NO_CREDENTIALS = ("NoCredentialsError", "PartialCredentialsError", "DefaultCredentialsError")
PATTERN = re.compile(r"[*?\[]")


class StoredPlace:
    """A file or folder in a store.

    Parameters
    ----------
    path : str
        As in s3://bucket/some/where.csv; nothing in it is escaped, spaces and % are themselves.

    Raises
    ------
    UnsupportedError
        If what such a store needs is not installed.
    InputError
        If no store is called so, or the URL holds a password where none belongs.
    """

    def __init__(self, path: str) -> None:
        self.path, self.name = path, hide_secrets(path)
        self.protocol = find_protocol(path) or ""
        self._fs, self._key = self._find()
        self.identity = f"{EXTRAS.get(self.protocol, self.protocol)}://{self._key}"

    def _find(self) -> tuple[Any, str]:
        rest = self.path[len(self.protocol) + 3 :]
        if self.protocol in BUCKETS and "@" in rest.partition("/")[0]:
            msg = f"{self.name}: no keys within a URL: {self._remedy}"
            raise InputError(msg)
        with self._explaining("opened"):
            try:
                core = importlib.import_module("fsspec.core")
                # What others write meanwhile is seen.
                return core.url_to_fs(self.path, use_listings_cache=False)
            except ImportError as error:
                raise UnsupportedError(self._explain_missing(error)) from None
            except ValueError as error:
                msg = f"{self.name} cannot be opened ({scrub(str(error))})"
                raise InputError(msg) from None

    def _explain_missing(self, error: ImportError) -> str:
        extra = EXTRAS.get(self.protocol)
        remedy = f'pip install "robustq[{extra}]"' if extra else f"pip install fsspec ({error})"
        return f"{self.name}: {self.protocol}:// needs what is not installed: {remedy}"

    @property
    def _remedy(self) -> str:
        return REMEDIES.get(EXTRAS.get(self.protocol, ""), "see the documentation of fsspec")

    @contextmanager
    def _explaining(self, done: str) -> Iterator[None]:
        """Say in words what goes wrong in a store, whatever its library raises."""
        try:
            yield
        except (RobustqError, MemoryError):
            raise
        except FileNotFoundError:
            msg = f"{self.name} does not exist"
            if done == "written":
                msg = f"{self.name} cannot be written: its bucket or folder does not exist"
            raise FileError(msg) from None
        except Exception as error:
            msg = f"{self.name} cannot be {done} ({self._explain(error)})"
            raise FileError(msg) from None

    def _explain(self, error: Exception) -> str:
        what = scrub(" ".join(str(error).split())) or type(error).__name__
        if isinstance(error, PermissionError):
            return f"no permission: {what}"
        if type(error).__name__ in NO_CREDENTIALS or self.protocol == "hdfs":
            return f"{what}; {self._remedy}"
        if type(error).__name__ == "FileExpired":
            return "it was changed while it was read: begin anew"
        return what

    @cached_property
    def _info(self) -> dict[str, Any] | None:
        with self._explaining("read"):
            try:
                return dict(self._fs.info(self._key))
            except FileNotFoundError:
                return None

    def exists(self) -> bool:
        """Tell whether it is there."""
        return self._info is not None

    def is_file(self) -> bool:
        """Tell whether it is there, and is a file."""
        return self._info is not None and self._info["type"] == "file"

    def is_folder(self) -> bool:
        """Tell whether it is there, and holds files."""
        return self._info is not None and self._info["type"] == "directory"

    def size(self) -> int:
        """Return how many bytes it has, 0 if nobody knows."""
        return int((self._info or {}).get("size") or 0)

    def list_files(self) -> list[str]:
        """Return all files in it, however deep."""
        with self._explaining("read"):
            found = self._fs.find(self._key)
        # Consoles leave an empty object to mark a folder.
        return [self._restore(key) for key in sorted(found) if not key.endswith("/")]

    def match(self) -> list[str]:
        """Return the files that it stands for as a pattern."""
        if not PATTERN.search(self._key):
            return []
        with self._explaining("read"):
            found = self._fs.glob(self._key, detail=True)
        return [self._restore(key) for key in sorted(found) if found[key]["type"] == "file"]

    def _restore(self, key: str) -> str:
        if self.protocol in BUCKETS:
            return f"{self.protocol}://{key}"
        return str(self._fs.unstrip_protocol(key))

    def open(self, *, seekable: bool = False) -> IO[bytes]:  # noqa: ARG002 (it always is)
        """Open it for reading."""
        return cast("IO[bytes]", io.BufferedReader(self._open_ranges(), BLOCK))

    @contextmanager
    def for_arrow(self) -> Iterator[Any]:
        """Give a file without a buffer."""
        with self._open_ranges() as file:
            yield file

    def _open_ranges(self) -> RangeFile:
        with self._explaining("read"):
            file = self._fs.open(self._key, "rb", cache_type="none")

        def fetch(start: int, end: int) -> bytes:
            with self._explaining("read"):
                file.seek(start)
                content = bytes(file.read(end - start))
            if len(content) < end - start:
                msg = f"{self.name} cannot be read (it ends at byte {start + len(content):,})"
                raise FileError(msg)
            return content

        return RangeFile(fetch, self.size())

    def check_writable(self) -> None:
        """Raise if there is no such bucket; who may write is seen in writing only."""
        if self.protocol not in BUCKETS:
            return
        bucket, _, key = self._key.partition("/")
        if not key:
            msg = f"{self.name} cannot be written: name a file in the bucket"
            raise FileError(msg)
        with self._explaining("written"), suppress(PermissionError):
            self._fs.info(bucket)

    @contextmanager
    def writing(self) -> Iterator[IO[bytes]]:
        """Give a file to write to; it appears if nothing went wrong, or else not at all."""
        part = self._upload if self.protocol in UPLOADS else self._rename
        with part() as file:
            yield file

    @contextmanager
    def _upload(self) -> Iterator[IO[bytes]]:
        with self._explaining("written"):
            file = self._fs.open(self._key, "wb", autocommit=False)
        try:
            yield _Careful(file, self._explaining)  # type: ignore[misc]
            with self._explaining("written"):
                file.close()
                file.commit()
        except BaseException:
            with suppress(Exception):
                file.discard()
            raise
        finally:
            file.closed = True  # or else it would be closed once more when it is let go

    @contextmanager
    def _rename(self) -> Iterator[IO[bytes]]:
        folder, slash, name = self._key.rpartition("/")
        part = f"{folder}{slash}.{name}.{secrets.token_hex(4)}.part"
        with self._explaining("written"):
            file = self._fs.open(part, "wb")
        try:
            yield _Careful(file, self._explaining)  # type: ignore[misc]
            with self._explaining("written"):
                file.close()
                if self._fs.exists(self._key):
                    self._fs.rm_file(self._key)
                self._fs.mv(part, self._key)
        except BaseException:
            with suppress(Exception):
                file.close()
            with suppress(Exception):
                self._fs.rm_file(part)
            raise


class _Careful:
    """A file that is written to, whose errors are explained, and which whoever gave it closes."""

    def __init__(self, file: Any, explaining: Any) -> None:
        self.file, self.explaining, self.closed = file, explaining, False

    def write(self, content: Any) -> int:
        with self.explaining("written"):
            return self.file.write(content)

    def tell(self) -> int:
        return self.file.tell()

    def flush(self) -> None:
        """Do nothing: parts are sent when they are large enough."""

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False
