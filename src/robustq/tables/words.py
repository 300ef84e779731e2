"""Texts that repeat, as dictionaries of those that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from robustq.arrays import Codes, Indices

__all__ = ["Eights", "Words", "copy_words", "encode_words", "view_eights"]

Eights = np.ndarray[Any, np.dtype[np.uint64]]

FEW_ROWS = 1 << 12  # Arrow is done with them before a kernel is found
MOST_WORDS = 1 << 12  # of more, they hardly repeat
MOST_BYTES = 1 << 16  # of the words of a column
LEAST_BYTES = 16


def view_eights(text: Any, size: int) -> Eights:
    """Return the eight bytes that begin at each byte of a text, but the last seven, as numbers."""
    return np.ndarray(size - 7, np.uint64, text, strides=(1,))


class Words:
    """The words of some columns, in the order in which they first come.

    Parameters
    ----------
    columns : int
    """

    def __init__(self, columns: int) -> None:
        from . import _word_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        slots = 1 << _word_kernels.SLOT_BITS
        self._slots = np.empty((columns, slots), np.uint64), np.zeros((columns, slots), np.int32)
        self._counts = np.zeros(columns, np.int64)
        self._kept = np.empty((columns, MOST_BYTES), np.uint8)
        shape, strides = (columns, MOST_BYTES - 7), (MOST_BYTES, 1)
        self._kept_eights = np.ndarray(shape, np.uint64, self._kept.data, strides=strides)
        self._offsets = np.zeros((columns, MOST_WORDS + 1), np.int32)
        self._lists: list[pa.Array] = [pa.array([], pa.string())] * columns

    def encode(
        self, eights: Eights, begins: Codes, ends: Codes, chosen: Indices, codes: Codes, at: int = 0
    ) -> bool:
        """Write which words some cells of rows have; tell whether there was room for all words.

        Parameters
        ----------
        eights : ndarray
            See `view_eights`.
        begins, ends : ndarray of shape (rows, cells)
            Where the cells of each row begin and end.
        chosen : ndarray of shape (columns,)
            Which cells.
        codes : ndarray of shape (columns, …)
            Written, from one place on.
        at : int
            That place.
        """
        from . import _word_kernels  # noqa: PLC0415 (numba is imported when it is needed)

        known = *self._slots, self._counts, self._kept, self._kept_eights, self._offsets
        return bool(_word_kernels.encode(eights, begins, ends, chosen, *known, codes, at))

    def as_dictionary(self, column: int, codes: NDArray[np.int32]) -> pa.DictionaryArray:
        """Return the values of a column."""
        count = int(self._counts[column])
        if len(self._lists[column]) < count:
            offsets = self._offsets[column, : count + 1].copy()
            text = self._kept[column, : offsets[-1]].copy()
            parts = pa.py_buffer(offsets), pa.py_buffer(text)
            self._lists[column] = pa.StringArray.from_buffers(count, *parts)
        # Every code is that of a word.
        return pa.DictionaryArray.from_arrays(pa.array(codes), self._lists[column], safe=False)


def copy_words(eights: Eights, begins: Codes, ends: Codes, cell: int) -> pa.StringArray:
    """Return one cell of each row as text.

    Parameters
    ----------
    eights, begins, ends : see `Words.encode`
        Eight more bytes can be read behind the last cell.
    cell : int
        Which.
    """
    from . import _word_kernels  # noqa: PLC0415 (numba is imported when it is needed)

    size = int((ends[:, cell] - begins[:, cell]).sum(dtype=np.int64))
    text, offsets = np.empty(size + 8, np.uint8), np.empty(len(begins) + 1, np.int32)
    room = view_eights(text.data, size + 8)
    _word_kernels.copy_words(eights, begins, ends, cell, room, offsets)
    return pa.StringArray.from_buffers(len(begins), pa.py_buffer(offsets), pa.py_buffer(text))


def encode_words(values: pa.StringArray) -> pa.DictionaryArray:
    """Return texts as a dictionary, its words in the order in which they first come.

    It is what `dictionary_encode` makes, in a quarter of the time where words are few and short.

    Examples
    --------
    >>> encode_words(pa.array(["b", "a", "b"])).indices.to_pylist()
    [0, 1, 0]
    """
    _, offsets, text = values.buffers()
    if len(values) < FEW_ROWS or values.null_count or text is None or text.size < LEAST_BYTES:
        return values.dictionary_encode()
    places = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    words, codes = Words(1), np.empty((1, len(values)), np.int32)
    cells = places[:-1].reshape(-1, 1), places[1:].reshape(-1, 1)
    if not words.encode(view_eights(text, text.size), *cells, np.zeros(1, np.int64), codes):
        return values.dictionary_encode()
    return words.as_dictionary(0, codes[0])
