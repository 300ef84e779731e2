"""Text in any encoding, as the UTF-8 that tables are read from."""

from __future__ import annotations

import codecs
import io
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from robustq.exceptions import InputError

from .sniffing import squeeze

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CSV_BLOCK", "Squeezed", "Utf8", "size_pieces"]

CSV_BLOCK = 1 << 23  # bytes; a row must fit into one
# So much of a text is read at a time: what is made of more does not stay in a core's own cache, and
# the system must clear more memory for it. Each column of each piece costs a little of its own.
PIECE, COLUMN_PIECE = 1 << 20, 1 << 16
LINE_END = ord("\n")
# They keep what is ASCII, and write whole characters only.
PLAIN = ("utf-8", "utf-8-sig", "cp1252", "iso8859-1")


def size_pieces(columns: int) -> int:
    """Return how many bytes of a text with so many columns are best read at a time."""
    return min(max(PIECE, columns * COLUMN_PIECE), CSV_BLOCK)


class Utf8(io.RawIOBase):
    """What was read already, and then the rest, in UTF-8; it ends with a line that ends.

    It comes in pieces of about the size that is asked for, in each of which a line ends, if its
    lines are no longer; or as it was given back.

    Attributes
    ----------
    is_valid : bool
        Whether what comes is UTF-8 for certain: some encodings can write halves of characters.

    Raises
    ------
    InputError
        Where the file is not written in its encoding, or ends within a character.
    """

    def __init__(
        self, first: bytes, rest: Any, encoding: str, name: str, piece: int = CSV_BLOCK
    ) -> None:
        self.name, self.encoding, self.piece = name, encoding, piece
        self.decoder = codecs.getincrementaldecoder(encoding)()
        self.is_valid = codecs.lookup(encoding).name in PLAIN
        self.line, self.ready = 1, memoryview(b"")
        self.pieces: Iterator[bytes] = self._cut(first, rest)

    def readable(self) -> bool:
        """Say yes."""
        return True

    def readinto(self, room: Any) -> int:
        """Fill some room, and tell how much."""
        self.ready = self.ready or memoryview(next(self.pieces, b""))
        content, self.ready = self.ready[: len(room)], self.ready[len(room) :]
        room[: len(content)] = content
        return len(content)

    def read(self, size: int = -1) -> bytes:
        """Return what is ready, at most so much: mostly as it was read, without a copy."""
        if size < 0:
            return self.readall()
        if not self.ready:
            piece = next(self.pieces, b"")
            if len(piece) <= size:
                return piece
            self.ready = memoryview(piece)
        content, self.ready = self.ready[:size], self.ready[size:]
        return bytes(content)

    def give_back(self, *pieces: bytes) -> None:
        """Let what was read be read again, in these pieces."""
        waiting = [piece for piece in (*pieces, bytes(self.ready)) if piece]
        self.ready, self.pieces = memoryview(b""), itertools.chain(waiting, self.pieces)

    def _cut(self, content: bytes, rest: Any) -> Iterator[bytes]:
        text = self._decode(content)
        while content := self._take(rest):
            if text:
                yield text
            text = content if self._is_plain(content) else self._decode(content)
        text += self._decode(b"", final=True)
        yield text if text.endswith(b"\n") else text + b"\n"

    def _take(self, rest: Any) -> bytes:
        """Return what comes next; as much as a row may have, if no line ends before."""
        content = rest.read(self.piece)
        while content and b"\n" not in content and len(content) < CSV_BLOCK:
            more = rest.read(self.piece)
            if not more:
                break
            content += more
        return content

    def _is_plain(self, content: bytes) -> bool:
        """Tell whether bytes are UTF-8 as they stand, as is quickly seen of most; count lines."""
        pending = self.decoder.getstate()[0]
        if pending or not self.is_valid or not content.isascii():
            return False
        # By numpy, which takes a quarter of the time that counting in bytes does.
        self.line += int(np.count_nonzero(np.frombuffer(content, np.uint8) == LINE_END))
        return True

    def _decode(self, content: bytes, *, final: bool = False) -> bytes:
        try:
            text = self.decoder.decode(content, final)
        except UnicodeDecodeError as error:
            line = self.line + error.object[: error.start].count(b"\n")
            wrong = f"is not written in {self.encoding} (line {line}): give its encoding"
            what = "ends within a character: it is cut off" if final else f"{wrong} (--encoding)"
            msg = f"{self.name} {what}"
            raise InputError(msg) from error
        self.line += text.count("\n")
        return text.encode("utf-8", "surrogatepass")


class Squeezed(io.RawIOBase):
    """Lines whose values are spaced by one space each, however many there were."""

    def __init__(self, stream: io.RawIOBase) -> None:
        self.lines, self.rest = io.BufferedReader(stream), b""

    def readable(self) -> bool:
        """Say yes."""
        return True

    def readinto(self, room: Any) -> int:
        """Fill some room, and tell how much."""
        while not self.rest and (line := self.lines.readline()):
            self.rest = squeeze(line)
        content, self.rest = self.rest[: len(room)], self.rest[len(room) :]
        room[: len(content)] = content
        return len(content)
