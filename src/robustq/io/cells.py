"""Plain CSV, cut into cells by a kernel: words of some length, in half of the time Arrow takes.

What is plain, `_cell_kernels` tells; the rest of a text, from where it is not, is left to Arrow.
"""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from robustq.tables.words import Words, copy_words, view_eights

from .utf8 import CSV_BLOCK

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator, Sequence

    from robustq.arrays import Codes

    from .utf8 import Utf8

__all__ = ["PlainCells", "is_worth_it"]

LEAST_BYTES = 1 << 25  # what is smaller, Arrow has read before kernels are found
LEAST_ROWS = 1 << 10  # of smaller batches, each costs too much of its own
MOST_COLUMNS = 1 << 10
ROOM = 1 << 17  # rows of a batch that there is room for at first
MARK = codecs.BOM_UTF8  # which Arrow leaves out where a text begins with it
SPARE = 64  # bytes that are looked at behind those that count


def is_worth_it(size: int, columns: int, batch_rows: int) -> bool:
    """Tell whether to try with a text of so many bytes; lines of one column may be empty."""
    return size >= LEAST_BYTES and 1 < columns <= MOST_COLUMNS and batch_rows >= LEAST_ROWS


class PlainCells:
    """The rows of a CSV text, as long as it is plain.

    Parameters
    ----------
    text : Utf8
        What is not plain of it is given back.
    delimiter : str
    names : sequence of str
    wanted : sequence of str
        Of the names, in the order in which they are wanted.
    repeating : collection of str
        The columns that become dictionaries.

    Attributes
    ----------
    rows : int
        How many were read, with the one that names the columns.
    is_done : bool
        Whether all of it was plain.
    """

    def __init__(
        self,
        text: Utf8,
        delimiter: str,
        names: Sequence[str],
        wanted: Sequence[str],
        repeating: Collection[str],
    ) -> None:
        self.text, self.delimiter = text, ord(delimiter)
        self.rows, self.is_done = 0, False
        position = {name: place for place, name in enumerate(wanted)}
        self._places = np.array([position.get(name, -1) for name in names], np.int64)
        self._columns = _Columns(wanted, repeating)
        self._bytes = np.zeros(SPARE, np.uint8)
        self._size, self._mark = 0, b""
        self._begins = self._ends = np.empty((0, len(wanted)), np.int32)

    def read(self, batch_rows: int, *, header: bool) -> Iterator[pa.Table]:
        """Yield tables of so many rows, the last one of fewer.

        Parameters
        ----------
        batch_rows : int
        header : bool
            Whether the first row names the columns.
        """
        self._skip_mark()
        while piece := self.text.read(CSV_BLOCK):
            end = self._append(piece)
            if not end and self._size <= CSV_BLOCK:
                continue
            rows = self._cut(end)
            done = yield from self._gather(int(header and not self.rows), rows, batch_rows)
            self.rows += done
            if done < rows or rows <= 0:
                self._give_back(done, end, len(piece))
                break
            self._bytes[: self._size - end] = self._bytes[end : self._size].copy()
            self._size -= end
        else:
            self.is_done = True
        if self._columns.rows:
            yield self._columns.finish()

    def _skip_mark(self) -> None:
        first = self.text.read(CSV_BLOCK)
        self._mark = MARK if first.startswith(MARK) else b""
        self.text.give_back(first[len(self._mark) :])

    def _append(self, piece: bytes) -> int:
        """Keep a piece behind what is left of others; return where its last row ends, or 0."""
        size = self._size + len(piece)
        if len(self._bytes) < size + SPARE:
            room = np.zeros(2 * size + SPARE, np.uint8)
            room[: self._size] = self._bytes[: self._size]
            self._bytes = room
        self._bytes[self._size : size] = np.frombuffer(piece, np.uint8)
        last = piece.rfind(b"\n")
        end = self._size + last + 1 if last >= 0 else 0
        self._size = size
        return end

    def _cut(self, end: int) -> int:
        """Find the cells of the rows that end before some byte; return how many, or less than 1."""
        from . import _cell_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        # In a row each cell takes a byte at least, but for the row that is told to be too short.
        most = end // len(self._places) + 1
        if len(self._begins) < most:
            shape = most, self._begins.shape[1]
            self._begins, self._ends = np.empty(shape, np.int32), np.empty(shape, np.int32)
        found = self._begins, self._ends
        return int(_cell_kernels.cut(self._bytes, end, self.delimiter, self._places, *found))

    def _gather(self, done: int, rows: int, batch_rows: int) -> Generator[pa.Table, None, int]:
        """Yield batches that are full; return how many rows found their place."""
        eights = view_eights(self._bytes, len(self._bytes))
        while done < rows:
            some = slice(done, min(rows, done + batch_rows - self._columns.rows))
            if not self._columns.add(eights, self._begins[some], self._ends[some], batch_rows):
                return done
            done = some.stop
            if self._columns.rows == batch_rows:
                yield self._columns.finish()
        return max(rows, 0)

    def _give_back(self, done: int, end: int, last: int) -> None:
        """Give back all but the rows that were read, in pieces as they came."""
        start = 0
        if done:
            start = int(np.flatnonzero(self._bytes[:end] == ord("\n"))[done - 1]) + 1
        middle = max(start, self._size - last)
        some = self._bytes[start:middle].tobytes(), self._bytes[middle : self._size].tobytes()
        first, *others = [piece for piece in some if piece]
        # Whoever reads on leaves a mark out where the text begins: here it may be none.
        mark = (MARK if first.startswith(MARK) else b"") if self.rows else self._mark
        self.text.give_back(mark + first, *others)


class _Columns:
    """The columns of a batch that becomes full."""

    def __init__(self, wanted: Sequence[str], repeating: Collection[str]) -> None:
        self.wanted, self.rows = wanted, 0
        is_coded = np.array([name in repeating for name in wanted], bool)
        self.coded, self.others = np.flatnonzero(is_coded), np.flatnonzero(~is_coded)
        self.words, self.codes = Words(len(self.coded)), np.empty((len(self.coded), 0), np.int32)
        self.texts: list[list[pa.Array]] = [[] for _ in self.others]

    def add(self, eights: Any, begins: Codes, ends: Codes, most: int) -> bool:
        """Add rows, of so many in all; tell whether there was room for all their words."""
        rows = self.rows + len(begins)
        if self.codes.shape[1] < rows:
            # As many again, for the rows of other pieces.
            codes = np.empty((len(self.coded), min(most, max(2 * rows, ROOM))), np.int32)
            codes[:, : self.rows] = self.codes[:, : self.rows]
            self.codes = codes
        if not self.words.encode(eights, begins, ends, self.coded, self.codes, self.rows):
            return False
        for parts, cell in zip(self.texts, self.others.tolist(), strict=True):
            parts.append(copy_words(eights, begins, ends, cell))
        self.rows = rows
        return True

    def finish(self) -> pa.Table:
        """Return the batch, and begin another one."""
        found: dict[int, Any] = {}
        for column, cell in enumerate(self.coded.tolist()):
            found[cell] = self.words.as_dictionary(column, self.codes[column, : self.rows])
        for parts, cell in zip(self.texts, self.others.tolist(), strict=True):
            found[cell] = pa.chunked_array(parts, pa.string())
            parts.clear()
        # Whoever has these keeps their codes.
        self.rows, self.codes = 0, np.empty((len(self.coded), 0), np.int32)
        return pa.table({name: found[cell] for cell, name in enumerate(self.wanted)})
