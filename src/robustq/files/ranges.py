"""A file elsewhere that is read in ranges: from anywhere in it, and no more than is needed."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BLOCK", "RangeFile"]

BLOCK = 1 << 23  # bytes that are asked for at once, where a file is read from its beginning


class RangeFile(io.RawIOBase):
    """A file whose bytes from a place to another can be had.

    Parameters
    ----------
    fetch : callable
        Takes where to begin and where to end, and returns all bytes between them.
    size : int
    """

    def __init__(self, fetch: Callable[[int, int], bytes], size: int) -> None:
        self.fetch, self.size, self.position = fetch, size, 0

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def seekable(self) -> bool:
        """Tell that it can be read from anywhere."""
        return True

    def tell(self) -> int:
        """Return the place of the next byte."""
        return self.position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self.position, io.SEEK_END: self.size}[whence]
        self.position = max(0, origin + offset)
        return self.position

    def readinto(self, room: Any) -> int:
        """Read as much as there is room for."""
        end = min(self.position + len(room), self.size)
        if end <= self.position:
            return 0
        content = self.fetch(self.position, end)
        room[: len(content)] = content
        self.position += len(content)
        return len(content)
